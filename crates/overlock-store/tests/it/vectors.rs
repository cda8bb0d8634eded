//! Vector search and hybrid search.

use std::collections::HashSet;

use overlock_store::{
    Filter, NodeId, NodeKind, PathPattern, Query, Search, Store, StoreError, Vector,
};

use crate::engines::Fresh;
use crate::sketch::{Random, Sketch, put};

fn vector(numbers: &[f32]) -> Vector<'_> {
    Vector {
        model: "small",
        numbers,
    }
}

fn found(store: &dyn Store, search: Search<'_>, filter: Filter<'_>, limit: u32) -> Vec<String> {
    let query = Query {
        search,
        filter,
        limit,
    };
    let hits = store.search(&query).expect("hits");
    assert!(hits.is_sorted_by(|one, other| one.score >= other.score));
    hits.into_iter().map(|hit| hit.node.qualified).collect()
}

fn nearest(store: &dyn Store, numbers: &[f32]) -> Vec<String> {
    let search = Search::Semantic(vector(numbers));
    found(store, search, Filter::default(), 20)
}

/// Three files with a node each, and vectors at some angles.
fn fruits() -> Vec<Sketch> {
    let fruits = [("a.cs", "Apple"), ("b/b.cs", "Pear"), ("b/c.sql", "Plum")];
    fruits
        .map(|(path, name)| Sketch::new(path).node(NodeKind::Type, name, &name.to_lowercase()))
        .to_vec()
}

const ANGLES: [[f32; 2]; 3] = [[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]];

fn put_fruits(store: &dyn Store) -> Vec<NodeId> {
    put(store, &fruits());
    let ids: Vec<NodeId> = fruits().iter().flat_map(Sketch::ids).collect();
    let vectors: Vec<(NodeId, &[f32])> = ids
        .iter()
        .zip(&ANGLES)
        .map(|(id, numbers)| (id.clone(), &numbers[..]))
        .collect();
    store.put_vectors("small", &vectors).expect("stored values");
    ids
}

pub(crate) fn the_nearest_vectors_come_first(fresh: &Fresh) {
    let store = &*fresh.store;
    assert!(
        nearest(store, &[1.0, 0.0]).is_empty(),
        "there is no such model yet"
    );
    put_fruits(store);
    // Only the direction of the vectors matters.
    assert_eq!(nearest(store, &[90.0, 1.0]), ["Apple", "Pear", "Plum"]);
    assert_eq!(nearest(store, &[0.0, 0.1]), ["Plum", "Pear", "Apple"]);
    let query = Query {
        search: Search::Semantic(vector(&[1.0, 1.0])),
        filter: Filter::default(),
        limit: 1,
    };
    let hits = store.search(&query).expect("hits");
    assert_eq!(
        (hits.len(), hits[0].keyword, hits[0].semantic),
        (1, None, Some(1))
    );
    assert!((hits[0].score - 1.0).abs() < 1e-3, "{}", hits[0].score);
}

pub(crate) fn only_a_changed_text_loses_its_vector(fresh: &Fresh) {
    let store = &*fresh.store;
    put_fruits(store);
    let mut changed = fruits();
    changed[0].nodes[0].lines = (8, 9);
    changed[1].nodes[0].text = String::from("another pear");
    put(store, &changed);
    assert_eq!(nearest(store, &[1.0, 0.0]), ["Apple", "Plum"]);
    let without = store
        .without_vector("shop", "small", None, 9)
        .expect("nodes");
    assert_eq!(
        without,
        [(changed[1].ids()[0].clone(), "another pear".to_owned())]
    );
    store.remove_files("shop", &["a.cs"]).expect("a removal");
    assert_eq!(nearest(store, &[1.0, 0.0]), ["Plum"]);
}

