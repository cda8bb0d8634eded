//! Generates JSON documents with the features that make cutting hard.

use proptest::prelude::*;

pub(crate) use crate::adversary::value::{Layout, Value};

/// The feature that a generated document tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Records,
    Periodic,
    Escapes,
    Deep,
    Odd,
}

/// A document whose root is an object or array.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub kind: Kind,
    pub value: Value,
    pub layout: Layout,
}

impl Document {
    pub(crate) fn text(&self) -> String {
        self.value.write(self.layout)
    }
}

/// Documents of every kind, in shares well above those that tests of few documents require.
pub(crate) fn documents() -> impl Strategy<Value = Document> {
    let kinds = prop_oneof![
        2 => records().prop_map(|value| (Kind::Records, value)),
        7 => periodic().prop_map(|value| (Kind::Periodic, value)),
        4 => escapes().prop_map(|value| (Kind::Escapes, value)),
        5 => deep().prop_map(|value| (Kind::Deep, value)),
        2 => odd().prop_map(|value| (Kind::Odd, value)),
    ];
    let layouts = prop_oneof![
        Just(Layout::Compact),
        Just(Layout::Spaced),
        Just(Layout::Pretty)
    ];
    (kinds, layouts).prop_map(|((kind, value), layout)| Document {
        kind,
        value,
        layout,
    })
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn words() -> impl Strategy<Value = String> {
    const WORDS: [&str; 16] = [
        "the",
        "model",
        "writes",
        "a",
        "long",
        "report",
        "über",
        "naïve",
        "日本語",
        "😀",
        "and",
        "stops",
        "in",
        "middle",
        "of",
        "it",
    ];
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..12).prop_map(|words| words.join(" "))
}

fn numbers() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..2000_i32).prop_map(|n| Value::Leaf(n.to_string())),
        prop::sample::select(
            &[
                "0",
                "-0",
                "-1.5e-7",
                "1E+400",
                "0.1",
                "-12.0",
                "9007199254740993",
                "123456789012345678901234567890",
                "6.02e23"
            ][..]
        )
        .prop_map(|n| Value::Leaf(n.to_owned())),
    ]
}

fn leaves() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => words().prop_map(|text| Value::Leaf(quoted(&text))),
        3 => numbers(),
        1 => prop::sample::select(&["true", "false", "null", "[]", "{}", "\"\""][..])
            .prop_map(|text| Value::Leaf(text.to_owned())),
    ]
}

/// Records as products ask models for: a table of objects in a wrapper.
fn records() -> impl Strategy<Value = Value> {
    let record =
        (0..100_000_u32, words(), numbers(), leaves()).prop_map(|(id, title, score, extra)| {
            Value::Object(vec![
                (quoted("id"), Value::Leaf(id.to_string())),
                (quoted("title"), Value::Leaf(quoted(&title))),
                (quoted("score"), score),
                (quoted("tags"), Value::Array(vec![extra])),
            ])
        });
    (words(), prop::collection::vec(record, 0..8), leaves()).prop_map(|(title, items, total)| {
        Value::Object(vec![
            (quoted("title"), Value::Leaf(quoted(&title))),
            (quoted("items"), Value::Array(items)),
            (quoted("total"), total),
        ])
    })
}

/// Repetitions, in which an overlap is ambiguous.
fn periodic() -> impl Strategy<Value = Value> {
    let unit = prop_oneof![
        Just(Value::Leaf("0".to_owned())),
        Just(Value::Leaf(quoted("ab"))),
        Just(Value::Object(vec![(
            quoted("a"),
            Value::Leaf("1".to_owned())
        )])),
        Just(Value::Array(vec![
            Value::Leaf("1".to_owned()),
            Value::Leaf("1".to_owned())
        ])),
        words().prop_map(|text| Value::Object(vec![(quoted("cell"), Value::Leaf(quoted(&text)))])),
        words().prop_map(|text| Value::Leaf(quoted(&format!("{text} {text} {text} {text}")))),
    ];
    (unit, 1..12_usize, any::<bool>()).prop_map(|(unit, times, wrapped)| {
        let items = Value::Array(vec![unit; times]);
        if wrapped {
            Value::Object(vec![(quoted("rows"), items)])
        } else {
            items
        }
    })
}

/// Strings that are mostly escapes, so that most cuts fall into one.
fn escapes() -> impl Strategy<Value = Value> {
    const ESCAPES: [&str; 14] = [
        r"\u00e9",
        r"\ud83d\ude00",
        r"\n",
        r"\\",
        r#"\""#,
        r"\/",
        r"\t",
        r"\u0000",
        r"\uD83D",
        r"\udE00",
        "a",
        "é",
        r"\\\\",
        r"\u2028",
    ];
    let text = || {
        prop::collection::vec(prop::sample::select(&ESCAPES[..]), 1..10)
            .prop_map(|escapes| quoted(&escapes.concat()))
    };
    prop::collection::vec((text(), text()), 1..5).prop_map(|members| {
        let members = members
            .into_iter()
            .map(|(key, value)| (key, Value::Leaf(value)));
        Value::Object(members.collect())
    })
}

fn deep() -> impl Strategy<Value = Value> {
    (
        prop::collection::vec(any::<bool>(), 51..120),
        leaves(),
        any::<bool>(),
    )
        .prop_map(|(kinds, leaf, siblings)| {
            kinds.into_iter().fold(leaf, |inner, is_object| {
                let beside = siblings.then(|| Value::Leaf("7".to_owned()));
                if is_object {
                    let beside = beside.map(|value| (quoted("b"), value));
                    Value::Object([(quoted("a"), inner)].into_iter().chain(beside).collect())
                } else {
                    Value::Array(beside.into_iter().chain([inner]).collect())
                }
            })
        })
}

/// Empty and repeated keys, empty containers, keys with escapes, mixed nesting.
fn odd() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(&["", "a", "a", "a/b", "~", "\\u0061", "é", "x\\\"y"][..])
        .prop_map(quoted);
    let value = leaves().prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(Value::Object),
        ]
    });
    prop::collection::vec(value, 0..4).prop_map(Value::Array)
}
