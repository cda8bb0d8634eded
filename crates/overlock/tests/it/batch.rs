use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::program::{Watchdog, command, overlock};

#[test]
fn results_have_the_order_of_the_lines() {
    // Short and long lines by turns, so that the workers finish out of order.
    let lines: Vec<_> = (0..3000)
        .map(|index| {
            let filler = "x".repeat(if index % 50 == 0 { 200_000 } else { 5 });
            json!({"text": format!("[{index},\"{filler}")}).to_string() + "\n"
        })
        .collect();
    let run = overlock(&["close", "--jsonl"], lines.concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answers = run.json_lines();
    assert_eq!(answers.len(), lines.len());
    for (index, answer) in answers.iter().enumerate() {
        let json = answer["json"].as_str().expect("every line has an answer");
        assert!(
            json.starts_with(&format!("[{index},")),
            "line {index}: {json:.40}"
        );
    }
}

#[test]
fn a_bad_line_gives_an_error_and_the_rest_is_processed() {
    let lines = [
        (r#"{"text":"[1"}"#, None),
        ("", Some("empty")),
        ("not json", Some("not JSON")),
        ("[1,2]", Some("not an object")),
        ("{}", Some("`text` is missing")),
        (
            r#"{"text":5}"#,
            Some("`text` is a number, but must be a string"),
        ),
        (
            r#"{"text":"[2","id":7}"#,
            Some("`id` is not a known key; known: text, strict"),
        ),
        (r#"{"text":"[3","strict":true}"#, None),
    ];
    let input: Vec<_> = lines.iter().map(|(line, _)| *line).collect();
    let run = overlock(&["close", "--jsonl"], input.join("\n"));
    assert_eq!(run.code, 1);
    let answers = run.json_lines();
    assert_eq!(answers.len(), lines.len());
    for ((line, expected), answer) in lines.iter().zip(&answers) {
        match expected {
            None => assert_eq!(answer["complete"], json!(false), "{line}"),
            Some(part) => {
                assert_eq!(answer["error"]["code"], json!("bad-line"), "{line}");
                let message = answer["error"]["message"].as_str().unwrap_or_default();
                assert!(message.contains(part), "{line}: {message}");
            }
        }
    }
}

#[test]
fn a_text_without_json_is_an_error_on_its_line() {
    let run = overlock(
        &["repair", "--jsonl"],
        "{\"text\":\"\"}\n{\"text\":\"[1,]\"}",
    );
    assert_eq!(run.code, 1);
    let answers = run.json_lines();
    assert_eq!(answers[0]["error"]["code"], json!("no-json"));
    assert_eq!(answers[1]["json"], json!("[1]"));
}

#[test]
fn a_cut_text_is_no_error() {
    let run = overlock(
        &["cut", "--jsonl"],
        "{\"text\":\"[1, 2\"}\r\n{\"text\":\"[]\"}\r\n",
    );
    assert_eq!(run.code, 0, "{}", run.stdout);
    let answers = run.json_lines();
    assert_eq!(answers[0]["cut"]["place"], json!("number"));
    assert_eq!(answers[1]["cut"], Value::Null);
}

#[test]
fn empty_input_gives_empty_output() {
    for input in ["", "\n"] {
        let run = overlock(&["close", "--jsonl"], input);
        assert_eq!(run.json_lines().len(), input.len(), "{input:?}");
    }
}

#[test]
fn prints_each_result_before_the_next_line_is_written() {
    let mut child = command(&["close", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built with the tests");
    let _watchdog = Watchdog::over(&child);
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    for index in 0..5 {
        writeln!(stdin, "{{\"text\":\"[{index},\"}}").expect("the program reads");
        let mut answer = String::new();
        stdout.read_line(&mut answer).expect("the program answers");
        assert!(answer.contains(&format!("[{index}]")), "{answer}");
    }
    drop(stdin);
    assert!(child.wait().expect("the program ends").success());
}

#[test]
fn drops_invalid_bytes_from_a_line() {
    let run = overlock(&["close", "--jsonl"], b"{\"text\":\"[\\\"a\xff\\\"\"}\n");
    assert_eq!(run.json()["json"], json!("[\"a\"]"));
    assert!(run.stderr.contains("dropped 1 byte"), "{}", run.stderr);
}

#[test]
fn help_lists_the_keys_of_a_line() {
    for command in [
        &["cut"][..],
        &["close"],
        &["repair"],
        &["render"],
        &["stitch"],
        &["tokens", "--model", "gpt-4o"],
        &["compact"],
        &["classify"],
    ] {
        let run = overlock(&[command, &["--jsonl"]].concat(), "{\"surplus\":1}\n");
        assert_eq!(run.code, 1, "{command:?}: {}", run.stderr);
        let message = run.json()["error"]["message"].clone();
        let message = message.as_str().expect("an error has a message");
        let (_, known) = message
            .split_once("`surplus` is not a known key; known: ")
            .unwrap_or_else(|| panic!("{command:?}: {message}"));
        let help = overlock(&[command[0], "--help"], "").stdout;
        let wanted = format!("Keys of a --jsonl line: {known}.");
        assert!(help.contains(&wanted), "{command:?}: {help}");
    }
}
