//! Counts documents at once, in pieces, and across serialisation.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Delivered;
use crate::scan::Scanner;

fn count(text: &str) -> Delivered {
    let mut delivered = Delivered::default();
    Scanner::new().feed_with(text.as_bytes(), &mut delivered);
    delivered
}

#[track_caller]
fn check(text: &str, lines: &[&str]) {
    assert_eq!(count(text).lines(), lines, "{text}");
}

#[test]
fn shows_each_section_with_its_content() {
    let document = json!({"sections": [
        {"id": "intro", "content_type": "heading", "elements": [{"content": {"text": "Hello"}}]},
        {"content_type": "paragraph", "elements": [{"content": {"text": "a\nb"}}]},
        {"id": "todo", "content_type": "bullet_list", "elements": [{"content": {"items": ["a", {"text": "b"}, 3]}}]},
        {"id": "section_table", "content_type": "table", "elements": [
            {"content": {"headers": ["x"], "rows": [["1"], ["2"]]}}, {"rows": [[3]]}]},
        {"content_type": "code_block", "elements": [{"content": {"code": "a\nb\n\nc\n"}}]},
        {"content_type": "image", "elements": []},
    ]});
    let lines = [
        "- heading \"intro\"",
        "- paragraph",
        "- bullet_list \"todo\" with 3 items",
        "- table \"section_table\" with 3 rows",
        "- code_block with 4 lines",
        "- image",
    ];
    check(&document.to_string(), &lines);
    check(&json!({"document": document}).to_string(), &lines);
    check(&json!({"documents": [document]}).to_string(), &lines);
    assert_eq!(count(&document.to_string()).section_count(), 6);
    assert_eq!(count(&document.to_string()).to_string(), lines.join("\n"));
}

#[test]
fn counts_direct_content_of_a_section() {
    check(
        r#"{"sections": [{"items": [1, 2], "content_type": "bullet_list"}, {"rows": [[]], "content_type": "table"}]}"#,
        &["- bullet_list with 2 items", "- table with 1 row"],
    );
}

#[test]
fn counts_only_complete_items_and_rows() {
    let list = r#"{"sections": [{"content_type": "bullet_list", "elements": [{"items": ["a", "b"#;
    check(list, &["- bullet_list with 1 item"]);
    check(&format!("{list}\""), &["- bullet_list with 2 items"]);
    let table = r#"{"sections": [{"content_type": "table", "rows": [[1, 2], [3, 4"#;
    check(table, &["- table with 1 row"]);
    check(&format!("{table}]"), &["- table with 2 rows"]);
}

