//! Files with one mistake each: the error, its position and its help.

use overlock_pipeline::{Problem, Severity};
use serde_json::{Map, Value, json};

use crate::given::{WHOLE, reading, reading_with};

/// A piece of the whole file, its replacement with `«` at the position of the problem, and parts of
/// the message and help.
type Mistake = (&'static str, &'static str, &'static str);

/// The text without its mark, and the line and column of the mark.
fn marked(text: &str) -> (String, usize, usize) {
    let at = text.find('«').expect("the position is marked");
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    (text.replacen('«', "", 1), line, column)
}

#[track_caller]
fn check_in(text: &str, severity: Severity, expected: &str) {
    let (text, line, column) = marked(text);
    let problems = reading(&text).problems;
    assert_reported(&problems, severity, (line, column), expected);
    assert_eq!(problems.len(), 1, "more than one problem: {problems:#?}");
}

#[track_caller]
fn assert_reported(
    problems: &[Problem],
    severity: Severity,
    position: (usize, usize),
    expected: &str,
) {
    let is_it = |problem: &&Problem| {
        let whole = format!(
            "{}; {}",
            problem.message,
            problem.help.as_deref().unwrap_or("")
        );
        (problem.line, problem.column) == position
            && problem.severity == severity
            && expected.split(" … ").all(|part| whole.contains(part))
    };
    assert!(
        problems.iter().any(|problem| is_it(&problem)),
        "no problem {expected:?} at {position:?}: {problems:#?}"
    );
}

#[track_caller]
fn check_all(severity: Severity, mistakes: &[Mistake]) {
    for (right, wrong, expected) in mistakes {
        assert_eq!(WHOLE.matches(right).count(), 1, "{right:?} occurs once");
        check_in(&WHOLE.replacen(right, wrong, 1), severity, expected);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn misspelt_names() {
    check_all(
        Severity::Error,
        &[
            (
                "top_k: 12",
                "«topk: 12",
                "`search_nodes` has no `topk` … `top_k`?",
            ),
            (
                "action: search_nodes",
                "action: «serch_nodes",
                "unknown action `serch_nodes` … `search_nodes`?",
            ),
            (
                "action: finalize",
                "action: «do_it",
                "unknown action `do_it` … expected one of `search_nodes`",
            ),
            (
                "on_repeat: finish",
                "«on_repaet: finish",
                "has no `on_repaet` … did you mean `on_repeat`?",
            ),
            (
                "search_type: hybrid",
                "search_type: «hybird",
                "`search_type` cannot be `hybird` … `hybrid`?",
            ),
            (
                "{ language: sql,",
                "{ «lang: sql,",
                "`filters` has no `lang` … `language`?",
            ),
            (
                "{ language: sql,",
                "{ language: «cobol,",
                "cannot be `cobol` … expected one of `sql`",
            ),
            (
                "policy: always",
                "policy: «allways",
                "cannot be `allways` … `always`?",
            ),
            (
                "            threshold: 0.4",
                "            «treshold: 0.4\n            threshold: 0.4",
                "`rules` has no `treshold` … `threshold`?",
            ),
            (
                "match: triggered",
                "match: «trigered",
                "`match` cannot be `trigered` … `triggered`?",
            ),
            (
                "transform: to_context_blocks",
                "transform: «to_context",
                "`transform` cannot be … `to_context_blocks`?",
            ),
            (
                "prioritization: balanced",
                "prioritization: «balance",
                "cannot be `balance` … `balanced`?",
            ),
            (
                "response: json",
                "response: «jsn",
                "`response` cannot be `jsn` … `json`?",
            ),
            (
                "next: choose",
                "next: «chose",
                "unknown step `chose` … `choose`?",
            ),
            (
                "on_over: guard",
                "on_over: «gard",
                "unknown step `gard` … `guard`?",
            ),
            (
                "more: repeat",
                "more: «repeet",
                "unknown step `repeet` … `repeat`?",
            ),
            (
                "target_step_id: budget",
                "target_step_id: «budgit",
                "unknown step `budgit` … `budget`?",
            ),
            (
                "entry_step_id: history",
                "entry_step_id: «histroy",
                "unknown step `histroy` … `history`?",
            ),
            (
                "source: context_blocks",
                "source: «context_block",
                "no field `context_block` … `context_blocks`?",
            ),
            (
                "from: last_model_response",
                "from: «last_response",
                "no field `last_response`",
            ),
            (
                "- set: context_blocks",
                "- set: «inbox",
                "managed by the engine",
            ),
            (
                "max_turn_loops_from_settings: max_turn_loops",
                "max_turn_loops_from_settings: «max_loops",
                "`settings.max_loops` is missing",
            ),
            (
                "  name: answer_from_code",
                "  «nmae: answer_from_code",
                "`pipeline` has no `nmae` … `name`?",
            ),
            (
                "    model: gpt-4\n",
                "    model: gpt-4\n    «max_step: 5\n",
                "no step uses the setting `max_step` … `max_steps`?",
            ),
            (
                "    model: gpt-4\n",
                "    model: gpt-4\n    token_counter: «o300k\n",
                "unknown token counter `o300k`",
            ),
            (
                "prompt_key: summarizer",
                "prompt_key: «summary",
                "`summary` cannot be read: there is no such file … `prompts/summary.txt`",
            ),
        ],
    );
}

#[test]
fn values_out_of_range() {
    check_all(
        Severity::Error,
        &[
            (
                "top_k: 12",
                "top_k: «0",
                "`top_k` must be at least 1, not 0",
            ),
            (
                "top_k: 12",
                "top_k: «1001",
                "`top_k` must be at most 1,000, not 1001",
            ),
            ("top_k: 12", "top_k: «-3", "must be at least"),
            (
                "budget_tokens: 2000",
                "budget_tokens: «99999999999999999999999",
                "must be at most",
            ),
            (
                "threshold: 0.4",
                "threshold: «1.5",
                "`threshold` must be at most 1",
            ),
            (
                "threshold: 0.4",
                "threshold: «0",
                "`threshold` must be more than 0",
            ),
            (
                "temperature: 0.2",
                "temperature: «2.1",
                "`temperature` must be at most 2",
            ),
            (
                "min_importance: 0.7",
                "min_importance: «-0.1",
                "must be at least 0",
            ),
            (
                "max_context_tokens: 3000",
                "max_context_tokens: «0",
                "must be at least 1, not 0",
            ),
            (
                "max_output_tokens: 1000",
                "max_output_tokens: «0",
                "must be at least 1",
            ),
            (
                "persona: helper",
                "persona: «\"\"",
                "`persona` is empty … the persona",
            ),
            ("topic: compact_sql", "topic: «''", "`topic` is empty"),
        ],
    );
}

#[test]
fn values_of_the_wrong_kind() {
    check_all(
        Severity::Error,
        &[
            (
                "store_turn: false",
                "store_turn: «no",
                "`no` is a text in YAML … write `false`",
            ),
            (
                "store_turn: false",
                "store_turn: «On",
                "`On` is a text in YAML … write `true`",
            ),
            (
                "store_turn: false",
                "store_turn: «\"true\"",
                "because of its quotes … write `true`",
            ),
            (
                "store_turn: false",
                "store_turn: «1",
                "must be `true` or `false`, not 1",
            ),
            (
                "top_k: 12",
                "top_k: «\"12\"",
                "`\"12\"` is a text because of its quotes … write `12`",
            ),
            (
                "top_k: 12",
                "top_k: «1_000",
                "`1_000` is a text in YAML … write `1000`",
            ),
            (
                "top_k: 12",
                "top_k: «twelve",
                "`top_k` must be a whole number, not `twelve`",
            ),
            (
                "top_k: 12",
                "top_k: «1.5",
                "must be a whole number, not 1.5",
            ),
            ("top_k: 12", "«top_k:", "`top_k` has no value"),
            ("top_k: 12", "top_k: «~", "`top_k` has no value"),
            (
                "top_k: 12",
                "«top_k: [12]",
                "must be a whole number, not a list",
            ),
            (
                "source: context_blocks\n          template: \"### Context:\\n{}\\n\\n\"",
                "source: context_blocks\n          «template: {}",
                "must be a text, not a map … `\"{}\"`",
            ),
            (
                "walk_edges: [calls, inherits]",
                "«walk_edges: [calls, inherit]",
                "must be a list of edge types … `inherits`?",
            ),
            (
                "walk_edges: [calls, inherits]",
                "walk_edges: «calls",
                "must be a list of edge types",
            ),
            (
                "walk_depth: 2",
                "walk_depth: «deep",
                "`settings.walk_depth` must be a whole number",
            ),
            (
                "max_turn_loops: 4",
                "max_turn_loops: «four",
                "must be a whole number, not `four`",
            ),
        ],
    );
}

#[test]
fn missing_or_conflicting_keys() {
    check_all(
        Severity::Error,
        &[
            (
                "      action: loop_guard\n      max_turn_loops: 2\n      on_allow: search\n",
                "      action: «loop_guard\n      max_turn_loops: 2\n",
                "`loop_guard` needs `on_allow` … the next step while the run may pass",
            ),
            (
                "          - language: dotnet\n            policy: always",
                "          - «language: dotnet",
                "item 3 of `rules` needs `policy`",
            ),
            (
                "      action: load_memories\n      persona: helper\n",
                "      action: «load_memories\n",
                "`load_memories` needs `persona`",
            ),
            (
                "      topic: compact_sql\n",
                "      topic: compact_sql\n      «topic: other\n",
                "duplicate key `topic` (first defined in line 40)",
            ),
            (
                "prompt: Answer as JSON.",
                "prompt: Answer as JSON.\n      prompt_key: «summarizer",
                "cannot be combined",
            ),
            (
                "action: call_model\n      prompt: Answer as JSON.\n",
                "action: «call_model\n",
                "the step has no prompt … `prompt: …`",
            ),
            (
                "budget_tokens: 2000",
                "budget_tokens: 2000\n      max_chars: «5",
                "cannot be combined",
            ),
            (
                "max_nodes: 30",
                "max_nodes: 30\n      max_nodes_from_settings: «walk_depth",
                "cannot be combined",
            ),
            (
                "end: true",
                "end: «true\n      next: answer",
                "`end: true` and `next` cannot be combined",
            ),
            (
                "        - set: last_model_response\n          value: null\n",
                "        - set: «last_model_response\n",
                "neither `from` nor `value`",
            ),
            (
                "        - set: last_model_response\n          value: null\n",
                "        - set: last_model_response\n          value: «null\n          from: answer\n",
                "cannot be combined",
            ),
            (
                "            policy: threshold\n            threshold: 0.4\n",
                "            policy: «threshold\n",
                "needs a `threshold`",
            ),
            (
                "            policy: demand\n            inbox_key: compact_sql\n",
                "            policy: «demand\n",
                "needs an `inbox_key`",
            ),
            (
                "            policy: always\n",
                "            policy: always\n            threshold: «0.4\n",
                "for `policy: threshold` only",
            ),
            (
                "action: route\n      on: decision\n",
                "action: «route\n",
                "neither `on` nor `prefix`",
            ),
            (
                "      on: decision\n",
                "      on: decision\n      strip_prefix: «true\n",
                "`strip_prefix` needs `prefix: true`",
            ),
            (
                "template: \"### User:\\n{}\\n\"",
                "template: «\"### User\"",
                "no `{}`",
            ),
            (
                "divide_new_content: \"<<<New content\"",
                "divide_new_content: «\"a\\nb\"",
                "one line",
            ),
            (
                "  settings:\n    entry_step_id: history\n",
                "  «settings:\n",
                "`settings` needs `entry_step_id` … the step a run begins with",
            ),
        ],
    );
}

/// Checks for one of several problems.
#[track_caller]
fn check_among(right: &str, wrong: &str, expected: &str) {
    assert_eq!(WHOLE.matches(right).count(), 1, "{right:?} occurs once");
    let (text, line, column) = marked(&WHOLE.replacen(right, wrong, 1));
    assert_reported(
        &reading(&text).problems,
        Severity::Error,
        (line, column),
        expected,
    );
}

#[test]
fn invalid_ids() {
    check_among(
        "- id: ask",
        "- id: «12",
        "`id` must be a text, not 12 … `\"12\"`",
    );
    check_among("- id: ask", "- id: «\"\"", "`id` is empty");
    check_among(
        "    - id: ask\n      action: send\n",
        "    - action: «send\n",
        "`send` needs `id`",
    );
    check_among(
        "- id: again",
        "- id: «repeat",
        "duplicate step id `repeat` (first defined in line 97)",
    );
}

#[test]
fn settings_that_steps_need() {
    let without = |setting: &str, action: &str| {
        let text = WHOLE.replace(setting, "");
        assert_ne!(text, WHOLE);
        text.replacen(
            &format!("action: {action}"),
            &format!("action: «{action}"),
            1,
        )
    };
    check_in(
        &without("    max_context_tokens: 3000\n", "manage_context_budget"),
        Severity::Error,
        "needs `settings.max_context_tokens`",
    );
    let text = without("    model: gpt-4\n", "call_model");
    let (text, line, column) = marked(&text);
    let problems = reading(&text).problems;
    assert_reported(
        &problems,
        Severity::Error,
        (line, column),
        "no model is set",
    );
    let text = without("    max_context_tokens: 3000\n", "fetch_node_texts");
    let text = text.replace("      budget_tokens: 2000\n", "");
    let (text, line, column) = marked(&text);
    let problems = reading(&text).problems;
    assert_reported(
        &problems,
        Severity::Error,
        (line, column),
        "`fetch_node_texts` has no limit",
    );
    let text = WHOLE.replace("max_turn_loops: 4\n    walk", "walk");
    let text = text.replacen(
        "max_turn_loops_from_settings: max_turn_loops",
        "max_turn_loops_from_settings: «max_turn_loops",
        1,
    );
    check_in(
        &text,
        Severity::Error,
        "`settings.max_turn_loops` is missing … under `settings`",
    );
}

#[test]
fn prompts_stay_in_their_folder() {
    for key in [
        "../summarizer",
        "/etc/passwd",
        "a/../b",
        "C:\\x",
        "a//b",
        ".",
        "..\\x",
    ] {
        let text = WHOLE.replace("prompt_key: summarizer", &format!("prompt_key: «'{key}'"));
        check_in(&text, Severity::Error, "is outside the prompts folder");
    }
}

#[test]
fn reports_all_mistakes_in_the_order_of_the_file() {
    let text = WHOLE
        .replace("max_turn_loops: 4", "max_turn_loops: four")
        .replace("top_k: 12", "topk: 12")
        .replace("action: fetch_node_texts", "action: fetch_texts")
        .replace("threshold: 0.4", "threshold: 4")
        .replace("on_over: guard", "on_over: gard")
        .replace("prompt_key: summarizer", "prompt_key: ../summarizer")
        .replace("store_turn: false", "store_turn: no");
    let checked = reading(&text);
    assert!(checked.pipeline.is_none());
    let expected = [
        "`max_turn_loops` must be a whole number",
        "has no `topk`",
        "unknown action `fetch_texts`",
        "`threshold` must be at most 1",
        "unknown step `gard`",
        "is outside the prompts folder",
        "`no` is a text",
    ];
    assert_eq!(
        checked.problems.len(),
        expected.len(),
        "{:#?}",
        checked.problems
    );
    for (problem, expected) in checked.problems.iter().zip(expected) {
        assert!(
            problem.message.contains(expected),
            "{problem:?} is not {expected:?}"
        );
    }
}

#[test]
fn reports_errors_in_options_without_a_position() {
    let cases = [
        (
            "max_context_tokens",
            json!(0),
            "`--set max_context_tokens`: `max_context_tokens` must be at least 1",
        ),
        (
            "walk_depth",
            json!("deep"),
            "`--set walk_depth`: `settings.walk_depth` must be a whole number",
        ),
        (
            "max_contxt_tokens",
            json!(5),
            "`--set max_contxt_tokens`: no step uses the setting",
        ),
        (
            "entry_step_id",
            json!("serch"),
            "`--set entry_step_id`: unknown step `serch`",
        ),
        (
            "token_counter",
            json!("x"),
            "`--set token_counter`: unknown token counter",
        ),
    ];
    for (name, value, expected) in cases {
        let settings: Map<String, Value> = Map::from_iter([(name.to_owned(), value)]);
        let problems = reading_with(WHOLE, &settings, None).problems;
        assert_reported(&problems, Severity::Error, (0, 0), expected);
        assert!(!problems[0].render("a.yaml", WHOLE).contains("-->"));
    }
}

#[test]
fn files_without_a_pipeline() {
    for (text, expected) in [
        ("«", "no pipeline in this file … `pipeline:`"),
        ("«# only a comment\n", "no pipeline in this file"),
        ("«just words\n", "no pipeline"),
        ("- «a\n- b\n", "no pipeline"),
        (
            "«pipline:\n  steps: []\n",
            "unknown key `pipline` … did you mean",
        ),
        ("«steps: []\n", "unknown key `steps` … under `pipeline:`"),
        ("«pipeline:\n", "`pipeline` is empty"),
        (
            "pipeline: {«steps: [], settings: {entry_step_id: a}}\n",
            "`steps` is empty",
        ),
        (
            "pipeline: {steps: «5, settings: {entry_step_id: a}}\n",
            "`steps` must be a list, not 5",
        ),
        (
            "pipeline: {«settings: [], steps: [{id: a, action: finalize}]}\n",
            "`settings` must be a map, not a list",
        ),
        (
            "«pipeline: {steps: [{id: a, action: finalize}]}\n",
            "`pipeline` needs `settings`",
        ),
        (
            "pipeline:\n  settings: {entry_step_id: a}\n  «steps:\n    a: {action: finalize}\n",
            "`steps` must be a list, not a map … `- `",
        ),
        (
            "pipeline:\n  settings: {entry_step_id: a}\n  steps:\n    - {id: a, action: finalize}\n    - «words\n",
            "a step is a map",
        ),
        (
            "pipeline:\n  settings: {entry_step_id: a}\n  steps:\n    - «id: a\n",
            "has no `action` … one of `search_nodes`",
        ),
        (
            "pipeline:\n  settings: {entry_step_id: a}\n  steps:\n    - id: a\n      «acton: finalize\n",
            "no `acton` … `action`?",
        ),
    ] {
        check_in(text, Severity::Error, expected);
    }
}

#[test]
fn invalid_yaml() {
    for (text, expected) in [
        ("pipeline:\n«\tname: x\n", "tab in the indentation"),
        (
            "pipeline:\n  settings:\n  «\t  model: x\n",
            "tab in the indentation",
        ),
        (
            "pipeline:\n  name: \"x\n  «steps: []\n",
            "a quote above is not closed",
        ),
        ("pipeline:\n  name: a«: b\n", "unexpected `:` … quote"),
        ("pipeline:\n  steps: «[a, b\n", "`[` is never closed"),
        (
            "pipeline:\n  name: «@x\n",
            "a text that begins with `@` needs quotes",
        ),
        ("pipeline:\n  name: x\n «steps: []\n", "wrong indentation"),
        (
            "pipeline: {name: x}\n«---\npipeline: {}\n",
            "a second document begins here",
        ),
        ("pipeline: {name: «*x}\n", "unknown anchor `&x`"),
        (
            "pipeline: &x {name: «*x}\n",
            "refers to a value that contains it",
        ),
    ] {
        let (text, line, column) = marked(text);
        let problems = reading(&text).problems;
        assert_reported(&problems, Severity::Error, (line, column), expected);
    }
}

#[test]
fn unsupported_yaml() {
    check_all(
        Severity::Error,
        &[
            ("top_k: 12", "top_k: «!!int 12", "tags such as `!!int`"),
            ("limit: 4", "limit: 4\n      «<<: {limit: 5}", "merge keys"),
            (
                "limit: 4",
                "limit: 4\n      ? «[a]\n      : 5",
                "a key is a text",
            ),
            ("top_k: 12", "top_k: «*nowhere", "unknown anchor `&nowhere`"),
        ],
    );
}

#[test]
fn rejects_files_that_are_too_large() {
    let mut bomb = "a: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("b{level}: &a{level} [{items}]\n"));
    }
    let problems = reading(&bomb).problems;
    assert!(
        problems[0]
            .message
            .contains("holds more than 100000 values"),
        "{problems:#?}"
    );
    assert!(
        bomb.lines().nth(problems[0].line - 1).expect("it is there")[problems[0].column - 1..]
            .starts_with('*')
    );
    let long = format!(
        "a: &a \"{}\"\nb: [{}*a]\n",
        "x".repeat(500_000),
        "*a, ".repeat(100)
    );
    let problems = reading(&long).problems;
    assert!(
        problems[0].message.contains("longer than 8 MB"),
        "{problems:#?}"
    );
    let deep = "[".repeat(100) + &"]".repeat(100);
    assert!(
        reading(&deep).problems[0]
            .message
            .contains("deeper than 64 levels")
    );
    let deep: String = (0..100)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    assert!(
        reading(&deep).problems[0]
            .message
            .contains("deeper than 64 levels")
    );
    let wide: String = (0..1001).map(|n| format!("k{n}: 1\n")).collect();
    assert!(
        reading(&wide).problems[0]
            .message
            .contains("more than 1000 keys")
    );
    let large = "#".repeat((1 << 20) + 1);
    assert!(
        reading(&large).problems[0]
            .message
            .contains("larger than 1 MB")
    );
    let many: String = (0..1001)
        .map(|n| format!("    - {{id: s{n}, action: finalize}}\n"))
        .collect();
    let many = format!("pipeline:\n  settings: {{entry_step_id: s0}}\n  steps:\n{many}");
    assert!(
        reading(&many)
            .problems
            .iter()
            .any(|problem| problem.message.contains("more than 1000 items"))
    );
}

#[test]
fn warnings_about_unlikely_pipelines() {
    check_all(
        Severity::Warning,
        &[
            (
                "    - id: finish\n",
                "    - id: «lost\n      action: finalize\n    - id: finish\n",
                "step `lost` is never reached",
            ),
            (
                "      on_deny: answer\n",
                "      on_deny: answer\n      next: «answer\n",
                "`next` is never used: `loop_guard`",
            ),
            (
                "      on_over: guard\n",
                "      on_over: guard\n      next: «answer\n",
                "`next` is never used: `manage_context_budget`",
            ),
            (
                "      on_repeat: finish\n",
                "      on_repeat: finish\n      end: «true\n",
                "`end` is ignored",
            ),
            (
                "      on_other: finish\n",
                "      on_other: finish\n      next: «finish\n",
                "`next` is never used: `route`",
            ),
            (
                "budget_tokens: 2000",
                "budget_tokens: «3001",
                "3,001 tokens are fetched, but the context holds 3,000",
            ),
        ],
    );
    let loops = WHOLE
        .replace("on_over: guard", "on_over: shorten")
        .replace("- id: budget", "- id: «budget");
    let (text, line, column) = marked(&loops);
    let problems = reading(&text).problems;
    let expected = "nothing ends the loop budget → shorten → set_context → budget … `loop_guard`";
    assert_reported(&problems, Severity::Warning, (line, column), expected);
    let shadowed = WHOLE.replace("        match: triggered\n", "").replace(
        "          - language: sql\n            policy: threshold",
        "          - language: «sql\n            policy: threshold",
    );
    check_in(&shadowed, Severity::Warning, "this rule is never reached");
    let unsent = WHOLE.replace("inbox_key: compact_sql\n", "inbox_key: «compact_all\n");
    check_in(
        &unsent,
        Severity::Warning,
        "no step sends `compact_all` to `budget` … `target_step_id: budget`",
    );
    let unread = WHOLE.replace("target_step_id: budget", "target_step_id: «history");
    let (text, line, column) = marked(&unread);
    let problems = reading(&text).problems;
    assert_reported(
        &problems,
        Severity::Warning,
        (line, column),
        "`history` never runs after this step",
    );
}

#[test]
fn warns_about_a_budget_without_texts_or_calls() {
    let file = |before: &str, after: &str| {
        format!(
            "pipeline:\n  settings: {{entry_step_id: a, max_context_tokens: 9, model: m}}\n  steps:\n    - {{id: a, action: {before}, next: b}}\n    - {{id: b, action: «manage_context_budget, on_ok: c, on_over: c}}\n    - {{id: c, action: {after}}}\n"
        )
    };
    check_in(
        &file("load_history", "call_model, prompt: p"),
        Severity::Warning,
        "no `fetch_node_texts` runs before `b`",
    );
    check_in(
        &file("fetch_node_texts", "finalize"),
        Severity::Warning,
        "no `call_model` runs after `b`",
    );
}

#[test]
fn shows_the_sum_that_exceeds_the_window() {
    let text = WHOLE
        .replace("limit: 4", "limit: 10")
        .replace("max_context_tokens: 3000", "max_context_tokens: 5000")
        .replace("max_output_tokens: 1000", "max_output_tokens: 2000")
        .replace(
            "action: call_model\n      prompt_key",
            "action: «call_model\n      prompt_key",
        );
    // The prompt is `Summarise.` and the template without its `{}`: 10 and 16 characters.
    let expected = "6 (prompt) + 2,500 (history) + 5,000 (context) + 2,000 (answer) + 50 (margin) = 9,556 tokens, but the window of `gpt-4` has 8,192";
    check_in(&text, Severity::Error, expected);
    let (text, ..) = marked(&text);
    let own_room = text.replace("model: gpt-4", "model: own-room");
    let checked = reading(&own_room);
    assert!(
        checked.pipeline.is_some(),
        "the answer is not part of the window: {:#?}",
        checked.problems
    );
    let unknown = text.replace("model: gpt-4", "model: unknown-model");
    assert!(reading(&unknown).pipeline.is_some());
}

#[test]
fn checks_the_rest_of_a_step_with_invalid_values() {
    let text = "pipeline:\n  settings: {entry_step_id: a, model: gpt-4o}\n  steps:\n    - id: a\n      action: call_model\n      prompt: Go.\n      max_output_tokens: many\n      user_parts:\n        one: {source: contxt_blocks, template: \"no place\"}\n      next: b\n    - id: b\n      action: set_variables\n      rules:\n        - {set: answr, value: 1}\n        - {set: answer, vlaue: 1}\n      nxt: a\n";
    let places: Vec<(usize, usize)> = reading(text)
        .problems
        .iter()
        .map(|problem| (problem.line, problem.column))
        .collect();
    assert_eq!(
        places,
        [(7, 26), (9, 23), (9, 48), (14, 17), (15, 25), (16, 7)]
    );
}
