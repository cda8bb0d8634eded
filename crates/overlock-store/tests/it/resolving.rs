//! Resolving mentions to edges.

use std::collections::BTreeMap;

use overlock_store::{EdgeKind, Mention, NodeKind, Resolved, Scope, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::engines::Fresh;
use crate::sketch::{Sketch, edges, put};

fn caller() -> Sketch {
    Sketch::new("caller.cs")
        .node(NodeKind::Method, "Shop.Cart.Buy", "void Buy() { Place(); }")
        .mentions(EdgeKind::Calls, "Place")
}

fn service() -> Sketch {
    Sketch::new("service.cs").node(NodeKind::Method, "Shop.Service.Place", "void Place() { }")
}

pub(crate) fn a_mention_resolves_to_a_later_file(fresh: &Fresh) {
    let store = &*fresh.store;
    let ids = [caller().ids(), service().ids()].concat();
    put(store, &[caller()]);
    assert!(edges(store, &ids).is_empty());
    put(store, &[service()]);
    assert_eq!(
        edges(store, &ids),
        ["Shop.Cart.Buy calls Shop.Service.Place"]
    );
    // A nearer node replaces the target until it is removed.
    let near = Sketch::new("near.cs").node(NodeKind::Method, "Shop.Cart.Place", "void Place() { }");
    let all = [ids.clone(), near.ids()].concat();
    put(store, std::slice::from_ref(&near));
    assert_eq!(edges(store, &all), ["Shop.Cart.Buy calls Shop.Cart.Place"]);
    store.remove_files("shop", &["near.cs"]).expect("a removal");
    assert!(edges(store, &all).is_empty());
    store.resolve("shop").expect("edges");
    assert_eq!(
        edges(store, &ids),
        ["Shop.Cart.Buy calls Shop.Service.Place"]
    );
}

pub(crate) fn imported_names_come_after_enclosing_ones(fresh: &Fresh) {
    let store = &*fresh.store;
    let speaker = |imports: &[&str]| {
        let mut speaker = Sketch::new("speaker.cs")
            .node(NodeKind::Type, "App.Main", "class Main : Shape")
            .mentions(EdgeKind::Inherits, "Shape");
        speaker.imports = imports.iter().map(|import| (*import).to_owned()).collect();
        speaker
    };
    let shape = |namespace: &str, kind| {
        Sketch::new(&format!("{namespace}.cs")).node(kind, &format!("{namespace}.Shape"), "Shape")
    };
    let of_x = shape("X", NodeKind::Type);
    let of_y = shape("Y", NodeKind::Interface);
    put(store, &[speaker(&["System"]), of_x.clone(), of_y.clone()]);
    let ids = [speaker(&[]).ids(), of_x.ids(), of_y.ids()].concat();
    let both = ["App.Main implements Y.Shape", "App.Main inherits X.Shape"];
    assert_eq!(edges(store, &ids), both);
    put(store, &[speaker(&["X", "System"])]);
    assert_eq!(edges(store, &ids), both[1..]);
    put(store, &[speaker(&["Y"])]);
    assert_eq!(edges(store, &ids), both[..1]);
    // The interface becomes a class.
    let class = shape("Y", NodeKind::Type);
    put(store, std::slice::from_ref(&class));
    let ids = [ids, class.ids()].concat();
    assert_eq!(edges(store, &ids), ["App.Main inherits Y.Shape"]);
}

pub(crate) fn edges_are_removed_with_either_end(fresh: &Fresh) {
    let store = &*fresh.store;
    let ids = [caller().ids(), service().ids()].concat();
    for gone in ["caller.cs", "service.cs"] {
        put(store, &[caller(), service()]);
        assert_eq!(edges(store, &ids).len(), 1);
        store.remove_files("shop", &[gone]).expect("a removal");
        assert!(edges(store, &ids).is_empty(), "without {gone}");
        let left: u64 = store
            .repositories()
            .expect("a list")
            .iter()
            .map(|shop| shop.edges)
            .sum();
        assert_eq!(left, 0, "without {gone}");
    }
}

pub(crate) fn two_mentions_of_a_node_make_one_edge(fresh: &Fresh) {
    let store = &*fresh.store;
    let twice = caller()
        .mentions(EdgeKind::Calls, "Place")
        .mentions(EdgeKind::Calls, "Service.Place")
        .mentions(EdgeKind::References, "Service.Place");
    put(store, &[twice.clone(), service()]);
    let ids = [twice.ids(), service().ids()].concat();
    let expected = [
        "Shop.Cart.Buy calls Shop.Service.Place",
        "Shop.Cart.Buy references Shop.Service.Place",
    ];
    assert_eq!(edges(store, &ids), expected);
    assert_eq!(store.repositories().expect("a list")[0].edges, 2);
    // One of the two mentions is removed.
    put(store, &[caller()]);
    assert_eq!(edges(store, &ids), expected[..1]);
}

pub(crate) fn parents_contain_their_children(fresh: &Fresh) {
    let store = &*fresh.store;
    let sketch = Sketch::new("a.cs")
        .node(NodeKind::Type, "A", "class A")
        .node(NodeKind::Type, "A.B", "class B")
        .inside(0)
        .node(NodeKind::Method, "A.B.C", "void C()")
        .inside(1);
    put(store, std::slice::from_ref(&sketch));
    assert_eq!(
        edges(store, &sketch.ids()),
        ["A contains A.B", "A.B contains A.B.C"]
    );
}

pub(crate) fn an_unchanged_repository_is_not_resolved_again(fresh: &Fresh) {
    let store = &*fresh.store;
    put(store, &[caller(), service()]);
    assert_eq!(store.resolve("shop").expect("edges"), Resolved::default());
    assert_eq!(
        store.resolve("nowhere").expect("edges"),
        Resolved::default()
    );
    // A changed body affects only its own mentions.
    let mut changed = service();
    changed.nodes[0].text.push(' ');
    store
        .put_files("shop", &[changed.file()])
        .expect("a stored value");
    assert_eq!(store.resolve("shop").expect("edges"), Resolved::default());
    let ids = [caller().ids(), service().ids()].concat();
    assert_eq!(edges(store, &ids).len(), 1);
}

pub(crate) fn a_change_resolves_only_its_mentions(fresh: &Fresh) {
    let store = &*fresh.store;
    let files: Vec<Sketch> = (0..200)
        .map(|number| {
            Sketch::new(&format!("{number}.cs"))
                .node(
                    NodeKind::Method,
                    &format!("Type{number}.Method{number}"),
                    "void",
                )
                .mentions(EdgeKind::Calls, &format!("Method{}", (number + 1) % 200))
                .mentions(EdgeKind::References, "Nothing")
        })
        .collect();
    put(store, &files);
    store.remove_files("shop", &["7.cs"]).expect("a removal");
    let resolved = store.resolve("shop").expect("edges");
    assert_eq!(
        resolved,
        Resolved {
            mentions: 1,
            edges: 0
        }
    );
    store
        .put_files("shop", &[files[7].file()])
        .expect("a stored value");
    let resolved = store.resolve("shop").expect("edges");
    assert_eq!(
        resolved,
        Resolved {
            mentions: 3,
            edges: 2
        }
    );
}

/// A change of a repository.
#[derive(Clone, Debug)]
enum Event {
    Put(Sketch),
    Remove(String),
    Resolve,
}

/// After any changes, a repository has the edges of a new one with the same files.
pub(crate) fn edges_equal_those_of_a_new_index(fresh: &Fresh) {
    after_any_history(&*fresh.store, 150);
}

#[test]
fn edges_equal_those_of_a_new_index_after_many_histories() {
    let store = overlock_store::in_memory().expect("a store");
    after_any_history(&*store, 2_000);
}

fn after_any_history(store: &dyn Store, histories: u32) {
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(histories)
    };
    let history = prop::collection::vec(event(), 1..14);
    let held = TestRunner::new(config).run(&history, |history| {
        after(store, &history);
        Ok(())
    });
    if let Err(broken) = held {
        panic!("{broken}");
    }
}

