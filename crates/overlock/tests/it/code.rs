use serde_json::json;

use crate::program::overlock;

const CLASS: &str = "using System;\n\nclass Cart\n{\n    // Sums it up.\n    public int Total(int a)\n    {\n        var sum = a + a + a + a;\n        return sum;\n    }\n}\n";

#[test]
fn detects_the_language_of_a_text() {
    let sql = overlock(&["classify"], "select 1");
    assert_eq!((sql.code, sql.stdout.as_str()), (0, "sql\n"));
    let prose = overlock(&["classify"], "Select an item from the menu.");
    assert_eq!((prose.code, prose.stdout.as_str()), (1, "unknown\n"));
    let answer = overlock(&["classify", "--json"], CLASS).json();
    assert_eq!(
        (&answer["language"], &answer["syntax"]),
        (&json!("dotnet"), &json!("csharp"))
    );
    assert!(answer["confidence"].as_f64() > Some(0.5) && answer["reasons"].is_array());
}

#[test]
fn classifies_many_texts_in_order() {
    let run = overlock(
        &["classify", "--jsonl"],
        "{\"text\":\"select 1\"}\n{\"text\":5}\n{\"text\":\"hello\"}\n",
    );
    let lines: Vec<serde_json::Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect();
    assert_eq!((run.code, lines.len()), (1, 3));
    assert_eq!(lines[0]["language"], json!("sql"));
    assert!(lines[1]["error"]["message"].is_string());
    assert_eq!(lines[2]["language"], json!("unknown"));
}

#[test]
fn compacts_to_each_level() {
    let lossless = overlock(&["compact"], CLASS);
    assert_eq!(
        lossless.stdout,
        "using System;\nclass Cart{\npublic int Total(int a){\nvar sum = a + a + a + a;\nreturn sum;\n}}"
    );
    let outline = overlock(&["compact", "--level", "outline"], CLASS);
    assert_eq!(
        outline.stdout,
        "using System;\nclass Cart{\npublic int Total(int a){… 2 lines}}"
    );
    let fitted = overlock(
        &[
            "compact",
            "--level",
            "24",
            "--encoding",
            "o200k_base",
            "--json",
        ],
        CLASS,
    )
    .json();
    assert_eq!(
        (&fitted["reason"], &fitted["fits"]),
        (&json!("outline"), &json!(true))
    );
    assert!(fitted["tokens"].as_u64() <= Some(24));
}

#[test]
fn reports_savings_and_incomplete_compaction() {
    let answer = overlock(&["compact", "--json"], "SELECT  1 -- one").json();
    assert_eq!(
        answer,
        json!({"text": "SELECT 1", "language": "sql", "compacted": true, "reason": "lossless"})
    );
    let unknown = overlock(&["compact"], "hello   world");
    assert_eq!(
        (unknown.code, unknown.stdout.as_str()),
        (1, "hello   world")
    );
    assert!(
        unknown.stderr.contains("unknown_language"),
        "{}",
        unknown.stderr
    );
    let run = overlock(
        &[
            "compact",
            "--language",
            "sql",
            "--stats",
            "--encoding",
            "o200k_base",
        ],
        "a   -- b",
    );
    assert_eq!(run.stdout, "a");
    assert!(
        run.stderr.contains("8 bytes became 1: 87.5 % less")
            && run.stderr.contains("tokens became"),
        "{}",
        run.stderr
    );
}

#[test]
fn reports_an_unclosed_comment() {
    let open = overlock(&["compact"], "select /* open");
    assert_eq!((open.code, open.stdout.as_str()), (1, "select /* open"));
    assert!(open.stderr.contains("`unclosed`"), "{}", open.stderr);
    let answer = overlock(&["compact", "--json"], "select /* open").json();
    assert_eq!(
        (&answer["reason"], &answer["compacted"], &answer["text"]),
        (&json!("unclosed"), &json!(false), &json!("select /* open"))
    );
}

#[test]
fn compacts_many_texts_in_order() {
    let run = overlock(
        &["compact", "--jsonl"],
        "{\"text\":\"SELECT  1\"}\n{\"text\":\"{}\"}\n",
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines: Vec<serde_json::Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect();
    assert_eq!(
        lines[0],
        json!({"text": "SELECT 1", "language": "sql", "compacted": true, "reason": "lossless"})
    );
    assert_eq!(
        lines[1],
        json!({"text": "{}", "language": "unknown", "compacted": false, "reason": "unknown_language"})
    );
}

#[test]
fn refuses_an_unknown_level() {
    let run = overlock(&["compact", "--level", "some"], "x");
    assert_eq!(run.code, 2);
    assert!(
        run.stderr
            .contains("`lossless`, `outline` or a whole number"),
        "{}",
        run.stderr
    );
    let run = overlock(&["compact", "--level", "50"], "select 1");
    assert_eq!(run.code, 2, "no model or encoding given");
}

#[test]
fn source_text_in_utf_16_is_read() {
    let mut text = vec![0xff, 0xfe];
    let units = "SELECT  a /* b */\nFROM  dbo.Größen".encode_utf16();
    text.extend(units.flat_map(u16::to_le_bytes));
    let run = overlock(&["compact"], &text);
    assert_eq!(run.stdout, "SELECT a\nFROM dbo.Größen", "{}", run.stderr);
    assert_eq!(run.stderr, "");
    let run = overlock(&["classify"], &text);
    assert_eq!(run.stdout.trim(), "sql");
}

#[test]
fn source_text_in_windows_1252_loses_no_byte() {
    let text = b"SELECT  'M\xfcller \x80'  -- caf\xe9";
    let run = overlock(&["compact"], text);
    assert_eq!(run.stdout, "SELECT 'Müller €'", "{}", run.stderr);
    assert!(
        run.stderr.contains("not UTF-8, read as Windows-1252"),
        "{}",
        run.stderr
    );
    let run = overlock(&["classify"], text);
    assert_eq!(run.stdout.trim(), "sql");
}

#[test]
fn what_is_no_text_is_refused_and_a_character_0_is_one() {
    let run = overlock(&["compact"], b"\x89PNG\0\0");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("standard input is not text") && run.stderr.contains("hint: "),
        "{}",
        run.stderr
    );
    let run = overlock(&["compact", "--json"], "SELECT  'a\0b'");
    assert_eq!(run.json()["text"], json!("SELECT 'a\0b'"));
}
