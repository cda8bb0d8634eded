use serde_json::json;

use crate::program::overlock;

const CUT: &str = r#"{"title":"A report","sections":[{"id":"one","text":"The quick brown fox"},{"id":"two","text":"jumps over the la"#;

#[track_caller]
fn check_render(arguments: &[&str], rendered: &str) {
    let arguments = [&["render"], arguments].concat();
    let run = overlock(&arguments, CUT);
    assert_eq!(
        (run.code, &*run.stdout),
        (0, rendered),
        "{arguments:?}: {}",
        run.stderr
    );
}

#[test]
fn a_text_within_the_budget_is_unchanged() {
    check_render(&[], CUT);
}

#[test]
fn without_budget_only_structure_and_hints_are_left() {
    let run = overlock(&["render", "--budget", "0"], CUT);
    assert_eq!(run.code, 0);
    assert!(run.stdout.starts_with("{\"title\":"), "{}", run.stdout);
    assert!(run.stdout.ends_with("\"text\":<str>"), "{}", run.stdout);
    assert!(!run.stdout.contains("quick"), "{}", run.stdout);
}

#[test]
fn the_cut_value_can_be_kept_outside_of_the_budget() {
    let run = overlock(&["render", "--budget", "0", "--cut-value", "keep"], CUT);
    assert!(
        run.stdout.ends_with("\"jumps over the la"),
        "{}",
        run.stdout
    );
}

#[test]
fn the_limit_holds_for_the_whole_text() {
    let many: Vec<_> = (0..500).map(|index| json!({"id": index})).collect();
    let text = json!({"rows": many}).to_string();
    let run = overlock(&["render", "--limit", "200"], &text[..text.len() - 3]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.chars().count() <= 200, "{}", run.stdout);
}

#[test]
fn a_limit_too_small_for_any_path_is_bad_usage() {
    let run = overlock(&["render", "--limit", "199"], CUT);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("at least 200"), "{}", run.stderr);
}

#[test]
fn json_has_the_rendered_text() {
    let run = overlock(&["render", "--json"], CUT);
    assert_eq!(run.json(), json!({"rendered": CUT}));
}

#[test]
fn a_line_may_ask_for_its_own_budget() {
    let lines = [
        json!({"text": CUT}),
        json!({"text": CUT, "budget": 0, "cut_value": "keep"}),
        json!({"text": CUT, "cut_value": "all"}),
        json!({"text": CUT, "budget": "much"}),
        json!({"text": CUT, "limit": 10}),
    ];
    let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
    let run = overlock(&["render", "--jsonl"], lines.join("\n"));
    assert_eq!(run.code, 1);
    let answers = run.json_lines();
    assert_eq!(answers[0], json!({"rendered": CUT}));
    let kept = overlock(&["render", "--budget", "0", "--cut-value", "keep"], CUT);
    assert_eq!(answers[1], json!({"rendered": kept.stdout}));
    for (answer, field) in answers[2..]
        .iter()
        .zip(["`cut_value`", "`budget`", "`limit`"])
    {
        let message = answer["error"]["message"]
            .as_str()
            .expect("an error has a message");
        assert!(message.contains(field), "{message}");
    }
}

#[test]
fn the_summary_may_show_the_keys_of_higher_levels() {
    let text = r#"{"meta":{"a":1,"b":{"c":2}},"rows":[{"id":"x","text":"It was a"#;
    let run = overlock(&["render", "--budget", "0", "--summary", "keys"], text);
    let keys = r#"{"meta":{"a":"...","b":{"c":"..."}},"rows":[{"id":<str>,"text":<str>"#;
    assert_eq!((run.code, &*run.stdout), (0, keys));
    let line = json!({"text": text, "budget": 0, "summary": "keys"}).to_string();
    let answers = overlock(&["render", "--jsonl"], line).json_lines();
    assert_eq!(answers[0], json!({"rendered": keys}));
}

#[test]
fn a_long_text_in_a_pipe_is_not_limited() {
    let many: Vec<_> = (0..2000).map(|index| json!({"id": index})).collect();
    let text = json!({"rows": many}).to_string();
    let run = overlock(&["render", "--budget", "100000"], &*text);
    assert_eq!((&*run.stdout, &*run.stderr), (&*text, ""));
}
