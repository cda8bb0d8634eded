use serde_json::{Value, json};

use crate::program::overlock;

#[track_caller]
fn check_repair(text: &str, value: &Value) {
    let run = overlock(&["repair"], text);
    assert_eq!(run.code, 0, "repairing {text:?}: {}", run.stderr);
    assert_eq!(&run.json(), value, "repairing {text:?}");
}

#[test]
fn malformed_json_becomes_valid_json() {
    check_repair(
        "{name: 'Ada', langs: [None, True,],}",
        &json!({"name": "Ada", "langs": [null, true]}),
    );
    check_repair("```json\n[1, 2, // three\n]\n```", &json!([1, 2]));
}

#[test]
fn valid_json_comes_back_byte_for_byte() {
    let text = "{ \"a\" :\t[1.50, -0, 1e5] }\n";
    let run = overlock(&["repair"], text);
    assert_eq!((run.code, &*run.stdout, &*run.stderr), (0, text, ""));
}

#[test]
fn lists_the_fixes_on_standard_error() {
    let run = overlock(&["repair", "--fixes"], "[1,\n 2,]");
    assert_eq!(run.json(), json!([1, 2]));
    assert!(run.stderr.contains("line 2, column "), "{}", run.stderr);
    assert!(run.stderr.contains("1 fix: "), "{}", run.stderr);
}

#[test]
fn json_has_the_fixes_with_their_offsets() {
    let run = overlock(&["repair", "--json"], "[1, 2,]");
    assert_eq!(run.keys(), ["json", "fixes"]);
    let fix = &run.json()["fixes"][0];
    assert!(fix["kind"].is_string() && fix["offset"].is_u64(), "{fix}");
}

#[test]
fn several_documents_become_an_array_or_the_first() {
    let all = overlock(&["repair"], "{\"a\":1}\n{\"b\":2}");
    assert_eq!(all.json(), json!([{"a": 1}, {"b": 2}]));
    let first = overlock(&["repair", "--several", "first"], "{\"a\":1}\n{\"b\":2}");
    assert_eq!(first.json(), json!({"a": 1}));
}

#[test]
fn no_break_spaces_and_terminal_colours_between_tokens_are_fixed() {
    let run = overlock(
        &["repair", "--fixes"],
        "{\x1b[34m\"a\"\x1b[0m: 12\u{a0}, \"b\":\u{a0}true}",
    );
    assert_eq!(run.json(), json!({"a": 12, "b": true}));
    assert!(run.stderr.contains("4 fixes: "), "{}", run.stderr);
}

#[test]
fn documents_in_fences_or_in_a_list_become_an_array() {
    check_repair(
        "First:\n```json\n{\"a\":1}\n```\nSecond:\n```json\n{\"b\":2}\n```\n",
        &json!([{"a": 1}, {"b": 2}]),
    );
    let list = "- {\"a\":1}\n- {\"b\":2}\n";
    check_repair(list, &json!([{"a": 1}, {"b": 2}]));
    let closed = overlock(&["close", "--json"], list);
    assert_eq!(closed.json()["other_documents"], json!(1));
}
