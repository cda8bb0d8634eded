//! Mentions become edges.

use std::collections::BTreeMap;

use overlock_store::{EdgeKind, Mention, NodeKind, Resolved, Scope, Store};

use crate::engines::Fresh;
use crate::sketch::{Random, Sketch, edges, put};

fn caller() -> Sketch {
    Sketch::new("caller.cs")
        .node(NodeKind::Method, "Shop.Cart.Buy", "void Buy() { Place(); }")
        .mentions(EdgeKind::Calls, "Place")
}

fn service() -> Sketch {
    Sketch::new("service.cs").node(NodeKind::Method, "Shop.Service.Place", "void Place() { }")
}

pub(crate) fn a_mention_finds_what_comes_later(fresh: &Fresh) {
    let store = &*fresh.store;
    let ids = [caller().ids(), service().ids()].concat();
    put(store, &[caller()]);
    assert!(edges(store, &ids).is_empty());
    put(store, &[service()]);
    assert_eq!(
        edges(store, &ids),
        ["Shop.Cart.Buy calls Shop.Service.Place"]
    );
    // What is nearer takes its place, and gives it back.
    let near = Sketch::new("near.cs").node(NodeKind::Method, "Shop.Cart.Place", "void Place() { }");
    let all = [ids.clone(), near.ids()].concat();
    put(store, std::slice::from_ref(&near));
    assert_eq!(edges(store, &all), ["Shop.Cart.Buy calls Shop.Cart.Place"]);
    store.remove_files("shop", &["near.cs"]).expect("it goes");
    assert!(edges(store, &all).is_empty());
    store.resolve("shop").expect("edges");
    assert_eq!(
        edges(store, &ids),
        ["Shop.Cart.Buy calls Shop.Service.Place"]
    );
}

pub(crate) fn edges_go_with_either_end(fresh: &Fresh) {
    let store = &*fresh.store;
    let ids = [caller().ids(), service().ids()].concat();
    for gone in ["caller.cs", "service.cs"] {
        put(store, &[caller(), service()]);
        assert_eq!(edges(store, &ids).len(), 1);
        store.remove_files("shop", &[gone]).expect("it goes");
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

pub(crate) fn two_mentions_of_one_thing_are_one_edge(fresh: &Fresh) {
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
    // One of the two goes, the other still says so.
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

pub(crate) fn an_unchanged_repository_costs_nothing(fresh: &Fresh) {
    let store = &*fresh.store;
    put(store, &[caller(), service()]);
    assert_eq!(store.resolve("shop").expect("edges"), Resolved::default());
    assert_eq!(
        store.resolve("nowhere").expect("edges"),
        Resolved::default()
    );
    // A body that changed concerns only what it says itself.
    let mut changed = service();
    changed.nodes[0].text.push(' ');
    store
        .put_files("shop", &[changed.file()])
        .expect("it is kept");
    assert_eq!(store.resolve("shop").expect("edges"), Resolved::default());
    let ids = [caller().ids(), service().ids()].concat();
    assert_eq!(edges(store, &ids).len(), 1);
}

pub(crate) fn a_change_costs_what_speaks_of_it(fresh: &Fresh) {
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
    store.remove_files("shop", &["7.cs"]).expect("it goes");
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
        .expect("it is kept");
    let resolved = store.resolve("shop").expect("edges");
    assert_eq!(
        resolved,
        Resolved {
            mentions: 3,
            edges: 2
        }
    );
}

/// The edges of files that were put and removed in any order are those of the files that are left,
/// in a repository in which nothing else ever was.
pub(crate) fn edges_are_those_of_an_index_made_anew(fresh: &Fresh) {
    let store = &*fresh.store;
    for seed in 0..150 {
        let mut random = Random(seed);
        let repository = format!("changed {seed}");
        let mut left: BTreeMap<String, Sketch> = BTreeMap::new();
        for _ in 0..=random.below(12) {
            let path = format!("{}.cs", random.below(5));
            if random.below(4) == 0 {
                store.remove_files(&repository, &[&path]).expect("it goes");
                left.remove(&path);
            } else {
                let sketch = any_file(&mut random, &path);
                store
                    .put_files(&repository, &[sketch.file()])
                    .expect("it is kept");
                left.insert(path, sketch);
            }
            if random.below(2) == 0 {
                store.resolve(&repository).expect("edges");
            }
        }
        store.resolve(&repository).expect("edges");
        let anew = format!("anew {seed}");
        for sketch in left.values().rev() {
            store
                .put_files(&anew, &[sketch.file()])
                .expect("it is kept");
        }
        store.resolve(&anew).expect("edges");
        let [changed, anew] = [&repository, &anew].map(|name| all_edges(store, name, &left));
        assert_eq!(changed, anew, "after {seed}: {left:#?}");
        let again = store.resolve(&repository).expect("edges");
        assert_eq!(again, Resolved::default(), "nothing is left to do");
    }
}

/// The edges of a repository, by the places of their ends.
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

fn any_file(random: &mut Random, path: &str) -> Sketch {
    const KINDS: &[NodeKind] = &[NodeKind::Type, NodeKind::Method, NodeKind::Table];
    const EDGES: &[EdgeKind] = &[EdgeKind::Calls, EdgeKind::References, EdgeKind::ReadsTable];
    const NAMES: &[&str] = &["a", "A", "b", "c.a", "c.b", "d.c.a", "d.b", "B.a", ""];
    let mut sketch = Sketch::new(path);
    for place in 0..random.below(5) {
        let kind = KINDS[random.below(KINDS.len())];
        sketch = sketch.node(kind, NAMES[random.below(NAMES.len())], "text");
        if place > 0 && random.below(2) == 0 {
            sketch = sketch.inside(random.below(place));
        }
        for _ in 0..random.below(4) {
            sketch.mentions.push(Mention {
                from: random.below(place + 1),
                kind: EDGES[random.below(EDGES.len())],
                name: NAMES[random.below(NAMES.len())].to_owned(),
                scope: Scope::ALL[random.below(2)],
            });
        }
    }
    sketch
}
