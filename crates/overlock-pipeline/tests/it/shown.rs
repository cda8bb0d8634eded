//! The format of problems and graphs.

use overlock_pipeline::{drawing, graph};
use serde_json::json;

use crate::given::{WHOLE, reading};

#[test]
fn a_problem_shows_its_line_and_help() {
    let text = WHOLE.replace("top_k: 12", "topk: 12");
    let problem = &reading(&text).problems[0];
    assert_eq!(
        problem.render("rag.yaml", &text),
        "\
error: `search_nodes` has no `topk`
  --> rag.yaml:23:7
   |
23 |       topk: 12
   |       ^^^^
   |
   = help: did you mean `top_k`?"
    );
    let coloured = problem.render_coloured("rag.yaml", &text);
    assert!(coloured.contains("\u{1b}["), "{coloured:?}");
}

#[test]
fn a_problem_serializes_to_json() {
    let text = WHOLE.replace("top_k: 12", "topk: 12");
    let problem = &reading(&text).problems[0];
    assert_eq!(
        serde_json::to_value(problem).expect("it is plain data"),
        json!({
            "severity": "error",
            "line": 23,
            "column": 7,
            "message": "`search_nodes` has no `topk`",
            "help": "did you mean `top_k`?",
        })
    );
}

#[test]
fn long_lines_and_control_characters_do_not_break_a_message() {
    let long = "x".repeat(5000);
    let text = format!(
        "pipeline: {{name: a, steps: [{{id: \"{long}\", action: \"\\e[31m\u{202e}x\"}}], settings: {{entry_step_id: \"y{long}\"}}}}"
    );
    let problems = reading(&text).problems;
    assert_eq!(problems.len(), 2, "{problems:#?}");
    for problem in problems {
        let rendered = problem.render("a\u{1b}[1m.yaml", &text);
        assert!(!rendered.contains(['\u{1b}', '\u{202e}']), "{rendered:?}");
        assert!(
            rendered.lines().all(|line| line.chars().count() < 1100),
            "{rendered}"
        );
    }
}

const SMALL: &str = r#"pipeline:
  settings: { entry_step_id: search, max_context_tokens: 900, model: gpt-4 }
  steps:
    - { id: search, action: search_nodes, next: fetch }
    - { id: fetch, action: fetch_node_texts, next: ask }
    - { id: ask, action: send, target_step_id: budget, topic: 'a"]; b', next: budget }
    - { id: budget, action: manage_context_budget, on_ok: "end", on_over: guard }
    - { id: guard, action: loop_guard, max_turn_loops: 2, on_allow: search, on_deny: "end" }
    - { id: "end", action: call_model, prompt: Answer. }
    - { id: '"] --> <b onclick=x>', action: finalize }
"#;

#[test]
fn a_graph_shows_transitions_and_escapes_names() {
    let pipeline = reading(SMALL).pipeline.expect("it is right");
    assert_eq!(
        graph(&pipeline),
        r##"flowchart TD
    start(["start"])
    s0["search<br/><small>search_nodes</small>"]
    s1["fetch<br/><small>fetch_node_texts</small>"]
    s2["ask<br/><small>send</small>"]
    s3{{"budget<br/><small>manage_context_budget</small>"}}
    s4{{"guard<br/><small>loop_guard</small>"}}
    s5["end<br/><small>call_model</small>"]
    s6["#34;#93; --#62; #60;b onclick#61;x#62;<br/><small>finalize</small>"]
    finish(["end"])
    start --> s0
    s0 --> s1
    s1 --> s2
    s2 --> s3
    s2 -.->|"a#34;#93;#59; b"| s3
    s3 -->|"on_ok"| s5
    s3 -->|"on_over"| s4
    s4 -->|"on_allow"| s0
    s4 -->|"on_deny"| s5
    s5 --> finish
    s6 --> finish
"##
    );
}

#[test]
fn a_drawing_follows_the_order_of_a_run() {
    let pipeline = reading(SMALL).pipeline.expect("it is right");
    assert_eq!(
        drawing(&pipeline),
        r#"search (search_nodes) → fetch
fetch (fetch_node_texts) → ask
ask (send) → budget
  mail `a"]; b` for budget
budget (manage_context_budget)
  on_ok → end
  on_over → guard
end (call_model) → end
guard (loop_guard)
  on_allow → search ↺
  on_deny → end ↺

never reached:
"] --> <b onclick=x> (finalize) → end
"#
    );
}
