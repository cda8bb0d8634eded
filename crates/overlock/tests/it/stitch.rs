use serde_json::{Value, json};

use crate::program::{TemporaryFile, overlock};

const DOCUMENT: &str =
    r#"{"title":"A report","rows":[["Oslo","fjord and forest",4],["Berlin","lakes and sand",7]]}"#;

/// The document in two pieces, the second repeating `overlap` characters.
fn pieces(name: &str, cut: usize, overlap: usize) -> (TemporaryFile, TemporaryFile) {
    (
        TemporaryFile::new(&format!("{name}-a"), &DOCUMENT[..cut]),
        TemporaryFile::new(&format!("{name}-b"), &DOCUMENT[cut - overlap..]),
    )
}

#[test]
fn joins_two_pieces() {
    let (a, b) = pieces("two", 50, 20);
    let expected = &DOCUMENT[30..50];
    let run = overlock(
        &["stitch", a.path(), b.path(), "--expected-overlap", expected],
        "",
    );
    assert_eq!((run.code, &*run.stdout), (0, DOCUMENT), "{}", run.stderr);
    assert!(run.stderr.contains("overlap"), "{}", run.stderr);
    assert!(run.stderr.contains("20 repeated"), "{}", run.stderr);
    assert!(run.stderr.contains("~~~~"), "{}", run.stderr);
}

#[test]
fn a_piece_may_come_from_standard_input() {
    let (a, _) = pieces("input", 50, 20);
    let run = overlock(
        &["stitch", a.path(), "-", "--protocol", "prefill"],
        &DOCUMENT[50..],
    );
    assert_eq!((run.code, &*run.stdout), (0, DOCUMENT), "{}", run.stderr);
}

#[test]
fn json_has_every_seam() {
    let (a, b) = pieces("json", 50, 20);
    let expected = &DOCUMENT[30..50];
    let run = overlock(
        &[
            "stitch",
            "--json",
            a.path(),
            b.path(),
            "--expected-overlap",
            expected,
        ],
        "",
    );
    assert_eq!(run.keys(), ["json", "complete", "seams"]);
    assert_eq!(
        run.json(),
        json!({"json": DOCUMENT, "complete": true, "seams": [{"outcome": "overlap", "overlap": 20}]})
    );
}

#[test]
fn a_joined_document_that_contradicts_itself_is_flagged() {
    let a = TemporaryFile::new("count-a", r#"{"items":["red fox","jay bird""#);
    let b = TemporaryFile::new("count-b", r#","owl"],"total":7}"#);
    let arguments = [
        "stitch",
        "--json",
        "--protocol",
        "prefill",
        a.path(),
        b.path(),
    ];
    let run = overlock(&arguments, "");
    let reason = "`total` is 7, but `items` has 3 items";
    assert_eq!(run.json()["suspicious"], json!(reason));
    let run = overlock(&["stitch", "--protocol", "prefill", a.path(), b.path()], "");
    assert!(run.stderr.contains(reason), "{}", run.stderr);
}

#[test]
fn a_document_that_is_still_cut_can_be_stitched_again() {
    let a = TemporaryFile::new("more-a", &DOCUMENT[..30]);
    let b = TemporaryFile::new("more-b", &DOCUMENT[10..50]);
    let first = overlock(
        &[
            "stitch",
            a.path(),
            b.path(),
            "--expected-overlap",
            &DOCUMENT[10..30],
        ],
        "",
    );
    assert_eq!(
        (first.code, &*first.stdout),
        (1, &DOCUMENT[..50]),
        "{}",
        first.stderr
    );
    let so_far = TemporaryFile::new("more-so-far", &first.stdout);
    let c = TemporaryFile::new("more-c", &DOCUMENT[30..]);
    let second = overlock(
        &[
            "stitch",
            so_far.path(),
            c.path(),
            "--expected-overlap",
            &DOCUMENT[30..50],
        ],
        "",
    );
    assert_eq!(
        (second.code, &*second.stdout),
        (0, DOCUMENT),
        "{}",
        second.stderr
    );
}

#[test]
fn rejects_an_apology_and_changes_nothing() {
    let (a, b) = pieces("apology", 50, 20);
    let sorry = TemporaryFile::new("apology-sorry", "I'm sorry, but I cannot continue.");
    let run = overlock(
        &[
            "stitch",
            "--json",
            "--protocol",
            "overlap",
            a.path(),
            sorry.path(),
            b.path(),
        ],
        "",
    );
    let answer = run.json();
    assert_eq!(
        run.code, 1,
        "a seam was refused, though the document is whole"
    );
    assert_eq!(answer["seams"][0]["outcome"], json!("no-match"));
    assert!(answer["seams"][0]["reason"].is_string());
    assert_eq!(
        (&answer["json"], &answer["complete"]),
        (&json!(DOCUMENT), &json!(true))
    );
}

#[test]
fn bad_usage_and_a_rejected_piece_have_different_exit_codes() {
    let (a, b) = pieces("usage", 50, 20);
    for arguments in [
        &["stitch"][..],
        &["stitch", a.path()],
        &["stitch", "-", "-"],
        &[
            "stitch",
            a.path(),
            b.path(),
            "--expected-overlap",
            "x",
            "--expected-overlap",
            "y",
        ],
        &["stitch", a.path(), b.path(), "--protocol", "psychic"],
        &["stitch", a.path(), "/no/such/file"],
        &["stitch", "--jsonl", a.path(), b.path()],
    ] {
        let run = overlock(arguments, "");
        assert_eq!((run.code, &*run.stdout), (2, ""), "{arguments:?}");
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
}

#[test]
fn input_lines_have_parts_and_overlaps() {
    let parts = [&DOCUMENT[..40], &DOCUMENT[20..60], &DOCUMENT[40..]];
    let overlaps = [&DOCUMENT[20..40], &DOCUMENT[40..60]];
    let lines = [
        json!({"parts": parts, "expected_overlap": overlaps}),
        json!({"parts": &parts[..2], "expected_overlap": overlaps[0], "protocol": "overlap"}),
        json!({"parts": [&DOCUMENT[..40], &DOCUMENT[40..]], "protocol": "prefill"}),
        json!({"parts": []}),
        json!({"parts": "one"}),
        json!({"parts": ["[1", 2]}),
        json!({"parts": parts, "expected_overlap": 7}),
        json!({"parts": ["[1,", "2]"], "expected_overlap": ["a", "b"]}),
        json!({"parts": ["no document", "here"]}),
    ];
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    let run = overlock(&["stitch", "--jsonl"], lines.join("\n") + "\n");
    let answers = run.json_lines();
    assert_eq!((run.code, answers.len()), (1, lines.len()));
    assert_eq!(
        (&answers[0]["json"], &answers[0]["complete"]),
        (&json!(DOCUMENT), &json!(true))
    );
    assert_eq!(answers[0]["seams"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&answers[1]["json"], &answers[1]["complete"]),
        (&json!(&DOCUMENT[..60]), &json!(false))
    );
    assert_eq!(answers[2]["json"], json!(DOCUMENT));
    for answer in &answers[3..8] {
        assert_eq!(answer["error"]["code"], json!("bad-line"), "{answer}");
    }
    assert_eq!(answers[8]["error"]["code"], json!("no-json"));
}
