use serde_json::{Value, json};

use crate::program::{TemporaryFile, TemporaryFolder, command, overlock, run};

/// Input, available, adjusted and overflow of the documented estimate.
#[track_caller]
fn check_estimate(arguments: &[&str], expected: (u64, i64, u64, u64), adjustment: &str) {
    let run = overlock(&[&["fit", "--json"], arguments].concat(), "");
    let (input, available, adjusted, overflow) = expected;
    assert_eq!(run.code, i32::from(overflow > 0), "{}", run.stderr);
    let answer = run.json();
    assert_eq!(answer["input_token_count"], json!(input), "{answer}");
    assert_eq!(answer["available"], json!(available), "{answer}");
    assert_eq!(answer["adjusted_max_tokens"], json!(adjusted), "{answer}");
    assert_eq!(answer["overflow"], json!(overflow), "{answer}");
    assert_eq!(answer["fits"], json!(overflow == 0), "{answer}");
    assert_eq!(answer["adjustment"], json!(adjustment), "{answer}");
    assert_eq!(answer["margin"], json!(100), "{answer}");
    assert_eq!(answer["provenance"], json!("estimate"), "{answer}");
}

#[test]
fn computes_the_documented_estimate() {
    check_estimate(
        &[
            "--model",
            "llama3.2:3b",
            "--messages",
            "5",
            "--system-tokens",
            "500",
        ],
        (1750, 126_150, 3000, 0),
        "granted",
    );
    check_estimate(
        &[
            "--model",
            "gpt-3.5-turbo",
            "--messages",
            "50",
            "--max-tokens",
            "5000",
        ],
        (13_000, 3285, 3285, 0),
        "reduced",
    );
    check_estimate(
        &[
            "--model",
            "deepseek-coder:6.7b",
            "--messages",
            "60",
            "--max-tokens",
            "3000",
        ],
        (15_500, 400, 500, 100),
        "floor",
    );
    check_estimate(
        &["--model", "deepseek-coder:6.7b", "--messages", "100"],
        (25_500, -9600, 500, 10_100),
        "floor",
    );
}

#[test]
fn an_estimate_respects_the_message_limit() {
    check_estimate(
        &[
            "--model",
            "gpt-3.5-turbo",
            "--messages",
            "50",
            "--max-tokens",
            "5000",
            "--max-messages",
            "34",
        ],
        (9000, 7285, 5000, 0),
        "granted",
    );
}

#[test]
fn an_estimate_can_grow() {
    check_estimate(
        &["--model", "llama3.2:3b", "--messages", "5", "--grow"],
        (1750, 126_150, 126_150, 0),
        "grown",
    );
}

#[test]
fn an_estimate_never_wraps() {
    let largest = u64::MAX.to_string();
    let run = overlock(
        &[
            "fit",
            "--model",
            "gpt-4",
            "--messages",
            &largest,
            "--system-tokens",
            &largest,
            "--max-tokens",
            &largest,
            "--margin",
            &largest,
        ],
        "",
    );
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stdout.contains("✗ OVER BUDGET"), "{}", run.stdout);
}

#[test]
fn prints_the_estimate_as_a_calculation() {
    let run = overlock(
        &[
            "fit",
            "--model",
            "gpt-3.5-turbo",
            "--messages",
            "50",
            "--max-tokens",
            "5000",
        ],
        "",
    );
    assert_eq!(run.code, 0);
    for line in [
        "gpt-3.5-turbo: a window of 16,385 tokens; estimated at 250 tokens per message",
        "H history        12,500  12,500",
        "  available   3,285  = 16,385 − 13,000 − 100",
        "  adjusted    3,285  ⚠ REDUCED: the window has no more room",
        " S system prompt 3.1%   H history 76%   C completion 20%   - margin 0.6%",
    ] {
        assert!(
            run.stdout.lines().any(|found| found == line),
            "{line:?} in\n{}",
            run.stdout
        );
    }
}

#[test]
fn notes_an_unknown_model_of_an_estimate() {
    let run = overlock(&["fit", "--model", "zzqq", "--messages", "5", "--json"], "");
    assert_eq!(run.json()["window"], json!(8192));
    assert_eq!(run.json()["found"], json!("default"));
    assert!(
        run.stderr
            .contains("assuming a context window of 8192 tokens"),
        "{}",
        run.stderr
    );
}

