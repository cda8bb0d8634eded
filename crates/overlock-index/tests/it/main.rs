//! Indexes folders that appear, change and disappear, and checks what is stored.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use overlock_index::{
    Filled, Ignored, IndexError, IndexOptions, Indexed, Observe, SkipReason, VectorsError,
    fill_vectors, index,
};
use overlock_store::{Direction, EdgeKind, Filter, Hit, NodeKind, Query, Search, Store, Walk};
use tempfile::TempDir;

fn up_to(largest: u64) -> IndexOptions {
    IndexOptions {
        largest,
        ..IndexOptions::default()
    }
}

struct Shop {
    folder: TempDir,
    store: Arc<dyn Store>,
}

impl Shop {
    fn new() -> Self {
        let shop = Self {
            folder: TempDir::new().expect("a folder can be made"),
            store: overlock_store::in_memory().expect("it needs nothing"),
        };
        shop.write(
            "src/Orders.cs",
            "namespace Shop;\nclass Orders(Log log) : IOrders\n{\n    public void Close(int id)\n    {\n        log.Note(id);\n        Run(\"UPDATE dbo.Orders SET Closed = 1\");\n    }\n}\n",
        );
        shop.write(
            "src/Log.cs",
            "namespace Shop;\nclass Log\n{\n    public void Note(int id) { }\n}\n",
        );
        shop.write(
            "db/orders.sql",
            "CREATE TABLE dbo.Orders (Id int PRIMARY KEY)\nGO\n",
        );
        shop
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.folder.path().join(path);
        let folder = file.parent().expect("it is below the folder");
        fs::create_dir_all(folder).expect("the folder is ours");
        fs::write(file, content).expect("the folder is ours");
    }

    fn index(&self) -> Indexed {
        self.index_with(IndexOptions::default(), &mut Ignored)
    }

    fn index_with(&self, options: IndexOptions, observer: &mut dyn Observe) -> Indexed {
        let done = index(&*self.store, "shop", self.folder.path(), options, observer)
            .expect("the folder is there");
        // Every file is counted exactly once.
        assert_eq!(
            done.files,
            done.changed + done.unchanged + done.left_out(),
            "{done:?}"
        );
        done
    }

    fn paths(&self) -> BTreeSet<String> {
        let files = self.store.files("shop").expect("it can be read");
        files.into_iter().map(|file| file.path).collect()
    }

    fn find(&self, words: &str) -> Vec<Hit> {
        let query = Query {
            search: Search::Keyword(words),
            filter: Filter::default(),
            limit: 10,
        };
        self.store.search(&query).expect("it can be searched")
    }

    /// The names of the nodes that edges of a kind lead to from the named node.
    fn reached(&self, name: &str, kind: EdgeKind) -> Vec<String> {
        let mut found = self.find(name).into_iter().map(|hit| hit.node);
        let from = found
            .find(|node| node.qualified == name)
            .unwrap_or_else(|| panic!("there is no {name}"));
        let walk = Walk {
            depth: 1,
            count: 20,
            kinds: &[kind],
            direction: Direction::Forward,
        };
        let reached = self
            .store
            .walk(&[from.id], &walk)
            .expect("it can be walked");
        let ids: Vec<_> = reached
            .into_iter()
            .skip(1)
            .map(|reached| reached.id)
            .collect();
        let nodes = self.store.nodes(&ids).expect("they are there");
        nodes.into_iter().map(|node| node.qualified).collect()
    }
}