fn after(store: &dyn Store, history: &[Event]) {
    let mut left: BTreeMap<String, Sketch> = BTreeMap::new();
    for event in history {
        match event {
            Event::Put(sketch) => {
                let put = store.put_files("changed", &[sketch.file()]);
                put.expect("a stored value");
                left.insert(sketch.path.clone(), sketch.clone());
            }
            Event::Remove(path) => {
                store.remove_files("changed", &[path]).expect("a removal");
                left.remove(path);
            }
            Event::Resolve => {
                store.resolve("changed").expect("edges");
            }
        }
    }
    store.resolve("changed").expect("edges");
    for sketch in left.values().rev() {
        let put = store.put_files("anew", &[sketch.file()]);
        put.expect("a stored value");
    }
    store.resolve("anew").expect("edges");
    let [changed, anew] = ["changed", "anew"].map(|name| all_edges(store, name, &left));
    let again = store.resolve("changed").expect("edges");
    // Removes all files before the next history, even after a failure.
    let paths: Vec<&str> = left.keys().map(String::as_str).collect();
    for name in ["changed", "anew"] {
        store.remove_files(name, &paths).expect("a removal");
    }
    assert_eq!(changed, anew);
    assert_eq!(again, Resolved::default(), "nothing is left to do");
}

/// The edges of a repository, by the indexes of their ends.
fn all_edges(
    store: &dyn Store,
    repository: &str,
    files: &BTreeMap<String, Sketch>,
) -> Vec<(String, EdgeKind, String)> {
    let mut places = BTreeMap::new();
    for sketch in files.values() {
        for (place, id) in sketch.file().ids(repository).into_iter().enumerate() {
            places.insert(id, format!("{} {place}", sketch.path));
        }
    }
    let ids: Vec<_> = places.keys().cloned().collect();
    let edges = store.edges(&ids).expect("edges");
    let listed = store.repositories().expect("a list");
    let counted = listed.iter().find(|listed| listed.name == repository);
    let counted = counted.map_or(0, |listed| listed.edges);
    assert_eq!(
        counted,
        edges.len() as u64,
        "no edge leads out of {repository}"
    );
    let mut edges: Vec<_> = edges
        .iter()
        .map(|edge| {
            (
                places[&edge.from].clone(),
                edge.kind,
                places[&edge.to].clone(),
            )
        })
        .collect();
    edges.sort();
    edges
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => file().prop_map(Event::Put),
        1 => path().prop_map(Event::Remove),
        2 => Just(Event::Resolve),
    ]
}

