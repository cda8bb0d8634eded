//! A whole file, and the world it is checked in.

use overlock_pipeline::{Checked, Measure, Measures, ReadOptions, read};
use serde_json::{Map, Value};

/// A pipeline with a step of every action, without a mistake.
pub(crate) const WHOLE: &str = r####"pipeline:
  name: answer_from_code
  settings:
    entry_step_id: history
    max_context_tokens: 3000
    max_turn_loops: 4
    walk_depth: 2
    walk_edges: [calls, inherits]
    model: gpt-4
  steps:
    - id: history
      action: load_history
      limit: 4
      next: memories
    - id: memories
      action: load_memories
      persona: helper
      min_importance: 0.7
      next: search
    - id: search
      action: search_nodes
      search_type: hybrid
      top_k: 12
      filters: { language: sql, path: "src/**" }
      next: expand
    - id: expand
      action: expand_dependency_tree
      max_depth_from_settings: walk_depth
      edge_types_from_settings: walk_edges
      max_nodes: 30
      next: fetch
    - id: fetch
      action: fetch_node_texts
      budget_tokens: 2000
      prioritization: balanced
      next: ask
    - id: ask
      action: send
      target_step_id: budget
      topic: compact_sql
      payload: { why: [tests] }
      next: budget
    - id: budget
      action: manage_context_budget
      compact_code:
        match: triggered
        rules:
          - language: sql
            policy: demand
            inbox_key: compact_sql
          - language: sql
            policy: threshold
            threshold: 0.4
          - language: dotnet
            policy: always
      divide_new_content: "<<<New content"
      on_ok: answer
      on_over: guard
    - id: guard
      action: loop_guard
      max_turn_loops_from_settings: max_turn_loops
      on_allow: shorten
      on_deny: answer
    - id: shorten
      action: call_model
      prompt_key: summarizer
      max_output_tokens: 1000
      user_parts:
        context:
          source: context_blocks
          template: "### Context:\n{}\n\n"
      next: set_context
    - id: set_context
      action: set_variables
      rules:
        - set: context_blocks
          from: last_model_response
          transform: to_context_blocks
        - set: last_model_response
          value: null
      next: budget
    - id: answer
      action: call_model
      prompt: Answer as JSON.
      response: json
      temperature: 0.2
      user_parts:
        question: { source: user_question_en, template: "### User:\n{}\n" }
      next: choose
    - id: choose
      action: route
      on: decision
      routes:
        more: repeat
        yes: finish
      on_other: finish
    - id: repeat
      action: repeat_query_guard
      on_ok: again
      on_repeat: finish
    - id: again
      action: loop_guard
      max_turn_loops: 2
      on_allow: search
      on_deny: finish
    - id: finish
      action: finalize
      store_turn: false
      end: true
"####;

/// A quarter of a token for each character, and the windows of two models.
pub(crate) struct Quarters;

impl Measures for Quarters {
    fn measure(&self, model: &str, text: &str) -> Option<Measure> {
        let (window, is_shared) = match model {
            "gpt-4" => (8192, true),
            "own-room" => (8192, false),
            _ => return None,
        };
        Some(Measure {
            window,
            is_shared,
            tokens: text.chars().count() as u64 / 4,
            margin: 50,
        })
    }

    fn is_counter(&self, name: &str) -> bool {
        matches!(name, "o200k_base" | "approx:chars/4")
    }
}

/// The prompts there are.
fn prompt(folder: &str, key: &str) -> Result<String, String> {
    match (folder, key) {
        ("prompts", "summarizer" | "sumarizer") => Ok("Summarise.".to_owned()),
        _ => Err("there is no such file".to_owned()),
    }
}

/// Reads a file.
pub(crate) fn reading(text: &str) -> Checked {
    reading_with(text, &Map::new(), None)
}

/// Reads a file with settings and a model from outside.
pub(crate) fn reading_with(
    text: &str,
    settings: &Map<String, Value>,
    model: Option<&str>,
) -> Checked {
    let options = ReadOptions {
        settings,
        model,
        prompt: &prompt,
        measures: &Quarters,
    };
    read("files/some.yaml", text, &options)
}