#[test]
fn bad_numbers_are_bad_usage() {
    for (flag, value) in [
        ("--messages", "-1"),
        ("--messages", "many"),
        ("--max-tokens", "-5"),
        ("--margin", "1.5"),
        ("--max-messages", "99999999999999999999999"),
    ] {
        let run = overlock(
            &["fit", "--model", "gpt-4", "--messages", "5", flag, value],
            "",
        );
        assert_eq!(run.code, 2, "{flag} {value}");
        assert!(run.stderr.contains(flag), "{}", run.stderr);
    }
    let run = overlock(&["fit", "--messages", "5"], "");
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("no model given"), "{}", run.stderr);
    assert!(
        run.stderr.contains("hint: give one with --model"),
        "{}",
        run.stderr
    );
}

/// A request several times larger than a window of 8,192 tokens.
fn long_request() -> Value {
    let sentence = "The quick brown fox jumps over the lazy dog and runs along the river bank. ";
    let mut messages = vec![json!({"role": "system", "content": "You are careful."})];
    for turn in 0..40 {
        let content = format!("Turn {turn}: {}", sentence.repeat(12));
        messages.push(json!({"role": "user", "content": content}));
        messages.push(json!({"role": "assistant", "content": sentence.repeat(10)}));
    }
    messages.push(json!({"role": "user", "content": "And what now?"}));
    json!({"model": "gpt-4", "temperature": 0.25, "max_tokens": 3000, "messages": messages})
}

fn short_request() -> Value {
    json!({
        "model": "gpt-4",
        "max_tokens": 2000,
        "messages": [
            {"role": "system", "content": "You are terse."},
            {"role": "user", "content": "Where is the nearest river?"},
        ],
        "user": "ada",
    })
}

/// Whether the figures fit the window.
#[track_caller]
fn check_fits(answer: &Value) {
    let figure = |name: &str| {
        answer[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {answer}"))
    };
    let (input, margin) = (figure("input_token_count"), figure("margin"));
    assert!(
        input + figure("adjusted_max_tokens") + margin <= figure("window"),
        "{answer}"
    );
    let parts = answer["parts"].as_array().expect("a list");
    let input_parts = parts
        .iter()
        .filter(|part| part["name"] != json!("completion"));
    let sum: u64 = input_parts.filter_map(|part| part["given"].as_u64()).sum();
    assert_eq!(sum, input, "{answer}");
    assert_eq!(answer["fits"], json!(true));
    assert_eq!(answer["overflow"], json!(0));
}

#[test]
fn a_request_that_fits_is_unchanged() {
    let request = short_request();
    let run = overlock(&["fit"], request.to_string());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, format!("{request}\n"));
    for line in [
        "gpt-4: a window of 8,192 tokens; counted exactly with cl100k_base",
        "  available  8,121  = 8,192 − 21 − 50",
        "  adjusted   2,000  ✓",
    ] {
        assert!(
            run.stderr.lines().any(|found| found == line),
            "{line:?} in\n{}",
            run.stderr
        );
    }
}

#[test]
fn keeps_the_text_of_what_remains() {
    let whole = "{ \"model\": \"gpt-4\", \"seed\": 1e3,\r\n  \"x\": [1.50, -0.0, 1E400],\n  \
                 \"messages\": [ {\"role\": \"user\", \"content\": \"h\\u0069\\/\", \"k\": 1e2} ],\n  \
                 \"stream\": true, \"max_tokens\": 10 }\n";
    let run = overlock(&["fit"], whole);
    assert_eq!((run.code, &*run.stdout), (0, whole), "{}", run.stderr);
    let marked = format!("\u{feff}{whole}");
    assert_eq!(overlock(&["fit"], marked).stdout, whole);

    let run = overlock(&["fit", "--max-tokens", "9"], whole);
    let shorter = whole.replace("\"max_tokens\": 10", "\"max_tokens\": 9");
    assert_eq!(run.stdout, shorter);

    let run = overlock(&["fit", "--json"], whole);
    let line = whole.trim_end().replace(['\r', '\n'], "");
    assert!(
        run.stdout.ends_with(&format!("\"request\":{line}}}\n")),
        "{}",
        run.stdout
    );
}

