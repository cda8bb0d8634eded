//! Storing and removing files.

use overlock_store::{EdgeKind, Filter, NewFile, NodeKind, Query, Search, StoreError, Vector};

use crate::engines::Fresh;
use crate::sketch::{Sketch, edges, long_name, node, put};

fn order() -> Sketch {
    Sketch::new("src/Order.cs")
        .node(NodeKind::Type, "Shop.Order", "class Order { }")
        .node(
            NodeKind::Method,
            "Shop.Order.Total",
            "decimal Total() => 0;",
        )
        .inside(0)
}

pub(crate) fn reads_what_was_written(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut sketch = order();
    sketch.hash = String::from("abc");
    let method = &mut sketch.nodes[1];
    method.lines = (3, 7);
    method.span = 10..90;
    method.metadata = String::from(r#"{"static": true}"#);
    put(store, std::slice::from_ref(&sketch));
    let ids = sketch.ids();
    let found = node(store, &ids[1]);
    assert_eq!(found.repository, "shop");
    assert_eq!(found.path, "src/Order.cs");
    assert_eq!(found.parent.as_ref(), Some(&ids[0]));
    let expected = &sketch.nodes[1];
    assert_eq!(
        (found.kind, &found.name, &found.qualified, &found.language),
        (
            expected.kind,
            &expected.name,
            &expected.qualified,
            &expected.language
        )
    );
    assert_eq!((found.lines, &found.span), (expected.lines, &expected.span));
    assert_eq!(
        (&found.text, &found.metadata),
        (&expected.text, &expected.metadata)
    );
    let asked = [ids[1].clone(), "unknown".into(), ids[0].clone()];
    let nodes = store.nodes(&asked).expect("nodes");
    let nodes: Vec<_> = nodes.into_iter().map(|node| node.id).collect();
    assert_eq!(nodes, [ids[1].clone(), ids[0].clone()]);
    let files = store.files("shop").expect("files");
    assert_eq!((files.len(), &*files[0].hash), (1, "abc"));
    let repositories = store.repositories().expect("a list");
    let shop = &repositories[0];
    assert_eq!((repositories.len(), &*shop.name), (1, "shop"));
    assert_eq!((shop.files, shop.nodes, shop.edges), (1, 2, 1));
}

pub(crate) fn putting_a_file_again_replaces_it(fresh: &Fresh) {
    let store = &*fresh.store;
    let before = order();
    put(store, std::slice::from_ref(&before));
    let mut after = Sketch::new("src/Order.cs").node(NodeKind::Type, "Shop.Order", "record Order");
    after.hash = String::from("2");
    put(store, std::slice::from_ref(&after));
    assert_eq!(node(store, &after.ids()[0]).text, "record Order");
    assert_eq!(before.ids()[0], after.ids()[0]);
    assert!(store.nodes(&before.ids()[1..]).expect("nodes").is_empty());
    assert_eq!(store.files("shop").expect("files")[0].hash, "2");
    assert_eq!(edges(store, &before.ids()), Vec::<String>::new());
}

pub(crate) fn removing_a_file_removes_its_nodes(fresh: &Fresh) {
    let store = &*fresh.store;
    put(store, &[order()]);
    let gone = store.remove_files("shop", &["src/Order.cs", "src/Nothing.cs"]);
    gone.expect("a removed file");
    store
        .remove_files("nowhere", &["x"])
        .expect("nothing to do");
    assert!(store.nodes(&order().ids()).expect("nodes").is_empty());
    assert!(store.files("shop").expect("files").is_empty());
    assert!(store.repositories().expect("a list").is_empty());
}

pub(crate) fn one_invalid_file_rejects_all(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut wrong = Sketch::new("b.cs").node(NodeKind::Type, "B", "class B");
    wrong.nodes[0].parent = Some(0);
    let refused = store.put_files("shop", &[order().file(), wrong.file()]);
    refused.expect_err("an invalid parent");
    assert!(store.files("shop").expect("files").is_empty());
    assert!(store.repositories().expect("a list").is_empty());
}

pub(crate) fn invalid_files_are_rejected_with_a_reason(fresh: &Fresh) {
    #[track_caller]
    fn check(fresh: &Fresh, change: impl Fn(&mut Sketch), words: &str) {
        let mut sketch = order().mentions(EdgeKind::Calls, "Sum");
        change(&mut sketch);
        let error = fresh.store.put_files("shop", &[sketch.file()]);
        let error = error.expect_err("an invalid file");
        assert!(matches!(error, StoreError::InvalidFile { .. }), "{error:?}");
        let error = error.to_string();
        assert!(
            error.contains("src/Order.cs") && error.contains(words),
            "{error}"
        );
    }
    check(fresh, |sketch| sketch.nodes[0].parent = Some(1), "parent");
    check(
        fresh,
        |sketch| sketch.nodes[1].lines = (5, 4),
        "Shop.Order.Total",
    );
    check(
        fresh,
        |sketch| sketch.nodes[1].span.end = u64::MAX,
        "invalid range",
    );
    check(
        fresh,
        |sketch| sketch.mentions[0].from = 2,
        "there are only 2",
    );
}

pub(crate) fn repositories_do_not_mix(fresh: &Fresh) {
    let store = &*fresh.store;
    let sketch = order().mentions(EdgeKind::References, "Customer");
    let other = Sketch::new("src/Order.cs").node(NodeKind::Type, "Customer", "class Customer");
    put(store, std::slice::from_ref(&sketch));
    store
        .put_files("other", &[other.file()])
        .expect("a stored value");
    store.resolve("other").expect("edges");
    store.resolve("shop").expect("edges");
    let ids = [sketch.ids(), other.file().ids("other")].concat();
    assert_eq!(edges(store, &ids), ["Shop.Order contains Shop.Order.Total"]);
    store
        .remove_files("other", &["src/Order.cs"])
        .expect("a removal");
    assert_eq!(store.nodes(&ids).expect("nodes").len(), 2);
}

pub(crate) fn stores_unusual_texts_unchanged(fresh: &Fresh) {
    let store = &*fresh.store;
    let texts = [
        "'; DROP TABLE nodes; --",
        "\u{feff}\u{202e}x",
        "👍",
        "",
        "\"",
        "%_\\",
    ];
    for (number, text) in texts.iter().enumerate() {
        let path = format!("{number}/{text}");
        let sketch = Sketch::new(&path)
            .node(NodeKind::Section, text, text)
            .mentions(EdgeKind::References, text);
        put(store, std::slice::from_ref(&sketch));
        let found = node(store, &sketch.ids()[0]);
        assert_eq!((&*found.text, &*found.path), (*text, &*path));
    }
    let long = "x y ".repeat(500_000);
    let sketch = Sketch::new("long").node(NodeKind::Section, "long", &long);
    put(store, std::slice::from_ref(&sketch));
    assert!(node(store, &sketch.ids()[0]).text == long);
}

pub(crate) fn another_process_reads_the_nodes(fresh: &Fresh) {
    put(&*fresh.store, &[order()]);
    let again = fresh.again();
    assert_eq!(again.nodes(&order().ids()).expect("nodes").len(), 2);
    let nothing: &[NewFile<'_>] = &[];
    again.put_files("shop", nothing).expect("nothing to do");
    assert_eq!(fresh.store.files("shop").expect("files").len(), 1);
}

pub(crate) fn a_repository_has_one_folder_until_it_is_replaced(fresh: &Fresh) {
    let store = &*fresh.store;
    let settle = |folder: &str, instead_of: Option<&str>| {
        let settled = fresh.again().set_folder("shop", folder, instead_of);
        settled.expect("an answer")
    };
    // A repository without a folder takes the first one.
    put(store, &[order()]);
    assert_eq!(settle("/a/src", None), "/a/src");
    assert_eq!(settle("/b/src", None), "/a/src");
    assert_eq!(settle("/b/src", Some("/c/src")), "/a/src");
    assert_eq!(settle("/a/src", None), "/a/src");
    assert_eq!(settle("/b/src", Some("/a/src")), "/b/src");
    put(store, &[order()]);
    assert_eq!(settle("/a/src", None), "/b/src");
    let listed = store.repositories().expect("a list");
    assert_eq!(listed[0].folder.as_deref(), Some("/b/src"));
    // Without files, a repository is not listed, and its folder is forgotten.
    assert_eq!(
        store.set_folder("new", "/n", None).expect("an answer"),
        "/n".to_owned()
    );
    assert_eq!(store.repositories().expect("a list").len(), 1);
    store
        .remove_files("shop", &["src/Order.cs"])
        .expect("a removal");
    // A new repository takes the folder without regard to `instead_of`.
    assert_eq!(settle("/c/src", Some("/b/src")), "/c/src");
    assert_eq!(settle("/a/src", None), "/c/src");
}

pub(crate) fn names_have_any_length(fresh: &Fresh) {
    let store = &*fresh.store;
    let [repository, path, class, model] = [1, 2, 3, 4].map(long_name);
    let sketch = Sketch::new(&path)
        .node(NodeKind::Type, &format!("Shop.{class}"), "class")
        .node(NodeKind::Method, "Shop.Main", "void Main()")
        .mentions(EdgeKind::Calls, &format!("Shop.{class}"));
    let folder = store
        .set_folder(&repository, &path, None)
        .expect("an answer");
    assert!(folder == path);
    for _ in 0..2 {
        let put = store.put_files(&repository, &[sketch.file()]);
        put.expect("a stored value");
    }
    store.resolve(&repository).expect("edges");
    let ids = sketch.file().ids(&repository);
    assert_eq!(store.edges(&ids).expect("edges").len(), 1);
    let found = node(store, &ids[0]);
    assert!(found.repository == repository && found.path == path && found.name == class);
    assert!(store.repositories().expect("a list")[0].name == repository);
    assert!(store.files(&repository).expect("files")[0].path == path);

    let vector = [1.0_f32, 2.0];
    let put = store.put_vectors(&model, &[(ids[0].clone(), &vector)]);
    put.expect("a stored value");
    let without = store.without_vector(&repository, &model, None, 9);
    assert_eq!(without.expect("an answer").len(), 1);
    let query = Query {
        search: Search::Semantic(Vector {
            model: &model,
            numbers: &vector,
        }),
        filter: Filter {
            repository: Some(&repository),
            ..Filter::default()
        },
        limit: 9,
    };
    assert_eq!(store.search(&query).expect("hits")[0].node.id, ids[0]);
    store
        .remove_files(&repository, &[&path])
        .expect("a removal");
    assert!(store.repositories().expect("a list").is_empty());
}