#[test]
fn edges_cross_files_and_languages() {
    let shop = Shop::new();
    let done = shop.index();
    assert_eq!(
        (done.files, done.changed, done.unchanged, done.removed),
        (3, 3, 0, 0)
    );
    assert_eq!(
        shop.reached("Shop.Orders.Close", EdgeKind::Calls),
        ["Shop.Log.Note"]
    );
    assert_eq!(
        shop.reached("Shop.Orders.Close", EdgeKind::WritesTable),
        ["dbo.Orders"]
    );
    let hit = shop.find("Close").swap_remove(0).node;
    assert_eq!(
        (hit.kind, hit.lines, &*hit.path),
        (NodeKind::Method, (4, 8), "src/Orders.cs")
    );
    assert_eq!(
        (&*hit.language, &*hit.metadata),
        ("dotnet", r#"{"syntax":"csharp","detail":"method"}"#)
    );
}

#[test]
fn imports_decide_between_types_of_the_same_name() {
    let shop = Shop::new();
    for namespace in ["X", "Y"] {
        shop.write(
            &format!("{namespace}.cs"),
            format!("namespace {namespace};\nclass Foo\n{{\n    public Foo(int a) {{ }}\n    public virtual void Run() {{ }}\n}}\ninterface Shape {{ }}\n"),
        );
    }
    let write = |using: &str| {
        let text = "namespace App;\nclass Main : X.Foo\n{\n    Main() : base(1) { }\n    void Said(X.Foo f) { f.Run(); }\n    void Used(Foo f) { f.Run(); }\n    override void Run() { base.Run(); }\n}\nclass Square : X.Shape { }\n";
        shop.write("App.cs", format!("{using}\n{text}"));
        shop.index();
    };
    write("using Y;");
    let calls = |of: &str| shop.reached(of, EdgeKind::Calls);
    assert_eq!(calls("App.Main.Said"), ["X.Foo.Run"]);
    assert_eq!(calls("App.Main.Used"), ["Y.Foo.Run"]);
    assert_eq!(calls("App.Main.Run"), ["X.Foo.Run"]);
    assert_eq!(calls("App.Main.Main"), ["X.Foo", "X.Foo.Foo"]);
    assert_eq!(shop.reached("App.Main", EdgeKind::Inherits), ["X.Foo"]);
    assert_eq!(
        shop.reached("App.Square", EdgeKind::Implements),
        ["X.Shape"]
    );
    assert!(shop.reached("App.Square", EdgeKind::Inherits).is_empty());

    // If the file does not decide, all of them are.
    write("using System;");
    assert_eq!(calls("App.Main.Used"), ["X.Foo.Run", "Y.Foo.Run"]);
    assert_eq!(calls("App.Main.Said"), ["X.Foo.Run"]);

    // A class is inherited from, not implemented.
    shop.write("X.cs", "namespace X;\nclass Shape { }\n");
    shop.index();
    assert_eq!(shop.reached("App.Square", EdgeKind::Inherits), ["X.Shape"]);
    assert!(shop.reached("App.Square", EdgeKind::Implements).is_empty());
}

#[test]
fn the_order_of_nodes_does_not_depend_on_which_worker_is_first() {
    let shop = Shop::new();
    for file in 0..40 {
        // Every other file takes much longer to read than the one after it.
        let methods = if file % 2 == 0 { 200 } else { 1 };
        let methods = "    void Other() { }\n".repeat(methods);
        shop.write(
            &format!("many/{file:02}.cs"),
            format!("class Many{file:02}\n{{\n    void Same() {{ }}\n{methods}}}\n"),
        );
    }
    shop.index();
    let query = Query {
        search: Search::Keyword("Same"),
        filter: Filter::default(),
        limit: 100,
    };
    let mut hits = shop.store.search(&query).expect("it can be searched");
    hits.retain(|hit| hit.node.name == "Same");
    let paths: Vec<_> = hits.iter().map(|hit| hit.node.path.clone()).collect();
    let expected: Vec<_> = (0..40).map(|file| format!("many/{file:02}.cs")).collect();
    assert_eq!(paths, expected);
}

#[test]
fn skips_unchanged_files_and_removes_deleted_ones() {
    let shop = Shop::new();
    shop.index();
    let again = shop.index();
    assert_eq!((again.changed, again.unchanged, again.nodes), (0, 3, 0));

    shop.write(
        "src/Log.cs",
        "namespace Shop;\nclass Log { public void Other() { } }\n",
    );
    fs::remove_file(shop.folder.path().join("db/orders.sql")).expect("it is there");
    let changed = shop.index();
    assert_eq!(
        (changed.changed, changed.unchanged, changed.removed),
        (1, 1, 1)
    );
    assert!(
        shop.reached("Shop.Orders.Close", EdgeKind::Calls)
            .is_empty()
    );
    assert!(
        shop.reached("Shop.Orders.Close", EdgeKind::WritesTable)
            .is_empty()
    );

    // Existing mentions find the restored table again.
    shop.write("db/orders.sql", "CREATE TABLE dbo.Orders (Id int)\nGO\n");
    shop.index();
    assert_eq!(
        shop.reached("Shop.Orders.Close", EdgeKind::WritesTable),
        ["dbo.Orders"]
    );
}

#[test]
fn leaves_out_ignored_hidden_and_linked_files() {
    let shop = Shop::new();
    shop.write(".gitignore", "bin/\n");
    shop.write("bin/Made.cs", "class Made { }");
    shop.write(".git/config", "[core]");
    shop.write(".hidden.cs", "class Hidden { }");
    #[cfg(unix)]
    std::os::unix::fs::symlink(shop.folder.path(), shop.folder.path().join("src/round"))
        .expect("it can be linked");
    shop.index();
    let expected = ["db/orders.sql", "src/Log.cs", "src/Orders.cs"];
    assert_eq!(shop.paths(), expected.map(str::to_owned).into());
}

#[test]
fn reports_binary_too_large_and_guessed_files() {
    let shop = Shop::new();
    shop.write("logo.png", b"\x89PNG\0\0");
    shop.write("data.sql", "SELECT 1;\n".repeat(500));
    shop.write(
        "old.sql",
        b"-- M\xfcller\nCREATE VIEW old_view AS SELECT 1 AS a;\n",
    );
    let wide = "CREATE TABLE dbo.Wide (Id int)"
        .encode_utf16()
        .flat_map(u16::to_le_bytes);
    shop.write(
        "wide.sql",
        [0xff, 0xfe].into_iter().chain(wide).collect::<Vec<u8>>(),
    );
    let done = shop.index_with(up_to(1000), &mut Ignored);
    let reasons: Vec<_> = done
        .skipped
        .iter()
        .map(|skipped| (&*skipped.path, &skipped.why))
        .collect();
    assert_eq!(
        reasons,
        [
            ("data.sql", &SkipReason::TooLarge(5000)),
            ("logo.png", &SkipReason::Binary),
            ("old.sql", &SkipReason::Guessed),
        ]
    );
    assert_eq!(shop.find("dbo.Wide")[0].node.kind, NodeKind::Table);
    assert!(shop.find("old_view")[0].node.text.contains("Müller"));

    // A file that has become too large is removed from the index.
    let done = shop.index_with(up_to(60), &mut Ignored);
    assert!(
        done.removed >= 2 && shop.paths().contains("db/orders.sql"),
        "{done:?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn reports_a_file_whose_name_is_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let shop = Shop::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.cs");
    fs::write(shop.folder.path().join(name), "class Cafe { }").expect("the folder is ours");
    let done = shop.index();
    let reasons: Vec<_> = done
        .skipped
        .iter()
        .map(|skipped| skipped.why.to_string())
        .collect();
    assert_eq!(reasons, ["could not be read: its name is not UTF-8"]);
    assert_eq!((done.files, done.changed, done.left_out()), (4, 3, 1));
    assert_eq!(shop.paths().len(), 3);
}

#[test]
fn reports_a_broken_ignore_file_without_counting_it() {
    let shop = Shop::new();
    // A pattern that ends before it begins.
    shop.write("src/.gitignore", "[z-a].cs\n");
    let done = shop.index();
    let reasons: Vec<_> = done.skipped.iter().map(|skipped| &skipped.why).collect();
    assert!(
        matches!(reasons[..], [SkipReason::Unseen(_)]),
        "{reasons:?}"
    );
    assert_eq!((done.files, done.changed, done.left_out()), (3, 3, 0));
}

#[test]
fn resumes_a_stopped_index() {
    struct Stop;
    impl Observe for Stop {
        fn is_stopped(&self) -> bool {
            true
        }
    }
    let shop = Shop::new();
    for number in 0..200 {
        shop.write(
            &format!("many/{number}.cs"),
            format!("class Many{number} {{ }}"),
        );
    }
    let stopped = shop.index_with(IndexOptions::default(), &mut Stop);
    assert!(
        stopped.is_stopped && stopped.changed > 0 && stopped.changed < 203,
        "{stopped:?}"
    );
    assert_eq!(shop.paths().len() as u64, stopped.changed);
    let rest = shop.index();
    assert_eq!(
        (rest.unchanged, rest.files, rest.is_stopped),
        (stopped.changed, 203, false)
    );
    assert_eq!(
        shop.reached("Shop.Orders.Close", EdgeKind::Calls),
        ["Shop.Log.Note"]
    );
}

#[test]
fn another_folder_replaces_one_only_if_that_is_gone_or_replace_is_set() {
    let shop = Shop::new();
    shop.write("one/a.cs", "class One { }");
    shop.write("two/b.cs", "class Two { }");
    let folder = |name: &str| shop.folder.path().join(name);
    let index_of = |name: &str, replace| {
        let options = IndexOptions {
            replace,
            ..IndexOptions::default()
        };
        index(&*shop.store, "src", &folder(name), options, &mut Ignored)
    };
    let done = index_of("one", false).expect("it is the first");
    assert_eq!((done.changed, done.moved_from), (1, None));
    let refused = index_of("two", false).expect_err("it is another");
    let message = refused.to_string();
    assert!(
        message.contains("one") && message.contains("two") && message.contains("`src`"),
        "{message}"
    );
    assert!(!shop.find("One").is_empty() && shop.find("Two").is_empty());
    // Another path to the same folder.
    let again = index_of("two/../one", false).expect("it is the same");
    assert_eq!(again.unchanged, 1);

    let replaced = index_of("two", true).expect("it is wanted");
    assert!(
        replaced
            .moved_from
            .is_some_and(|from| from.ends_with("one"))
            && replaced.removed == 1,
    );
    fs::rename(folder("two"), folder("three")).expect("it can be moved");
    let moved = index_of("three", false).expect("it has moved");
    assert_eq!((moved.unchanged, moved.removed), (1, 0));
    assert!(moved.moved_from.is_some_and(|from| from.ends_with("two")));
}

#[test]
fn a_missing_folder_is_an_error() {
    let store = overlock_store::in_memory().expect("it needs nothing");
    let failed = index(
        &*store,
        "shop",
        Path::new("/no/such/folder"),
        IndexOptions::default(),
        &mut Ignored,
    );
    assert!(
        matches!(failed, Err(IndexError::Folder { .. })),
        "{failed:?}"
    );
}

#[test]
fn every_node_gets_a_vector_once() {
    let shop = Shop::new();
    shop.index();
    let embed = |texts: &[&str]| -> Result<Vec<Vec<f32>>, Infallible> {
        Ok(texts
            .iter()
            .map(|text| vec![1.0, f32::from(u8::try_from(text.len() % 200).unwrap_or(0))])
            .collect())
    };
    let filled =
        fill_vectors(&*shop.store, "shop", "tiny", embed, |_| true).expect("nothing can fail");
    let nodes = shop.store.repositories().expect("it can be read")[0].nodes;
    assert_eq!(
        filled,
        Filled {
            vectors: nodes,
            shortened: 0,
            is_stopped: false
        }
    );
    let again =
        fill_vectors(&*shop.store, "shop", "tiny", embed, |_| true).expect("nothing can fail");
    assert_eq!(again.vectors, 0);
}

#[test]
fn a_failed_batch_keeps_the_vectors_before_it() {
    let shop = Shop::new();
    shop.write(
        "many.md",
        (0..100).fold(String::new(), |text, number| {
            format!("{text}# Part {number}\n")
        }),
    );
    shop.index();
    let mut calls = 0;
    let failing = |texts: &[&str]| {
        calls += 1;
        match calls {
            1 => Ok(vec![vec![1.0, 2.0]; texts.len()]),
            _ => Err(std::io::Error::other("gone")),
        }
    };
    let failed = fill_vectors(&*shop.store, "shop", "tiny", failing, |_| true);
    assert!(matches!(failed, Err(VectorsError::Embed(_))));
    let rest = fill_vectors(
        &*shop.store,
        "shop",
        "tiny",
        |texts| Ok::<_, Infallible>(vec![vec![1.0, 2.0]; texts.len()]),
        |_| true,
    );
    let nodes = shop.store.repositories().expect("it can be read")[0].nodes;
    assert_eq!(rest.expect("nothing can fail").vectors, nodes - 64);
}
