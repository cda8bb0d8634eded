//! Keyword search.

use overlock_store::{Filter, Hit, NodeKind, PathPattern, Query, Search, Store};

use crate::engines::Fresh;
use crate::sketch::{Sketch, put};

fn search(store: &dyn Store, text: &str, filter: Filter<'_>, limit: u32) -> Vec<Hit> {
    let query = Query {
        search: Search::Keyword(text),
        filter,
        limit,
    };
    let hits = store.search(&query).expect("hits");
    let is_in_order = hits.is_sorted_by(|one, other| one.score >= other.score);
    assert!(is_in_order, "sorted by score");
    for (place, hit) in (1..).zip(&hits) {
        assert_eq!((hit.keyword, hit.semantic), (Some(place), None));
    }
    hits
}

fn names(hits: &[Hit]) -> Vec<&str> {
    hits.iter().map(|hit| &*hit.node.qualified).collect()
}

#[track_caller]
fn check(store: &dyn Store, text: &str, expected: &[&str]) {
    let hits = search(store, text, Filter::default(), 20);
    assert_eq!(names(&hits), expected, "searching {text:?}");
}

fn method(path: &str, qualified: &str, text: &str) -> Sketch {
    Sketch::new(path).node(NodeKind::Method, qualified, text)
}

pub(crate) fn words_find_identifiers(fresh: &Fresh) {
    let store = &*fresh.store;
    put(
        store,
        &[
            method(
                "a.cs",
                "OrderService",
                "class OrderService { HTTPClient client; }",
            ),
            method("b.cs", "Other", "int customer_id = GrößeÄndern(); // 注文"),
            Sketch::new("c.sql").node(
                NodeKind::Table,
                "dbo.Invoice",
                "CREATE TABLE [dbo].[Invoice]",
            ),
        ],
    );
    for text in [
        "order service",
        "OrderService",
        "order_service",
        "ORDER",
        "orderservice",
    ] {
        check(store, text, &["OrderService"]);
    }
    check(store, "http client", &["OrderService"]);
    for text in ["CustomerId", "customer id", "größe ändern", "注文"] {
        check(store, text, &["Other"]);
    }
    check(store, "[dbo].[Invoice]", &["dbo.Invoice"]);
    check(store, "nothing", &[]);
}

pub(crate) fn nodes_with_all_words_come_first(fresh: &Fresh) {
    let store = &*fresh.store;
    put(
        store,
        &[
            method("a.cs", "One", "apple apple apple apple"),
            method(
                "b.cs",
                "Two",
                &format!("apple pear {}", "filling ".repeat(200)),
            ),
            method("c.cs", "Three", "pear"),
        ],
    );
    let hits = search(store, "apple pear", Filter::default(), 20);
    assert_eq!(names(&hits)[0], "Two");
    assert_eq!(hits.len(), 3);
}

pub(crate) fn a_name_comes_before_its_mentions(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut files = vec![method(
        "z.cs",
        "Shop.Order",
        &"unrelated words ".repeat(500),
    )];
    for number in 0..40 {
        let text = "order order order of an order";
        files.push(method(
            &format!("{number}.cs"),
            &format!("Shop.Order.M{number}"),
            text,
        ));
    }
    put(store, &files);
    let hits = search(store, "order", Filter::default(), 5);
    assert_eq!(names(&hits)[0], "Shop.Order");
    assert_eq!(hits.len(), 5);
}

pub(crate) fn the_rarest_word_decides_if_no_node_has_all(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut files: Vec<Sketch> = (0..300)
        .map(|number| {
            method(
                &format!("{number}.cs"),
                &format!("M{number}"),
                "public value common",
            )
        })
        .collect();
    files.push(method("rare.cs", "Rare", "quaternion public"));
    put(store, &files);
    let hits = search(
        store,
        "common quaternion value missing",
        Filter::default(),
        3,
    );
    assert_eq!(names(&hits)[0], "Rare");
}

pub(crate) fn questions_are_searched_without_stop_words(fresh: &Fresh) {
    let store = &*fresh.store;
    put(
        store,
        &[
            method("a.cs", "Tax.Rate", "decimal Rate(Country country)"),
            method("b.cs", "Help", "how does this work and where is it"),
        ],
    );
    check(
        store,
        "How is the tax rate of a country found?",
        &["Tax.Rate"],
    );
    check(store, "how does this work", &["Help"]);
}

