//! Malformed answers of models, each with the value that a person would read.
//!
//! One table for each class of errors, with small business documents.

use super::super::{RepairOptions, repair};
use serde_json::Value;

#[track_caller]
fn check(answers: &[(&str, &str)]) {
    for (text, value) in answers {
        let repaired = repair(*text, &RepairOptions::default());
        let json = repaired.map(|repaired| repaired.json).unwrap_or_default();
        let value: Value = serde_json::from_str(value).expect("the table holds JSON");
        let read: Option<Value> = serde_json::from_str(&json).ok();
        assert_eq!(read, Some(value), "repairing {text:?} gave {json:?}");
    }
}

#[test]
fn fences_are_left_out() {
    check(&[
        (
            "```json\n{\"invoice\": \"A-17\", \"total\": 129.5}\n```",
            r#"{"invoice": "A-17", "total": 129.5}"#,
        ),
        (
            "```\n{\"invoice\": \"A-17\"}\n```",
            r#"{"invoice": "A-17"}"#,
        ),
        ("```json\n{\"invoice\": \"A-17\"}", r#"{"invoice": "A-17"}"#),
        (
            "``` json\n{\"invoice\": \"A-17\"}\n```",
            r#"{"invoice": "A-17"}"#,
        ),
        (
            "~~~json\n{\"invoice\": \"A-17\"}\n~~~",
            r#"{"invoice": "A-17"}"#,
        ),
        (r#"`{"invoice": "A-17"}`"#, r#"{"invoice": "A-17"}"#),
        ("```JSON\n[1, 2, 3,]\n```\n", "[1, 2, 3]"),
        ("````json\n{\"md\": \"x\"}\n````", r#"{"md": "x"}"#),
        ("{\"invoice\": \"A-17\"}\n```", r#"{"invoice": "A-17"}"#),
        ("```json5\n{a: 1,}\n```", r#"{"a": 1}"#),
        (
            "```python\n{\"a\": True, \"b\": None}\n```",
            r#"{"a": true, "b": null}"#,
        ),
        (
            "```json\n{\"code\": \"```py\\nprint(1)\\n```\", \"n\": 1,}\n```",
            r#"{"code": "```py\nprint(1)\n```", "n": 1}"#,
        ),
    ]);
}

#[test]
fn prose_and_labels_are_left_out() {
    check(&[
        (
            "Here is the JSON you requested:\n\n{\"name\": \"Ada\", \"age\": 36}\n\nLet me know if you need anything else!",
            r#"{"name": "Ada", "age": 36}"#,
        ),
        (r#"The answer is {"ok": true}."#, r#"{"ok": true}"#),
        (
            "<think>The user wants {\"a\": 1}? Hmm.</think>\n{\"answer\": 42}",
            r#"{"answer": 42}"#,
        ),
        ("json\n{\"status\": \"ok\"}", r#"{"status": "ok"}"#),
        (
            "<answer>\n{\"status\": \"ok\", \"n\": 3}\n</answer>",
            r#"{"status": "ok", "n": 3}"#,
        ),
        (r#"- {"status": "ok"}"#, r#"{"status": "ok"}"#),
        (
            "{\"status\": \"ok\"}\n\nExplanation: the status field says \"ok\" because everything [worked].",
            r#"{"status": "ok"}"#,
        ),
        (r#"Assistant: {"reply": "hello"}"#, r#"{"reply": "hello"}"#),
        (
            r#"The JSON is: {"a": 1, "b": "x"} and that is it."#,
            r#"{"a": 1, "b": "x"}"#,
        ),
        (r#"{"a": 1}. Done"#, r#"{"a": 1}"#),
        ("```json\nHere is it: {\"a\": 1}\n```", r#"{"a": 1}"#),
        (r#"'{"a": 1}'"#, r#"{"a": 1}"#),
        (r#"```json\n{"a": 1}\n```"#, r#"{"a": 1}"#),
        (
            r#"[INST] question [/INST] {"a": 1, "b": 2}"#,
            r#"{"a": 1, "b": 2}"#,
        ),
        ("Here is an empty list: []", "[]"),
        (r#">>> {"a": True}"#, r#"{"a": true}"#),
    ]);
}

#[test]
fn code_around_a_document_is_left_out() {
    check(&[
        (
            r#"data = {"a": 1, "b": [1, 2]};"#,
            r#"{"a": 1, "b": [1, 2]}"#,
        ),
        (
            r#"const config = {port: 8080, host: "localhost"};"#,
            r#"{"port": 8080, "host": "localhost"}"#,
        ),
        (r#"return {"a": 1}"#, r#"{"a": 1}"#),
        (
            r#"export default {name: "app", version: "1.0.0"};"#,
            r#"{"name": "app", "version": "1.0.0"}"#,
        ),
        (
            "module.exports = {\n  name: 'app',\n};",
            r#"{"name": "app"}"#,
        ),
        (r#"callback({"a": 1});"#, r#"{"a": 1}"#),
        ("var x = [1, 2, 3];", "[1, 2, 3]"),
        (r#"result: {"a": 1}"#, r#"{"a": 1}"#),
    ]);
}

#[test]
fn comments_are_removed() {
    check(&[
        (
            "{\n  // the customer\n  \"name\": \"Ada\", // first name\n  \"age\": 36 /* years */\n}",
            r#"{"name": "Ada", "age": 36}"#,
        ),
        (
            "{\n  # the customer\n  \"name\": \"Ada\", # first name\n  \"age\": 36\n}",
            r#"{"name": "Ada", "age": 36}"#,
        ),
        ("[\n  1, // one\n  2, // two\n  // 3\n]", "[1, 2]"),
        (
            "{\"a\": 1, // says \"quoted\", with: colon\n \"b\": 2}",
            r#"{"a": 1, "b": 2}"#,
        ),
        (
            "{\"a\": 1,\n<!-- note -->\n\"b\": 2}",
            r#"{"a": 1, "b": 2}"#,
        ),
        (
            "{\"a\": \"x\" // missing comma after this\n \"b\": \"y\"}",
            r#"{"a": "x", "b": "y"}"#,
        ),
        (
            "{\n\"a\": 1,\n-- sql style\n\"b\": 2}",
            r#"{"a": 1, "b": 2}"#,
        ),
        ("{\"a\": 1 // trailing\n}", r#"{"a": 1}"#),
        (
            "{\"a\": 1, /* multi\n line \"x\": 2\n */ \"b\": 2}",
            r#"{"a": 1, "b": 2}"#,
        ),
        ("// header\n// more\n{\"a\": 1}", r#"{"a": 1}"#),
        ("# config\n{\"a\": 1}", r#"{"a": 1}"#),
        (r#"{"a": 1} // {"b": 2}"#, r#"{"a": 1}"#),
        (
            "{\"a\": \"# not one\", // yes\n\"b\": 1}",
            r##"{"a": "# not one", "b": 1}"##,
        ),
        (r#"{"a": 1 /* unterminated"#, r#"{"a": 1}"#),
        ("{ // nothing\n}", "{}"),
        (
            "{\"a\": value, # note\n \"b\": 2}",
            r#"{"a": "value", "b": 2}"#,
        ),
    ]);
}

#[test]
fn repairs_commas() {
    check(&[
        (r#"{"a": 1, "b": 2,}"#, r#"{"a": 1, "b": 2}"#),
        (r#"{"a": 1,, "b": 2}"#, r#"{"a": 1, "b": 2}"#),
        ("[,1, 2]", "[1, 2]"),
        (r#"{"a": 1 "b": 2}"#, r#"{"a": 1, "b": 2}"#),
        ("[1 2 3]", "[1, 2, 3]"),
        (r#"[{"a": 1} {"a": 2}]"#, r#"[{"a": 1}, {"a": 2}]"#),
        (
            "{\n  \"a\": \"x\"\n  \"b\": 3\n  \"c\": \"z\"\n}",
            r#"{"a": "x", "b": 3, "c": "z"}"#,
        ),
        (r#"[{"id": 1},, {"id": 2},]"#, r#"[{"id": 1}, {"id": 2}]"#),
        (
            r#"{"list": ["a", "b" "c",], "n": 1,}"#,
            r#"{"list": ["a", "b", "c"], "n": 1}"#,
        ),
        ("[true false null]", "[true, false, null]"),
        (
            "{\"name\": \"Ada\",\n \"tags\": [\"x\"\n \"y\"\n \"z\"],\n}",
            r#"{"name": "Ada", "tags": ["x", "y", "z"]}"#,
        ),
        ("[[1, 2] [3, 4]]", "[[1, 2], [3, 4]]"),
        (r#"{"a": 1, , "b": 2, }"#, r#"{"a": 1, "b": 2}"#),
        (r#"{"a": [,], "b": {,}}"#, r#"{"a": [], "b": {}}"#),
        (r#"{"a": "x",; "b": "y"}"#, r#"{"a": "x", "b": "y"}"#),
        (r#"{"a": "b". "c": 1}"#, r#"{"a": "b", "c": 1}"#),
    ]);
}

#[test]
fn repairs_colons() {
    check(&[
        (r#"{"a" 1, "b" "x"}"#, r#"{"a": 1, "b": "x"}"#),
        (
            r#"{"a": 1, "b" [1, 2], "c" {"d": 1}}"#,
            r#"{"a": 1, "b": [1, 2], "c": {"d": 1}}"#,
        ),
        (r#"{"a" = 1, "b" => 2}"#, r#"{"a": 1, "b": 2}"#),
        (r#"{"a":: 1}"#, r#"{"a": 1}"#),
        (
            r#"{"active" true, "n" null}"#,
            r#"{"active": true, "n": null}"#,
        ),
        ("{\"a\"\n: 1}", r#"{"a": 1}"#),
        (r#"{"a" : : 1, "b": 2}"#, r#"{"a": 1, "b": 2}"#),
    ]);
}

#[test]
fn other_quotes_become_double_quotes() {
    check(&[
        (
            "{'name': 'Ada', 'tags': ['x', 'y']}",
            r#"{"name": "Ada", "tags": ["x", "y"]}"#,
        ),
        (
            r#"{'quote': 'She said "hi" to me'}"#,
            r#"{"quote": "She said \"hi\" to me"}"#,
        ),
        (
            "{'text': 'It's fine', 'n': 1}",
            r#"{"text": "It's fine", "n": 1}"#,
        ),
        (
            "{“name”: “Ada”, “city”: “Zürich”}",
            r#"{"name": "Ada", "city": "Zürich"}"#,
        ),
        ("{‘name’: ‘Ada’}", r#"{"name": "Ada"}"#),
        ("{«name»: «Ada»}", r#"{"name": "Ada"}"#),
        (
            r#"{"text": "He said “hello” and left", "n": 1,}"#,
            r#"{"text": "He said “hello” and left", "n": 1}"#,
        ),
        (
            "{“text”: “It’s a ‘test’”, “n”: 2}",
            r#"{"text": "It’s a ‘test’", "n": 2}"#,
        ),
        (
            r#"{"name": "Ada, "age": 36}"#,
            r#"{"name": "Ada", "age": 36}"#,
        ),
        (
            r#"{name": "Ada", "age": 36}"#,
            r#"{"name": "Ada", "age": 36}"#,
        ),
        (r#"{"name": "Ada}"#, r#"{"name": "Ada"}"#),
        (r#"{"name": 'Ada", "x": 1}"#, r#"{"name": "Ada", "x": 1}"#),
        (r#"["a", "b, "c"]"#, r#"["a", "b", "c"]"#),
        (
            "{\"a\": \"x\",\n\"b\": \"y,\n\"c\": \"z\"}",
            r#"{"a": "x", "b": "y", "c": "z"}"#,
        ),
        (r#"{'a': "", 'b': ''}"#, r#"{"a": "", "b": ""}"#),
        (
            "{\"text\": \"\"\"A long\ntext with \"quotes\" inside\"\"\"}",
            r#"{"text": "A long\ntext with \"quotes\" inside"}"#,
        ),
    ]);
}

#[test]
fn missing_quotes_are_added() {
    check(&[
        (
            r#"{"name": "Ada", "city: "London", "n": 1}"#,
            r#"{"name": "Ada", "city": "London", "n": 1}"#,
        ),
        (
            r#"{"name": "Ada", city": "London"}"#,
            r#"{"name": "Ada", "city": "London"}"#,
        ),
        (
            r#"{"name": "Ada", "city": London", "n": 1}"#,
            r#"{"name": "Ada", "city": "London", "n": 1}"#,
        ),
        (
            r#"{"name": "Ada", "city": "London, "n": 1}"#,
            r#"{"name": "Ada", "city": "London", "n": 1}"#,
        ),
        (
            "{\n  \"name\": \"Ada,\n  \"city\": \"London\"\n}",
            r#"{"name": "Ada", "city": "London"}"#,
        ),
        (
            r#"{"tags": ["x", "y, "z"]}"#,
            r#"{"tags": ["x", "y", "z"]}"#,
        ),
        (
            r#"{"tags": ["x", y", "z"]}"#,
            r#"{"tags": ["x", "y", "z"]}"#,
        ),
        (
            r#"{"tags": ["x", "y", "z]}"#,
            r#"{"tags": ["x", "y", "z"]}"#,
        ),
        (
            r#"{"tags": ["x", "y", z"]}"#,
            r#"{"tags": ["x", "y", "z"]}"#,
        ),
        (r#"{"a": "b", "c": "d}"#, r#"{"a": "b", "c": "d"}"#),
        (r#"{"a": "b", "c": d"}"#, r#"{"a": "b", "c": "d"}"#),
        (r#"[{"a": "b}, {"a": "c"}]"#, r#"[{"a": "b"}, {"a": "c"}]"#),
        (
            r#"{"user": {"name": "Ada}, "n": 1}"#,
            r#"{"user": {"name": "Ada"}, "n": 1}"#,
        ),
    ]);
}

#[test]
fn bare_keys_and_values_are_quoted() {
    check(&[
        (r#"{name: "Ada", age: 36}"#, r#"{"name": "Ada", "age": 36}"#),
        (
            r#"{first-name: "Ada", last_name: "L", $id: 1}"#,
            r#"{"first-name": "Ada", "last_name": "L", "$id": 1}"#,
        ),
        (
            r#"{"version": 1.2.3, "ip": 192.168.0.1}"#,
            r#"{"version": "1.2.3", "ip": "192.168.0.1"}"#,
        ),
        (
            r#"{first name: "Ada", last name: "L"}"#,
            r#"{"first name": "Ada", "last name": "L"}"#,
        ),
        (
            r#"{"id": 550e8400-e29b-41d4-a716-446655440000}"#,
            r#"{"id": "550e8400-e29b-41d4-a716-446655440000"}"#,
        ),
        (
            r#"{"width": 20 cm, "n": 1}"#,
            r#"{"width": "20 cm", "n": 1}"#,
        ),
        (
            r#"{"range": 10-20, "n": 1}"#,
            r#"{"range": "10-20", "n": 1}"#,
        ),
        (r#"{"expr": a + b, "n": 1}"#, r#"{"expr": "a + b", "n": 1}"#),
        (
            r#"{ключ: "значение", größe: 5}"#,
            r#"{"ключ": "значение", "größe": 5}"#,
        ),
        (
            r#"{"level": WARN, "msg": disk almost full, "pct": 91.5}"#,
            r#"{"level": "WARN", "msg": "disk almost full", "pct": 91.5}"#,
        ),
        ("{a:b,c:d}", r#"{"a": "b", "c": "d"}"#),
        (
            r#"{"when": Monday, 3 March 2025, "n": 1}"#,
            r#"{"when": "Monday, 3 March 2025", "n": 1}"#,
        ),
        (r#"{"temp": 21°C, "n": 1}"#, r#"{"temp": "21°C", "n": 1}"#),
        (
            r#"{"hash": 0e1234abcd, "sha": deadbeef}"#,
            r#"{"hash": "0e1234abcd", "sha": "deadbeef"}"#,
        ),
        (
            r#"{"flags": [--verbose, -x], "n": 1}"#,
            r#"{"flags": ["--verbose", "-x"], "n": 1}"#,
        ),
        ("{None: 1, True: 2}", r#"{"None": 1, "True": 2}"#),
    ]);
}

#[test]
fn quotes_inside_a_string_are_escaped() {
    check(&[
        (
            r#"{"text": "He said "hello" to me"}"#,
            r#"{"text": "He said \"hello\" to me"}"#,
        ),
        (
            r#"{"text": ""Hello" he said", "n": 1}"#,
            r#"{"text": "\"Hello\" he said", "n": 1}"#,
        ),
        (
            r#"{"height": "5'10"", "n": 1}"#,
            r#"{"height": "5'10\"", "n": 1}"#,
        ),
        (
            "{\"a\": \"x \"y\" z\",\n \"b\": \"p \"q\" r\"\n}",
            r#"{"a": "x \"y\" z", "b": "p \"q\" r"}"#,
        ),
        (
            r#"{"code": "print("hello")", "lang": "py"}"#,
            r#"{"code": "print(\"hello\")", "lang": "py"}"#,
        ),
        (
            r#"{"quote": "She asked "why?", and I said "because".", "by": "me"}"#,
            r#"{"quote": "She asked \"why?\", and I said \"because\".", "by": "me"}"#,
        ),
        (
            r#"{"name": "Robert "Bob" Smith", "age": 5, "nick": "the "Rock""}"#,
            r#"{"name": "Robert \"Bob\" Smith", "age": 5, "nick": "the \"Rock\""}"#,
        ),
        (
            r#"{"text": "Press "Ctrl+C" (or "Cmd+C") to copy."}"#,
            r#"{"text": "Press \"Ctrl+C\" (or \"Cmd+C\") to copy."}"#,
        ),
        (
            r#"{"message": "The user typed "quit" and left", "code": 0}"#,
            r#"{"message": "The user typed \"quit\" and left", "code": 0}"#,
        ),
        (
            r#"{"a": "x", "b": "he said: "go", "run", "hide"", "c": "y"}"#,
            r#"{"a": "x", "b": "he said: \"go\", \"run\", \"hide\"", "c": "y"}"#,
        ),
        (
            r#"{"text":"He said "hi"","n":1}"#,
            r#"{"text": "He said \"hi\"", "n": 1}"#,
        ),
        (
            r#"{"code": "if (a == "b") { return "c"; }", "ok": true}"#,
            r#"{"code": "if (a == \"b\") { return \"c\"; }", "ok": true}"#,
        ),
        (
            r#"{"quote": ""To be", he said, "or not"", "author": "Shakespeare"}"#,
            r#"{"quote": "\"To be\", he said, \"or not\"", "author": "Shakespeare"}"#,
        ),
        (
            r#"{"json": "{"a": "b"}", "n": 1}"#,
            r#"{"json": "{\"a\": \"b\"}", "n": 1}"#,
        ),
        (
            "{'msg': 'the dogs' bowl', 'n': 1}",
            r#"{"msg": "the dogs' bowl", "n": 1}"#,
        ),
        (
            r#"{"note": "Use "yes"/"no" only", "n": 2}"#,
            r#"{"note": "Use \"yes\"/\"no\" only", "n": 2}"#,
        ),
    ]);
}

#[test]
fn raw_control_characters_are_escaped() {
    check(&[
        (
            "{\"text\": \"line one\nline two\", \"n\": 1}",
            r#"{"text": "line one\nline two", "n": 1}"#,
        ),
        (
            "{\"text\": \"col\tcol\", \"n\": 1}",
            r#"{"text": "col\tcol", "n": 1}"#,
        ),
        (
            "{\"poem\": \"Roses are red,\nViolets are blue,\n\nSugar is sweet\"}",
            r#"{"poem": "Roses are red,\nViolets are blue,\n\nSugar is sweet"}"#,
        ),
        (
            "{\"code\": \"def f():\n\treturn 1\n\", \"n\": 1}",
            r#"{"code": "def f():\n\treturn 1\n", "n": 1}"#,
        ),
        ("{\"text\": \"a\r\nb\"}", r#"{"text": "a\r\nb"}"#),
        (
            "{\"text\": \"bell\u{7} here\"}",
            r#"{"text": "bell\u0007 here"}"#,
        ),
        (
            "{\"list\": \"- one\n- two: \"x\"\n- three\", \"n\": 1}",
            r#"{"list": "- one\n- two: \"x\"\n- three", "n": 1}"#,
        ),
        (
            "{\"md\": \"# Title\n\nSome *text*, with: colons\n\", \"n\": 1}",
            r##"{"md": "# Title\n\nSome *text*, with: colons\n", "n": 1}"##,
        ),
    ]);
}

#[test]
fn repairs_escapes() {
    check(&[
        (
            r#"{"path": "C:\Users\ada\notes.txt"}"#,
            r#"{"path": "C:\\Users\\ada\\notes.txt"}"#,
        ),
        (r#"{"re": "\d+\.\w*"}"#, r#"{"re": "\\d+\\.\\w*"}"#),
        (r#"{"t": "\x41BC"}"#, r#"{"t": "ABC"}"#),
        (
            r#"{"t": "50\% off \& more"}"#,
            r#"{"t": "50\\% off \\& more"}"#,
        ),
        (r#"{"t": "caf\u00e9 \u12"}"#, r#"{"t": "café \\u12"}"#),
        (r#"{\"a\": \"say \\\"hi\\\"\"}"#, r#"{"a": "say \"hi\""}"#),
        (r#"{"a": "x\\", "b": "y",}"#, r#"{"a": "x\\", "b": "y"}"#),
        (
            r#"{"a": "tab\there", "b": "nl\nx",}"#,
            r#"{"a": "tab\there", "b": "nl\nx"}"#,
        ),
        (
            r#"{"unc": "\\server\share", "n": 1}"#,
            r#"{"unc": "\\server\\share", "n": 1}"#,
        ),
        (r#"{"a": \"b\", "n": 1}"#, r#"{"a": "b", "n": 1}"#),
        (
            r#"{"p": "D:\data\2024\u1.csv"}"#,
            r#"{"p": "D:\\data\\2024\\u1.csv"}"#,
        ),
        (
            r#"{'t': 'say \"hi\"', 'n': 1}"#,
            r#"{"t": "say \"hi\"", "n": 1}"#,
        ),
        (r#"{"t": "\u{1F600}"}"#, r#"{"t": "😀"}"#),
        (
            r#"{"t": "\\d+", "u": "\\n",}"#,
            r#"{"t": "\\d+", "u": "\\n"}"#,
        ),
        (
            r#"{"a": "\"quoted\" start", b: 1}"#,
            r#"{"a": "\"quoted\" start", "b": 1}"#,
        ),
        (
            r#"{"a": "He said \\"hi\\" ok", "n": 1}"#,
            r#"{"a": "He said \"hi\" ok", "n": 1}"#,
        ),
    ]);
}

#[test]
fn literals_of_other_languages_are_translated() {
    check(&[
        (
            r#"{"a": None, "b": True, "c": False}"#,
            r#"{"a": null, "b": true, "c": false}"#,
        ),
        (
            r#"{"a": undefined, "b": null}"#,
            r#"{"a": null, "b": null}"#,
        ),
        (r#"{"a": NaN, "b": 1}"#, r#"{"a": null, "b": 1}"#),
        (
            r#"{"a": Infinity, "b": -Infinity}"#,
            r#"{"a": null, "b": null}"#,
        ),
        (r#"{"a": nil, "b": True,}"#, r#"{"a": null, "b": true}"#),
        (
            "{'a': None, 'b': [True, False], 'c': {'d': None}}",
            r#"{"a": null, "b": [true, false], "c": {"d": null}}"#,
        ),
        (
            r#"{"name": "None of these", "b": None}"#,
            r#"{"name": "None of these", "b": null}"#,
        ),
        (r#"{"a": , "b": }"#, r#"{"a": null, "b": null}"#),
        (
            r#"{"a": nan, "b": inf, "c": -inf}"#,
            r#"{"a": null, "b": null, "c": null}"#,
        ),
        (
            r#"{"ok": true, "err": none}"#,
            r#"{"ok": true, "err": null}"#,
        ),
        (
            r#"{"a": TRUE, "b": False, "c": Null}"#,
            r#"{"a": true, "b": false, "c": null}"#,
        ),
        (r#"{"a": [NaN, 1, undefined]}"#, r#"{"a": [null, 1, null]}"#),
        (
            r#"{"a": true, "b": truely}"#,
            r#"{"a": true, "b": "truely"}"#,
        ),
        (r#"{"a": (None,), "b": ()}"#, r#"{"a": [null], "b": []}"#),
        (
            "{'d': datetime.datetime(2024, 1, 2, 3, 4), 'x': 1}",
            r#"{"d": [2024, 1, 2, 3, 4], "x": 1}"#,
        ),
        (
            "{'a': -1, 'b': +2, 'c': 1e3}",
            r#"{"a": -1, "b": 2, "c": 1e3}"#,
        ),
    ]);
}

#[test]
fn ellipses_are_removed() {
    check(&[
        ("[1, 2, 3, ...]", "[1, 2, 3]"),
        ("[1, 2, ..., 10]", "[1, 2, 10]"),
        (r#"{"a": 1, "b": 2, … }"#, r#"{"a": 1, "b": 2}"#),
        (
            r#"{"items": [{"id": 1}, {"id": 2}, ...], "total": 50}"#,
            r#"{"items": [{"id": 1}, {"id": 2}], "total": 50}"#,
        ),
        (r#"{"items": ["a", "b" ...]}"#, r#"{"items": ["a", "b"]}"#),
        (
            "[\n {\"id\": 1},\n ...\n {\"id\": 9}\n]",
            r#"[{"id": 1}, {"id": 9}]"#,
        ),
        (r#"{"a": "x", "...": "..."}"#, r#"{"a": "x", "...": "..."}"#),
        (r#"{"a": [1, 2, ... (97 more)]}"#, r#"{"a": [1, 2]}"#),
        (r#"{"a": 1, "b": 2, ... }"#, r#"{"a": 1, "b": 2}"#),
        (r#"{"a": 1, ..., "z": 26}"#, r#"{"a": 1, "z": 26}"#),
        ("[\n  \"a\",\n  \"b\",\n  ...\n]", r#"["a", "b"]"#),
        ("{\"a\": [1, 2, 3, ...],\n ...\n}", r#"{"a": [1, 2, 3]}"#),
        (
            r#"[{"id": 1, ...}, {"id": 2, ...}]"#,
            r#"[{"id": 1}, {"id": 2}]"#,
        ),
        (r#"{"a": ..., "b": 1}"#, r#"{"a": null, "b": 1}"#),
        ("[1, 2, 3 /* ... */]", "[1, 2, 3]"),
        ("[1, 2, # ...\n 3]", "[1, 2, 3]"),
    ]);
}

#[test]
fn joined_strings_become_one() {
    check(&[
        (
            r#"{"t": "Hello, " + "world", "n": 1}"#,
            r#"{"t": "Hello, world", "n": 1}"#,
        ),
        ("{\"t\": \"a\" +\n  \"b\" +\n  \"c\"}", r#"{"t": "abc"}"#),
        ("{'t': 'a' + 'b'}", r#"{"t": "ab"}"#),
        (r#"["x" + "y", "z"]"#, r#"["xy", "z"]"#),
        (
            r#"{"a": "x" + "y" + "z", "b": 1,}"#,
            r#"{"a": "xyz", "b": 1}"#,
        ),
        (
            "{\"a\": \"line1\\n\" +\n      \"line2\\n\", // c\n \"b\": 2}",
            r#"{"a": "line1\nline2\n", "b": 2}"#,
        ),
        (r#"{'a': "x" + 'y', 'b': 1}"#, r#"{"a": "xy", "b": 1}"#),
    ]);
}

#[test]
fn several_documents_become_an_array() {
    check(&[
        (
            "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}",
            r#"[{"a": 1}, {"a": 2}, {"a": 3}]"#,
        ),
        (r#"{"a": 1}{"a": 2}"#, r#"[{"a": 1}, {"a": 2}]"#),
        ("{\"a\": 1},\n{\"a\": 2}", r#"[{"a": 1}, {"a": 2}]"#),
        ("{\"a\": 1},\n{\"a\": 2},\n", r#"[{"a": 1}, {"a": 2}]"#),
        ("{'a': 1}\n{'a': None}", r#"[{"a": 1}, {"a": null}]"#),
        ("{\"a\": 1}\n\n{\"a\": 2,}\n", r#"[{"a": 1}, {"a": 2}]"#),
        (
            r#""name": "Ada", "age": 36"#,
            r#"{"name": "Ada", "age": 36}"#,
        ),
        ("{\"a\":1}\n{\"b\":2}\n", r#"[{"a": 1}, {"b": 2}]"#),
        (
            r#"{"a":1} {"b":2} {"c":3}"#,
            r#"[{"a": 1}, {"b": 2}, {"c": 3}]"#,
        ),
        ("[{\"a\":1}]\n[{\"b\":2}]", r#"[[{"a": 1}], [{"b": 2}]]"#),
        (r#"{"a":1};{"b":2};"#, r#"[{"a": 1}, {"b": 2}]"#),
        ("{\"a\":1}\n\n\n{\"b\":2", r#"[{"a": 1}, {}]"#),
        (
            "{\"a\":\"x\",}\n{\"a\":\"y\",}\n{\"a\":\"z\"",
            r#"[{"a": "x"}, {"a": "y"}, {"a": "z"}]"#,
        ),
        ("\"a\"\n\"b\"", r#"["a", "b"]"#),
        ("{\"a\":1}\n// next\n{\"b\":2}", r#"[{"a": 1}, {"b": 2}]"#),
        (
            "```json\n{\"a\":1}\n{\"b\":2}\n```",
            r#"[{"a": 1}, {"b": 2}]"#,
        ),
    ]);
}

#[test]
fn odd_numbers_are_rewritten() {
    check(&[
        (r#"{"a": 007, "b": 05}"#, r#"{"a": 7, "b": 5}"#),
        (r#"{"a": +1, "b": +2.5}"#, r#"{"a": 1, "b": 2.5}"#),
        (r#"{"a": 1_000_000}"#, r#"{"a": 1000000}"#),
        (r#"{"a": 0x1F}"#, r#"{"a": 31}"#),
        (
            r#"{"a": 1,234,567.89, "b": 2}"#,
            r#"{"a": 1234567.89, "b": 2}"#,
        ),
        (r#"{"a": 1e5, "b": 2E-3,}"#, r#"{"a": 1e5, "b": 2E-3}"#),
        ("[1., 2., .3]", "[1.0, 2.0, 0.3]"),
        (r#"{"a": 10n, "b": 2}"#, r#"{"a": 10, "b": 2}"#),
        (
            r#"{"big": 12345678901234567890,}"#,
            r#"{"big": 12345678901234567890}"#,
        ),
        ("[01, 02, 10]", "[1, 2, 10]"),
        (r#"{"a": 1., "b": .1}"#, r#"{"a": 1.0, "b": 0.1}"#),
        (r#"{"a": -.5, "b": +.5}"#, r#"{"a": -0.5, "b": 0.5}"#),
        (r#"{"pop": 12,345,678}"#, r#"{"pop": 12345678}"#),
        (
            r#"{"hex": 0xFF, "bin": 0b101, "oct": 0o17}"#,
            r#"{"hex": 255, "bin": 5, "oct": 15}"#,
        ),
        ("[1,000]", "[1, 0]"),
        (
            r#"{"a": ~5, "b": <10, "c": >3}"#,
            r#"{"a": "~5", "b": "<10", "c": ">3"}"#,
        ),
    ]);
}

#[test]
fn repairs_brackets() {
    check(&[
        (r#"{"a": [1, 2}"#, r#"{"a": [1, 2]}"#),
        (r#"[{"a": 1}, {"b": 2]"#, r#"[{"a": 1}, {"b": 2}]"#),
        (r#"{"a": 1}}"#, r#"{"a": 1}"#),
        (r#"{"a": {"x": 1}}, "b": 2}"#, r#"{"a": {"x": 1}, "b": 2}"#),
        (
            r#"[{"n": 1, "m": 2}, {"n": 3, "m": 4]"#,
            r#"[{"n": 1, "m": 2}, {"n": 3, "m": 4}]"#,
        ),
        ("{'tags': {'x', 'y'}}", r#"{"tags": ["x", "y"]}"#),
        (
            r#"{"rows": [[1, 2], [3, 4]}"#,
            r#"{"rows": [[1, 2], [3, 4]]}"#,
        ),
        (
            r#"{"a": {"x": 1, "b": [1, 2}, "c": 3}"#,
            r#"{"a": {"x": 1, "b": [1, 2]}, "c": 3}"#,
        ),
        (
            r#"{"a": {"x": 1, "y": 2, "b": 3}"#,
            r#"{"a": {"x": 1, "y": 2, "b": 3}}"#,
        ),
        (
            r#"[{"a": [1, 2}, {"a": [3, 4]}]"#,
            r#"[{"a": [1, 2]}, {"a": [3, 4]}]"#,
        ),
        (
            r#"{"a": {"b": [1, 2, {"c": 3]}}"#,
            r#"{"a": {"b": [1, 2, {"c": 3}]}}"#,
        ),
        (r#"[{"a": 1}}, {"b": 2}]"#, r#"[{"a": 1}, {"b": 2}]"#),
        (
            r#"{"data": {"items": [{"id": 1, "tags": ["a", "b"}, {"id": 2, "tags": ["c"]}]}}"#,
            r#"{"data": {"items": [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": ["c"]}]}}"#,
        ),
        ("1, 2, 3]", "[1, 2, 3]"),
        (
            r#"{"k": {"a": {"b": 1}, "c": 2}"#,
            r#"{"k": {"a": {"b": 1}, "c": 2}}"#,
        ),
        (r#"({"a": 1})"#, r#"{"a": 1}"#),
    ]);
}

#[test]
fn calls_become_their_arguments() {
    check(&[
        (
            r#"{"id": ObjectId("507f1f77"), "n": NumberLong(5)}"#,
            r#"{"id": "507f1f77", "n": 5}"#,
        ),
        (
            r#"{"at": ISODate("2024-01-01T00:00:00Z")}"#,
            r#"{"at": "2024-01-01T00:00:00Z"}"#,
        ),
        (
            "{'price': Decimal('1.20'), 'n': 1}",
            r#"{"price": "1.20", "n": 1}"#,
        ),
        (
            "{'at': datetime(2024, 1, 15), 'n': 1}",
            r#"{"at": [2024, 1, 15], "n": 1}"#,
        ),
        (
            "{'at': datetime.date(2024, 1, 15)}",
            r#"{"at": [2024, 1, 15]}"#,
        ),
        (r#"{"d": new Date("2024-01-01")}"#, r#"{"d": "2024-01-01"}"#),
        ("OrderedDict({'a': 1})", r#"{"a": 1}"#),
        (
            "{'s': set([1, 2]), 'u': UUID('ab-cd')}",
            r#"{"s": [1, 2], "u": "ab-cd"}"#,
        ),
    ]);
}

#[test]
fn cut_answers_are_closed() {
    check(&[
        (r#"{"a": "hello wor"#, r#"{"a": "hello wor"}"#),
        (r#"{"a": 1, "b": "#, r#"{"a": 1}"#),
        (r#"{"a": 1, "na"#, r#"{"a": 1}"#),
        (r#"{"a": [1, 2, "#, r#"{"a": [1, 2]}"#),
        (r#"{"a": "x\u00"#, r#"{"a": "x"}"#),
        (
            r#"{"a": {"b": {"c": [1, [2, {"d": "e""#,
            r#"{"a": {"b": {"c": [1, [2, {"d": "e"}]]}}}"#,
        ),
        (
            r#"{name: "Ada", tags: ["x", "#,
            r#"{"name": "Ada", "tags": ["x"]}"#,
        ),
        ("{\"a\": 1,\n  // note", r#"{"a": 1}"#),
        (r#"{"a": ["#, r#"{"a": []}"#),
        (r#"[{"a": "x"}, {"a":"#, r#"[{"a": "x"}, {}]"#),
        (r#"[{"a": "x"}, {"#, r#"[{"a": "x"}, {}]"#),
        (r#"[{"a": "x"}"#, r#"[{"a": "x"}]"#),
        (
            "```json\n{\"a\": [1, 2, 3], \"b\": \"unfinished\n```",
            r#"{"a": [1, 2, 3], "b": "unfinished"}"#,
        ),
        (r#"{"a": "x", "b": Tru"#, r#"{"a": "x", "b": true}"#),
        (r#"{"a": "esc \"quo"#, r#"{"a": "esc \"quo"}"#),
        (
            r#"{"a": "x", "b": {"c": 1, }"#,
            r#"{"a": "x", "b": {"c": 1}}"#,
        ),
    ]);
}

#[test]
fn odd_characters_between_tokens_do_no_harm() {
    check(&[
        ("\u{feff}{\"a\": 1,}", r#"{"a": 1}"#),
        (
            "{\u{a0}\"a\":\u{a0}1,\u{a0}\"b\":\u{a0}2}",
            r#"{"a": 1, "b": 2}"#,
        ),
        ("\u{200b}{\"a\": 1}\u{200b}", r#"{"a": 1}"#),
        (r#"{"a"： 1， "b"： 2}"#, r#"{"a": 1, "b": 2}"#),
        (
            r#"{"emoji": "🎉 "party" 🎉", "n": 1}"#,
            r#"{"emoji": "🎉 \"party\" 🎉", "n": 1}"#,
        ),
        ("{\u{0}\"a\": 1}", r#"{"a": 1}"#),
        ("{\"a\": 1,\u{2028}\"b\": 2,}", r#"{"a": 1, "b": 2}"#),
        (
            r#"{"text": "全角：コロン、カンマ，", "n": 1,}"#,
            r#"{"text": "全角：コロン、カンマ，", "n": 1}"#,
        ),
    ]);
}

#[test]
fn keys_are_found() {
    check(&[
        (r#"{"a": 1, "b": 2, "c"}"#, r#"{"a": 1, "b": 2, "c": null}"#),
        (r#"{"a": 1, "b", "c": 3}"#, r#"{"a": 1, "b": null, "c": 3}"#),
        (r#"{"a":}"#, r#"{"a": null}"#),
        ("{: 1}", r#"{"": 1}"#),
        (r#"{"a": 1, "a": 2,}"#, r#"{"a": 2}"#),
        (r#"{"a" "b"}"#, r#"{"a": "b"}"#),
        (r#"{'a' "b", 'c' 1}"#, r#"{"a": "b", "c": 1}"#),
        (r#"{"a" true}"#, r#"{"a": true}"#),
        (r#"{"a b c" [1]}"#, r#"{"a b c": [1]}"#),
        (r#"{"say "hi"": 1, "b": 2}"#, r#"{"say \"hi\"": 1, "b": 2}"#),
        ("{\"key\nwith break\": 1}", r#"{"key\nwith break": 1}"#),
        (
            r#"{**"name"**: "Ada", **"n"**: 1}"#,
            r#"{"name": "Ada", "n": 1}"#,
        ),
        ("{- \"a\": 1,\n - \"b\": 2}", r#"{"a": 1, "b": 2}"#),
        (r#"{"a": 1 | "b": 2}"#, r#"{"a": 1, "b": 2}"#),
        (r#"{"a" -> 1}"#, r#"{"a": 1}"#),
        (r#"{"a": "b" , "c" : "d" , }"#, r#"{"a": "b", "c": "d"}"#),
    ]);
}

#[test]
fn repairs_several_errors_at_once() {
    check(&[
        (
            "Sure, here's the data:\n```json\n{\n  'name': 'Ada', // first\n  age: 36,\n  active: True,\n  tags: ['a', 'b',],\n}\n```\nHope it helps!",
            r#"{"name": "Ada", "age": 36, "active": true, "tags": ["a", "b"]}"#,
        ),
        (
            "{\n  \"title\": \"Report \"Q1\"\",\n  \"sections\": [\n    {\"h\": \"Intro\", \"body\": \"Line 1\nLine 2\"},\n    {\"h\": \"Data\" \"body\": \"x\"},\n  ]\n",
            r#"{"title": "Report \"Q1\"", "sections": [{"h": "Intro", "body": "Line 1\nLine 2"}, {"h": "Data", "body": "x"}]}"#,
        ),
        (
            r#"{'a': None, b: undefined, "c": [1 2 3,], /* done */}"#,
            r#"{"a": null, "b": null, "c": [1, 2, 3]}"#,
        ),
        (
            "```json\n{\"product\": \"27\" screen\", \"price\": 1,299.00, \"in_stock\": True,}\n```",
            r#"{"product": "27\" screen", "price": 1299.00, "in_stock": true}"#,
        ),
        (
            r#"{"employees": [{"name": "Ann", "role": "dev"}, {"name": "Bob" "role": "ops"}, ...], "count": 2, }"#,
            r#"{"employees": [{"name": "Ann", "role": "dev"}, {"name": "Bob", "role": "ops"}], "count": 2}"#,
        ),
        (
            "Response:\n{name: 'Widget', dims: {w: 10, h: 20,}, notes: \"It's \"new\"\", }",
            r#"{"name": "Widget", "dims": {"w": 10, "h": 20}, "notes": "It's \"new\""}"#,
        ),
        (
            "{“items”: [“a”, “b”,], ‘n’: 1 /* x */}",
            r#"{"items": ["a", "b"], "n": 1}"#,
        ),
        (
            r#"{"steps": ["Open "Settings"", "Click "OK"",], "done": False"#,
            r#"{"steps": ["Open \"Settings\"", "Click \"OK\""], "done": false}"#,
        ),
        (
            "{\n\"query\": \"SELECT * FROM t WHERE a = 'x'\",\n\"params\": ['x', None],\n\"limit\": 010\n}",
            r#"{"query": "SELECT * FROM t WHERE a = 'x'", "params": ["x", null], "limit": 10}"#,
        ),
        (
            "{\"a\": \"x\", \"b\": \"y\"  // no comma\n \"c\": [1, 2, 3\n \"d\": 4}",
            r#"{"a": "x", "b": "y", "c": [1, 2, 3], "d": 4}"#,
        ),
        (
            r#"{"key": "value" "other": 'it's', third: [a, b], }"#,
            r#"{"key": "value", "other": "it's", "third": ["a", "b"]}"#,
        ),
        (
            r#"{"description": "Use `code` and 'single' and "double" quotes.", "ok": True}"#,
            r#"{"description": "Use `code` and 'single' and \"double\" quotes.", "ok": true}"#,
        ),
        ("| key | value |\n{\"a\": 1,}", r#"{"a": 1}"#),
        (
            r#"{"contact": {"phone": "555-1234", "email": "a@b.c",}, "tags": ["x",, "y"], "note": "don't", }"#,
            r#"{"contact": {"phone": "555-1234", "email": "a@b.c"}, "tags": ["x", "y"], "note": "don't"}"#,
        ),
        (
            "{\"a\": 1, \"a2\": \"b\nc\", \"d\": 'e \"f\" g', h: [1,2,3,...], i: NaN}",
            r#"{"a": 1, "a2": "b\nc", "d": "e \"f\" g", "h": [1, 2, 3], "i": null}"#,
        ),
    ]);
}
