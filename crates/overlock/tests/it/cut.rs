use serde_json::json;

use crate::program::overlock;

#[track_caller]
fn check_cut(text: &str, place: &str, path: &str, offset: usize) {
    let run = overlock(&["cut"], text);
    assert_eq!(run.code, 1, "{text:?}: {}", run.stderr);
    for line in [
        "status: cut".to_owned(),
        format!("place: {place}"),
        format!("path: {path}"),
        format!("offset: {offset}"),
    ] {
        assert!(
            run.stdout.lines().any(|found| found == line),
            "{line:?} in {}",
            run.stdout
        );
    }
    let answer = overlock(&["cut", "--json"], text);
    assert_eq!(answer.code, 1);
    assert_eq!(
        answer.json()["cut"],
        json!({"offset": offset, "path": path, "place": place})
    );
}

#[test]
fn shows_where_a_text_was_cut() {
    check_cut("{\"a\":[", "container-start", "/a", 6);
    check_cut("{\"a\":1,\"b", "key", "", 9);
    check_cut("{\"a\":\"xy", "string", "/a", 8);
    check_cut("[7, 12", "number", "/1", 6);
    check_cut("[7,", "after-comma", "", 3);
}

#[test]
fn the_offset_is_into_the_text_as_given() {
    check_cut("Here you are:\n```json\n{\"a\":\"xy", "string", "/a", 30);
}

#[test]
fn shows_open_containers_and_closers() {
    let run = overlock(&["cut"], "{\"rows\":[[\"Oslo\",4],[\"Ber");
    assert!(
        run.stdout.contains("open: { rows: [ 1: [ 0: \"\n"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("closers: \"]]}\n"), "{}", run.stdout);
    assert!(
        run.stdout.contains("truncated: /rows/1/0\n"),
        "{}",
        run.stdout
    );
}

#[test]
fn the_trail_shows_unescaped_keys() {
    let run = overlock(&["cut"], r#"{"a/b":{"~":[{"\u001b[31m":[0,"#);
    assert!(
        run.stdout.contains("open: { a/b: { ~: [ 0: { ␛[31m: [\n"),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains('\x1b'), "{:?}", run.stdout);
}

#[test]
fn complete_json_has_no_cut() {
    let run = overlock(&["cut"], "{\"a\": [1, 2]}\n");
    assert_eq!(
        (run.code, run.stdout.lines().next()),
        (0, Some("status: complete"))
    );
    let answer = overlock(&["cut", "--json"], "{\"a\": [1, 2]}\n");
    assert_eq!(answer.code, 0);
    assert_eq!(answer.json()["cut"], json!(null));
    assert_eq!(answer.json()["overlap_context"], json!(""));
}

#[test]
fn json_has_all_contexts() {
    let text = r#"{"sections":[{"id":"a","content_type":"bullet_list","elements":[{"items":["x","y"]}]},{"id":"b"#;
    let run = overlock(&["cut", "--json"], text);
    assert_eq!(
        run.keys(),
        [
            "overlap_context",
            "hierarchy_context",
            "hierarchy_context_for_prompt",
            "complete_part",
            "parsing_success",
            "cut",
            "cut_off_element",
            "element_before_cutoff",
            "section_count",
            "delivered"
        ]
    );
    let answer = run.json();
    assert_eq!(answer["hierarchy_context"], json!(text));
    assert_eq!(answer["parsing_success"], json!(true));
    assert!(answer["section_count"].is_u64());
    assert!(answer["delivered"].is_string());
}

#[test]
fn a_path_of_many_levels_is_elided() {
    let run = overlock(&["cut"], "[".repeat(100_000));
    assert_eq!(run.code, 1);
    assert!(run.stdout.len() < 20_000, "{} bytes", run.stdout.len());
    assert!(run.stdout.contains("levels"), "{}", run.stdout);
}

#[test]
fn says_that_other_documents_are_left_out() {
    let text = "{\"a\":1}\n{\"b\":2}";
    let run = overlock(&["cut"], text);
    assert!(
        run.stderr
            .contains("note: 1 other document in the text is left out"),
        "{}",
        run.stderr
    );
    let answer = overlock(&["cut", "--json"], text);
    assert_eq!(answer.json()["other_documents"], json!(1));
    let line = json!({"text": text}).to_string();
    let lines = overlock(&["cut", "--jsonl"], line).json_lines();
    assert_eq!(lines[0]["other_documents"], json!(1));
}
