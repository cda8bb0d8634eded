use serde_json::json;

use crate::program::overlock;

#[track_caller]
fn check_close(text: &str, closed: &str) {
    let run = overlock(&["close"], text);
    assert_eq!(
        (run.code, &*run.stdout),
        (0, closed),
        "closing {text:?}: {}",
        run.stderr
    );
}

#[test]
fn cut_json_becomes_valid_json() {
    check_close("{\"a\":\"xy", "{\"a\":\"xy\"}");
    check_close("[7, 12", "[7]");
    check_close("[7, tr", "[7, true]");
    check_close("{\"a\":1,\"b", "{\"a\":1}");
}

#[test]
fn complete_json_is_unchanged() {
    check_close("{ \"a\" : [1] }", "{ \"a\" : [1] }");
}

#[test]
fn strict_leaves_out_a_cut_string() {
    let run = overlock(&["close", "--strict"], "[1,\"xy");
    assert_eq!((run.code, &*run.stdout), (0, "[1]"));
}

#[test]
fn notes_what_was_left_out() {
    let run = overlock(&["close"], "[7, 12");
    assert!(run.stderr.contains("/1"), "{}", run.stderr);
}

#[test]
fn json_shows_the_text_and_its_losses() {
    let run = overlock(&["close", "--json"], "{\"a\":\"xy");
    assert_eq!(run.keys(), ["json", "complete", "truncated", "dropped"]);
    assert_eq!(
        run.json(),
        json!({"json": "{\"a\":\"xy\"}", "complete": false, "truncated": "/a", "dropped": null})
    );
}

#[test]
fn json_shows_the_fixes_of_a_malformed_text() {
    let run = overlock(&["close", "--json"], "{'a': [1, 2");
    assert_eq!(run.code, 0);
    assert_eq!(
        run.keys(),
        ["json", "complete", "truncated", "dropped", "fixes"]
    );
}

#[test]
fn a_text_without_json_ends_with_1() {
    for text in ["", " \n", "I cannot help with that."] {
        let run = overlock(&["close"], text);
        assert_eq!((run.code, &*run.stdout), (1, ""), "{text:?}");
        assert!(
            run.stderr.starts_with("error: no JSON in standard input"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("\nhint: "), "{}", run.stderr);
        let answer = overlock(&["close", "--json"], text);
        assert_eq!(answer.code, 1);
        assert_eq!(answer.json()["error"]["code"], json!("no-json"));
    }
}

#[test]
fn says_that_other_documents_are_left_out() {
    let text = "{\"a\":1}\n{\"b\":2}\n{\"c\":";
    let run = overlock(&["close"], text);
    assert_eq!((run.code, &*run.stdout), (0, "{\"a\":1}"));
    assert!(
        run.stderr
            .contains("note: 2 other documents in the text are left out"),
        "{}",
        run.stderr
    );
    let answer = overlock(&["close", "--json"], text);
    assert_eq!(answer.json()["other_documents"], json!(2));
    let only = overlock(&["close", "--json"], "{\"a\":1}");
    assert_eq!(only.json().get("other_documents"), None);
}
