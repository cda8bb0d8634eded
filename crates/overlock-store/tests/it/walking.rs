//! Walks over edges.

use std::collections::{HashMap, VecDeque};

use overlock_store::{Direction, EdgeKind, NodeId, NodeKind, Reached, Store, Walk};

use crate::engines::Fresh;
use crate::sketch::{Random, Sketch, edges, put};

const ALL: Walk<'static> = Walk {
    depth: 4,
    count: 100,
    kinds: &[],
    direction: Direction::Forward,
};

/// A file with a method for each letter, and calls between them.
fn letters(count: u8, calls: &[(char, EdgeKind, char)]) -> Sketch {
    let mut sketch = Sketch::new("a.cs");
    for letter in (b'a'..).take(usize::from(count)).map(char::from) {
        sketch = sketch.node(NodeKind::Type, &letter.to_string(), "");
        for (_, kind, to) in calls.iter().filter(|(from, ..)| *from == letter) {
            sketch = sketch.mentions(*kind, &to.to_string());
        }
    }
    sketch
}

fn walked(store: &dyn Store, from: &[NodeId], walk: &Walk<'_>) -> Vec<String> {
    let reached = store.walk(from, walk).expect("a walk");
    assert!(reached.is_sorted_by_key(|reached| reached.depth));
    let ids: Vec<NodeId> = reached.iter().map(|reached| reached.id.clone()).collect();
    let nodes = store.nodes(&ids).expect("nodes");
    let both = reached.iter().zip(nodes);
    both.map(|(reached, node)| format!("{}{}", node.name, reached.depth))
        .collect()
}

pub(crate) fn a_walk_is_sorted_by_depth(fresh: &Fresh) {
    use EdgeKind::Calls;
    let store = &*fresh.store;
    let sketch = letters(
        6,
        &[
            ('a', Calls, 'b'),
            ('b', Calls, 'c'),
            ('c', Calls, 'a'),
            ('c', Calls, 'd'),
            ('d', Calls, 'e'),
        ],
    );
    put(store, std::slice::from_ref(&sketch));
    let ids = sketch.ids();
    let walk = |from: &[usize], walk: &Walk<'_>| {
        let from: Vec<NodeId> = from.iter().map(|place| ids[*place].clone()).collect();
        walked(store, &from, walk)
    };
    assert_eq!(walk(&[0], &ALL), ["a0", "b1", "c2", "d3", "e4"]);
    assert_eq!(walk(&[0], &Walk { depth: 2, ..ALL }), ["a0", "b1", "c2"]);
    assert_eq!(walk(&[0], &Walk { depth: 0, ..ALL }), ["a0"]);
    assert_eq!(
        walk(&[3, 5, 0, 3], &Walk { depth: 1, ..ALL })[..3],
        ["d0", "f0", "a0"]
    );
    assert_eq!(walk(&[], &ALL), [""; 0]);
    let unknown = store.walk(&["unknown".into()], &ALL).expect("a walk");
    assert_eq!(unknown, []);
}

pub(crate) fn a_walk_follows_the_given_kinds_and_direction(fresh: &Fresh) {
    use EdgeKind::{Calls, References};
    let store = &*fresh.store;
    let sketch = letters(
        4,
        &[('a', Calls, 'b'), ('a', References, 'c'), ('d', Calls, 'a')],
    );
    put(store, std::slice::from_ref(&sketch));
    let check = |kinds: &[EdgeKind], direction: Direction, expected: &[&str]| {
        let walk = Walk {
            kinds,
            direction,
            ..ALL
        };
        let mut found = walked(store, &sketch.ids()[..1], &walk);
        found.sort();
        assert_eq!(found, expected, "{walk:?}");
    };
    check(&[], Direction::Forward, &["a0", "b1", "c1"]);
    check(&[Calls], Direction::Forward, &["a0", "b1"]);
    check(
        &[References, Calls],
        Direction::Forward,
        &["a0", "b1", "c1"],
    );
    check(&[EdgeKind::Inherits], Direction::Forward, &["a0"]);
    check(&[], Direction::Backward, &["a0", "d1"]);
    check(&[References], Direction::Backward, &["a0"]);
    check(&[Calls], Direction::Both, &["a0", "b1", "d1"]);
}