pub(crate) fn filters_restrict_the_hits(fresh: &Fresh) {
    let store = &*fresh.store;
    put(
        store,
        &[
            method("src/orders/A.cs", "A", "apple"),
            method("src/orders2/B.cs", "B", "apple"),
            method("src/orders/deep/C.sql", "C", "apple"),
        ],
    );
    let other = method("src/orders/A.cs", "D", "apple");
    store
        .put_files("other", &[other.file()])
        .expect("a stored value");
    let check = |filter: Filter<'_>, expected: &[&str]| {
        let hits = search(store, "apple", filter, 20);
        let mut found = names(&hits);
        found.sort_unstable();
        assert_eq!(found, expected, "{filter:?}");
        // The filter also applies to nodes with the query as their name.
        for name in ["A", "B", "C", "D"] {
            let is_found = !search(store, name, filter, 20).is_empty();
            assert_eq!(is_found, expected.contains(&name), "{name} in {filter:?}");
        }
    };
    let all = Filter::default();
    check(all, &["A", "B", "C", "D"]);
    check(
        Filter {
            repository: Some("shop"),
            ..all
        },
        &["A", "B", "C"],
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
        &["C"],
    );
    check(
        Filter {
            language: Some("cobol"),
            ..all
        },
        &[],
    );
    for (pattern, expected) in [
        ("src/orders", &["A", "C", "D"][..]),
        ("src/orders/A.cs", &["A", "D"]),
        ("src/*/A.cs", &["A", "D"]),
        ("**/*.sql", &["C"]),
        ("src/**", &["A", "B", "C", "D"]),
        ("src/orders?/*", &["B"]),
        ("*.cs", &[]),
        ("", &["A", "B", "C", "D"]),
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
    let pattern = PathPattern::new("src/orders");
    let filter = Filter {
        repository: Some("shop"),
        language: Some("csharp"),
        path: Some(&pattern),
    };
    check(filter, &["A"]);
}

pub(crate) fn removed_and_changed_texts_are_not_found(fresh: &Fresh) {
    let store = &*fresh.store;
    put(
        store,
        &[method("a.cs", "A", "apple"), method("b.cs", "B", "apple")],
    );
    put(store, &[method("a.cs", "A", "pear")]);
    check(store, "apple", &["B"]);
    check(store, "pear", &["A"]);
    store.remove_files("shop", &["b.cs"]).expect("a removal");
    check(store, "apple", &[]);
}

pub(crate) fn query_syntax_is_searched_as_words(fresh: &Fresh) {
    let store = &*fresh.store;
    put(store, &[method("a.cs", "A", "apple and pear or not near")]);
    let long = "apple ".repeat(200_000);
    let many = (0..100_000).map(|number| format!("w{number}"));
    let many = many.collect::<Vec<_>>().join(" ");
    let endless = "x".repeat(1_000_000);
    for (text, is_found) in [
        ("\"apple", true),
        ("apple\"; DROP TABLE nodes; --", true),
        ("name:apple", true),
        ("apple*", true),
        ("^apple", true),
        ("(apple", true),
        ("NEAR(apple pear, 1)", true),
        ("apple AND", true),
        ("NOT apple", true),
        ("{name} : apple", true),
        ("apple + pear", true),
        ("-apple", true),
        ("apple\0pear", true),
        ("%apple_", true),
        ("apple & !pear | <-> :*", true),
        ("'apple'", true),
        ("\\apple", true),
        ("", false),
        ("\0", false),
        ("\"\"\"", false),
        ("!?*()^:-+{}&|<>'\\", false),
        ("👍🏽🎉", false),
        (&*long, true),
        (&*many, false),
        (&*endless, false),
    ] {
        let found = search(store, text, Filter::default(), 5).len();
        let shown: String = text.chars().take(40).collect();
        assert_eq!(found > 0, is_found, "{shown:?}");
    }
}

pub(crate) fn limits_restrict_the_hits(fresh: &Fresh) {
    let store = &*fresh.store;
    let files: Vec<Sketch> = (0..30)
        .map(|number| method(&format!("{number}.cs"), &format!("M{number}"), "apple"))
        .collect();
    put(store, &files);
    for (limit, expected) in [(0, 0), (1, 1), (29, 29), (30, 30), (31, 30), (u32::MAX, 30)] {
        assert_eq!(
            search(store, "apple", Filter::default(), limit).len(),
            expected
        );
    }
}