#[test]
fn a_duplicate_key_is_sent_as_it_was_counted() {
    let twice = r#"{"model":"gpt-4","max_tokens":5,"messages":[],
        "messages":[{"role":"user","content":"Hi"}]}"#;
    let run = overlock(&["fit"], twice);
    assert_eq!(
        run.stdout,
        "{\"model\":\"gpt-4\",\"max_tokens\":5,\
         \"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}\n"
    );
}

#[test]
fn explanations_agree_with_the_figures() {
    let mut request = long_request();
    request["max_tokens"] = json!(3000);
    let answer = overlock(&["fit", "--json"], request.to_string()).json();
    check_fits(&answer);
    let part = |name: &str| {
        let parts = answer["parts"].as_array().expect("a list");
        let found = parts.iter().find(|part| part["name"] == json!(name));
        found.expect("every part is there").clone()
    };
    let shrank = |part: &Value| {
        let by = part["asked"].as_u64().zip(part["given"].as_u64());
        by.map(|(asked, given)| asked - given).expect("figures")
    };
    let history = part("history");
    let explanation = history["explanation"].as_str().expect("a text");
    let by = shrank(&history);
    assert!(
        explanation.starts_with(&format!("shrank by at least {by} (")),
        "{history}"
    );
    let (kept, dropped) = (history["kept"].as_u64(), history["dropped"].as_u64());
    let all = kept.zip(dropped).map(|(kept, dropped)| kept + dropped);
    let (kept, all) = (kept.expect("a number"), all.expect("a number"));
    assert!(
        explanation.ends_with(&format!("{kept} of {all} messages stay")),
        "{history}"
    );
    let completion = part("completion");
    let by = shrank(&completion);
    let explanation = completion["explanation"].as_str().expect("a text");
    assert!(
        explanation.starts_with(&format!("shrank by {by} ("))
            && !explanation.contains("to its minimum"),
        "{completion}"
    );
}

