use std::fs;
use std::path::Path;

use crate::wire::WireRequest;
use crate::wire::chat::ChatRequest;
use overlock_budget::{ChatCounter, Found, Models, PlanOptions};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::continuation::{ContinuationOptions, ModelOutput};
use crate::progress::Kpi;
use crate::strategy::Strategy;
use crate::text::{TextContinuation, TextOptions};

/// A document that is cut once at every kind of place.
const DOCUMENT: &str = r#"{"title": "Rivers", "sections": [{"id": "one", "content_type": "table", "rows": [["Nile", 6650, true], ["Amazon", 6400, null]]}, {"id": "two", "content_type": "code", "code": "fn main() {}\n"}]}"#;

const CUTS: [(&str, &str); 10] = [
    ("container-start", r#""sections": ["#),
    ("key", r#"{"id": "two", "content_ty"#),
    ("after-key", r#"{"id": "two", "content_type""#),
    ("after-colon", r#"{"id": "two", "content_type":"#),
    ("string", r#""code": "fn mai"#),
    ("escape", r#""code": "fn main() {}\"#),
    ("number", r#"["Amazon", 64"#),
    ("literal", "6650, tr"),
    ("after-value", r#"["Nile", 6650, true]"#),
    ("after-comma", r#"["Nile", 6650, true],"#),
];

fn found() -> Found {
    Models::default().find("gpt-4o")
}

fn run_after(text: &str, strategy: Strategy, kpi: Kpi) -> Continuation {
    let mut run = Continuation::new(ContinuationOptions {
        strategies: vec![strategy],
        kpi,
        ..ContinuationOptions::default()
    });
    let ask = run.next().expect("nothing was asked");
    run.answered(&ask, &ModelOutput::new(text.as_bytes(), 1))
        .expect("it was asked");
    run
}

fn request() -> ChatRequest {
    ChatRequest::from_value(json!({
        "model": "gpt-4o",
        "max_tokens": 1000,
        "response_format": { "type": "json_object" },
        "messages": [
            { "role": "system", "content": "You write reports." },
            { "role": "user", "content": "Write the report on rivers." },
        ],
    }))
    .expect("a request")
}

/// The last message and the prefill, for review.
fn shown(run: &Continuation) -> String {
    let found = found();
    let ask = run.next().expect("it is cut");
    let counter = ChatCounter::for_model(&found);
    let options = PlanOptions::for_model(&found.model);
    let fitted = next_call(run, &ask, &request(), &counter, &options).expect("it fits");
    let messages = fitted.call.request["messages"]
        .as_array()
        .expect("messages");
    assert_eq!(messages.len(), 2, "the roles still alternate");
    let last = messages[1]["content"].as_str().expect("a text");
    match &fitted.call.prefill {
        Some(prefill) => format!("{last}\n--- the assistant begins ---\n{prefill}\n"),
        None => format!("{last}\n"),
    }
}

/// Compares with the reviewed text in `snapshots/`; with `UPDATE_SNAPSHOTS` set, writes it.
#[track_caller]
fn check_snapshot(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/prompt/snapshots")
        .join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("it can be written");
    }
    let reviewed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text, reviewed,
        "{name}: run with UPDATE_SNAPSHOTS=1 and review the difference"
    );
}

#[test]
fn matches_the_snapshots_for_every_strategy_and_place() {
    for strategy in [Strategy::Prefill, Strategy::Overlap, Strategy::Remainder] {
        for (place, end) in CUTS {
            let at = DOCUMENT.find(end).expect(place) + end.len();
            let run = run_after(&DOCUMENT[..at], strategy, Kpi::Ask);
            let cut = run
                .base()
                .and_then(PartialDocument::cut)
                .expect("it is cut");
            assert_eq!(cut.place.name(), place);
            check_snapshot(&format!("{}-{place}", strategy.name()), &shown(&run));
        }
    }
}

#[test]
fn matches_the_snapshot_of_the_kpi_question() {
    let run = run_after(
        &DOCUMENT[..150],
        Strategy::Overlap,
        Kpi::Measured(Vec::new()),
    );
    let text = shown(&run);
    check_snapshot("kpis", &text);
    assert!(text.trim_end().ends_with(KPI_FORM));
}

#[test]
fn does_not_mention_progress_if_it_is_not_measured() {
    let run = run_after(&DOCUMENT[..120], Strategy::Overlap, Kpi::Off);
    let text = shown(&run);
    assert!(!text.to_lowercase().contains("progress"), "{text}");
}

#[test]
fn the_overlap_comes_last_in_its_block() {
    let run = run_after(&DOCUMENT[..120], Strategy::Overlap, Kpi::Ask);
    let ask = run.next().expect("it is cut");
    let text = shown(&run);
    let (open, close) = (ask.marker.open("overlap"), ask.marker.close("overlap"));
    assert!(text.ends_with(&format!("\n{open}\n{}\n{close}\n", ask.overlap)));
    assert_eq!(OVERLAP.find(&text), Some(ask.overlap.as_str()));
}

#[test]
fn the_instructions_follow_the_unchanged_last_message() {
    let run = run_after(&DOCUMENT[..120], Strategy::Overlap, Kpi::Ask);
    assert!(
        shown(&run).starts_with("Write the report on rivers.\n\nYour answer to this was cut off")
    );
}

#[test]
fn appends_a_part_to_parts_and_a_message_after_another_role() {
    let messages_with_words = |messages: serde_json::Value| {
        let request = ChatRequest::from_value(json!({ "messages": messages })).expect("a request");
        request
            .with_words("WORDS", false)
            .expect("a request")
            .to_value()["messages"]
            .clone()
    };
    let parts = messages_with_words(
        json!([{ "role": "user", "content": [{ "type": "text", "text": "Hi" }] }]),
    );
    assert_eq!(parts[0]["content"][1]["text"], "WORDS");
    let assistant = messages_with_words(
        json!([{ "role": "user", "content": "Hi" }, { "role": "assistant", "content": "Yes?" }]),
    );
    assert_eq!(assistant[2], json!({ "role": "user", "content": "WORDS" }));
}

/// After a tool result, the instructions are a separate user message. The tool call before them
/// must not be dropped as history.
#[test]
fn the_callers_open_turn_is_never_dropped() {
    let call = json!({ "id": "x", "type": "function",
        "function": { "name": "read", "arguments": "{}" } });
    let request = ChatRequest::from_value(json!({ "max_tokens": 100, "messages": [
        { "role": "user", "content": "An older question." },
        { "role": "assistant", "content": "An older answer." },
        { "role": "user", "content": "The question." },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "x", "content": "word ".repeat(1000) },
    ]}));
    let request = request.expect("a request");
    let run = run_after(&DOCUMENT[..150], Strategy::Overlap, Kpi::Off);
    let ask = run.next().expect("it is cut");
    let found = found();
    let counter = ChatCounter::for_model(&found);
    let options = |window: u64| PlanOptions {
        window,
        ..PlanOptions::for_model(&found.model)
    };
    let mut is_refused = false;
    for window in (400..3000).step_by(20) {
        match next_call(&run, &ask, &request, &counter, &options(window)) {
            Ok(fitted) => {
                let dropped = fitted.plan.dropped_messages;
                assert!(dropped.iter().all(|place| *place < 2), "{dropped:?}");
            }
            Err(error) => {
                assert!(matches!(error, PromptError::Window(_)), "{error}");
                is_refused = true;
            }
        }
    }
    assert!(is_refused);

    let cut = "The result says ".repeat(20);
    let text_options = TextOptions {
        max_iterations: 4,
        max_output_tokens: 1000,
        can_prefill: false,
    };
    let text = TextContinuation::new(cut, 80, text_options);
    let refused = text_call(&text, &request, &counter, &options(400));
    assert!(matches!(refused, Err(PromptError::Window(_))));
}

#[test]
fn shows_the_outline_if_it_displaces_nothing_more() {
    let run = run_after(&DOCUMENT[..150], Strategy::Overlap, Kpi::Off);
    let ask = run.next().expect("it is cut");
    let found = found();
    let counter = ChatCounter::for_model(&found);
    let shows_outline = |history: usize, options: &PlanOptions| {
        let request = ChatRequest::from_value(json!({ "max_tokens": 1000, "messages": [
            { "role": "user", "content": "word ".repeat(history) },
            { "role": "assistant", "content": "Yes." },
            { "role": "user", "content": "The question." },
        ]}));
        let request = request.expect("a request");
        let fitted = next_call(&run, &ask, &request, &counter, options).expect("it fits");
        fitted.call.request["messages"]
            .to_string()
            .contains("[[document-")
    };
    let usual = PlanOptions {
        window: 4000,
        ..PlanOptions::for_model(&found.model)
    };
    assert!(shows_outline(10, &usual));
    assert!(
        shows_outline(10_000, &usual),
        "a message is too long anyway"
    );
    let capped = PlanOptions {
        answer_cap: Some(500),
        ..usual.clone()
    };
    assert!(
        shows_outline(10, &capped),
        "no answer is as long as is wished"
    );
    let narrow = PlanOptions {
        window: 540,
        answer_floor: 200,
        ..usual
    };
    assert!(!shows_outline(10, &narrow), "the answer comes first");
}

#[test]
fn its_size_does_not_grow_with_the_document() {
    let row = r#"{"id": 12345, "name": "a name of some length", "values": [1, 2, 3]}, "#;
    let size = |rows: usize| {
        let text = format!("{{\"rows\": [{}", row.repeat(rows));
        shown(&run_after(&text, Strategy::Overlap, Kpi::Ask)).len()
    };
    let (small, large) = (size(500), size(20_000));
    assert!(large <= small + 100, "{small} became {large}");
    // The same holds for one very long string.
    let string = |len: usize| {
        let text = format!("[\"{}", "lorem ipsum ".repeat(len));
        shown(&run_after(&text, Strategy::Overlap, Kpi::Ask)).len()
    };
    let (small, large) = (string(5_000), string(100_000));
    assert!(large <= small + 100, "{small} became {large}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The request, the prefill, the answer and the margin fit the window, or there is no call.
    #[test]
    fn never_exceeds_the_window(
        at in 20..DOCUMENT.len() - 1,
        history in prop::collection::vec(0..400_usize, 0..30),
        window in 200..6_000_u64,
        requested in 1..3_000_u64,
        strategy in prop::sample::select(vec![Strategy::Prefill, Strategy::Overlap, Strategy::Remainder]),
        rows in 0..300_usize,
        is_measured: bool,
    ) {
        let text = format!(
            r#"{{"before": [{}], "document": {}"#,
            r#"{"a": "some text"}, "#.repeat(rows) + "0",
            &DOCUMENT[..at],
        );
        let kpi = if is_measured { Kpi::Measured(Vec::new()) } else { Kpi::Ask };
        let run = run_after(&text, strategy, kpi);
        let Some(ask) = run.next() else { return Ok(()) };
        let mut messages = vec![json!({ "role": "system", "content": "Be brief." })];
        for (index, words) in history.iter().enumerate() {
            let role = if index % 2 == 0 { "user" } else { "assistant" };
            messages.push(json!({ "role": role, "content": "word ".repeat(*words) }));
        }
        messages.push(json!({ "role": "user", "content": "The question." }));
        let request = ChatRequest::from_value(json!({ "max_tokens": requested, "messages": messages }))
            .expect("a request");
        let found = found();
        let counter = ChatCounter::for_model(&found);
        let options = PlanOptions { window, ..PlanOptions::for_model(&found.model) };
        let Ok(fitted) = next_call(&run, &ask, &request, &counter, &options) else {
            return Ok(());
        };
        let sent = ChatRequest::from_value(fitted.call.request.clone().into()).expect("a request");
        let input = counter.count(&sent).tokens;
        let mouth = fitted.call.prefill.as_deref().map_or(0, |text| counter.tokens().count(text));
        let answer = sent.requested().expect("an answer has a length");
        prop_assert!(input + mouth + answer + fitted.plan.margin.tokens <= window);
        prop_assert!(answer <= requested);
    }
}
