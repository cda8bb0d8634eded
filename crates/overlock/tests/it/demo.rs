use serde_json::{Value, json};

use crate::program::{TemporaryFile, TemporaryFolder, command, overlock, run};

#[track_caller]
fn check_identical(arguments: &[&str], document: Option<&str>) {
    let run = overlock(&[&["demo", "--json"], arguments].concat(), "");
    assert_eq!(
        run.code,
        0,
        "{arguments:?}: {}\n{}",
        run.stderr,
        describe_calls(&run.json())
    );
    let answer = run.json();
    assert_eq!(answer["identical"], json!(true));
    if let Some(document) = document {
        assert_eq!(answer["json"], json!(document));
    }
}

/// The calls, for a failure message.
fn describe_calls(answer: &Value) -> String {
    let calls = answer["calls"].as_array().map_or(&[][..], Vec::as_slice);
    let lines: Vec<_> = calls
        .iter()
        .map(|call| format!("{} {} {}", call["behaviour"], call["outcome"], call["cut"]))
        .collect();
    lines.join("\n")
}

#[test]
fn every_seed_ends_with_the_complete_document() {
    for seed in 0..60 {
        check_identical(&["--seed", &seed.to_string()], None);
    }
}

#[test]
fn other_seeds_cut_elsewhere() {
    let cuts = |seed| {
        let answer = overlock(&["demo", "--json", "--seed", seed], "").json();
        describe_calls(&answer)
    };
    assert_eq!(cuts("7"), cuts("7"));
    assert_ne!(cuts("7"), cuts("8"));
}

#[test]
fn plays_any_document() {
    let rows: Vec<_> = (0..400)
        .map(|row| json!({"row": row, "zeros": [0, 0, 0], "same": "same"}))
        .collect();
    let compact = json!(rows).to_string();
    let pretty =
        serde_json::to_string_pretty(&json!({"größe": rows, "empty": {}})).unwrap_or_default();
    let alike = json!(vec!["日本語😀".repeat(50); 20]).to_string();
    let deep = "[".repeat(300) + &"]".repeat(300);
    for document in [
        "[]",
        "{}",
        "0",
        "12345678901234567890",
        "true",
        "\"\"",
        "\"just a long string of words\"",
        "[1,2,3]",
        "[[[[[[[[[[]]]]]]]]]]",
        "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]",
        "{\"\":\"\\u00e9\\ud83d\\ude00\\n\"}",
        &compact,
        &pretty,
        &alike,
        &deep,
    ] {
        let file = TemporaryFile::new("any-document", format!("{document}\n"));
        for seed in ["1", "2", "3", "4"] {
            check_identical(&["--document", file.path(), "--seed", seed], Some(document));
        }
    }
}

#[test]
fn prints_every_cut_and_seam_and_the_document() {
    let run = overlock(&["demo"], "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answer = overlock(&["demo", "--json"], "").json();
    let calls = answer["calls"].as_array().expect("there are calls");
    assert_eq!(calls.len(), 11);
    for call in &calls[1..] {
        let outcome = call["outcome"]
            .as_str()
            .expect("every later call has a seam");
        assert!(
            run.stdout.contains(&format!("seam  {outcome}: ")),
            "{outcome}"
        );
        if let Some(path) = call["cut"]["path"].as_str() {
            assert!(run.stdout.contains(path), "{path}");
        }
    }
    let document = answer["json"].as_str().expect("there is a document");
    for line in document.lines() {
        assert!(run.stdout.contains(line), "{line}");
    }
    assert!(
        run.stdout.contains("identical to the original: yes ("),
        "{}",
        run.stdout
    );
}

#[test]
fn prints_the_same_every_time() {
    let first = overlock(&["demo"], "");
    assert_eq!(overlock(&["demo"], "").stdout, first.stdout);
    assert_eq!(first.stderr, "");
}

#[test]
fn every_call_fits_the_window() {
    let answer = overlock(&["demo", "--json"], "").json();
    for call in answer["calls"].as_array().expect("there are calls") {
        let tokens = |key: &str| call[key].as_u64().expect("a number");
        assert!(tokens("input_tokens") > 0, "{call}");
        assert!(
            tokens("input_tokens") + tokens("max_tokens") <= 8192,
            "{call}"
        );
    }
}

#[test]
fn records_nothing_without_a_store() {
    let folder = TemporaryFolder::new("demo-store");
    let home = folder.path().join("data");
    let play = |arguments: &[&str]| {
        let mut command = command(arguments);
        run(command.env("XDG_DATA_HOME", &home).env("HOME", &home), "")
    };
    assert_eq!(play(&["demo"]).code, 0);
    assert!(!home.exists());

    let store = format!("sqlite://{}/demo.db", folder.path().display());
    let answer = play(&["demo", "--json", "--store", &store]).json();
    assert!(!home.exists());
    let listed = overlock(&["inspect", "--json", "--store", &store], "").json();
    assert_eq!(listed[0]["outcome"], "complete");
    assert_eq!(listed[0]["model"], "overlock-demo");
    assert_eq!(
        listed[0]["iterations"],
        answer["calls"].as_array().map_or(0, Vec::len)
    );
    assert_eq!(play(&["demo", "--store", "nowhere"]).code, 2);
}

#[test]
fn refuses_an_incomplete_document() {
    for (content, expected) in [
        ("[1, 2", "is incomplete"),
        ("[1, 2,]", "is not JSON"),
        ("", "is empty"),
    ] {
        let file = TemporaryFile::new("not-whole", content);
        let run = overlock(&["demo", "--document", file.path()], "");
        assert_eq!((run.code, &*run.stdout), (2, ""), "{content:?}");
        assert!(
            run.stderr.contains(expected) && run.stderr.contains(file.path()),
            "{}",
            run.stderr
        );
    }
    assert_eq!(
        overlock(&["demo", "--document", "/no/such/file"], "").code,
        2
    );
}