#[test]
fn json_has_the_figures_and_the_request() {
    let request = short_request();
    let run = overlock(&["fit", "--json"], request.to_string());
    assert_eq!((run.code, &*run.stderr), (0, ""));
    let answer = run.json();
    check_fits(&answer);
    assert_eq!(answer["request"], request);
    assert_eq!(answer["model"], json!("gpt-4"));
    assert_eq!(
        (&answer["counter"], &answer["provenance"]),
        (&json!("cl100k_base"), &json!("exact"))
    );
    // 3 tokens around each message, 1 for its role, 4 and 6 for its text, 3 for the reply.
    assert_eq!(answer["input_token_count"], json!(21));
    assert_eq!(answer["message_count"], json!(1));
    assert_eq!(answer["memory_count"], json!(0));
    let names: Vec<_> = answer["parts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|part| &part["name"])
        .collect();
    assert!(names.contains(&&json!("system prompt")) && names.contains(&&json!("completion")));
    for part in answer["parts"].as_array().expect("a list") {
        for key in ["asked", "given", "kept", "dropped", "explanation"] {
            assert!(!part[key].is_null(), "{key} of {part}");
        }
    }
}

#[test]
fn a_long_conversation_loses_its_oldest_turns() {
    let request = long_request();
    let run = overlock(&["fit", "--json"], request.to_string());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answer = run.json();
    check_fits(&answer);
    let fitted = &answer["request"];
    let messages = fitted["messages"].as_array().expect("a list");
    let original = request["messages"].as_array().expect("a list");
    assert_eq!((messages.len(), original.len()), (42, 82));
    assert_eq!(messages[0], original[0]);
    assert!(original.ends_with(&messages[1..]));
    assert_eq!(messages[1]["role"], json!("user"));
    assert_eq!(fitted["max_tokens"], answer["adjusted_max_tokens"]);
    assert_eq!(fitted["temperature"], json!(0.25));
    assert_eq!(answer["message_count"], json!(messages.len() - 1));

    // A fitted request is not changed again.
    let again = overlock(&["fit", "--json"], fitted.to_string()).json();
    assert_eq!(&again["request"], fitted);
}

#[test]
fn summarises_the_oldest_turns_in_a_line_each() {
    let run = overlock(
        &["fit", "--json", "--trim", "summary"],
        long_request().to_string(),
    );
    let answer = run.json();
    check_fits(&answer);
    let messages = answer["request"]["messages"].as_array().expect("a list");
    let summary = messages[1]["content"].as_str().expect("a text");
    assert!(summary.starts_with("[Earlier conversation ("), "{summary}");
}

#[test]
fn refuses_what_cannot_fit_with_hints() {
    let mut request = short_request();
    request["messages"][0]["content"] = json!("word ".repeat(20_000));
    let run = overlock(&["fit"], request.to_string());
    assert_eq!((run.code, &*run.stdout), (1, ""));
    for expected in [
        "✗ OVER BUDGET by ",
        "▲ the window ends here",
        "error: the request does not fit: ",
        "the largest part is `system prompt`",
        "hint: shorten `system prompt` from ",
        "use a model with a window of at least ",
    ] {
        assert!(
            run.stderr.contains(expected),
            "{expected:?} in\n{}",
            run.stderr
        );
    }
    let run = overlock(&["fit", "--json"], request.to_string());
    assert_eq!(run.code, 1);
    let answer = run.json();
    assert_eq!(answer["fits"], json!(false));
    assert!(
        answer["overflow"]
            .as_u64()
            .is_some_and(|overflow| overflow > 10_000),
        "{answer}"
    );
    assert_eq!(answer["error"]["code"], json!("context-length-exceeded"));
    assert!(
        answer["error"]["help"]
            .as_array()
            .is_some_and(|help| help.len() == 2),
        "{answer}"
    );
}

#[test]
fn a_pending_tool_result_is_never_dropped() {
    let words = "word ".repeat(9000);
    let call = json!({"id": "call_1", "type": "function",
                      "function": {"name": "read", "arguments": "{}"}});
    let pending = [
        json!({"role": "user", "content": "Read the file."}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "call_1", "content": words}),
    ];
    let request = json!({"model": "gpt-4", "messages": pending}).to_string();
    let run = overlock(&["fit"], &request);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains(" characters removed]\\n"));
    for figure in ["open turn", "results truncated by "] {
        assert!(run.stderr.contains(figure), "{}", run.stderr);
    }
    let run = overlock(&["fit", "--trim", "off"], &request);
    assert_eq!((run.code, &*run.stdout), (1, ""));
    for expected in [
        "✗ OVER BUDGET by ",
        "the largest part is `open turn`",
        "shorten `open turn` from ",
    ] {
        assert!(
            run.stderr.contains(expected),
            "{expected:?} in\n{}",
            run.stderr
        );
    }
    let answer = overlock(&["fit", "--json", "--trim", "off"], &request).json();
    assert_eq!(answer["error"]["code"], json!("context-length-exceeded"));

    // Older turns are dropped for it.
    let older = [
        json!({"role": "user", "content": words}),
        json!({"role": "assistant", "content": "Thanks."}),
    ];
    let mut pending = pending;
    pending[2]["content"] = json!("word ".repeat(5000));
    let messages = [&older[..], &pending[..]].concat();
    let request = json!({"model": "gpt-4", "messages": messages}).to_string();
    let run = overlock(&["fit"], &request);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let sent: Value = serde_json::from_str(&run.stdout).expect("a request");
    assert_eq!(sent["messages"], json!(pending));
}

#[test]
fn the_figures_of_a_refusal_add_up() {
    let words = "word ".repeat(9000);
    let tool = json!({"type": "function", "function": {"name": "f", "description": words}});
    let question = json!({"role": "user", "content": "Hi"});
    for request in [
        json!({"messages": [{"role": "system", "content": words}, question]}),
        // Without a user message nothing is dropped.
        json!({"messages": [{"role": "assistant", "content": words}]}),
        // Messages after the last user message belong to it.
        json!({"messages": [question, {"role": "assistant", "content": words}]}),
        // A tool that must be called is never dropped.
        json!({"messages": [question], "tools": [tool],
               "tool_choice": {"type": "function", "function": {"name": "f"}}}),
    ] {
        let run = overlock(
            &["fit", "--json", "--model", "gpt-4", "--trim", "oldest"],
            request.to_string(),
        );
        let answer = run.json();
        assert_eq!(run.code, 1, "{answer}");
        let number = |key: &str| answer[key].as_i64().expect("a number");
        let (input, margin) = (number("input_token_count"), number("margin"));
        assert_eq!(number("available"), 8192 - input - margin, "{answer}");
        assert_eq!(
            number("overflow"),
            input + margin + number("adjusted_max_tokens") - 8192,
            "{answer}"
        );
        let parts = answer["parts"].as_array().expect("a list").iter();
        let given = parts.filter(|part| part["name"] != json!("completion"));
        let given: i64 = given.filter_map(|part| part["given"].as_i64()).sum();
        assert_eq!(given, input, "{answer}");
    }
}

