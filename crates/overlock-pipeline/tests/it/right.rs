//! Valid files.

use overlock_pipeline::{Severity, schema};
use serde_json::{Map, Value, json};

use crate::given::{WHOLE, reading, reading_with};

#[track_caller]
fn check_right(text: &str) {
    let checked = reading(text);
    assert!(checked.problems.is_empty(), "{:#?}", checked.problems);
    assert!(checked.pipeline.is_some());
}

/// The example of the first description of the format, unchanged.
const LOOP: &str = r####"pipeline:
  settings: { entry_step_id: fetch, max_context_tokens: 5000, max_turn_loops: 4, model: own-room }
  steps:
    - id: fetch
      action: fetch_node_texts
      next: manage_budget
    - id: manage_budget
      action: manage_context_budget
      compact_code:
        rules:
          - language: sql
            policy: demand
            inbox_key: compact_sql
          - language: sql
            policy: threshold
            threshold: 0.4
          - language: dotnet
            policy: always
      on_ok: call_model_answer
      on_over: budget_loop_guard

    - id: budget_loop_guard
      action: loop_guard
      max_turn_loops_from_settings: "max_turn_loops"
      on_allow: call_summarize_context
      on_deny: call_model_answer

    - id: call_summarize_context
      action: call_model
      prompt_key: "sumarizer"
      max_output_tokens: 2000
      user_parts:
        context:
          source: context_blocks
          template: "### Context:\n{}\n\n"
        user_question:
          source: user_question_en
          template: "### User:\n{}\n\n"
      next: set_context_from_summary

    - id: set_context_from_summary
      action: set_variables
      rules:
        - set: context_blocks
          from: last_model_response
          transform: to_context_blocks
        - set: last_model_response
          value: null
      next: manage_budget

    - id: call_model_answer
      action: call_model
      prompt: Answer.
      end: true
"####;

#[test]
fn accepts_a_file_with_every_action() {
    check_right(WHOLE);
}

#[test]
fn the_file_has_every_action() {
    let pipeline = reading(WHOLE).pipeline.expect("it is right");
    for name in overlock_pipeline::Action::NAMES {
        let mut steps = pipeline.steps.iter();
        assert!(steps.any(|step| step.action.name() == *name), "{name}");
    }
}

#[test]
fn the_first_example_loads_with_warnings() {
    let checked = reading(LOOP);
    assert!(checked.pipeline.is_some(), "{:#?}", checked.problems);
    let found: Vec<(Severity, usize, usize)> = checked
        .problems
        .iter()
        .map(|problem| (problem.severity, problem.line, problem.column))
        .collect();
    // No step sends `compact_sql`, and the second rule for `sql` is never reached.
    assert_eq!(
        found,
        [(Severity::Warning, 13, 24), (Severity::Warning, 14, 23)]
    );
    assert_eq!(checked.prompts["sumarizer"], "Summarise.");
}

#[test]
fn a_pipeline_without_a_name_gets_that_of_its_file() {
    assert_eq!(reading(LOOP).pipeline.expect("it loads").name, "some");
}

#[test]
fn keys_and_texts_stay_unchanged() {
    let text = WHOLE.replace(
        "        more: repeat\n        yes: finish\n",
        "        more: repeat\n        yes: finish\n        1: finish\n        on: finish\n        0x1F: finish\n        null: finish\n        true: finish\n",
    );
    check_right(&text);
    let pipeline = reading(&text).pipeline.expect("it is right");
    let step = pipeline.step("choose").expect("it is there");
    let overlock_pipeline::Action::Route(route) = &step.action else {
        panic!("it routes");
    };
    let keys: Vec<&str> = route.routes.keys().map(String::as_str).collect();
    assert_eq!(keys, ["more", "yes", "1", "on", "0x1F", "null", "true"]);
}

#[test]
fn accepts_all_notations_of_numbers() {
    for number in ["0xC", "0o14", "+12", "12.0", "1.2e1", "12."] {
        let text = WHOLE.replace("top_k: 12", &format!("top_k: {number}"));
        let pipeline = reading(&text).pipeline.expect(number);
        let step = pipeline.step("search").expect("it is there");
        let overlock_pipeline::Action::SearchNodes(search) = &step.action else {
            panic!("it searches");
        };
        assert_eq!(search.top_k, 12, "{number}");
    }
}

#[test]
fn an_alias_repeats_the_value_of_its_anchor() {
    let text = WHOLE
        .replace(
            "{ source: user_question_en",
            "&part { source: user_question_en",
        )
        .replace(
            "      next: choose\n",
            "        again: *part\n      next: choose\n",
        );
    check_right(&text);
}

#[test]
fn options_override_settings_of_the_file() {
    let text = WHOLE.replace("max_context_tokens: 3000", "max_context_tokens: none");
    let mut settings = Map::new();
    settings.insert("max_context_tokens".to_owned(), json!(2500));
    let pipeline = reading_with(&text, &settings, None).pipeline;
    let pipeline = pipeline.expect("the setting is overridden");
    assert_eq!(pipeline.settings.max_context_tokens, Some(2500));
}

#[test]
fn a_model_option_is_enough() {
    let text = WHOLE.replace("    model: gpt-4\n", "");
    assert!(reading(&text).pipeline.is_none());
    let checked = reading_with(&text, &Map::new(), Some("gpt-4"));
    assert!(checked.pipeline.is_some(), "{:#?}", checked.problems);
}

#[test]
fn the_schema_agrees_with_the_reader() {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let file = json!({
        "pipeline": {
            "name": "p",
            "settings": { "entry_step_id": "a", "max_context_tokens": 1000, "depth": 3, "kinds": ["calls"], "model": "gpt-4" },
            "steps": [
                { "id": "a", "action": "search_nodes", "top_k": 3, "next": "b" },
                { "id": "b", "action": "expand_dependency_tree", "max_depth_from_settings": "depth", "edge_types_from_settings": "kinds", "next": "c" },
                { "id": "c", "action": "call_model", "prompt": "p", "end": true },
            ],
        }
    });
    // JSON is YAML, so both can check the same file.
    let text = file.to_string();
    assert!(validator.is_valid(&file));
    check_right(&text);
    let change = |pointer: &str, value: Value| {
        let mut file = file.clone();
        *file.pointer_mut(pointer).expect("it is there") = value;
        file
    };
    let wrong = [
        change("/pipeline/steps/0/top_k", json!(0)),
        change("/pipeline/steps/0/top_k", json!("3")),
        change("/pipeline/steps/0/top_k", json!(null)),
        change("/pipeline/steps/0/action", json!("serch_nodes")),
        change(
            "/pipeline/steps/0",
            json!({ "id": "a", "action": "search_nodes", "topk": 3 }),
        ),
        change("/pipeline/steps/0", json!({ "action": "search_nodes" })),
        change("/pipeline/steps", json!([])),
        change("/pipeline/settings/depth", json!("deep")),
        change("/pipeline/settings/max_context_tokens", json!(0)),
        change("/pipeline/settings", json!({})),
        change("/pipeline", json!({})),
    ];
    for file in wrong {
        assert!(!validator.is_valid(&file), "the schema accepts {file}");
        assert!(
            reading(&file.to_string()).pipeline.is_none(),
            "the reader accepts {file}"
        );
    }
}
