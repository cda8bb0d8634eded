//! Stores to test, each in a place of its own.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use overlock_store::{Access, PostgresAddress, Store, StoreAddress, open};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Where `cargo xtask test` says that `PostgreSQL` is.
const VARIABLE: &str = "OVERLOCK_POSTGRES";

/// Runs functions on every engine: each takes a [`Place`] that nobody else has.
macro_rules! on_every_engine {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[test]
            fn $test() {
                super::$test(&crate::engines::Place::in_sqlite());
            })+
        }

        mod postgres {
            $(#[test]
            #[ignore = "needs PostgreSQL: run cargo xtask test"]
            fn $test() {
                super::$test(&crate::engines::Place::in_postgres());
            })+
        }
    };
}
pub(crate) use on_every_engine;

/// Where a store is, or will be. It is gone when this is.
pub(crate) struct Place {
    pub(crate) address: StoreAddress,
    _held: Held,
}

enum Held {
    Folder { _folder: TempDir },
    Schema { _schema: Schema },
}

impl Place {
    pub(crate) fn in_sqlite() -> Self {
        let folder = TempDir::new().expect("a folder");
        Self {
            address: StoreAddress::Sqlite(folder.path().join("store.db")),
            _held: Held::Folder { _folder: folder },
        }
    }

    pub(crate) fn in_postgres() -> Self {
        let schema = Schema::new();
        Self {
            address: StoreAddress::Postgres(Box::new(schema.address.clone())),
            _held: Held::Schema { _schema: schema },
        }
    }

    /// The store, which is made if there is none.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        open(&self.address, Access::Make).expect("a store")
    }
}

/// A schema for one test.
pub(crate) struct Schema {
    pub(crate) address: PostgresAddress,
}

impl Schema {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let given = env::var(VARIABLE).unwrap_or_else(|_| {
            panic!("{VARIABLE} does not say where PostgreSQL is: run cargo xtask test")
        });
        let given: StoreAddress = given.parse().expect("an address");
        let StoreAddress::Postgres(mut address) = given else {
            panic!("{VARIABLE} names another store");
        };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        address.schema = format!("test_{}_{number}", std::process::id());
        Self { address: *address }
    }

    /// Somebody who may do everything.
    pub(crate) fn admin(&self) -> Admin {
        Admin::connect(&self.address)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let schema = &self.address.schema;
        self.admin()
            .run(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
    }
}

/// A connection that the store knows nothing of.
pub(crate) struct Admin {
    runtime: Runtime,
    client: Client,
}

impl Admin {
    fn connect(address: &PostgresAddress) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut config = tokio_postgres::Config::new();
        config
            .user(&address.user)
            .host(&address.host)
            .port(address.port)
            .dbname(&address.database)
            .options(format!("-c search_path={},public", address.schema));
        if let Some(password) = &address.password {
            config.password(&password.0);
        }
        let client = runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await.expect("a server");
            tokio::spawn(connection);
            client
        });
        Self { runtime, client }
    }

    /// The first column of every row that statements give.
    pub(crate) fn run(&self, statements: &str) -> Vec<String> {
        let rows = self.runtime.block_on(self.client.simple_query(statements));
        let rows = rows.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
        let rows = rows.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        rows.collect()
    }
}
