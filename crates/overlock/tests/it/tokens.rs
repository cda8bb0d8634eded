use serde_json::{Value, json};

use crate::program::{TemporaryFile, TemporaryFolder, command, overlock, run};

const TEXT: &str = "Where is the nearest river?";

/// A tokenizer of three letters and one pair.
const LETTERS: &str = r#"{
    "added_tokens": [],
    "model": { "type": "BPE", "unk_token": "?", "merges": ["a b"],
               "vocab": { "?": 0, "a": 1, "b": 2, "ab": 3 } }
}"#;

/// Checks the count, the counter and whether it is exact, in text and JSON output.
#[track_caller]
fn check(arguments: &[&str], text: &str, tokens: u64, counter: &str, exact: bool) {
    let arguments = [&["tokens"], arguments].concat();
    let run = overlock(&arguments, text);
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    assert_eq!(run.stdout, format!("{tokens}\n"), "{arguments:?}");
    assert_eq!(run.stderr.contains("estimate"), !exact, "{}", run.stderr);

    let answer = overlock(&[&arguments[..], &["--json"]].concat(), text).json();
    assert_eq!(answer["tokens"], json!(tokens), "{arguments:?}");
    assert_eq!(answer["counter"], json!(counter), "{arguments:?}");
    assert_eq!(answer["exact"], json!(exact), "{arguments:?}");
    let provenance = if exact { "exact" } else { "estimate" };
    assert_eq!(answer["provenance"], json!(provenance), "{arguments:?}");

    let line = json!({ "text": text }).to_string();
    let answer = overlock(&[&arguments[..], &["--jsonl"]].concat(), line).json();
    let expected = json!({"tokens": tokens, "exact": exact, "counter": counter});
    assert_eq!(answer, expected, "{arguments:?}");
}

#[test]
fn counts_with_the_tokenizer_of_a_model() {
    check(&["--model", "gpt-4o"], TEXT, 6, "o200k_base", true);
    check(
        &["--model", "openai/gpt-4-0613"],
        TEXT,
        6,
        "cl100k_base",
        true,
    );
    check(&["--model", "gpt-4o"], "", 0, "o200k_base", true);
}

#[test]
fn counts_with_a_named_encoding() {
    check(&["--encoding", "o200k_base"], TEXT, 6, "o200k_base", true);
    check(&["--encoding", "r50k_base"], TEXT, 6, "r50k_base", true);
    check(
        &["--encoding", "approx:chars/4"],
        TEXT,
        7,
        "approx:chars/4",
        false,
    );
}

#[test]
fn counts_with_a_tokenizer_file() {
    let file = TemporaryFile::new("letters.json", LETTERS);
    check(&["--tokenizer", file.path()], "abba", 3, file.path(), true);
}

#[test]
fn counts_text_that_looks_like_a_control_token_as_text() {
    let run = overlock(&["tokens", "--model", "gpt-4o"], "<|endoftext|>");
    assert_eq!(run.stdout, "7\n");
}