#[test]
fn counts_the_lines_of_a_cut_string_of_code() {
    for (code, line) in [
        ("", "- code_block with 0 lines"),
        ("a", "- code_block with 1 line"),
        (r"a\", "- code_block with 1 line"),
        (r"a\n", "- code_block with 1 line"),
        (r"a\nb", "- code_block with 2 lines"),
        (r"a\u000", "- code_block with 1 line"),
        (r"a\u000a\u000Ab", "- code_block with 3 lines"),
        (r"a\\nb", "- code_block with 1 line"),
        (r"a\r\nb", "- code_block with 2 lines"),
    ] {
        let text = format!(r#"{{"sections": [{{"content_type": "code_block", "code": "{code}"#);
        check(&text, &[line]);
    }
}

#[test]
fn a_section_needs_a_complete_content_type() {
    check(
        r#"{"sections": [{"id": "a", "rows": [[1]], "content_type": "tab"#,
        &["- /sections with 0 records"],
    );
    check(
        r#"{"sections": [{"id": "a", "rows": [[1]], "content_type": "table""#,
        &["- table \"a\" with 1 row"],
    );
}

#[test]
fn content_of_items_and_rows_does_not_count() {
    check(
        r#"{"sections": [{"content_type": "bullet_list", "items": [{"items": [1, 2, 3]}, {"items": [4]}], "more": {"items": [5]}}]}"#,
        &["- bullet_list with 3 items"],
    );
    check(
        r#"{"sections": [{"content_type": "code_block", "rows": [{"code": "a\nb"}], "code": "c"}]}"#,
        &["- code_block with 1 line"],
    );
}

#[test]
fn nested_sections_are_shown_in_order() {
    check(
        r#"{"sections": [{"sections": [{"content_type": "table", "rows": [1]}], "content_type": "bullet_list", "items": [1, 2]"#,
        &["- bullet_list with 2 items", "- table with 1 row"],
    );
}

#[test]
fn an_unknown_content_type_shows_its_content() {
    check(
        r#"{"sections": [{"content_type": "steps", "items": [1]}, {"content_type": "quote"}]}"#,
        &["- steps with 1 item", "- quote"],
    );
}

#[test]
fn shows_arrays_of_records_without_sections() {
    check(r#"{"items": [{}, {}, {"a"#, &["- /items with 2 records"]);
    check(r#"[{"a": 1}]"#, &["- / with 1 record"]);
    check(
        r#"{"a/b": [{"lines": [{}]}, {"lines": [1, {}, 2]}], "none": [1, [2]]}"#,
        &[
            "- /a~1b with 2 records",
            "- /a~1b/0/lines with 1 record",
            "- /a~1b/1/lines with 1 record",
        ],
    );
    check(r"[[{}], {}]", &["- / with 1 record", "- /0 with 1 record"]);
    check(r#"{"a": 1}"#, &[]);
    check("7", &[]);
}

#[test]
fn shows_both_ends_of_more_than_twenty_lines() {
    let lines = |count: usize| {
        let sections: Vec<Value> = (0..count)
            .map(|id| json!({"id": id.to_string(), "content_type": "image"}))
            .collect();
        count_lines(&json!({"sections": sections}))
    };
    assert_eq!(lines(20).len(), 20);
    let shown = lines(1000);
    assert_eq!(shown.len(), 21);
    assert_eq!(shown[9], "- image \"9\"");
    assert_eq!(shown[10], "… (980 more) …");
    assert_eq!(shown[11], "- image \"990\"");
}

fn count_lines(document: &Value) -> Vec<String> {
    count(&document.to_string()).lines()
}

#[test]
fn lines_stay_short() {
    let long = "é".repeat(1000);
    let section = format!(r#"{{"sections": [{{"id": "{long}", "content_type": "image"}}"#);
    let id = "é".repeat(50);
    check(&section, &[&format!("- image \"{id}…\"")]);
    check(
        r#"{"sections": [{"id": "two\nlines", "content_type": "image"}"#,
        &["- image \"two lines\""],
    );
    let deep = count(&r#"[{"a":"#.repeat(20_000));
    let shown = deep.lines();
    assert_eq!(shown.len(), 21);
    assert_eq!(shown[1], "- /0/a with 0 records");
    assert_eq!(shown[10], "… (19980 more) …");
    assert!(shown.iter().all(|line| line.len() < 400));
}

#[test]
fn skips_levels_that_are_too_deep() {
    let levels = 1_000_000;
    let deep = format!("{}{{\"b\": 1}}{}", "[".repeat(levels), "]".repeat(levels));
    let sections = format!(
        r#"{{"sections": [{{"content_type": "bullet_list", "items": [{deep}, {deep}, 1]}}"#
    );
    check(&sections, &["- bullet_list with 3 items"]);
}

#[test]
fn stores_at_most_twenty_lines() {
    let mut delivered = Delivered::default();
    let mut scanner = Scanner::new();
    scanner.feed_with(br#"{"sections": ["#, &mut delivered);
    for _ in 0..1_000_000 {
        scanner.feed_with(br#"{"content_type":"image"},"#, &mut delivered);
    }
    assert_eq!(delivered.section_count(), 1_000_000);
    let stored = serde_json::to_string(&delivered).expect("a count can be stored");
    assert!(stored.len() < 4000, "{}", stored.len());
}

/// Documents of sections and of records, with keys in any order.
fn documents() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "sections",
        "elements",
        "content",
        "items",
        "rows",
        "code",
        "id",
        "content_type",
        "x",
    ]);
    let leaf = prop_oneof![
        any::<u8>().prop_map(Value::from),
        prop::sample::select(vec![
            "table",
            "bullet_list",
            "code_block",
            "a\nb\\né",
            "\u{1}"
        ])
        .prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(8, 60, 5, move |inner| {
        let members = prop::collection::vec((name.clone(), inner.clone()), 0..5);
        let section = (members.clone(), 0..5_usize).prop_map(|(members, at)| {
            let mut members: Vec<(&str, Value)> = members;
            members.insert(at.min(members.len()), ("content_type", "code_block".into()));
            object(members)
        });
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            members.prop_map(object),
            prop::collection::vec(section, 0..30)
                .prop_map(|sections| json!({"sections": sections})),
        ]
    });
    value.prop_map(|value| value.to_string())
}

fn object(members: Vec<(&str, Value)>) -> Value {
    let members = members
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    Value::Object(members.collect())
}

/// The lines of a complete document, counted on its tree.
#[derive(Default)]
struct Tree {
    sections: Vec<String>,
    records: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    items: usize,
    rows: usize,
    lines: usize,
}

impl Tree {
    /// Walks a value under `key`; an item of an array has no key.
    fn walk(
        &mut self,
        value: &Value,
        pointer: &str,
        key: &str,
        is_counting: bool,
        counts: &mut Counts,
    ) {
        match value {
            Value::Array(items) => {
                let records = items.iter().filter(|item| item.is_object()).count();
                if records > 0 {
                    let name = if pointer.is_empty() { "/" } else { pointer };
                    self.records
                        .push(super::with_count(&format!("- {name}"), records, "record"));
                }
                let counted = matches!(key, "items" | "rows") && !is_counting;
                match key {
                    "items" if counted => counts.items += items.len(),
                    "rows" if counted => counts.rows += items.len(),
                    _ => {}
                }
                for (index, item) in items.iter().enumerate() {
                    let pointer = format!("{pointer}/{index}");
                    if key == "sections" && item.is_object() {
                        self.section(item, &pointer);
                    } else {
                        self.walk(item, &pointer, "", is_counting || counted, counts);
                    }
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    self.walk(
                        member,
                        &format!("{pointer}/{key}"),
                        key,
                        is_counting,
                        counts,
                    );
                }
            }
            Value::String(code) if key == "code" && !is_counting => {
                counts.lines += code.lines().count();
            }
            _ => {}
        }
    }

    fn section(&mut self, section: &Value, pointer: &str) {
        let place = self.sections.len();
        let mut counts = Counts::default();
        self.walk(section, pointer, "", false, &mut counts);
        let name = |key| {
            section[key]
                .as_str()
                .map(|name| name.replace(char::is_control, " "))
        };
        let Some(content_type) = name("content_type") else {
            return;
        };
        let id = name("id").map_or(String::new(), |id| format!(" \"{id}\""));
        let line = format!("- {content_type}{id}");
        let all = [
            ("bullet_list", counts.items, "item"),
            ("table", counts.rows, "row"),
            ("code_block", counts.lines, "line"),
        ];
        let own = all.iter().find(|(name, ..)| *name == content_type);
        let some = || all.iter().find(|(_, count, _)| *count > 0);
        let line = match own.or_else(some) {
            Some((_, count, noun)) => super::with_count(&line, *count, noun),
            None => line,
        };
        self.sections.insert(place, line);
    }

    fn lines(self) -> Vec<String> {
        let all = if self.sections.is_empty() {
            self.records
        } else {
            self.sections
        };
        let Some(between @ 1..) = all.len().checked_sub(20) else {
            return all;
        };
        let mut shown = all[..10].to_vec();
        shown.push(format!("… ({between} more) …"));
        shown.extend_from_slice(&all[all.len() - 10..]);
        shown
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn pieces_and_serialisation_change_nothing(document in documents(), sizes in prop::collection::vec(1..200_usize, 1..20)) {
        let (mut scanner, mut delivered) = (Scanner::new(), Delivered::default());
        let mut read = 0;
        for size in sizes.into_iter().cycle() {
            let end = (read + size).min(document.len());
            scanner.feed_with(&document.as_bytes()[read..end], &mut delivered);
            read = end;
            let (mut whole_scanner, mut whole) = (Scanner::new(), Delivered::default());
            whole_scanner.feed_with(&document.as_bytes()[..end], &mut whole);
            prop_assert_eq!(&delivered, &whole);
            prop_assert!(whole.lines().len() <= 21);
            let stored = serde_json::to_string(&delivered).expect("a count can be stored");
            delivered = serde_json::from_str(&stored).expect("what was stored can be read");
            prop_assert_eq!(&delivered, &whole);
            if end == document.len() {
                break;
            }
        }
    }

    #[test]
    fn a_complete_document_counts_like_its_tree(document in documents()) {
        let tree = {
            let mut tree = Tree::default();
            let value = serde_json::from_str(&document).expect("the document is whole");
            tree.walk(&value, "", "", false, &mut Counts::default());
            tree
        };
        let delivered = count(&document);
        prop_assert_eq!(delivered.section_count(), tree.sections.len());
        prop_assert_eq!(delivered.lines(), tree.lines());
    }
}