#[test]
fn without_trimming_a_long_conversation_is_refused() {
    let run = overlock(&["fit", "--trim", "off"], long_request().to_string());
    assert_eq!((run.code, &*run.stdout), (1, ""));
    assert!(
        run.stderr
            .contains("hint: drop the oldest turns with --trim oldest"),
        "{}",
        run.stderr
    );
}

#[test]
fn flags_override_the_request() {
    let ask = |flags: &[&str]| {
        let run = overlock(
            &[&["fit", "--json"], flags].concat(),
            short_request().to_string(),
        );
        assert_eq!(run.code, 0, "{}", run.stderr);
        let answer = run.json();
        check_fits(&answer);
        answer
    };
    let answer = ask(&["--model", "gpt-4o", "--max-tokens", "9", "--margin", "7"]);
    assert_eq!(
        (&answer["model"], &answer["window"]),
        (&json!("gpt-4o"), &json!(128_000))
    );
    assert_eq!(
        (&answer["requested"], &answer["margin"]),
        (&json!(9), &json!(7))
    );
    assert_eq!(answer["request"]["max_tokens"], json!(9));
    let answer = ask(&["--grow"]);
    assert_eq!(answer["adjusted_max_tokens"], answer["available"]);
    let answer = ask(&["--max-tokens", "100000"]);
    assert_eq!(answer["adjustment"], json!("reduced"));
}

