use super::{Extracted, clean_encoding, extract};
use proptest::prelude::*;

#[track_caller]
fn check(text: &str, document: &str) {
    let found = extract(text).map(|Extracted { start, end }| &text[start..end]);
    assert_eq!(found, Some(document), "extracting from {text:?}");
}

#[track_caller]
fn check_none(text: &str) {
    assert_eq!(extract(text), None, "extracting from {text:?}");
}

#[test]
fn a_document_alone_is_found_without_white_space() {
    check(r#"{"a": 1}"#, r#"{"a": 1}"#);
    check(" \n[1, 2]\n", "[1, 2]");
    check("\u{feff}{}", "{}");
}

#[test]
fn a_cut_document_reaches_to_the_end_of_the_text() {
    check(r#"{"a": [1, "x"#, r#"{"a": [1, "x"#);
    check("{\"a\": 1, \n", "{\"a\": 1, \n");
    check("Here it comes: {", "{");
    check("[", "[");
}

#[test]
fn leaves_out_prose_around_a_document() {
    check("Sure! {\"a\": 1} Anything else?", r#"{"a": 1}"#);
    check("It's \"quoted\" prose: [1, 2].", "[1, 2]");
}

#[test]
fn brackets_in_prose_are_not_the_document() {
    check(r#"Use [ as opener: {"a":1}"#, r#"{"a":1}"#);
    check(r#"use {curly} braces: {"a":1}"#, r#"{"a":1}"#);
    check(r#"[Note] The answer is {"a":1}"#, r#"{"a":1}"#);
    check(
        r#"As [1] says: {"a": [1, 2]} (see [2])."#,
        r#"{"a": [1, 2]}"#,
    );
    check_none("use {curly} braces");
    check_none("the [square] ones");
}

#[test]
fn the_document_with_the_most_json_wins_and_the_first_among_equals() {
    check(r#"{"a":1} or rather {"a":1,"b":2}"#, r#"{"a":1,"b":2}"#);
    check(r#"{"a":1} or {"b":2}"#, r#"{"a":1}"#);
}

#[test]
fn finds_a_complete_malformed_document() {
    check("{name: 'x', tags: [1,2,3]}", "{name: 'x', tags: [1,2,3]}");
    check(
        r#"So: {"a": "say "hi" to me", "b": 1} Bye"#,
        r#"{"a": "say "hi" to me", "b": 1}"#,
    );
    check(
        r#"So: {"tv": "a 24" screen", "b": 1} Bye"#,
        r#"{"tv": "a 24" screen", "b": 1}"#,
    );
    check(r#"{\"a\": \"b\"}"#, r#"{\"a\": \"b\"}"#);
}

#[test]
fn leaves_out_closed_and_unclosed_fences() {
    check("```json\n{\"a\": 1}\n```", r#"{"a": 1}"#);
    check("```\n[1]\n```\nDone.", "[1]");
    check("```{\"a\": 1}```", r#"{"a": 1}"#);
    check("Here:\n```jsonc\n{\"a\": 1", r#"{"a": 1"#);
}

#[test]
fn a_closing_fence_ends_an_open_document() {
    check("```json\n{\"a\": [1,\n```\nThat is all.", "{\"a\": [1,");
    check("```json\n{\"a\": \"cut here\n```\n", "{\"a\": \"cut here");
}

#[test]
fn a_fence_inside_a_string_is_text() {
    let text = "{\"a\": \"```py\\nx\\n```\"}";
    check(text, text);
    let cut = "{\"a\": \"```";
    check(cut, cut);
}

#[test]
fn leaves_out_reasoning() {
    check(
        "<think>perhaps {\"x\": [1, 2, 3]}</think>{\"a\": 1}",
        r#"{"a": 1}"#,
    );
    check_none("<think>perhaps {\"x\": 1}");
}

#[test]
fn a_scalar_alone_is_a_document() {
    for scalar in [
        "\"abc\"",
        "\"abc",
        "-12",
        "1.5e",
        "tru",
        "nul",
        "false",
        "\"a [1] b\"",
    ] {
        check(scalar, scalar);
        check(&format!("\n {scalar}"), scalar);
    }
    check_none("true story");
    check_none("\"a\" and \"b\"");
    check_none("");
    check_none(" \n");
}

#[test]
fn drops_and_counts_bytes_that_are_not_utf8() {
    let cleaned = clean_encoding(b"a\xFFb\xE2\x82c");
    assert_eq!((&*cleaned.text, cleaned.dropped), ("abc", 3));
    let clean = clean_encoding("é".as_bytes());
    assert!(matches!(clean.text, std::borrow::Cow::Borrowed("é")));
}

proptest! {
    #[test]
    fn a_range_is_always_inside_the_text(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(found) = extract(&bytes) {
            prop_assert!(found.start < found.end && found.end <= bytes.len());
        }
    }

    #[test]
    fn a_text_of_fences_and_brackets_never_panics(text in "([\\[\\]{}\",:a1 \n\\\\'`]|```|<think>|</think>){0,40}") {
        if let Some(found) = extract(&text) {
            prop_assert!(text.get(found.start..found.end).is_some());
        }
    }
}
