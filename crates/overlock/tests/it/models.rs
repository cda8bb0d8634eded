use serde_json::json;

use crate::program::{TemporaryFile, overlock};

#[track_caller]
fn check(name: &str, window: u64, found: &str, entry: Option<&str>) {
    let run = overlock(&["models", name, "--json"], "");
    assert_eq!(run.code, 0, "{name}: {}", run.stderr);
    let answer = run.json();
    assert_eq!(answer["name"], json!(name));
    assert_eq!(answer["context_window"], json!(window), "{name}");
    assert_eq!(answer["found"], json!(found), "{name}");
    assert_eq!(answer["entry"], json!(entry), "{name}");
}

#[test]
fn shows_how_a_model_was_found() {
    check("gpt-4", 8192, "exact", Some("gpt-4"));
    check("openai/gpt-4o", 128_000, "alias", Some("gpt-4o"));
    check(
        "deepseek-coder:6.7b:latest",
        16_000,
        "alias",
        Some("deepseek-coder:6.7b"),
    );
    check("gpt-4-turbo-x", 128_000, "prefix", Some("gpt-4-turbo"));
    check("nobody-has-heard-of-it", 8192, "default", None);
}

#[test]
fn json_has_all_facts() {
    let run = overlock(&["models", "deepseek-chat", "--json"], "");
    assert_eq!(
        run.json(),
        json!({
            "name": "deepseek-chat",
            "context_window": 64_000,
            "max_output_tokens": 8192,
            "tokenizer": "deepseek-v3",
            "found": "exact",
            "entry": "deepseek-chat",
            "own": false,
            "shared": true,
            "prefill": true,
            "json": true,
            "tools": true,
            "disputed": 131_072,
        })
    );
}

#[test]
fn prints_name_value_lines() {
    let run = overlock(&["models", "openai/gpt-4o-2024-08-06x"], "");
    assert_eq!(run.code, 0);
    let run = overlock(&["models", "deepseek-chat"], "");
    assert_eq!(
        run.stdout,
        "name: deepseek-chat\n\
         context window: 64000\n\
         longest answer: 8192\n\
         tokenizer: deepseek-v3\n\
         supports: prefill, JSON mode, tools\n\
         found: exact\n\
         disputed: another source states a window of 131072\n"
    );
    assert_eq!(run.stderr, "");
}

#[test]
fn notes_an_unknown_model_and_suggests_similar_names() {
    for form in [&["models", "gpt-4of"][..], &["models", "gpt-4of", "--json"]] {
        let run = overlock(form, "");
        assert_eq!(run.code, 0);
        assert!(
            run.stderr
                .contains("assuming a context window of 8192 tokens"),
            "{}",
            run.stderr
        );
        assert!(
            run.stderr.contains("hint: did you mean `gpt-4o`"),
            "{}",
            run.stderr
        );
    }
    let run = overlock(&["models", "\x1b[31mzzqq"], "");
    assert!(!run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'));
    assert!(
        run.stderr.contains("hint: describe it in overlock.toml"),
        "{}",
        run.stderr
    );
}

#[test]
fn lists_all_models_or_those_that_contain_a_word() {
    let all = overlock(&["models"], "");
    assert_eq!(all.code, 0);
    let json = overlock(&["models", "--json"], "").json();
    let count = json.as_array().expect("a list").len();
    assert!(count > 1000);
    // A header above, and a legend below.
    assert_eq!(all.stdout.lines().count(), count + 2);

    let some = overlock(&["models", "--filter", "GPT-4o", "--json"], "").json();
    let names: Vec<_> = some
        .as_array()
        .expect("a list")
        .iter()
        .map(|model| &model["name"])
        .collect();
    assert!(names.contains(&&json!("gpt-4o")) && names.len() < count);
    let all_hold_it = names
        .iter()
        .all(|name| name.as_str().is_some_and(|name| name.contains("gpt-4o")));
    assert!(all_hold_it, "{names:?}");

    let none = overlock(&["models", "--filter", "no such model"], "");
    assert_eq!(none.code, 1);
    assert!(
        none.stderr.contains("no model name contains"),
        "{}",
        none.stderr
    );
}

#[test]
fn configured_models_override_the_table() {
    let file = TemporaryFile::new(
        "own-models.toml",
        "[models.\"gpt-4o\"]\nwindow = 32000\n\
         [models.\"My-Llama\"]\nwindow = 4096\nanswer_cap = 512\nshared = false\ntools = true\n",
    );
    let ask = |name| overlock(&["models", name, "--json", "--config", file.path()], "").json();
    let changed = ask("gpt-4o");
    assert_eq!(changed["context_window"], json!(32_000));
    assert_eq!(changed["own"], json!(true));
    // Settings that are left out keep the value of the table.
    assert_eq!(changed["tokenizer"], json!("o200k_base"));
    let own = ask("ollama/my-llama:latest");
    assert_eq!(own["context_window"], json!(4096));
    assert_eq!(own["max_output_tokens"], json!(512));
    assert_eq!(
        (&own["shared"], &own["tools"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(
        (&own["found"], &own["own"]),
        (&json!("alias"), &json!(true))
    );
    let listed = overlock(
        &["models", "--filter", "my-llama", "--config", file.path()],
        "",
    );
    assert!(listed.stdout.contains("my-llama"), "{}", listed.stdout);
}