#[test]
fn settings_are_the_defaults_of_flags_and_request() {
    let file = TemporaryFile::new(
        "fit.toml",
        "[budget]\nmodel = \"small\"\nmax_tokens = 321\nmargin = 11\n\
         [models.small]\nwindow = 3000\nanswer_cap = 200\ntokenizer = \"cl100k_base\"\n",
    );
    let mut request = short_request();
    request["model"] = Value::Null;
    request["max_tokens"] = Value::Null;
    let run = overlock(
        &["fit", "--json", "--config", file.path()],
        request.to_string(),
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answer = run.json();
    check_fits(&answer);
    assert_eq!(
        (&answer["model"], &answer["window"]),
        (&json!("small"), &json!(3000))
    );
    assert_eq!(
        (&answer["requested"], &answer["margin"]),
        (&json!(321), &json!(11))
    );
    assert_eq!(
        (&answer["adjusted_max_tokens"], &answer["adjustment"]),
        (&json!(200), &json!("capped"))
    );
    let run = overlock(&["fit", "--config", file.path()], request.to_string());
    assert!(
        run.stderr.contains("⚠ REDUCED: the model's longest answer"),
        "{}",
        run.stderr
    );
}

#[test]
fn adds_memories_and_context_to_the_prompt() {
    let memories = TemporaryFile::new(
        "memories.json",
        r#"[{"text": "Ada likes rivers.", "importance": 0.9, "age_days": 1},
            {"text": "Ada was late.", "importance": 0.3, "age_days": 1},
            {"text": "Ada moved.", "importance": 0.9, "age_days": 30}]"#,
    );
    let context = TemporaryFile::new("context.txt", "The Spree flows through Berlin.");
    let arguments = [
        "fit",
        "--json",
        "--memories",
        memories.path(),
        "--context",
        context.path(),
    ];
    let answer = overlock(&arguments, short_request().to_string()).json();
    check_fits(&answer);
    assert_eq!(answer["memory_count"], json!(1));
    let sent = answer["request"]["messages"].to_string();
    assert!(
        sent.contains("Ada likes rivers.") && sent.contains("The Spree flows"),
        "{sent}"
    );
    assert!(!sent.contains("late") && !sent.contains("moved"), "{sent}");

    for wrong in [
        "{}",
        "[{\"text\": 5}]",
        "[{\"text\": \"a\", \"importance\": 1, \"agedays\": 1}]",
    ] {
        let file = TemporaryFile::new("wrong-memories.json", wrong);
        let run = overlock(
            &["fit", "--memories", file.path()],
            short_request().to_string(),
        );
        assert_eq!((run.code, &*run.stdout), (2, ""), "{wrong}");
        assert!(
            run.stderr.contains("is not a list of memories"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn every_part_is_reduced_by_its_settings() {
    let memories = TemporaryFile::new(
        "set-memories.json",
        r#"[{"text": "Ada likes rivers.", "importance": 0.9, "age_days": 1},
            {"text": "Ada was late.", "importance": 0.3, "age_days": 30}]"#,
    );
    let ask = |request: &Value, variables: &[(&str, &str)]| {
        let arguments = ["fit", "--json", "--memories", memories.path()];
        let mut command = command(&arguments);
        command.envs(variables.iter().copied());
        let run = run(&mut command, request.to_string());
        assert_eq!(run.code, 0, "{variables:?}: {}", run.stderr);
        let answer = run.json();
        check_fits(&answer);
        answer
    };
    let history = |answer: &Value| {
        let parts = answer["parts"].as_array().expect("a list");
        let history = parts.iter().find(|part| part["name"] == json!("history"));
        history.and_then(|history| history["given"].as_u64())
    };
    let memory_count = |variables: &[(&str, &str)]| {
        let answer = ask(&short_request(), variables);
        answer["memory_count"].as_u64()
    };
    assert_eq!(memory_count(&[]), Some(1));
    let all = [
        ("OVERLOCK_BUDGET_MEMORY_IMPORTANCE", "0.1"),
        ("OVERLOCK_BUDGET_MEMORY_DAYS", "40"),
    ];
    assert_eq!(memory_count(&all), Some(2));
    assert_eq!(
        memory_count(&[("OVERLOCK_BUDGET_MEMORY_COUNT", "0")]),
        Some(0)
    );
    assert_eq!(
        memory_count(&[("OVERLOCK_BUDGET_MEMORIES_MAX", "3")]),
        Some(0)
    );

    let plain = ask(&long_request(), &[]);
    // Memories fill what whole turns leave.
    assert_eq!(plain["memory_count"], json!(1));
    // Otherwise only parts with a higher priority than the history get room.
    let strict = ("OVERLOCK_BUDGET_FILL_GAPS", "false");
    let answer = ask(&long_request(), &[strict]);
    assert_eq!(answer["memory_count"], json!(0));
    let answer = ask(
        &long_request(),
        &[strict, ("OVERLOCK_BUDGET_MEMORIES_PRIORITY", "65")],
    );
    assert_eq!(answer["memory_count"], json!(1));
    let short = ask(&long_request(), &[("OVERLOCK_BUDGET_HISTORY_MAX", "1000")]);
    assert!(history(&short) <= Some(1000), "{short}");
    assert_eq!(short["adjusted_max_tokens"], json!(3000));
    let longer = ask(
        &long_request(),
        &[("OVERLOCK_BUDGET_COMPLETION_PRIORITY", "90")],
    );
    assert_eq!(longer["adjusted_max_tokens"], json!(3000));
    assert!(history(&longer) < history(&plain));
    let floor = ask(&long_request(), &[("OVERLOCK_BUDGET_ANSWER_FLOOR", "1500")]);
    assert!(
        floor["adjusted_max_tokens"].as_u64() >= Some(1500),
        "{floor}"
    );
}

#[test]
fn refuses_contradicting_settings() {
    let mut command = command(&["fit"]);
    command.envs([
        ("OVERLOCK_BUDGET_HISTORY_MIN", "9"),
        ("OVERLOCK_BUDGET_HISTORY_MAX", "5"),
    ]);
    let run = run(&mut command, long_request().to_string());
    assert_eq!((run.code, &*run.stdout), (2, ""));
    assert!(
        run.stderr.contains("`history` has a minimum of 9"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_substitute_tokenizer_gives_an_estimate() {
    for model in ["claude-3-opus", "llama3.2:3b", "zzqq"] {
        let run = overlock(
            &["fit", "--json", "--model", model],
            short_request().to_string(),
        );
        let answer = run.json();
        check_fits(&answer);
        assert_eq!(
            (&answer["provenance"], &answer["margin"]),
            (&json!("estimate"), &json!(200))
        );
        assert!(
            run.stderr.contains("estimated with o200k_base"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn the_fitted_request_can_be_written_to_a_file() {
    let folder = TemporaryFolder::new("fitted");
    let path = folder.path().join("fitted.json");
    let path = path.to_str().expect("the path is ours");
    let run = overlock(&["fit", "-o", path], short_request().to_string());
    assert_eq!((run.code, &*run.stderr), (0, ""));
    assert!(
        run.stdout.contains("  adjusted   2,000  ✓"),
        "{}",
        run.stdout
    );
    let written = std::fs::read_to_string(path).expect("it was written");
    assert_eq!(written, format!("{}\n", short_request()));
    let run = overlock(
        &["fit", "-o", "/no/such/folder/f.json"],
        short_request().to_string(),
    );
    assert_eq!(run.code, 2);
    assert!(
        run.stderr
            .contains("could not write `/no/such/folder/f.json`"),
        "{}",
        run.stderr
    );
}

#[test]
fn reports_the_position_of_an_invalid_request() {
    let user = json!({"role": "user", "content": "Hi"});
    let with = |key: &str, value: Value| {
        let mut request = json!({"model": "gpt-4", "messages": [user]});
        request[key] = value;
        request.to_string()
    };
    for (request, expected) in [
        (String::new(), "not JSON"),
        ("{\"messages\": [".into(), "not JSON"),
        ("[]".into(), "must be an object"),
        ("{}".into(), "`messages` is missing"),
        (with("messages", json!([])), "`messages` is empty"),
        (with("messages", json!("Hi")), "`messages` is"),
        (
            with("messages", json!([{"role": "robot", "content": "Hi"}])),
            "`messages[0].role` is",
        ),
        (
            with("messages", json!([user, {"role": "user"}])),
            "`messages[1].content` is missing",
        ),
        (with("max_tokens", json!(-5)), "`max_tokens` is `-5`"),
        (with("max_tokens", json!("many")), "`max_tokens` is"),
        ("[".repeat(200_000), "deep"),
    ] {
        let run = overlock(&["fit", "--model", "gpt-4"], &request);
        assert_eq!((run.code, &*run.stdout), (2, ""), "{expected}");
        assert!(
            run.stderr.contains(expected),
            "{expected:?} in {}",
            run.stderr
        );
        assert!(
            run.stderr.contains("hint: give an OpenAI chat request"),
            "{}",
            run.stderr
        );
        let run = overlock(&["fit", "--model", "gpt-4", "--json"], &request);
        assert_eq!(run.code, 2);
        assert_eq!(run.json()["error"]["code"], json!("bad-request"));
    }
}

#[test]
fn counts_requests_of_any_kind() {
    let image = json!({"role": "user", "content": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]});
    let request = json!({"model": "gpt-4o", "messages": [image], "max_tokens": u64::MAX});
    let answer = overlock(&["fit", "--json"], request.to_string()).json();
    check_fits(&answer);
    // An image of unknown size makes it an estimate, and the answer is limited by the model's cap.
    assert_eq!(answer["provenance"], json!("estimate"));
    assert_eq!(answer["adjusted_max_tokens"], json!(16_384));

    let tool =
        json!({"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}});
    let mut request = short_request();
    request["tools"] = json!([tool]);
    let answer = overlock(&["fit", "--json"], request.to_string()).json();
    check_fits(&answer);
    assert_eq!(answer["provenance"], json!("calibrated"));
    assert_eq!(answer["request"]["tools"], json!([tool]));
}

#[test]
fn a_request_without_a_model_has_a_hint() {
    let run = overlock(
        &["fit"],
        r#"{"messages": [{"role": "user", "content": "Hi"}]}"#,
    );
    assert_eq!((run.code, &*run.stdout), (2, ""));
    assert!(
        run.stderr.contains("hint: give one with --model NAME"),
        "{}",
        run.stderr
    );
}

#[test]
fn refuses_a_request_with_an_estimate() {
    for arguments in [
        &["fit", "request.json", "--messages", "5"][..],
        &["fit", "--messages", "5", "--trim", "off"],
        &["fit", "--messages", "5", "-o", "x"],
        &["fit", "--max-messages", "5"],
        &["fit", "--trim", "newest"],
    ] {
        assert_eq!(overlock(arguments, "").code, 2, "{arguments:?}");
    }
}

/// The tokens are all letters, `ab`, and `<s>` if the template writes it.
pub(crate) const LETTERS: &str = r#"{
    "added_tokens": [{"id": 4, "content": "<s>", "special": true, "single_word": false,
                      "lstrip": false, "rstrip": false, "normalized": false}],
    "model": {"type": "BPE", "unk_token": "?", "merges": ["a b"],
              "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3}}
}"#;

/// Writes `<s>` before each message and before the answer.
pub(crate) const TEMPLATE: &str =
    "{% for message in messages %}<s>{{ message.content }}{% endfor %}<s>";

#[test]
fn counts_an_open_model_with_its_chat_template() {
    let folder = TemporaryFolder::new("template");
    let file = |name: &str| {
        let path = folder.path().join(name);
        path.to_str().expect("the path is ours").to_owned()
    };
    folder.write("tokenizer.json", LETTERS);
    folder.write(
        "other.json",
        json!({"chat_template": format!("<s><s>{TEMPLATE}")}).to_string(),
    );
    folder.write("none.json", "{}");
    folder.write(
        "overlock.toml",
        "[models.mine]\nwindow = 4000\ntokenizer = \"tokenizer.json\"\n\
         [models.other]\nwindow = 4000\ntokenizer = \"tokenizer.json\"\n\
         tokenizer_config = \"other.json\"\n",
    );
    let request = json!({
        "model": "mine",
        "messages": [{"role": "system", "content": "ab"}, {"role": "user", "content": "ba<s>"}],
    });
    let (tokenizer, other, config) = (
        file("tokenizer.json"),
        file("other.json"),
        file("overlock.toml"),
    );
    let ask = |flags: &[&str]| {
        let run = overlock(&[&["fit", "--json"], flags].concat(), request.to_string());
        assert_eq!(run.code, 0, "{flags:?}: {}", run.stderr);
        let answer = run.json();
        (
            answer["input_token_count"].as_u64(),
            answer["provenance"].clone(),
        )
    };

    // Without a chat template.
    assert_ne!(ask(&["--config", &config]).1, json!("exact"));
    folder.write(
        "tokenizer_config.json",
        json!({"chat_template": TEMPLATE}).to_string(),
    );
    // Three times `<s>`, `ab`, `b`, `a`, and a `<s>` that is only text.
    let exact = (Some(3 + 1 + 2 + 3), json!("exact"));
    assert_eq!(ask(&["--config", &config]), exact);
    assert_eq!(ask(&["--tokenizer", &tokenizer]), exact);
    let other_exact = (Some(2 + 3 + 1 + 2 + 3), json!("exact"));
    assert_eq!(
        ask(&["--tokenizer", &tokenizer, "--tokenizer-config", &other]),
        other_exact
    );
    assert_eq!(ask(&["--config", &config, "--model", "other"]), other_exact);

    for (flags, expected) in [
        (
            [
                "--tokenizer",
                &tokenizer,
                "--tokenizer-config",
                &file("none.json"),
            ],
            "no `chat_template`",
        ),
        (
            [
                "--tokenizer",
                &tokenizer,
                "--tokenizer-config",
                "/no/such/file",
            ],
            "/no/such/file",
        ),
        (
            ["--tokenizer", &tokenizer, "--tokenizer-config", &tokenizer],
            "no `chat_template`",
        ),
        (
            ["--model", "gpt-4", "--tokenizer-config", &other],
            "is not counted with a tokenizer file",
        ),
    ] {
        let run = overlock(&[&["fit"], &flags[..]].concat(), request.to_string());
        assert_eq!((run.code, &*run.stdout), (2, ""), "{flags:?}");
        assert!(
            run.stderr.contains(expected) && run.stderr.contains("hint: "),
            "{}",
            run.stderr
        );
    }
}