fn path() -> impl Strategy<Value = String> {
    (0..5).prop_map(|number| format!("{number}.cs"))
}

/// Similar names in nested namespaces.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &[
            "a", "A", "b", "c.a", "c.b", "d.c.a", "d.b", "B.a", "d.c.a.a", "",
        ][..],
    )
}

fn file() -> impl Strategy<Value = Sketch> {
    const KINDS: &[NodeKind] = &[
        NodeKind::Type,
        NodeKind::Interface,
        NodeKind::Method,
        NodeKind::Table,
    ];
    const EDGES: &[EdgeKind] = &[
        EdgeKind::Calls,
        EdgeKind::References,
        EdgeKind::ReadsTable,
        EdgeKind::Inherits,
        EdgeKind::Implements,
    ];
    let scope = prop::sample::select(Scope::ALL);
    let mention = (
        any::<prop::sample::Index>(),
        prop::sample::select(EDGES),
        name(),
        scope,
    );
    let parent = prop::option::of(any::<prop::sample::Index>());
    let node = (
        prop::sample::select(KINDS),
        name(),
        parent,
        prop::collection::vec(mention, 0..4),
    );
    let nodes = prop::collection::vec(node, 0..5);
    let imports = prop::collection::vec(prop::sample::select(&["c", "d", "d.c", "B"][..]), 0..3);
    (path(), imports, nodes).prop_map(|(path, imports, nodes)| {
        let mut sketch = Sketch::new(&path);
        sketch.imports = imports.into_iter().map(str::to_owned).collect();
        for (place, (kind, name, parent, mentions)) in nodes.into_iter().enumerate() {
            sketch = sketch.node(kind, name, "text");
            if let Some(parent) = parent.filter(|_| place > 0) {
                sketch = sketch.inside(parent.index(place));
            }
            for (from, kind, name, scope) in mentions {
                sketch.mentions.push(Mention {
                    from: from.index(place + 1),
                    kind,
                    name: name.to_owned(),
                    scope,
                });
            }
        }
        sketch
    })
}