pub(crate) fn a_walk_stops_at_its_limits(fresh: &Fresh) {
    let store = &*fresh.store;
    // A node that all others call, and that calls all of them.
    let mut hub = Sketch::new("hub.cs").node(NodeKind::Method, "Hub", "");
    let mut callers = Sketch::new("callers.cs");
    for number in 0..2_000 {
        let name = format!("Caller{number}");
        callers = callers
            .node(NodeKind::Method, &name, "")
            .mentions(EdgeKind::Calls, "Hub");
        hub = hub.mentions(EdgeKind::Calls, &name);
    }
    put(store, &[hub.clone(), callers]);
    let from = hub.ids();
    for direction in [Direction::Forward, Direction::Backward, Direction::Both] {
        for count in [0, 1, 2, 50, 2_000, 2_001, u32::MAX] {
            let walk = Walk {
                depth: u32::MAX,
                count,
                direction,
                ..ALL
            };
            let reached = store.walk(&from, &walk).expect("a walk");
            let expected = usize::try_from(count).expect("a small number").min(2_001);
            assert_eq!(reached.len(), expected, "{walk:?}");
            assert!(reached.iter().skip(1).all(|reached| reached.depth == 1));
            assert_eq!(
                store.walk(&from, &walk).expect("a walk"),
                reached,
                "the same each time"
            );
        }
    }
}

pub(crate) fn a_walk_agrees_with_a_plain_search(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut random = Random(3);
    let mut sketch = Sketch::new("a.cs");
    for number in 0..60 {
        sketch = sketch.node(NodeKind::Method, &format!("M{number}"), "");
        for _ in 0..random.below(4) {
            sketch = sketch.mentions(EdgeKind::Calls, &format!("M{}", random.below(60)));
        }
    }
    put(store, std::slice::from_ref(&sketch));
    let ids = sketch.ids();
    let edges = store.edges(&ids).expect("edges");
    for round in 0..60 {
        let from = [ids[random.below(60)].clone(), ids[random.below(60)].clone()];
        let walk = Walk {
            depth: u32::try_from(random.below(6)).expect("a small number"),
            count: u32::try_from(random.below(70)).expect("a small number"),
            kinds: &[],
            direction: [Direction::Forward, Direction::Backward, Direction::Both][round % 3],
        };
        let depths = plain(&edges, &from, &walk);
        let reached = store.walk(&from, &walk).expect("a walk");
        let count = usize::try_from(walk.count).expect("a small number");
        assert_eq!(reached.len(), depths.len().min(count), "{walk:?}");
        let mut expected: Vec<u32> = depths.values().copied().collect();
        expected.sort_unstable();
        for (Reached { id, depth }, nearest) in reached.iter().zip(expected) {
            assert_eq!((depths.get(id), *depth), (Some(depth), nearest), "{walk:?}");
        }
    }
}

/// The depth of each node, computed without a database.
fn plain(edges: &[overlock_store::Edge], from: &[NodeId], walk: &Walk<'_>) -> HashMap<NodeId, u32> {
    let mut depths: HashMap<NodeId, u32> = from.iter().map(|id| (id.clone(), 0)).collect();
    let mut open: VecDeque<NodeId> = from.iter().cloned().collect();
    while let Some(id) = open.pop_front() {
        let depth = depths[&id] + 1;
        if depth > walk.depth {
            continue;
        }
        for edge in edges {
            let is_forward = walk.direction != Direction::Backward && edge.from == id;
            let is_backward = walk.direction != Direction::Forward && edge.to == id;
            for next in [
                is_forward.then_some(&edge.to),
                is_backward.then_some(&edge.from),
            ] {
                let Some(next) = next else { continue };
                if !depths.contains_key(next) {
                    depths.insert(next.clone(), depth);
                    open.push_back(next.clone());
                }
            }
        }
    }
    depths
}

pub(crate) fn lists_the_edges_between_nodes(fresh: &Fresh) {
    use EdgeKind::Calls;
    let store = &*fresh.store;
    let sketch = letters(
        3,
        &[('a', Calls, 'b'), ('b', Calls, 'c'), ('c', Calls, 'a')],
    );
    put(store, std::slice::from_ref(&sketch));
    let ids = sketch.ids();
    assert_eq!(edges(store, &ids), ["a calls b", "b calls c", "c calls a"]);
    assert_eq!(edges(store, &ids[..2]), ["a calls b"]);
    let twice = [
        ids[0].clone(),
        ids[0].clone(),
        ids[1].clone(),
        "unknown".into(),
    ];
    assert_eq!(edges(store, &twice), ["a calls b"]);
    assert!(edges(store, &[]).is_empty());
}
