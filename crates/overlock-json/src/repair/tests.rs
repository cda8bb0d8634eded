mod answers;

use super::{FixKind, RepairOptions, Repaired, Several, repair, repair_open, work};
use crate::close::NoJson;
use crate::scan::Scanner;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;

#[track_caller]
fn repaired(text: &str) -> Repaired {
    repair(text, &RepairOptions::default()).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Checks the value, not the text.
#[track_caller]
fn check(text: &str, expected: &str) {
    let found = repaired(text).json;
    let value: Value =
        serde_json::from_str(&found).unwrap_or_else(|error| panic!("{found}: {error}"));
    let expected: Value = serde_json::from_str(expected).expect("the expectation is JSON");
    assert_eq!(value, expected, "repairing {text:?} gave {found}");
}

#[track_caller]
fn check_exactly(text: &str, json: &str, fixes: &[(FixKind, usize)]) {
    let found = repaired(text);
    let told: Vec<_> = found
        .fixes
        .iter()
        .map(|fix| (fix.kind, fix.offset))
        .collect();
    assert_eq!((&*found.json, &*told), (json, fixes), "repairing {text:?}");
}

#[test]
fn valid_json_is_unchanged() {
    for text in [
        " {\"a\" : [1, 2.50e+3, \"\\u00e9\\ud800\"] }\n",
        "\"a\"",
        "0",
        "[]",
        "[\"a\\\",\\\"b\"]",
    ] {
        check_exactly(text, text, &[]);
    }
}

#[test]
fn reports_every_fix_with_its_offset() {
    check_exactly(
        "{a: 'b', \"c\": [1, 2,],}",
        r#"{"a": "b", "c": [1, 2]}"#,
        &[
            (FixKind::UnquotedKey, 1),
            (FixKind::Quotes, 4),
            (FixKind::TrailingComma, 19),
            (FixKind::TrailingComma, 21),
        ],
    );
}

#[test]
fn keeps_the_formatting() {
    check_exactly(
        "{\n  \"a\": 1\n  \"b\":   [ 1 ,2]\n}",
        "{\n  \"a\": 1,\n  \"b\":   [ 1 ,2]\n}",
        &[(FixKind::MissingComma, 13)],
    );
}

#[test]
fn text_without_json_is_an_error() {
    for text in ["-", ".", "+"] {
        assert_eq!(
            repair(text, &RepairOptions::default()),
            Err(NoJson::Absent),
            "{text}"
        );
    }
    for (text, error) in [
        ("", NoJson::Empty),
        (" \n", NoJson::Empty),
        ("hello there", NoJson::Absent),
    ] {
        assert_eq!(
            repair(text, &RepairOptions::default()),
            Err(error),
            "{text:?}"
        );
    }
}

#[test]
fn prose_fences_and_marks_are_left_out() {
    check_exactly(
        "Here:\n```json\n{\"a\": 1,}\n```\nBye.",
        "{\"a\": 1}",
        &[
            (FixKind::Prose, 0),
            (FixKind::Fence, 6),
            (FixKind::TrailingComma, 21),
            (FixKind::Prose, 24),
        ],
    );
    check("\u{feff}{a: 1}", r#"{"a": 1}"#);
    check("<answer>{a: 1}</answer>", r#"{"a": 1}"#);
}

#[test]
fn quotes_inside_a_string_are_text() {
    check(
        r#"{"a": "He said "hi" to me", "b": 1}"#,
        r#"{"a": "He said \"hi\" to me", "b": 1}"#,
    );
    check(
        r#"{"a": "is it "yes", "no" or "both"?", "b": 1}"#,
        r#"{"a": "is it \"yes\", \"no\" or \"both\"?", "b": 1}"#,
    );
    check(
        r#"{"a": "the end is "near""}"#,
        r#"{"a": "the end is \"near\""}"#,
    );
    check(r#"{"a": ""so" it begins"}"#, r#"{"a": "\"so\" it begins"}"#);
    check(r#"["a 24" screen", "b"]"#, r#"["a 24\" screen", "b"]"#);
    check(
        r#"{"h": "<a href="x">y</a>", "b": 1}"#,
        r#"{"h": "<a href=\"x\">y</a>", "b": 1}"#,
    );
    check(
        r#"{"c": "f("x"); }", "b": 1}"#,
        r#"{"c": "f(\"x\"); }", "b": 1}"#,
    );
    check(
        r#"{"a": "{"b": "c", "d": [1]}"}"#,
        r#"{"a": "{\"b\": \"c\", \"d\": [1]}"}"#,
    );
    check(
        r#"{'a': 'it's O'Brien', 'b': 'say "x"'}"#,
        r#"{"a": "it's O'Brien", "b": "say \"x\""}"#,
    );
}

#[test]
fn inserts_a_missing_quote() {
    check(r#"{"a": "b, "c": 1}"#, r#"{"a": "b", "c": 1}"#);
    check("{\"a\": \"b\n\"c\": 1}", r#"{"a": "b", "c": 1}"#);
    check(r#"{"a": "b}"#, r#"{"a": "b"}"#);
    check(r#"{"a": ["b]}"#, r#"{"a": ["b"]}"#);
    check(r#"["a, "b"]"#, r#"["a", "b"]"#);
    check(r#"{"a": b", "c": 1}"#, r#"{"a": "b", "c": 1}"#);
    check(r#"{a": 1, "b: 2, "c": 3}"#, r#"{"a": 1, "b": 2, "c": 3}"#);
    check(r#"[{"a": "b}, {"a": "c"}]"#, r#"[{"a": "b"}, {"a": "c"}]"#);
}

#[test]
fn other_quotes_become_double_quotes() {
    check("{'a': ‘b’, “c”: `d`}", r#"{"a": "b", "c": "d"}"#);
    check(r#"{""a"": ""b""}"#, r#"{"a": "b"}"#);
    check("{\"a\": \"\"\"b\n\"c\" d\"\"\"}", r#"{"a": "b\n\"c\" d"}"#);
}

#[test]
fn rewrites_raw_characters_and_escapes_in_strings() {
    check("[\"a\nb\tc\u{1}\"]", r#"["a\nb\tc\u0001"]"#);
    check(
        r#"{"a": "\d+\.\x41\'\u12", }"#,
        r#"{"a": "\\d+\\.A'\\u12"}"#,
    );
    check(
        r#"{"a": "C:\new\table\", "b": 1}"#,
        r#"{"a": "C:\\new\\table\\", "b": 1}"#,
    );
    check("[\"a\\\nb\",]", r#"["a\nb"]"#);
    check(r#"{\"a\": \"b \\\"c\\\"\"}"#, r#"{"a": "b \"c\""}"#);
}

#[test]
fn repairs_commas_and_colons() {
    check(
        r#"{"a" 1 "b": [1 2, , 3,] "c" => 4; "d" = 5,}"#,
        r#"{"a": 1, "b": [1, 2, 3], "c": 4, "d": 5}"#,
    );
    check("[,1,,2]", "[1, 2]");
    check(r#"{,"a":: 1}"#, r#"{"a": 1}"#);
    check("[\"a\"\n\"b\"\n1\n{}]", r#"["a", "b", 1, {}]"#);
}

#[test]
fn comments_and_ellipses_are_removed() {
    check(
        "{\"a\": 1, // x\n/* y */ \"b\": 2 # z\n}",
        r#"{"a": 1, "b": 2}"#,
    );
    check(
        r#"{"a": [1, 2, ...], "b": [..., 9], ...}"#,
        r#"{"a": [1, 2], "b": [9]}"#,
    );
    check("[1, 2, … 97 more, 100]", "[1, 2, 100]");
}

#[test]
fn literals_and_numbers_of_other_languages_are_translated() {
    check(
        "[True, None, undefined, NaN, FALSE, -Infinity]",
        "[true, null, null, null, false, null]",
    );
    check(
        "[+1, .5, 1., 0x1F, 1_000, 1e, -.5, 05, 10n]",
        "[1, 0.5, 1.0, 31, 1000, 1, -0.5, 5, 10]",
    );
    check(
        r#"{"a": 1,000, "b": 00123}"#,
        r#"{"a": 1000, "b": "00123"}"#,
    );
    check(
        "[12345678901234567890.123456789012345678901234567890,]",
        "[12345678901234567890.123456789012345678901234567890]",
    );
    check(
        "{\"a\": u'x', \"b\": (1, 2), \"c\": {1, 2}, \"d\": (3)}",
        r#"{"a": "x", "b": [1, 2], "c": [1, 2], "d": 3}"#,
    );
    check(
        r#"{"a": ObjectId("1"), "b": new Date(0), "c": f(1, 2), "d": now()}"#,
        r#"{"a": "1", "b": 0, "c": [1, 2], "d": null}"#,
    );
}

#[test]
fn words_without_quotes_are_strings() {
    check(
        "{name: Ada Lovelace, born: 1815-12-10, at: 12:30}",
        r#"{"name": "Ada Lovelace", "born": "1815-12-10", "at": "12:30"}"#,
    );
    check(
        "{\"u\": https://x.y/z?a=b, \"n\": 10 kg}",
        r#"{"u": "https://x.y/z?a=b", "n": "10 kg"}"#,
    );
    check(
        "{\"r\": /a,b/i, \"c\": #fff}",
        r##"{"r": "/a,b/i", "c": "#fff"}"##,
    );
}

#[test]
fn strings_joined_with_plus_become_one() {
    check(r#"{"a": "b" + 'c' + "d"}"#, r#"{"a": "bcd"}"#);
}

#[test]
fn brackets_are_matched() {
    check("[1, 2}", "[1, 2]");
    check(r#"{"a": [1, 2}"#, r#"{"a": [1, 2]}"#);
    check(r#"{"a": ["b"}, "c": 1}"#, r#"{"a": ["b"], "c": 1}"#);
    check(r#"[{"a": 1, {"a": 2]"#, r#"[{"a": 1}, {"a": 2}]"#);
    check(r#"[{"a": 1}}, {"a": 2}]"#, r#"[{"a": 1}, {"a": 2}]"#);
    check(r#"{"a": 1}, "b": 2}"#, r#"{"a": 1, "b": 2}"#);
    check(r#"{"a": 1}}]"#, r#"{"a": 1}"#);
    check(r#""a": 1, "b": {"c": 2}"#, r#"{"a": 1, "b": {"c": 2}}"#);
    check(r#"["a": 1, "b": 2]"#, r#"[{"a": 1, "b": 2}]"#);
    check(
        r#"{"a": [{"b": 1}, {"b": 2}, "c": 3, "d": [4, "e": 5}"#,
        r#"{"a": [{"b": 1}, {"b": 2}], "c": 3, "d": [4], "e": 5}"#,
    );
    check(r#"{{"a": {{"b": 1}}}}"#, r#"{"a": {"b": 1}}"#);
    check(r#"{"a": [1], [2], "b": 3}"#, r#"{"a": [1, 2], "b": 3}"#);
}

#[test]
fn a_key_without_a_value_is_null() {
    check(r#"{"a": , "b": }"#, r#"{"a": null, "b": null}"#);
    check(r#"{"a", "b": 1}"#, r#"{"a": null, "b": 1}"#);
}

#[test]
fn closes_a_cut_document_without_half_values() {
    for (text, closed) in [
        (r#"{"a": 1, 'b': "xy"#, r#"{"a": 1, "b": "xy"}"#),
        (r#"{'a': "x\u00"#, r#"{"a": "x"}"#),
        (r#"{'a': "x\ud83d\u"#, r#"{"a": "x"}"#),
        ("{'a': [7, 12", r#"{"a": [7]}"#),
        ("{'a': [7, tr", r#"{"a": [7, true]}"#),
        ("{'a': 1, 'b", r#"{"a": 1}"#),
        ("{'a': 1, 'b'", r#"{"a": 1}"#),
        ("{'a': 1, 'b':", r#"{"a": 1}"#),
        ("{'a': 1,", r#"{"a": 1}"#),
        ("['a', {", r#"["a", {}]"#),
        (
            r#"{"code": "if (x) { y(); }"#,
            r#"{"code": "if (x) { y(); }"}"#,
        ),
    ] {
        check(text, closed);
        let fixes = repaired(text).fixes;
        assert!(
            fixes.iter().any(|fix| fix.kind == FixKind::Truncated),
            "{text:?}: {fixes:?}"
        );
    }
}

#[test]
fn several_documents_become_an_array_or_the_first() {
    for text in [
        "{\"a\":1}\n{\"b\":2}\n",
        "{\"a\":1}{\"b\":2}",
        "{\"a\":1}, {\"b\":2},",
    ] {
        check(text, r#"[{"a":1},{"b":2}]"#);
        let first = repair(
            text,
            &RepairOptions {
                several: Several::First,
            },
        )
        .expect("there is JSON");
        assert_eq!(first.json, r#"{"a":1}"#);
    }
    check("1\n2\n3", "[1, 2, 3]");
}

#[test]
fn documents_in_fences_of_their_own_become_an_array() {
    for text in [
        "```json\n{\"a\":1}\n```\n```json\n{\"b\":[2,3,4]}\n```",
        "First:\n```json\n{\"a\":1}\n```\n\nSecond:\n\n```json\n{\"b\":[2,3,4]}\n```\nDone.",
        "First:\n```\n{'a':1,}\n```\nand\n```\n{b:[2,3,4]}",
    ] {
        check(text, r#"[{"a":1},{"b":[2,3,4]}]"#);
        let kinds: Vec<_> = repaired(text).fixes.iter().map(|fix| fix.kind).collect();
        assert!(kinds.contains(&FixKind::Several), "{text:?}: {kinds:?}");
        assert!(kinds.contains(&FixKind::Fence), "{text:?}: {kinds:?}");
    }
    // Code in a fence, or a bracket in the prose between, keeps documents apart.
    check(
        "```json\n{\"a\":1}\n```\n```sh\nls\n```\n```json\n{\"b\":[2,3]}\n```",
        r#"{"b":[2,3]}"#,
    );
    check(
        "```json\n{\"a\":1}\n```\nSee [1].\n```json\n{\"b\":[2,3]}\n```",
        r#"{"b":[2,3]}"#,
    );
}

#[test]
fn documents_of_a_list_become_an_array() {
    for text in [
        "- {\"a\":1}\n- {\"b\":[2,3,4]}\n",
        "* {'a':1}\n\n* {'b':[2,3,4]}\n",
        "Here they are:\n\n  1. {\"a\":1},\n  2. {\"b\":[2,3,4]}\n\nDone.",
    ] {
        check(text, r#"[{"a":1},{"b":[2,3,4]}]"#);
        let kinds: Vec<_> = repaired(text).fixes.iter().map(|fix| fix.kind).collect();
        assert!(kinds.contains(&FixKind::Several), "{text:?}: {kinds:?}");
        let options = RepairOptions {
            several: Several::First,
        };
        let first = repair(text, &options).expect("there is JSON");
        let value: Value = serde_json::from_str(&first.json).expect("it is JSON");
        assert_eq!(value, serde_json::json!({"a": 1}), "{text:?}");
    }
    // A list after a document that is no item is prose.
    check("{\"a\":1}\n- {\"b\":2} is the other form", r#"{"a":1}"#);
    check("- {\"a\":1}\n- [1] is a reference", r#"{"a":1}"#);
}

#[test]
fn drops_and_reports_bytes_that_are_not_utf8() {
    let found = repair(b"{'a': '\xFFx', }", &RepairOptions::default()).expect("there is JSON");
    assert_eq!(found.json, r#"{"a": "x" }"#);
    let encoding: Vec<_> = found
        .fixes
        .iter()
        .map(|fix| (fix.kind, fix.offset))
        .collect();
    assert!(encoding.contains(&(FixKind::Encoding, 7)), "{encoding:?}");
    assert!(
        encoding.contains(&(FixKind::TrailingComma, 10)),
        "{encoding:?}"
    );
}

#[test]
fn repair_open_leaves_containers_open() {
    for (text, prefix) in [
        ("{a: 'b', 'c': [1, 2", r#"{"a": "b", "c": [1, 2"#),
        ("{a: 'b', 'c", r#"{"a": "b", "c"#),
        ("{a: 'xy\\u00", "{\"a\": \"xy\\u00"),
        ("{a: tr", r#"{"a": tr"#),
        ("{a: 1,", r#"{"a": 1,"#),
        ("{a: hel", r#"{"a": "hel"#),
        ("{a: 1}", r#"{"a": 1}"#),
    ] {
        assert_eq!(repair_open(text.as_bytes()).0, prefix, "repairing {text:?}");
    }
}

#[test]
fn depth_and_repetition_take_linear_time() {
    let mut without_json = Vec::new();
    for unit in [
        "[",
        "{\"a\":",
        "(",
        "\"",
        "'",
        "\\",
        "[}",
        "{]",
        "\"a\" b ",
        "{\"a\": \"b, \"",
        "\"{\"a\": ",
        "/*",
        "\"//",
        "a,",
        "{{",
        "[\u{a0}",
        "\"\u{a0},",
        "\x1b[0m[",
        "- {}\n",
        "```\n{}\n```\n",
        "1\n",
    ] {
        for before in ["", "{\"k\": \"", "["] {
            let times = 100_000 / unit.len();
            let [once, twice] = [times, 2 * times].map(|times| {
                let text = before.to_owned() + &unit.repeat(times);
                work::take();
                match repair(&text, &RepairOptions::default()) {
                    Ok(repaired) => {
                        let parsed = serde_json::from_str::<IgnoredAny>(&repaired.json);
                        assert!(parsed.is_ok(), "{before:?} and {unit:?}: {parsed:?}");
                    }
                    Err(error) => without_json.push((before, unit, times, error)),
                }
                work::take()
            });
            assert!(
                once <= 3 * times * unit.len() && twice <= 2 * once + 100,
                "{before:?} and {unit:?}: {once}, and {twice} for twice the text"
            );
        }
    }
    let absent = |unit, times| ("", unit, times, NoJson::Absent);
    let expected = [
        absent("\\", 100_000),
        absent("\\", 200_000),
        absent("/*", 50_000),
        absent("/*", 100_000),
        absent("a,", 50_000),
        absent("a,", 100_000),
    ];
    assert_eq!(without_json, expected);
}

#[test]
fn reports_an_error_far_into_a_document() {
    let record = r#"{"id": 7, "text": "a \"b\", {c", "tags": ["x", []]}"#;
    let records = vec![record; 4_000].join(",\n");
    for (slip, mended) in [
        (",]", "]"),
        (", {'a': 1}]", ", {\"a\": 1}]"),
        (", {\"a\": [1, 2}]", ", {\"a\": [1, 2]}]"),
        (", {\"a\": \"b \"c\" d\"}]", ", {\"a\": \"b \\\"c\\\" d\"}]"),
        ("]}", "]"),
        ("] That is all.", "]"),
    ] {
        let found = repaired(&format!("[{records}{slip}"));
        assert_eq!(found.json, format!("[{records}{mended}"), "after {slip:?}");
        assert!(
            found.fixes.iter().all(|fix| fix.offset > records.len()),
            "{slip:?}"
        );
    }
}

/// Documents whose strings look like structure.
fn tricky() -> impl Strategy<Value = Value> {
    let piece = proptest::sample::select(vec![
        "word", "\"", "'", ", ", ": ", "{", "}", "[", "]", "//", "#", " ", "\n", "\\", "5\"", "`",
        "“", "\": \"", "\", \"", "```", "...", "null", "é", "，", "+", "/* x */", "it's",
    ]);
    let text = proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat());
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(Value::Null),
        Just(Value::Bool(true)),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = proptest::sample::select(vec!["name", "id", "a b", "x-y", "items", "text"]);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
            proptest::collection::btree_map(key, inner, 1..4).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
    .prop_filter("a container", |value| value.is_array() || value.is_object())
}

/// Pieces of JSON and of similar notations.
fn malformed() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ":",
        ",",
        "\"",
        "\"",
        "'",
        "a",
        "b: ",
        "\"k\":",
        "\"v\"",
        "1",
        "-",
        "0",
        "12.5",
        "true",
        "nul",
        "Tru",
        "Non",
        "None",
        " ",
        "\n",
        "\\",
        "\\\"",
        "\\u12",
        "\\ud83d",
        "/",
        "/*",
        "*/",
        "//",
        "#",
        "...",
        "…",
        "`",
        "```json\n",
        "```",
        "“",
        "”",
        "’",
        "+",
        "=>",
        ";",
        "<think>",
        "é",
        "\u{a0}",
        "e",
        ".",
        "0x1F",
        "_",
        "f(",
        "\t",
        "\u{1}",
        "{\"a\": 1}",
        "😀",
        "\"\"\"",
    ]);
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn every_repaired_text_parses(text in malformed()) {
        if let Ok(found) = repair(&text, &RepairOptions::default()) {
            let parsed = serde_json::from_str::<IgnoredAny>(&found.json);
            prop_assert!(parsed.is_ok(), "{text:?} became {:?}", found.json);
            prop_assert!(found.fixes.iter().all(|fix| fix.offset <= text.len()));
        }
    }

    #[test]
    fn one_error_changes_no_value(value in tricky(), indented in any::<bool>(), slip in 0..4_usize) {
        let json = if indented { format!("{value:#}") } else { value.to_string() };
        let (opener, rest) = json.split_at(1);
        let (body, closer) = json.split_at(json.len() - 1);
        let text = match slip {
            0 => format!("{},{closer}", body.trim_end()),
            1 => format!("{opener} // a note\n{rest}"),
            2 => format!("{opener},{rest}"),
            _ => format!("Here it is:\n```json\n{json}\n```\nDone."),
        };
        check(&text, &json);
    }

    #[test]
    fn an_open_repair_is_a_prefix_of_json(text in malformed()) {
        let (prefix, _) = repair_open(text.as_bytes());
        let mut scanner = Scanner::new();
        scanner.feed(prefix.as_bytes());
        prop_assert_eq!(scanner.syntax_error(), None, "{:?} became {:?}", text, prefix);
    }

    #[test]
    fn any_bytes_are_repaired_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(found) = repair(&bytes, &RepairOptions::default()) {
            prop_assert!(serde_json::from_str::<IgnoredAny>(&found.json).is_ok());
        }
    }
}

#[test]
fn no_break_spaces_between_tokens_are_white_space() {
    for text in [
        "{\"a\":1\u{a0},\"b\":[true\u{a0},\u{a0}-2.5e3\u{a0}]}",
        "{\u{a0}\"a\"\u{a0}:\u{a0}1,\u{a0}\"b\":[true,-2.5e3]\u{a0}}",
        "Here:\u{a0}{\u{a0}\"a\":\u{a0}1\u{a0},\n\u{a0}\"b\"\u{a0}: [true, -2.5e3\u{a0}\u{a0}]}",
    ] {
        check(text, r#"{"a":1,"b":[true,-2.5e3]}"#);
        let fixes = repaired(text).fixes;
        assert!(
            fixes.iter().any(|fix| fix.kind == FixKind::WhiteSpace),
            "{text:?}: {fixes:?}"
        );
    }
    check_exactly("[1\u{a0}]", "[1 ]", &[(FixKind::WhiteSpace, 2)]);
    check_exactly(
        "{\"a\"\u{a0}: \"x\"\u{a0}}",
        "{\"a\" : \"x\" }",
        &[(FixKind::WhiteSpace, 4), (FixKind::WhiteSpace, 11)],
    );
}

#[test]
fn a_no_break_space_inside_a_value_is_kept() {
    check("[12\u{a0}345, 7\u{a0}€]", "[\"12\u{a0}345\", \"7\u{a0}€\"]");
    check("{\"a\": \"x\u{a0}y\u{a0}\"}", "{\"a\": \"x\u{a0}y\u{a0}\"}");
}

#[test]
fn terminal_colours_between_tokens_are_removed() {
    for text in [
        "\x1b[32m{\"a\":1,\"b\":[\"x\",true]}\x1b[0m",
        "\x1b[1;39m{\n  \x1b[0m\x1b[34;1m\"a\"\x1b[0m\x1b[1;39m:\x1b[0m \x1b[0;39m1\x1b[0m\x1b[1;39m,\n  \
         \x1b[0m\x1b[34;1m\"b\"\x1b[0m\x1b[1;39m: [\x1b[0;32m\"x\"\x1b[0m,\x1b[33mtrue\x1b[0m]\x1b[1;39m}\x1b[0m\n",
        "{\x1b[32m\"a\"\x1b[0m: \x1b[33m1\x1b[0m, \"b\": \x1b[K[\"x\", true\x1b[m]}",
    ] {
        check(text, r#"{"a":1,"b":["x",true]}"#);
        let fixes = repaired(text).fixes;
        assert!(
            fixes
                .iter()
                .all(|fix| matches!(fix.kind, FixKind::StrayText | FixKind::Prose)),
            "{text:?}: {fixes:?}"
        );
        assert!(!fixes.is_empty(), "{text:?}");
    }
    check_exactly(
        "[\x1b[32m1\x1b[0m]",
        "[1]",
        &[(FixKind::StrayText, 1), (FixKind::StrayText, 7)],
    );
    check("{\"a\": \"\x1b[1mx\"}", r#"{"a": "\u001b[1mx"}"#);
}