pub(crate) fn nodes_without_a_vector_are_listed_once(fresh: &Fresh) {
    let store = &*fresh.store;
    let files: Vec<Sketch> = (0..25)
        .map(|number| Sketch::new(&format!("{number}.cs")).node(NodeKind::Type, "T", "text"))
        .collect();
    put(store, &files);
    store
        .put_files("other", &[files[0].file()])
        .expect("a stored value");
    let mut told = HashSet::new();
    let mut after = None;
    loop {
        let some = store
            .without_vector("shop", "small", after.as_ref(), 10)
            .expect("nodes");
        let Some((last, _)) = some.last() else {
            break;
        };
        after = Some(last.clone());
        // Nodes that get a vector meanwhile are not listed again.
        let ids: Vec<NodeId> = some.into_iter().map(|(id, _)| id).collect();
        let half: Vec<(NodeId, &[f32])> = ids
            .iter()
            .step_by(2)
            .map(|id| (id.clone(), &[1.0_f32][..]))
            .collect();
        store.put_vectors("small", &half).expect("stored values");
        assert!(ids.into_iter().all(|id| told.insert(id)));
    }
    assert_eq!(told.len(), 25);
    let left = store
        .without_vector("shop", "small", None, 100)
        .expect("nodes");
    assert_eq!(left.len(), 25 - 13);
    assert_eq!(
        store
            .without_vector("shop", "large", None, 100)
            .expect("nodes")
            .len(),
        25
    );
    let gone: [(NodeId, &[f32]); 1] = [("unknown".into(), &[1.0])];
    store
        .put_vectors("small", &gone)
        .expect("an ignored vector");
}

pub(crate) fn filters_restrict_vector_searches(fresh: &Fresh) {
    let store = &*fresh.store;
    put_fruits(store);
    let check = |filter: Filter<'_>, expected: &[&str]| {
        let by_vector = found(store, Search::Semantic(vector(&[1.0, 0.0])), filter, 9);
        assert_eq!(by_vector, expected, "{filter:?}");
        let both = Search::Hybrid("apple pear plum", vector(&[1.0, 0.0]));
        assert_eq!(
            found(store, both, filter, 9).len(),
            expected.len(),
            "{filter:?}"
        );
    };
    let all = Filter::default();
    check(all, &["Apple", "Pear", "Plum"]);
    check(
        Filter {
            repository: Some("shop"),
            ..all
        },
        &["Apple", "Pear", "Plum"],
    );
    check(
        Filter {
            repository: Some("nowhere"),
            ..all
        },
        &[],
    );
    check(
        Filter {
            language: Some("sql"),
            ..all
        },
        &["Plum"],
    );
    for (pattern, expected) in [
        ("b", &["Pear", "Plum"][..]),
        ("**/*.cs", &["Apple", "Pear"]),
    ] {
        let pattern = PathPattern::new(pattern);
        check(
            Filter {
                path: Some(&pattern),
                ..all
            },
            expected,
        );
    }
}

pub(crate) fn hybrid_search_merges_both_lists(fresh: &Fresh) {
    let store = &*fresh.store;
    put_fruits(store);
    let query = Query {
        search: Search::Hybrid("plum", vector(&[1.0, 0.9])),
        filter: Filter::default(),
        limit: 9,
    };
    let hits = store.search(&query).expect("hits");
    let places: Vec<_> = hits
        .iter()
        .map(|hit| (&*hit.node.qualified, hit.keyword, hit.semantic))
        .collect();
    let expected = [
        ("Plum", Some(1), Some(3)),
        ("Pear", None, Some(1)),
        ("Apple", None, Some(2)),
    ];
    assert_eq!(places, expected);
    let sum = 1.0 / 61.0 + 1.0 / 63.0;
    assert!((hits[0].score - sum).abs() < 1e-12, "{}", hits[0].score);
    // Without known words, only the vectors count.
    let by_vector = Search::Hybrid("?!", vector(&[1.0, 0.0]));
    let found = found(store, by_vector, Filter::default(), 9);
    assert_eq!(found, ["Apple", "Pear", "Plum"]);
}

pub(crate) fn vectors_of_other_processes_are_found(fresh: &Fresh) {
    let (one, other) = (&*fresh.store, fresh.again());
    let ids = put_fruits(one);
    assert_eq!(nearest(&*other, &[1.0, 0.0]), ["Apple", "Pear", "Plum"]);
    one.put_vectors("small", &[(ids[0].clone(), &[-1.0, 0.0])])
        .expect("a stored value");
    assert_eq!(nearest(&*other, &[1.0, 0.0]), ["Pear", "Plum", "Apple"]);
    one.remove_files("shop", &["a.cs"]).expect("a removal");
    for store in [one, &*other] {
        assert_eq!(nearest(store, &[1.0, 0.0]), ["Pear", "Plum"]);
    }
    put(&*other, &fruits());
    other
        .put_vectors("small", &[(ids[0].clone(), &[1.0, 0.0])])
        .expect("a stored value");
    for store in [one, &*other] {
        assert_eq!(nearest(store, &[1.0, 0.0]), ["Apple", "Pear", "Plum"]);
    }
}

