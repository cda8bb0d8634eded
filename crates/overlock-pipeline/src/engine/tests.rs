//! Complete and interrupted runs.

use serde_json::{Value, json};

use crate::file::Pipeline;
use crate::testing::{TestBed, pipeline, with};
use overlock_runs::PipelineOutcome;
use overlock_runs::{Mail, State};

fn set(id: &str, name: &str, more: Value) -> Value {
    let rules = json!([{ "set": format!("variables.{name}"), "value": 1 }]);
    let step = json!({ "id": id, "action": "set_variables", "rules": rules });
    with(step, more)
}

fn mail(target: &str, topic: &str) -> Mail {
    Mail {
        target_step_id: target.to_owned(),
        topic: topic.to_owned(),
        payload: json!(null),
    }
}

fn ids(pipeline: &Pipeline, state: State) -> (Vec<String>, PipelineOutcome) {
    let ended = TestBed::new(&[]).run(pipeline, state);
    let ids = ended
        .trace
        .iter()
        .map(|event| event["step_id"].as_str().unwrap_or_default().to_owned());
    (ids.collect(), ended.outcome)
}

#[test]
fn a_run_follows_next_to_its_end() {
    let steps = vec![
        set("a", "a", json!({ "next": "c" })),
        set("b", "b", json!({})),
        set("c", "c", json!({})),
    ];
    let (ids, outcome) = ids(&pipeline(json!({}), steps), State::default());
    assert_eq!(ids, ["a", "c"]);
    assert_eq!(outcome, PipelineOutcome::Complete);
}

#[test]
fn end_ends_a_run() {
    let steps = vec![
        set("a", "a", json!({ "end": true })),
        set("b", "b", json!({})),
    ];
    let (ids, outcome) = ids(&pipeline(json!({}), steps), State::default());
    assert_eq!(ids, ["a"]);
    assert_eq!(outcome, PipelineOutcome::Complete);
}

#[test]
fn a_loop_without_a_guard_ends_at_the_step_limit() {
    let steps = vec![set("a", "a", json!({ "next": "a" }))];
    let (ids, outcome) = ids(
        &pipeline(json!({ "max_steps": 7 }), steps),
        State::default(),
    );
    assert_eq!(ids.len(), 7);
    let PipelineOutcome::Failed { step_id, error, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(step_id, "a");
    assert_eq!(error, "the run reached its limit of 7 steps");
}

#[test]
fn a_step_gets_only_its_own_mail_once() {
    let steps = vec![
        set("a", "a", json!({ "next": "b" })),
        set("b", "b", json!({})),
    ];
    let state = State {
        inbox: vec![
            mail("a", "one"),
            mail("b", "two"),
            mail("a", "three"),
            mail("z", "four"),
        ],
        ..State::default()
    };
    let ended = TestBed::new(&[]).run(&pipeline(json!({}), steps), state);
    let consumed = |step: usize| ended.trace[step]["inbox"]["consumed"].clone();
    let expected = |target: &str, topic: &str| json!({ "target_step_id": target, "topic": topic });
    assert_eq!(
        consumed(0),
        json!([expected("a", "one"), expected("a", "three")])
    );
    assert_eq!(consumed(1), json!([expected("b", "two")]));
    assert_eq!(ended.state.inbox, [mail("z", "four")]);
    assert_eq!(ended.state.inbox_last_consumed, [mail("b", "two")]);
    assert_eq!(ended.outcome, PipelineOutcome::Complete);
}

#[test]
fn undelivered_mail_is_an_error_if_the_inbox_is_strict() {
    let state = State {
        inbox: vec![mail("z", "four")],
        ..State::default()
    };
    let steps = vec![set("a", "a", json!({}))];
    let (_, outcome) = ids(&pipeline(json!({ "inbox": "strict" }), steps), state);
    let PipelineOutcome::Failed { error, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error, "mail was not delivered: `four` for `z`");
}

#[test]
fn a_failed_step_ends_the_run_with_the_state_before_it() {
    let steps = vec![
        set("a", "a", json!({ "next": "b" })),
        json!({ "id": "b", "action": "search_nodes" }),
    ];
    let state = State {
        inbox: vec![mail("b", "one")],
        ..State::default()
    };
    let ended = TestBed::new(&[]).run(&pipeline(json!({}), steps), state);
    let PipelineOutcome::Failed { step_id, hint, .. } = &ended.outcome else {
        panic!("{:?}", ended.outcome);
    };
    assert_eq!(step_id, "b");
    assert!(hint.is_some());
    assert_eq!(ended.state.variables["a"], 1);
    assert_eq!(
        ended.state.inbox,
        [mail("b", "one")],
        "its mail is restored"
    );
    assert!(ended.trace[1]["error"].is_string());
}
