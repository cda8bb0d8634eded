//! A server that ends connections, refuses permissions, or is unreachable.

use std::error::Error;
use std::net::TcpListener;
use std::thread;

use overlock_llm::testing::eventually_blocking;
use overlock_store::{
    Access, Encryption, Filter, NewRun, NodeKind, Password, Query, RunId, Search, Store,
    StoreAddress, StoreError, Vector, open,
};

use crate::engines::Schema;
use crate::sketch::{Random, Sketch, put};
use crate::vectors::check_recall;

fn at(schema: &Schema) -> StoreAddress {
    StoreAddress::Postgres(Box::new(schema.address.clone()))
}

fn begin(store: &dyn Store, at: u64, model: &str) -> Result<RunId, StoreError> {
    let id = RunId::new(at, at);
    store.begin(&NewRun {
        id: &id,
        at,
        model,
        request: "{}",
        options: "{}",
        conditions: "{}",
    })?;
    Ok(id)
}

/// An error with its causes.
fn chain(error: &dyn Error) -> String {
    let source = error.source().map(chain);
    [error.to_string()]
        .into_iter()
        .chain(source)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Ends all connections of the stores in a database, like a restart of the server.
fn end_connections(schema: &Schema) {
    let ended = schema.admin().run(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
         WHERE application_name = 'overlock' AND datname = current_database()",
    );
    assert!(!ended.is_empty());
}

/// A separate database, so that ending its connections affects no other test.
struct Database {
    schema: Schema,
    name: String,
    /// The existing database of the server.
    server: String,
}

impl Database {
    fn new() -> Self {
        let mut schema = Schema::new();
        let name = schema.address.schema.clone();
        schema.admin().run(&format!("CREATE DATABASE {name}"));
        let server = std::mem::replace(&mut schema.address.database, name.clone());
        Self {
            schema,
            name,
            server,
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        self.schema.address.database.clone_from(&self.server);
        let name = &self.name;
        self.schema
            .admin()
            .run(&format!("DROP DATABASE {name} WITH (FORCE)"));
    }
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn a_store_reconnects_after_the_server_ended_its_connections() {
    let database = Database::new();
    let store = open(&at(&database.schema), Access::Create).expect("a store");
    // Opens several connections.
    thread::scope(|scope| {
        for number in 0..4 {
            let store = &store;
            scope.spawn(move || begin(&**store, number, "a-model").expect("a run begins"));
        }
    });
    let id = RunId::new(1, 1);
    let work = store.work_on(&id).expect("a lock");
    let is_held = || work.as_ref().is_some_and(overlock_store::Work::is_held);
    assert!(is_held());
    end_connections(&database.schema);
    eventually_blocking("the lost lock to be noticed", is_held, |is_held| !is_held);
    assert_eq!(store.latest(9).expect("a store").len(), 4);
    begin(&*store, 9, "a-model").expect("a write");
    // The run is unlocked and can be locked again.
    let other = open(&at(&database.schema), Access::Create).expect("a store");
    let taken = other.work_on(&id).expect("a lock");
    assert!(taken.is_some());
    drop(work);
    assert!(store.work_on(&id).expect("a lock").is_none());
    drop(taken);
    assert!(store.work_on(&id).expect("a lock").is_some());
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn a_failed_transaction_acknowledges_nothing() {
    let schema = Schema::new();
    let store = open(&at(&schema), Access::Create).expect("a store");
    let admin = schema.admin();
    admin.run("ALTER TABLE runs ADD CHECK (model <> 'forbidden')");
    let [one, two, three] = [1, 2, 3].map(|at| RunId::new(at, at));
    let run = |id| NewRun {
        id,
        at: 1,
        model: "a-model",
        request: "{}",
        options: "{}",
        conditions: "{}",
    };
    let committed = store.transaction(|writes| {
        writes.begin(&run(&one)).expect("a valid run");
        let forbidden = NewRun {
            model: "forbidden",
            ..run(&two)
        };
        writes.begin(&forbidden).expect_err("a rejected run");
        writes
            .begin(&run(&three))
            .expect_err("an aborted transaction");
    });
    let error = committed.expect_err("an aborted transaction");
    assert!(
        chain(&error).contains("check constraint"),
        "{}",
        chain(&error)
    );
    assert_eq!(store.latest(9).expect("a list").len(), 0);
    // The store still works.
    begin(&*store, 4, "a-model").expect("a write");
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn concurrent_opens_create_one_store() {
    let schema = Schema::new();
    thread::scope(|scope| {
        for number in 0..8 {
            let address = at(&schema);
            scope.spawn(move || {
                let store = open(&address, Access::Create).expect("a store");
                begin(&*store, number, "a-model").expect("a run begins");
            });
        }
    });
    let store = open(&at(&schema), Access::Read).expect("a store");
    assert_eq!(store.latest(20).expect("a list").len(), 8);
    assert_eq!(schema.admin().run("SELECT version FROM store").len(), 1);
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn a_missing_store_is_not_created_for_reading() {
    let schema = Schema::new();
    for access in [Access::Read, Access::Write] {
        let error = open(&at(&schema), access).expect_err("no store");
        assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    }
    let find = format!(
        "SELECT 1 FROM pg_namespace WHERE nspname = '{}'",
        schema.address.schema
    );
    assert_eq!(schema.admin().run(&find), Vec::<String>::new());
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn a_server_without_pgvector_only_has_keyword_search() {
    let mut database = Database::new();
    let name = database.name.clone();
    let admin = database.schema.admin();
    // Without the permission to create in a database, a user cannot create extensions.
    admin.run(&format!(
        "CREATE ROLE {name} LOGIN; CREATE SCHEMA {name} AUTHORIZATION {name}; \
         GRANT CONNECT ON DATABASE {name} TO {name}"
    ));
    let owner = std::mem::replace(&mut database.schema.address.user, name.clone());
    let store = open(&at(&database.schema), Access::Create).expect("a store");
    let sketch = Sketch::new("a.cs").node(NodeKind::Type, "OrderService", "class OrderService");
    put(&*store, std::slice::from_ref(&sketch));
    let query = |search| Query {
        search,
        filter: Filter::default(),
        limit: 9,
    };
    let found = store.search(&query(Search::Keyword("order service")));
    assert_eq!(found.expect("hits").len(), 1);
    let vector = Vector {
        model: "small",
        numbers: &[1.0],
    };
    for refused in [
        store.search(&query(Search::Semantic(vector))).map(drop),
        store
            .search(&query(Search::Hybrid("order", vector)))
            .map(drop),
        store.put_vectors("small", &[(sketch.ids()[0].clone(), &[1.0])]),
        store.without_vector("shop", "small", None, 9).map(drop),
    ] {
        let error = refused.expect_err("no pgvector").to_string();
        assert!(
            error.starts_with("semantic search needs pgvector"),
            "{error}"
        );
    }
    drop(store);
    // Once the extension exists, it is used.
    admin.run("CREATE EXTENSION vector SCHEMA public");
    let store = open(&at(&database.schema), Access::Create).expect("a store");
    let put = store.put_vectors("small", &[(sketch.ids()[0].clone(), &[1.0])]);
    put.expect("a stored value");
    let found = store.search(&query(Search::Semantic(vector)));
    assert_eq!(found.expect("hits").len(), 1);
    drop(store);
    database.schema.address.user = owner;
    admin.run(&format!(
        "DROP SCHEMA {name} CASCADE; DROP OWNED BY {name}; DROP ROLE {name}"
    ));
}

/// From ten thousand vectors on a model has an index.
#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn almost_nothing_is_missed_among_very_many_vectors() {
    let schema = Schema::new();
    let store = open(&at(&schema), Access::Create).expect("a store");
    let mut random = Random(7);
    let mut near = |centre: &[f32], spread: f32| -> Vec<f32> {
        let numbers = centre
            .iter()
            .map(|number| number + spread * random.normal());
        numbers.collect()
    };
    let centres: Vec<Vec<f32>> = (0..100).map(|_| near(&[0.0; 64], 1.0)).collect();
    let vectors: Vec<Vec<f32>> = (0..12_000)
        .map(|place| near(&centres[place % 100], 0.5))
        .collect();
    let queries: Vec<Vec<f32>> = (0..40).map(|place| near(&centres[place], 0.5)).collect();
    check_recall(&*store, &vectors, &queries);
    let find = "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() \
                AND indexdef LIKE '%hnsw%'";
    assert_eq!(schema.admin().run(find).len(), 1);
    let plan = schema.admin().run(
        "SET enable_seqscan = off; EXPLAIN SELECT node FROM vectors WHERE model = 1 \
         ORDER BY vector::vector(64) <#> array_fill(1::real, ARRAY[64])::vector(64) LIMIT 20",
    );
    assert!(plan.join(" ").contains("vectors_of_1"), "{plan:?}");
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn tables_of_a_newer_version_are_rejected() {
    let schema = Schema::new();
    drop(open(&at(&schema), Access::Create).expect("a store"));
    schema.admin().run("UPDATE store SET version = 99");
    for access in [Access::Create, Access::Write, Access::Read] {
        let error = open(&at(&schema), access).expect_err("a newer version");
        assert!(
            matches!(error, StoreError::Newer { found: 99, .. }),
            "{error}"
        );
    }
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn common_words_are_known_and_rare_ones_decide() {
    let schema = Schema::new();
    let store = open(&at(&schema), Access::Create).expect("a store");
    let sketches: Vec<Sketch> = (0..150)
        .map(|file| {
            let sketch = Sketch::new(&format!("{file}.cs"));
            (0..20).fold(sketch, |sketch, node| {
                let text = if (file, node) == (140, 7) {
                    "common zeppelin".to_owned()
                } else {
                    format!("common words of {}", (file * node) % 50)
                };
                sketch.node(NodeKind::Method, &format!("A{file}.B{node}"), &text)
            })
        })
        .collect();
    put(&*store, &sketches);
    let known = schema.admin().run(
        "SELECT 'common' = ANY (most_common_elems::text::text[]) FROM pg_stats \
         WHERE schemaname = current_schema() AND tablename = 'nodes' AND attname = 'words'",
    );
    assert_eq!(known, ["t"]);
    for (text, first) in [
        ("common zeppelin", "A140.B7"),
        ("zeppelin common nowhere", "A140.B7"),
    ] {
        let query = Query {
            search: Search::Keyword(text),
            filter: Filter::default(),
            limit: 5,
        };
        let hits = store.search(&query).expect("hits");
        assert_eq!(hits[0].node.qualified, first, "{text}");
    }
    let query = Query {
        search: Search::Keyword("common words"),
        filter: Filter::default(),
        limit: 500,
    };
    assert!(store.search(&query).expect("hits").len() >= 300);
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn a_missing_permission_is_reported_without_the_password() {
    let schema = Schema::new();
    let admin = schema.admin();
    let name = &schema.address.schema;
    admin.run(&format!("CREATE ROLE {name} LOGIN PASSWORD 'KoZ8w'"));
    let mut other = schema.address.clone();
    other.user.clone_from(name);
    other.password = Some(Password("KoZ8w".into()));
    let other = StoreAddress::Postgres(Box::new(other));
    let check = |error: StoreError, words: &str| {
        assert!(matches!(error, StoreError::Forbidden { .. }), "{error:?}");
        let message = chain(&error);
        assert!(
            message.contains(words) && message.contains(name),
            "{message}"
        );
        assert!(
            !format!("{message} {error:?}").contains("KoZ8w"),
            "{message}"
        );
    };
    let refused = open(&other, Access::Create).expect_err("no permission");
    check(refused, "permission denied for database");
    drop(open(&at(&schema), Access::Create).expect("a store"));
    for access in [Access::Create, Access::Write, Access::Read] {
        let refused = open(&other, access).expect_err("no permission");
        check(refused, "permission denied for schema");
    }
    admin.run(&format!(
        "GRANT USAGE ON SCHEMA {name} TO {name}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {name}"
    ));
    let reader = open(&other, Access::Read).expect("a store");
    assert_eq!(reader.latest(9).expect("a list").len(), 0);
    let writer = open(&other, Access::Write).expect("a store");
    let refused = begin(&*writer, 1, "a-model").expect_err("no permission");
    check(refused, "permission denied for table runs");
    let refused = writer.set_folder("shop", "/a", None);
    check(
        refused.expect_err("no permission"),
        "permission denied for table repositories",
    );
    drop((reader, writer));
    admin.run(&format!("DROP OWNED BY {name}; DROP ROLE {name}"));
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn tables_of_another_program_are_not_changed() {
    for table in [
        "CREATE TABLE runs (id text, distance real)",
        "CREATE TABLE runs (id text); CREATE TABLE steps (id text); CREATE TABLE store (id text)",
    ] {
        let schema = Schema::new();
        let admin = schema.admin();
        admin.run(&format!("CREATE SCHEMA {}", schema.address.schema));
        admin.run(table);
        for access in [Access::Create, Access::Write, Access::Read] {
            let error = open(&at(&schema), access).expect_err("another program");
            assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        }
        let columns = "SELECT count(*) FROM information_schema.columns \
                       WHERE table_schema = current_schema()";
        assert!(["2", "3"].contains(&&*admin.run(columns)[0]));
    }
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn no_error_shows_a_password() {
    let schema = Schema::new();
    let admin = schema.admin();
    let user = &schema.address.schema;
    admin.run(&format!("CREATE ROLE {user} PASSWORD 'KoZ8w' NOLOGIN"));
    let mut address = schema.address.clone();
    address.user.clone_from(user);
    address.password = Some(Password("KoZ8w".into()));
    let address = StoreAddress::Postgres(Box::new(address));
    let error = open(&address, Access::Create).expect_err("it may not connect");
    assert!(chain(&error).contains(user), "{}", chain(&error));
    for shown in [
        chain(&error),
        format!("{error:?}"),
        format!("{address:?} {address}"),
    ] {
        assert!(!shown.contains("KoZ8w"), "{shown}");
    }
    admin.run(&format!("DROP ROLE {user}"));

    let mut address = schema.address.clone();
    address.password = Some(Password("KoZ8w".into()));
    let address = StoreAddress::Postgres(Box::new(address));
    let store = open(&address, Access::Create).expect("a store");
    let shown = format!("{store:?}");
    assert!(!shown.contains("KoZ8w"), "{shown}");
}

#[test]
#[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
fn sslmode_require_rejects_a_server_without_encryption() {
    let schema = Schema::new();
    for (encryption, is_right) in [
        (Encryption::Disable, true),
        (Encryption::Prefer, true),
        (Encryption::Require, false),
    ] {
        let mut address = schema.address.clone();
        address.encryption = encryption;
        let opened = open(&StoreAddress::Postgres(Box::new(address)), Access::Create);
        assert_eq!(opened.is_ok(), is_right, "{encryption:?}: {opened:?}");
    }
}

#[test]
fn an_unreachable_server_is_reported_with_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let address = format!("postgres://me:KoZ8w@127.0.0.1:{port}/runs");
    let error = open(&address.parse().expect("an address"), Access::Create);
    let error = chain(&error.expect_err("an unreachable server"));
    let place = format!("could not open the store `postgres://me@127.0.0.1:{port}/runs`: ");
    assert!(error.starts_with(&place), "{error}");
    assert!(!error.contains("KoZ8w"), "{error}");
}

#[test]
fn connecting_to_a_silent_server_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let address = format!("postgres://me@127.0.0.1:{port}/runs?connect_timeout=1");
    let error = open(&address.parse().expect("an address"), Access::Create);
    let error = chain(&error.expect_err("a silent server"));
    assert!(
        error.ends_with("the server did not answer within 1s"),
        "{error}"
    );
}

#[test]
fn an_unreadable_certificate_is_reported_with_its_file() {
    let address = "postgres://me@127.0.0.1/runs?sslmode=require&sslrootcert=no-such-file.pem";
    let error = open(&address.parse().expect("an address"), Access::Create);
    let error = chain(&error.expect_err("a missing file"));
    assert!(error.contains("no-such-file.pem"), "{error}");
}
