//! Renders documents under budgets and limits, with properties for all documents.

use std::fmt::Write;
use std::ops::Range;

use proptest::prelude::*;
use serde_json::Value;

use super::outline::Outline;
use super::spend::spend;
use super::{CutValue, RenderOptions, SummaryMode, characters, render_outline};
use crate::partial_document::whole_characters;
use crate::scan::Scanner;

const DOCUMENT: &str = r#"{
  "document": {
    "metadata": {
      "title": "My Document",
      "author": "John Doe",
      "version": 1
    },
    "sections": [
      {
        "id": "section1",
        "title": "Introduction",
        "content": "This is the introduction content..."
      },
      {
        "id": "section2",
        "title": "Main Content",
        "content": "This is a very long content that gets cut right here in the middle of this sentence and the JSON is truncated..."#;

const MODES: [CutValue; 3] = [CutValue::Hint, CutValue::Keep, CutValue::Tail];

fn options(budget: usize, cut_value: CutValue, limit: Option<usize>) -> RenderOptions {
    RenderOptions {
        budget,
        cut_value,
        limit,
        ..RenderOptions::default()
    }
}

/// A valid JSON prefix without half a character, and the scanner that has read it.
fn read(base: &[u8]) -> (&str, Scanner) {
    let (text, _) = whole_characters(base).expect("it is a document up to its end");
    let mut scanner = Scanner::new();
    scanner.feed(text.as_bytes());
    (text, scanner)
}

fn render_prefix(base: &[u8], options: &RenderOptions, measure: &dyn Fn(&str) -> usize) -> String {
    let (text, scanner) = read(base);
    render_outline(
        &Outline::new(text, &scanner, options.look_back),
        options,
        measure,
    )
}

#[track_caller]
fn check(base: &str, budget: usize, cut_value: CutValue, rendered: &str) {
    let options = options(budget, cut_value, None);
    assert_eq!(
        render_prefix(base.as_bytes(), &options, &characters),
        rendered,
        "{cut_value:?} with {budget} for {base:?}"
    );
}

#[track_caller]
fn check_limit(base: &str, budget: usize, cut_value: CutValue, limit: usize, rendered: &str) {
    let options = options(budget, cut_value, Some(limit));
    let text = render_prefix(base.as_bytes(), &options, &characters);
    assert_eq!(text, rendered, "{cut_value:?} within {limit}");
    assert!(characters(&text) <= limit.max(200), "within {limit}");
}

#[test]
fn writes_every_value_when_the_budget_pays_for_all() {
    for mode in MODES {
        check(DOCUMENT, 500, mode, DOCUMENT);
    }
}

#[test]
fn spends_from_the_cut_to_the_root_and_then_summarises() {
    let rendered = r#"{
  "document": {
    "metadata": <object>,
    "sections": [
      {
        "id": "section1",
        "title": "Introduction",
        "content": "This is the introduction content..."
      },
      {
        "id": "section2",
        "title": "Main Content",
        "content": <str>"#;
    check(DOCUMENT, 100, CutValue::Hint, rendered);
}

#[test]
fn a_kept_cut_value_costs_nothing() {
    let rendered = r#"{
  "document": {
    "metadata": <object>,
    "sections": [
      {
        "id": "section1",
        "title": "Introduction",
        "content": "This is the introduction content..."
      },
      {
        "id": "section2",
        "title": "Main Content",
        "content": "This is a very long content that gets cut right here in the middle of this sentence and the JSON is truncated..."#;
    check(DOCUMENT, 100, CutValue::Keep, rendered);
}

#[test]
fn the_tail_of_a_cut_value_takes_what_it_needs_of_the_budget() {
    let rendered = r#"{
  "document": {
    "metadata": <object>,
    "sections": [
      <object>,
      {
        "id": <str>,
        "title": <str>,
        "content": "…ry long content that gets cut right here in the middle of this sentence and the JSON is truncated..."#;
    check(DOCUMENT, 100, CutValue::Tail, rendered);
}

#[test]
fn summarises_from_the_start_below_fifty() {
    let hinted = r#"{
  "document": {
    "metadata": <object>,
    "sections": [
      <object>,
      {
        "id": <str>,
        "title": <str>,
        "content": <str>"#;
    let kept = r#"{
  "document": {
    "metadata": <object>,
    "sections": [
      <object>,
      {
        "id": <str>,
        "title": <str>,
        "content": "This is a very long content that gets cut right here in the middle of this sentence and the JSON is truncated..."#;
    for budget in [49, 0] {
        check(DOCUMENT, budget, CutValue::Hint, hinted);
        check(DOCUMENT, budget, CutValue::Keep, kept);
        check(DOCUMENT, budget, CutValue::Tail, hinted);
    }
}

#[test]
fn a_value_that_just_ended_is_still_the_cut_value() {
    let closed = format!("{DOCUMENT}\"");
    for mode in MODES {
        check(&closed, 500, mode, &closed);
    }
    check(
        r#"{"a": "b", "c": "d""#,
        0,
        CutValue::Keep,
        r#"{"a": <str>, "c": "d""#,
    );
    check(
        r#"{"a": "b", "c": "d","#,
        0,
        CutValue::Keep,
        r#"{"a": <str>, "c": <str>,"#,
    );
    check(
        r#"{"a": "b", "c": "d" "#,
        0,
        CutValue::Keep,
        r#"{"a": <str>, "c": "d" "#,
    );
}

#[test]
fn hints_a_half_value_by_its_first_character() {
    for (half, hint) in [
        ("\"", "<str>"),
        ("-", "<number>"),
        ("12.", "<number>"),
        ("tr", "<bool>"),
        ("f", "<bool>"),
        ("nul", "<null>"),
    ] {
        check(
            &format!("[1, {half}"),
            0,
            CutValue::Hint,
            &format!("[<number>, {hint}"),
        );
        check(
            &format!("[1, {half}"),
            0,
            CutValue::Keep,
            &format!("[<number>, {half}"),
        );
        check(half, 0, CutValue::Hint, hint);
    }
}

#[test]
fn names_types_at_the_level_where_the_budget_ran_out_and_nothing_above_it() {
    check(
        r#"{"n": 1, "t": true, "o": {}, "list": [null, {"x": 1}, [2], {"id": 7, "te"#,
        0,
        CutValue::Hint,
        r#"{"n": "...", "t": "...", "o": <object>, "list": ["...", <object>, <array>, {"id": <number>, "te"#,
    );
    check(
        r#"[[1, 2], {"a": 1}, null, false, "#,
        0,
        CutValue::Hint,
        "[<array>, <object>, <null>, <bool>, ",
    );
}

#[test]
fn a_container_in_which_the_budget_runs_out_keeps_its_shape() {
    let long = "x".repeat(30);
    let base = format!(
        r#"[7, {{"a": "{long}", "b": {{"c": ["{long}", 1, {{"d": 2}}], "e": "f"}}, "g": [2]}}, "#
    );
    check(
        &base,
        100,
        CutValue::Hint,
        &format!(
            r#"[<number>, {{"a": "{long}", "b": {{"c": ["{long}", <number>, <object>], "e": <str>}}, "g": <array>}}, "#
        ),
    );
    check(
        &base,
        75,
        CutValue::Hint,
        &format!(r#"[<number>, {{"a": "{long}", "b": <object>, "g": <array>}}, "#),
    );
}

#[test]
fn a_larger_value_is_hinted_and_a_smaller_one_behind_it_still_paid() {
    let large = "z".repeat(61);
    check(
        &format!(r#"["first", "{large}", "second", "#),
        66,
        CutValue::Hint,
        r#"["first", <str>, "second", "#,
    );
}

#[test]
fn keys_and_brackets_at_the_cut_are_structure() {
    for end in [
        "",
        " ",
        "\"k",
        "\"k\"",
        "\"k\" :",
        "\"k\": ",
        "\"k\": {",
        "\"k\": [ ",
    ] {
        check(
            &format!(r#"{{"a": 1, {end}"#),
            500,
            CutValue::Hint,
            &format!(r#"{{"a": 1, {end}"#),
        );
    }
    check(
        r#"{"a": 1, "k": ["#,
        0,
        CutValue::Hint,
        r#"{"a": "...", "k": ["#,
    );
    check("", 500, CutValue::Hint, "");
    check(" \n", 0, CutValue::Keep, " \n");
}

#[test]
fn leaves_out_what_is_held_back_at_the_cut() {
    for half in [
        r"\",
        r"\u",
        r"\u00e",
        r"\ud83d",
        r"\ud83d\",
        r"\ud83d\u",
        r"\ud83d\ude0",
    ] {
        for mode in MODES {
            check(&format!("[\"x{half}"), 500, mode, "[\"x");
            check(&format!("{{\"x{half}"), 500, mode, "{\"x");
        }
    }
    for whole in [r"\\", r"\u00e9", r"\ud83d\ude00", r"\ud83d.", r"\ud83d\n"] {
        check(
            &format!("[\"x{whole}"),
            500,
            CutValue::Keep,
            &format!("[\"x{whole}"),
        );
    }
    let half_character = "[\"xé".as_bytes();
    let options = RenderOptions::default();
    let rendered = render_prefix(
        &half_character[..half_character.len() - 1],
        &options,
        &characters,
    );
    assert_eq!(rendered, "[\"x");
}

#[test]
fn a_tail_splits_neither_an_escape_nor_a_character() {
    let escape = |count| r"\ud83d\ude00".repeat(count);
    check(
        &format!("[\"{}", escape(10)),
        59,
        CutValue::Tail,
        &format!("[\"…{}", escape(4)),
    );
    check(
        &format!("[\"{}\"", r"\n".repeat(40)),
        51,
        CutValue::Tail,
        &format!("[\"…{}\"", r"\n".repeat(25)),
    );
    check(
        &format!("[\"{}", "é".repeat(80)),
        51,
        CutValue::Tail,
        &format!("[\"…{}", "é".repeat(51)),
    );
    check(
        &format!("[-{}", "9".repeat(5000)),
        60,
        CutValue::Tail,
        &format!("[…{}", "9".repeat(60)),
    );
}

#[test]
fn another_measure_decides_what_fits() {
    let words = |value: &str| value.split_whitespace().count() * 30;
    let options = options(70, CutValue::Tail, None);
    let rendered = render_prefix(br#"["a b", "one two three"#, &options, &words);
    assert_eq!(rendered, r#"[<str>, "… two three"#);
}

#[test]
fn a_complete_document_is_spent_from_its_end() {
    let long = "x".repeat(40);
    let document = format!(r#"{{"a": "{long}", "b": ["{long}", 1]}} "#);
    check(&document, 500, CutValue::Hint, &document);
    check(
        &document,
        85,
        CutValue::Hint,
        &format!(r#"{{"a": <str>, "b": ["{long}", <number>]}} "#),
    );
    check(
        &document,
        0,
        CutValue::Hint,
        r#"{"a": <str>, "b": <array>} "#,
    );
}

#[test]
fn far_siblings_collapse_into_one_run() {
    let objects = listed(0..1000, |id| format!("{{\"id\": {id}}}, "));
    let near = listed(988..1000, |id| format!("{{\"id\": {id}}}, "));
    check_limit(
        &format!(r#"{{"rows": [{objects}{{"id": 10"#),
        50_000,
        CutValue::Hint,
        200,
        &format!(r#"{{"rows": [<988 more objects>, {near}{{"id": 10"#),
    );
    let members = listed(0..50, |id| format!("\"key {id}\":{id},"));
    let near = listed(37..50, |id| format!("\"key {id}\":{id},"));
    check_limit(
        &format!("{{{members}\"last\":[[1],[2],3"),
        500,
        CutValue::Hint,
        200,
        &format!("{{<37 more members>,{near}\"last\":[[1],[2],3"),
    );
}

#[test]
fn members_lose_their_values_before_their_names() {
    let rows = "[1,2,3],".repeat(100);
    check_limit(
        &format!(r#"{{"config": [{rows}1], "title": "t", "text": "It was"#),
        5000,
        CutValue::Hint,
        200,
        r#"{"config": <array>, "title": "t", "text": "It was"#,
    );
    check_limit(
        &format!(r#"{{"title": "t", "rows": [{rows}{{"id": 7"#),
        0,
        CutValue::Keep,
        200,
        &format!(
            r#"{{"title": "...", "rows": [<82 more arrays>,{}{{"id": 7"#,
            "<array>,".repeat(18)
        ),
    );
}

#[test]
fn blanks_without_end_do_not_push_out_the_path() {
    let blanks = " \n".repeat(1000);
    check_limit(
        &format!("{{\"a\": [1,{blanks}"),
        500,
        CutValue::Hint,
        200,
        "{\"a\": [1,",
    );
    check_limit(
        &format!("{{\"a\": [1{blanks}"),
        500,
        CutValue::Keep,
        200,
        "{\"a\": [1",
    );
    check_limit(
        &format!("{{\"a\": [1]}}{blanks}"),
        500,
        CutValue::Keep,
        200,
        "{\"a\": [1]}",
    );
}

#[test]
fn blanks_in_a_string_are_its_content() {
    let blanks = " ".repeat(1000);
    let text = format!("{{\"a\": \"b{blanks}");
    for mode in [CutValue::Keep, CutValue::Tail] {
        let tail = " ".repeat(191);
        let rendered = format!("{{\"a\": \"…{tail}");
        check_limit(&text, 5000, mode, 200, &rendered);
    }
}

#[test]
fn siblings_beyond_number_are_spent_from_the_last() {
    let numbers = 5_000;
    let text = format!(
        "[{}",
        listed(0..numbers, |number| format!("{},", number + 1000))
    );
    // Four characters each; a rest below fifty is forfeited.
    let paid = (4 * 3_000 - 50) / 4 + 1;
    let rendered = format!(
        "[{}{}",
        "<number>,".repeat(numbers - paid),
        listed(numbers - paid..numbers, |number| format!(
            "{},",
            number + 1000
        ))
    );
    check(&text, 4 * 3_000, CutValue::Hint, &rendered);
}

fn listed(numbers: Range<usize>, item: impl Fn(usize) -> String) -> String {
    numbers.map(item).collect()
}

#[test]
fn names_the_siblings_of_a_run() {
    for (item, noun) in [
        ("{\"a\":[]}", "objects"),
        ("[1,2,34]", "arrays"),
        ("\"string\"", "strings"),
        ("12345678", "numbers"),
        ("false", "values"),
        ("1,[true]", "values"),
    ] {
        let text = format!("[{}[", format!("{item},").repeat(400));
        let options = options(10_000, CutValue::Hint, Some(200));
        let rendered = render_prefix(text.as_bytes(), &options, &characters);
        let (count, rest) = rendered
            .strip_prefix("[<")
            .and_then(|rest| rest.split_once(" more "))
            .expect("a run comes first");
        assert!(
            count.parse::<usize>().is_ok_and(|count| count > 300),
            "{rendered}"
        );
        assert!(rest.starts_with(&format!("{noun}>,")), "{rendered}");
        assert!(rest.ends_with(&format!("{item},[")), "{rendered}");
    }
}

#[test]
fn the_outer_part_of_a_long_path_becomes_a_count_of_levels() {
    let deep = "[".repeat(1_000_000);
    for mode in MODES {
        let rendered = format!("… 999819 levels …{}\"x", "[".repeat(181));
        check_limit(&format!("{deep}\"x"), 500, mode, 200, &rendered);
    }
    check_limit(
        &format!("{{\"{}\":{{\"b\":[1,", "long".repeat(100)),
        500,
        CutValue::Hint,
        200,
        "… 1 level …{\"b\":[1,",
    );
}

#[test]
fn a_value_or_key_longer_than_the_limit_keeps_its_end() {
    let long = "0123456789".repeat(100);
    let value = format!("{{\"a\": [1, 2], \"text\": \"{long}");
    check_limit(
        &value,
        5000,
        CutValue::Hint,
        200,
        "{\"a\": [1, 2], \"text\": <str>",
    );
    for mode in [CutValue::Keep, CutValue::Tail] {
        let options = options(5000, mode, Some(200));
        let rendered = render_prefix(value.as_bytes(), &options, &characters);
        assert!(
            rendered.starts_with("{\"a\": [1, 2], \"text\": \"…"),
            "{rendered}"
        );
        assert!(rendered.ends_with("0123456789"), "{rendered}");
        assert!(characters(&rendered) > 190, "{rendered}");
    }
    check_limit(
        &format!("[{{\"{long}"),
        500,
        CutValue::Hint,
        0,
        &format!("…{}", &long[long.len() - 199..]),
    );
}

#[test]
fn a_limit_holds_for_a_million_siblings() {
    let text = format!("{{\"a\":[{}", "[1],".repeat(1_000_000));
    for mode in MODES {
        let options = options(500, mode, Some(1000));
        let rendered = render_prefix(text.as_bytes(), &options, &characters);
        assert!(characters(&rendered) <= 1000, "{}", characters(&rendered));
        assert!(rendered.starts_with("{\"a\":[<"), "{rendered}");
        assert!(rendered.ends_with("[1],[1],"), "{rendered}");
    }
}

#[track_caller]
fn check_look_back(base: &str, look_back: usize, limit: Option<usize>, rendered: &str) {
    let options = RenderOptions {
        look_back: Some(look_back),
        ..options(1000, CutValue::Tail, limit)
    };
    let text = render_prefix(base.as_bytes(), &options, &characters);
    assert_eq!(text, rendered, "looking back {look_back}");
}

#[test]
fn does_not_read_siblings_that_are_far_back() {
    let base = r#"{"a": [1, 2, {"b": "],\\"}, [4, "}"], 5, 6"#;
    check_look_back(base, 100, None, base);
    check_look_back(base, 15, None, r#"{"a": [<earlier items>, [4, "}"], 5, 6"#);
    check_look_back(base, 14, None, r#"{"a": [<earlier items>, 5, 6"#);
    check_look_back(base, 1, None, r#"{"a": [<earlier items>, 6"#);
    let members = r#"{"a": 1, "b": {"c": 2, "d": 3}, "e": [{"#;
    check_look_back(members, 5, None, r#"{<earlier members>, "e": [{"#);
    check_look_back(members, 5, Some(200), r#"{<earlier members>, "e": [{"#);
}

#[test]
fn shows_only_the_end_of_a_long_value_at_the_cut() {
    check_look_back(r#"["abcdefgh"#, 3, None, r#"["…fgh"#);
    check_look_back(r#"["abcd\n\u00e9f"#, 5, None, r#"["…f"#);
    check_look_back(r#"["abcd\n\u00e9f"#, 7, None, r#"["…\u00e9f"#);
}

#[test]
fn collapses_what_was_read_into_what_was_not() {
    let base = format!("[{}", r#"{"key": "some value"},"#.repeat(1000));
    let options = RenderOptions {
        look_back: Some(2000),
        ..options(10_000, CutValue::Hint, Some(300))
    };
    let text = render_prefix(base.as_bytes(), &options, &characters);
    assert!(text.starts_with("[<earlier items>,{\"key\""), "{text}");
    assert!(
        characters(&text) <= 300 && characters(&text) > 250,
        "{text}"
    );
}

/// Documents of all shapes, compact, indented, or with all other characters than ASCII escaped.
fn documents() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\/é😀\n ]{0,60}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[a-c\"é]{0,4}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    (value, 0..3).prop_map(|(value, form)| match form {
        0 => value.to_string(),
        1 => serde_json::to_string_pretty(&value).expect("a value can be written"),
        _ => escaped(&value.to_string()),
    })
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(escaped, "\\u{unit:04x}").expect("a string takes all");
        }
    }
    escaped
}

fn modes() -> impl Strategy<Value = CutValue> {
    prop::sample::select(MODES.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_large_budget_reproduces_the_base(document in documents(), mode in modes()) {
        for end in 0..=document.len() {
            let base = &document.as_bytes()[..end];
            let rendered = render_prefix(base, &options(1_000_000, mode, None), &characters);
            let held_back = base.strip_prefix(rendered.as_bytes());
            prop_assert!(held_back.is_some(), "{rendered:?} begins the base");
            let held_back = held_back.unwrap_or_default();
            prop_assert!(
                held_back.is_empty() || held_back[0] == b'\\' || std::str::from_utf8(held_back).is_err(),
                "{rendered:?} stops at what is held back"
            );
        }
    }

    #[test]
    fn never_spends_more_than_the_budget(document in documents(), mode in modes(), budget in 0..300_usize) {
        for end in 0..=document.len() {
            let (text, scanner) = read(&document.as_bytes()[..end]);
            let outline = Outline::new(text, &scanner, None);
            let spending = spend(&outline, &options(budget, mode, None), &characters);
            prop_assert!(spending.spent <= budget);
        }
    }

    #[test]
    fn a_limit_always_holds(document in documents(), mode in modes(), budget in 0..2000_usize, limit in 0..400_usize) {
        for end in 0..=document.len() {
            let base = &document.as_bytes()[..end];
            let rendered = render_prefix(base, &options(budget, mode, Some(limit)), &characters);
            prop_assert!(characters(&rendered) <= limit.max(200), "{rendered:?}");
        }
    }

    #[test]
    fn a_limit_holds_however_far_back_is_read(
        document in documents(), mode in modes(), budget in 0..2000_usize,
        limit in prop::option::of(200..400_usize), look_back in 0..400_usize,
    ) {
        for end in 0..=document.len() {
            let base = &document.as_bytes()[..end];
            let unbounded = options(budget, mode, limit);
            let bounded = RenderOptions { look_back: Some(look_back), ..unbounded };
            let rendered = render_prefix(base, &bounded, &characters);
            prop_assert!(limit.is_none_or(|limit| characters(&rendered) <= limit), "{rendered:?}");
            if base.len() <= look_back {
                prop_assert_eq!(rendered, render_prefix(base, &unbounded, &characters));
            }
        }
    }

    #[test]
    fn a_kept_cut_value_ends_the_text(document in documents(), budget in 0..100_usize) {
        for end in 0..=document.len() {
            let (text, scanner) = read(&document.as_bytes()[..end]);
            let outline = Outline::new(text, &scanner, None);
            let rendered = render_prefix(text.as_bytes(), &options(budget, CutValue::Keep, None), &characters);
            if let Some(value) = &outline.cut_value {
                prop_assert!(rendered.ends_with(&outline.text[value.span.start..]));
            }
        }
    }
}

#[test]
fn summary_keys_show_the_keys_of_higher_levels_without_values() {
    let base = r#"{"meta": {"author": "Ada", "dates": {"first": 1815, "tags": [{"x": 1}]}, "none": {}}, "n": 7, "parts": [{"id": "one", "rows": [[1]]}, 5, {"id": "two", "text": "It was a"#;
    let keys = RenderOptions {
        summary: SummaryMode::Keys,
        ..options(0, CutValue::Hint, None)
    };
    assert_eq!(
        render_prefix(base.as_bytes(), &keys, &characters),
        r#"{"meta": {"author": "...", "dates": {"first": "...", "tags": <array>}, "none": {}}, "n": "...", "parts": [{"id": "...", "rows": <array>}, "...", {"id": <str>, "text": <str>"#
    );
    assert_eq!(
        render_prefix(
            base.as_bytes(),
            &options(0, CutValue::Hint, None),
            &characters
        ),
        r#"{"meta": <object>, "n": "...", "parts": [<object>, "...", {"id": <str>, "text": <str>"#
    );
    let limited = RenderOptions {
        limit: Some(200),
        ..keys
    };
    let many = format!("{}{base}", r#"[{"key": {"inner": 1}}, "#.repeat(50));
    let text = render_prefix(many.as_bytes(), &limited, &characters);
    assert!(characters(&text) <= 200, "{text}");
}