#[test]
fn estimates_for_a_model_without_a_public_tokenizer() {
    check(
        &["--model", "claude-3-opus"],
        TEXT,
        7,
        "o200k_base in place of an unknown tokenizer, times 1.2",
        false,
    );
    let run = overlock(&["tokens", "--model", "claude-3-opus"], TEXT);
    assert!(
        run.stderr
            .contains("the tokenizer of `claude-3-opus` is not known"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("hint: "), "{}", run.stderr);
}

#[test]
fn estimates_for_a_family_until_its_file_is_configured() {
    check(
        &["--model", "llama3.2:3b"],
        TEXT,
        6,
        "o200k_base in place of llama3, times 1.1",
        false,
    );
    let run = overlock(&["tokens", "--model", "llama3.2:3b"], TEXT);
    assert!(
        run.stderr.contains("no tokenizer file for `llama3` models"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("[tokenizers]"), "{}", run.stderr);

    let folder = TemporaryFolder::new("families");
    folder.write("files/letters.json", LETTERS);
    folder.write(
        "overlock.toml",
        "[tokenizers]\nllama3 = \"files/letters.json\"\n\
         [models.mine]\nwindow = 5\ntokenizer = \"files/letters.json\"\n\
         [models.plain]\nwindow = 5\ntokenizer = \"cl100k_base\"\n\
         [budget]\nmodel = \"plain\"\n",
    );
    let config = folder.path().join("overlock.toml");
    let config = config.to_str().expect("the path is ours");
    check(
        &["--config", config, "--model", "llama3.2:3b"],
        "abba",
        3,
        "llama3",
        true,
    );
    let file = folder.path().join("files/letters.json");
    let file = file.to_str().expect("the path is ours");
    check(
        &["--config", config, "--model", "mine"],
        "abba",
        3,
        file,
        true,
    );
    // And the configured model, if none is given.
    check(&["--config", config], TEXT, 6, "cl100k_base", true);
}

#[test]
fn estimates_for_an_unknown_model() {
    let run = overlock(&["tokens", "--model", "zzqq", "--json"], TEXT);
    assert_eq!(run.code, 0);
    assert_eq!(run.json()["exact"], json!(false));
    assert_eq!(run.json()["model"], json!("zzqq"));
    assert!(
        run.stderr.contains("unknown model `zzqq`"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_model_found_by_prefix_is_not_exact() {
    let run = overlock(&["tokens", "--model", "gpt-4-turbo-mine", "--json"], TEXT);
    let answer = run.json();
    assert_eq!(
        (&answer["exact"], &answer["provenance"]),
        (&json!(false), &json!("calibrated"))
    );
    assert!(
        run.stderr.contains("counted like `gpt-4-turbo`"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_limit_stops_the_count() {
    let ask = |limit: &str, form: &[&str]| {
        let arguments = [&["tokens", "--model", "gpt-4o", "--limit", limit], form].concat();
        overlock(&arguments, TEXT)
    };
    let within = ask("6", &[]);
    assert_eq!((within.code, &*within.stdout), (0, "6\n"));
    let over = ask("5", &[]);
    assert_eq!((over.code, &*over.stdout), (1, ""));
    assert!(
        over.stderr.contains("more than 5 tokens"),
        "{}",
        over.stderr
    );
    let over = ask("5", &["--json"]);
    assert_eq!(over.code, 1);
    assert_eq!(
        (&over.json()["tokens"], &over.json()["limit"]),
        (&Value::Null, &json!(5))
    );
}

#[test]
fn a_text_can_be_truncated_at_either_end() {
    let ask = |flags: &[&str]| {
        overlock(
            &[&["tokens", "--model", "gpt-4o", "--truncate", "2"], flags].concat(),
            TEXT,
        )
    };
    assert_eq!(ask(&[]).stdout, "Where is");
    assert_eq!(ask(&["--from-end"]).stdout, " river?");
    let answer = ask(&["--json"]).json();
    assert_eq!(
        (&answer["tokens"], &answer["text"]),
        (&json!(2), &json!("Where is"))
    );
    let line = json!({ "text": TEXT }).to_string();
    let answer = overlock(
        &["tokens", "--model", "gpt-4o", "--truncate", "2", "--jsonl"],
        line,
    );
    assert_eq!(answer.json()["text"], json!("Where is"));
}

#[test]
fn counts_many_texts_in_one_run() {
    let lines = "{\"text\":\"a\"}\nnot json\n{\"texts\":1}\n{\"text\":\"Where is the river?\"}\n";
    let run = overlock(&["tokens", "--model", "gpt-4o", "--jsonl"], lines);
    assert_eq!(run.code, 1);
    let answers = run.json_lines();
    assert_eq!(answers.len(), 4);
    assert_eq!(answers[0]["tokens"], json!(1));
    assert_eq!(answers[1]["error"]["code"], json!("bad-line"));
    assert_eq!(
        answers[2]["error"]["message"],
        json!("`texts` is not a known key; known: text")
    );
    assert_eq!(answers[3]["tokens"], json!(5));
}

#[test]
fn drops_and_counts_invalid_bytes() {
    let run = overlock(&["tokens", "--model", "gpt-4o"], b"Where\xff\xfe is");
    assert_eq!((run.code, &*run.stdout), (0, "2\n"));
    assert!(run.stderr.contains("dropped 2 bytes"), "{}", run.stderr);
}

#[test]
fn needs_exactly_one_counter() {
    for (arguments, expected) in [
        (
            &[][..],
            "hint: give --model NAME, --encoding NAME or --tokenizer FILE",
        ),
        (
            &["--model", "gpt-4", "--encoding", "o200k_base"],
            "cannot be used with",
        ),
        (&["--encoding", "o200k_bsae"], "o200k_base"),
        (&["--tokenizer", "/no/such/file"], "/no/such/file"),
        (&["--tokenizer", "/tmp"], "/tmp"),
        (&["--model", "gpt-4", "--limit", "-1"], "whole number"),
        (
            &["--model", "gpt-4", "--limit", "1", "--truncate", "1"],
            "cannot be used with",
        ),
        (&["--model", "gpt-4", "--from-end"], "--truncate"),
    ] {
        let run = overlock(&[&["tokens"], arguments].concat(), TEXT);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{arguments:?}");
        assert!(
            run.stderr.contains(expected),
            "{arguments:?}: {}",
            run.stderr
        );
    }
}

#[test]
fn reports_why_a_file_is_not_a_tokenizer() {
    for content in [
        "",
        "[1,",
        "{}",
        "{\"model\":{\"type\":\"Magic\"}}",
        "\u{0}\u{1}",
    ] {
        let file = TemporaryFile::new("no-tokenizer.json", content);
        let run = overlock(&["tokens", "--tokenizer", file.path()], TEXT);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{content:?}");
        assert!(run.stderr.contains(file.path()), "{}", run.stderr);
        assert!(
            run.stderr.contains("hint: give a tokenizer.json"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn reports_the_position_of_an_unknown_tokenizer() {
    let folder = TemporaryFolder::new("typo");
    folder.write(
        "overlock.toml",
        "[models.m]\nwindow = 5\ntokenizer = \"o200kbase\"\n",
    );
    let run = run(
        command(&["tokens", "--model", "m"]).current_dir(folder.path()),
        TEXT,
    );
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("overlock.toml:3:13"), "{}", run.stderr);
    assert!(
        run.stderr.contains("did you mean `o200k_base`?"),
        "{}",
        run.stderr
    );
}
