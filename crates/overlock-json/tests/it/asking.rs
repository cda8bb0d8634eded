//! What a prompt is given to ask for the rest of a document.

use overlock_json::{ContextOptions, Contexts, contexts};
use proptest::prelude::*;

use crate::documents::documents;

fn contexts_of(text: &str) -> Contexts {
    contexts(text, &ContextOptions::default()).expect("there is JSON in the text")
}

#[track_caller]
fn check_elements(text: &str, cut_off: &str, before: &str) {
    let contexts = contexts_of(text);
    let have = (
        contexts.cut_off_element.as_str(),
        contexts.element_before_cutoff.as_str(),
    );
    assert_eq!(have, (cut_off, before), "in {text:?}");
}

#[test]
fn shows_the_element_that_was_cut_and_the_one_before() {
    check_elements(r#"[{"id": 1}, {"id": 2}, {"na"#, r#"{"na"#, r#"{"id": 2}"#);
    check_elements(
        r#"[["a,]", {"x": "\\"}], {"b": {"c": 1, "d"#,
        r#"{"b": {"c": 1, "d"#,
        r#"["a,]", {"x": "\\"}]"#,
    );
    check_elements(r#"[{"id": 1}, {"id": 2}, "#, "", r#"{"id": 2}"#);
    check_elements(r#"[{"id": 1}, {"id": 2} "#, "", r#"{"id": 2}"#);
    check_elements(r#"["alpha" , "beta", "gam"#, r#""gam"#, r#""beta""#);
    check_elements(
        r#"{"a": [1, 2], "b": {"c": 1}, "d": "#,
        r#""d":"#,
        r#""b": {"c": 1}"#,
    );
    check_elements("[", "", "");
    check_elements("[1, 2]", "", "");
}

#[test]
fn a_complete_document_asks_for_nothing() {
    let contexts = contexts_of(r#"Here: {"a": 1}"#);
    assert_eq!(contexts.overlap_context, "");
    assert_eq!(contexts.complete_part, r#"{"a": 1}"#);
    assert!(contexts.parsing_success && contexts.cut.is_none());
}

#[test]
fn the_cut_is_counted_in_the_text_as_it_was_given() {
    let text = "Here you are:\n```json\n{\"rows\": [1, 2, \"ha";
    let contexts = contexts_of(text);
    assert_eq!(contexts.hierarchy_context, "{\"rows\": [1, 2, \"ha");
    assert_eq!(contexts.cut.map(|cut| cut.offset), Some(text.len()));
}

#[test]
fn the_overlap_takes_a_quarter_of_the_next_answer_at_most() {
    let text = format!(r#"["{}"#, "words and more words, ".repeat(200));
    let overlap = |answer_chars| {
        let options = ContextOptions {
            answer_chars,
            ..ContextOptions::default()
        };
        contexts(&text, &options)
            .expect("an array has begun")
            .overlap_context
            .chars()
            .count()
    };
    assert_eq!(
        (overlap(None), overlap(Some(400)), overlap(Some(10))),
        (1_000, 100, 40)
    );
}

proptest! {
    #[test]
    fn the_overlap_is_the_end_of_the_base_and_says_where_it_is(
        document in documents(),
        at in any::<prop::sample::Index>(),
    ) {
        let text = document.text();
        let cut = text.floor_char_boundary(1 + at.index(text.len()));
        let contexts = contexts_of(&text[..cut]);
        let (base, overlap) = (&contexts.hierarchy_context, &contexts.overlap_context);
        prop_assert!(base.ends_with(overlap.as_str()));
        prop_assert_eq!(overlap.is_empty(), contexts.cut.is_none());
        if contexts.cut.is_none() {
            return Ok(());
        }
        let length = overlap.chars().count();
        prop_assert!(length <= 1_000 && length >= base.chars().count().min(40));
        let tail: String = base.chars().rev().take(4_000).collect::<Vec<_>>().into_iter().rev().collect();
        let first = tail.find(overlap.as_str());
        // Near the longest allowed, a few characters may have to go so as not to split an escape.
        prop_assert!(length > 990 || first == Some(tail.len() - overlap.len()));
    }
}
