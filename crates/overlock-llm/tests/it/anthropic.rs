//! Anthropic's messages over a real connection, with a server that validates as strictly.

use futures_util::StreamExt;
use overlock_llm::testing::{Behaviour, Fault, Script, ScriptedServer};
use overlock_llm::{
    Anthropic, Backend, BackendError, Call, ContinuationOptions, Event, Http, Kpi, Reason,
    StopCause, Strategy, Timeouts, Usage,
};
use serde_json::{Value, json};

use crate::http::{Api, Trial, check_whole, rejected_strategies};
use crate::runtime;

fn trial(strategies: &[Strategy], faults: Vec<Option<Fault>>) -> Trial {
    Trial {
        api: Api::Anthropic,
        options: ContinuationOptions {
            strategies: strategies.to_vec(),
            kpi: Kpi::Off,
            ..ContinuationOptions::default()
        },
        faults,
        ..Trial::default()
    }
}

/// The events of one call, and the requests that the server received.
fn call(
    key: &str,
    request: Value,
    fault: Option<Fault>,
) -> (Result<Vec<Event>, BackendError>, Vec<Value>) {
    let runtime = runtime();
    let Value::Object(request) = request else {
        panic!("a request is an object");
    };
    runtime.block_on(async {
        let script = Script {
            document: r#"{"rows": [1, 2, 3]}"#.to_owned(),
            breath: (100, 100),
            behaviours: vec![Behaviour::AsAsked],
            seed: 1,
        };
        let server = ScriptedServer::start(script, &[fault])
            .await
            .expect("a server");
        let http = Http::new(Timeouts::default()).expect("a client");
        let backend = Anthropic::new(http, &server.base(), key, true).expect("an address");
        let call = Call {
            request,
            prefill: None,
        };
        let events = match backend.call(call).await {
            Ok(events) => events.collect::<Vec<_>>().await.into_iter().collect(),
            Err(error) => Err(error),
        };
        (events, server.asked())
    })
}

fn rivers() -> Value {
    json!({ "model": "claude", "max_tokens": 1000, "messages": [{ "role": "user", "content": "The rivers of Europe, the longest first." }] })
}

#[test]
fn every_strategy_completes_the_document() {
    for strategies in [
        &[Strategy::Prefill][..],
        &[Strategy::Overlap],
        &[Strategy::Prefill, Strategy::Overlap, Strategy::Remainder],
    ] {
        check_whole(&trial(strategies, Vec::new()).run());
    }
}

#[test]
fn an_answer_has_text_finish_reason_and_usage() {
    for fault in [None, Some(Fault::NotStreamed)] {
        let (events, _) = call("key", rivers(), fault);
        let events = events.expect("an answer");
        let [
            Event::Text(text),
            Event::Finish(finish),
            Event::Usage(usage),
        ] = events.as_slice()
        else {
            panic!("{events:?}");
        };
        assert_eq!(
            (text.as_str(), finish.as_str()),
            (r#"{"rows": [1, 2, 3]}"#, "stop")
        );
        let Usage { input, output, .. } = *usage;
        assert!(input > 10 && output > 1, "{usage:?} with {fault:?}");
    }
}

#[test]
fn sends_the_key_and_reports_a_missing_one() {
    let (refused, requests) = call("", rivers(), None);
    let error = refused.expect_err("there is no key");
    assert!(
        matches!(error, BackendError::Status { status: 401, .. }),
        "{error:?}"
    );
    assert!(requests.is_empty());
    let (events, _) = call("secret-key", rivers(), None);
    assert!(events.is_ok());
}

#[test]
fn an_unsupported_request_is_never_sent() {
    let request = json!({ "model": "claude", "tools": [{ "type": "function" }], "messages": [] });
    let (refused, requests) = call("key", request, None);
    let error = refused.expect_err("there are no tools");
    assert!(
        matches!(error, BackendError::Unsupported { .. }),
        "{error:?}"
    );
    assert!(
        error.to_string().ends_with(" does not support a tool"),
        "{error}"
    );
    assert!(requests.is_empty());
}

#[test]
fn a_rejected_prefill_leads_to_another_strategy() {
    let strategies = [Strategy::Prefill, Strategy::Overlap, Strategy::Remainder];
    let ended = trial(&strategies, vec![Some(Fault::RefusesPrefill); 50]).run();
    check_whole(&ended);
    assert_eq!(rejected_strategies(&ended), [Strategy::Prefill]);
}

#[test]
fn an_overload_is_retried() {
    let ended = trial(
        &[Strategy::Overlap],
        vec![None, Some(Fault::Status(529, Some(0)))],
    )
    .run();
    check_whole(&ended);
    assert_eq!(ended.calls, ended.run.iterations() as usize + 1);
}

#[test]
fn an_error_in_the_stream_cuts_the_answer() {
    for fault in [Fault::ErrorEvent, Fault::Reset(900), Fault::MalformedEvent] {
        let ended = trial(&[Strategy::Overlap], vec![None, Some(fault)]).run();
        check_whole(&ended);
    }
    let (events, _) = call("key", rivers(), Some(Fault::ErrorEvent));
    let error = events.expect_err("it ends in an error");
    assert!(
        matches!(error, BackendError::Status { status: 529, .. }),
        "{error:?}"
    );
    assert!(error.is_transient() && error.to_string().contains("overloaded"));
}

#[test]
fn an_error_body_with_status_200_is_an_error() {
    let ended = trial(&[Strategy::Overlap], vec![Some(Fault::ErrorBody); 9]).run();
    let reason = ended.reason();
    assert_eq!(reason, Some(Reason::ModelError));
    let Some(StopCause::Backend {
        error: BackendError::Status { status, .. },
        ..
    }) = ended.stop_cause
    else {
        panic!("{:?}", ended.stop_cause);
    };
    assert_eq!((status, ended.calls), (529, 4));
}

#[test]
fn surrogate_pairs_split_between_events_are_joined() {
    let ended = trial(&[Strategy::Overlap], vec![Some(Fault::TornCharacters); 50]).run();
    check_whole(&ended);
}