pub(crate) fn invalid_vectors_are_rejected(fresh: &Fresh) {
    let store = &*fresh.store;
    let ids = put_fruits(store);
    for (numbers, words) in [
        (&[1.0, 2.0, 3.0][..], "3 numbers"),
        (&[][..], "0 numbers"),
        (&[0.0, 0.0][..], "zeros"),
        (&[f32::NAN, 1.0][..], "one of its numbers"),
        (&[f32::INFINITY, 1.0][..], "one of its numbers"),
    ] {
        let good: &[f32] = &[5.0, 5.0];
        let put = store.put_vectors(
            "small",
            &[(ids[0].clone(), good), (ids[1].clone(), numbers)],
        );
        let query = Query {
            search: Search::Semantic(vector(numbers)),
            filter: Filter::default(),
            limit: 1,
        };
        for error in [
            put.expect_err("an invalid vector"),
            store.search(&query).expect_err("an invalid vector"),
        ] {
            assert!(
                matches!(error, StoreError::InvalidVector { .. }),
                "{error:?}"
            );
            assert!(error.to_string().contains(words), "{error}");
        }
    }
    assert_eq!(
        nearest(store, &[1.0, 0.0])[0],
        "Apple",
        "nothing of it was kept"
    );
}

/// At least 98 % of the twenty nearest vectors are found.
pub(crate) fn check_recall(store: &dyn Store, vectors: &[Vec<f32>], queries: &[Vec<f32>]) {
    let mut sketch = Sketch::new("a.cs");
    for number in 0..vectors.len() {
        sketch = sketch.node(NodeKind::Method, &format!("M{number}"), "");
    }
    put(store, std::slice::from_ref(&sketch));
    let ids = sketch.ids();
    let kept: Vec<(NodeId, &[f32])> = ids
        .iter()
        .zip(vectors)
        .map(|(id, numbers)| (id.clone(), &numbers[..]))
        .collect();
    store.put_vectors("small", &kept).expect("stored values");
    let mut hits = 0;
    for query in queries {
        let mut exact: Vec<(f32, &NodeId)> = kept
            .iter()
            .map(|(id, numbers)| (cosine(query, numbers), id))
            .collect();
        exact.sort_by(|one, other| other.0.total_cmp(&one.0));
        let exact: HashSet<&NodeId> = exact[..20].iter().map(|(_, id)| *id).collect();
        let query = Query {
            search: Search::Semantic(vector(query)),
            filter: Filter::default(),
            limit: 20,
        };
        let found = store.search(&query).expect("hits");
        hits += found
            .iter()
            .filter(|hit| exact.contains(&hit.node.id))
            .count();
    }
    let all = 20 * queries.len();
    assert!(hits * 100 >= 98 * all, "{hits} of {all}");
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let product = |one: &[f32], other: &[f32]| -> f32 {
        one.iter().zip(other).map(|(one, other)| one * other).sum()
    };
    product(one, other) / (product(one, one) * product(other, other)).sqrt()
}

pub(crate) fn recall_is_high_for_random_vectors(fresh: &Fresh) {
    let mut random = Random(1);
    let mut any = |count: usize| -> Vec<Vec<f32>> {
        (0..count)
            .map(|_| (0..384).map(|_| random.normal()).collect())
            .collect()
    };
    check_recall(&*fresh.store, &any(2_500), &any(40));
}

pub(crate) fn recall_is_high_for_clustered_vectors(fresh: &Fresh) {
    let mut random = Random(2);
    let mut near = |centre: &[f32], spread: f32| -> Vec<f32> {
        let numbers = centre
            .iter()
            .map(|number| number + spread * random.normal());
        numbers.collect()
    };
    // Like those of real models: with a common direction, mostly small and a few large components.
    let common: Vec<f32> = (0_u8..200)
        .map(|place| 4.0 / (1.0 + f32::from(place)))
        .collect();
    let centres: Vec<Vec<f32>> = (0..50).map(|_| near(&common, 0.5)).collect();
    let vectors: Vec<Vec<f32>> = (0..5_000)
        .map(|place| near(&centres[place % 50], 0.1))
        .collect();
    let queries: Vec<Vec<f32>> = (0..40).map(|place| near(&centres[place], 0.1)).collect();
    check_recall(&*fresh.store, &vectors, &queries);
}
