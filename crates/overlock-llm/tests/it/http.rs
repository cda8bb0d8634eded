//! Runs over HTTP, with and without faults.

use std::time::Duration;

use overlock_budget::{ChatCounter, Models, PlanOptions};
use overlock_llm::testing::{Behaviour, Fault, PATIENCE, Script, ScriptedServer, eventually};
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{
    Anthropic, Backend, BackendError, Continuation, ContinuationOptions, Deadline, Drive, Failure,
    Http, Kpi, OpenAi, Outcome, Phase, Prefill, PrefillStyle, Reason, Retried, RetryPolicy,
    Retrying, Step, StepResult, StopCause, Strategy, StrategyResults, Timeouts, complete,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{Recorder, report, runtime};

/// The conditions of a run.
pub(crate) struct Trial {
    pub(crate) script: Script,
    pub(crate) faults: Vec<Option<Fault>>,
    pub(crate) options: ContinuationOptions,
    pub(crate) api: Api,
    pub(crate) prefill: PrefillStyle,
    pub(crate) streams: bool,
    pub(crate) deadline: Option<Duration>,
    /// The wait before the first retry.
    pub(crate) first_wait: Duration,
    pub(crate) max_tokens: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Anthropic,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            script: Script {
                document: report(12_000),
                breath: (1500, 3000),
                behaviours: Behaviour::AS_ASKED.to_vec(),
                seed: 5,
            },
            faults: Vec::new(),
            options: ContinuationOptions {
                kpi: Kpi::Off,
                ..ContinuationOptions::default()
            },
            api: Api::OpenAi,
            prefill: PrefillStyle::None,
            streams: true,
            deadline: None,
            first_wait: Duration::from_millis(1),
            max_tokens: 1000,
        }
    }
}

pub(crate) struct TrialResult {
    pub(crate) run: Continuation,
    pub(crate) stop_cause: Option<StopCause>,
    pub(crate) document: String,
    pub(crate) calls: usize,
    pub(crate) requests: Vec<Value>,
    pub(crate) steps: Vec<Step>,
    pub(crate) overlaps: Vec<usize>,
    pub(crate) retries: usize,
    pub(crate) learnt: StrategyResults,
}

impl TrialResult {
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.run.outcome().and_then(Outcome::reason)
    }
}

/// Runs with these faults in the calls, one after the other.
fn run_with(faults: Vec<Option<Fault>>) -> TrialResult {
    let trial = Trial {
        faults,
        ..Trial::default()
    };
    trial.run()
}

impl Trial {
    pub(crate) fn run(self) -> TrialResult {
        let runtime = runtime();
        runtime.block_on(self.drive())
    }

    async fn drive(self) -> TrialResult {
        let document = self.script.document.clone();
        let server = ScriptedServer::start(self.script, &self.faults)
            .await
            .expect("a server");
        // Short timeouts only if the server stalls, so that a busy machine changes nothing.
        let timeout = if self.faults.iter().flatten().any(stalls) {
            Duration::from_millis(300)
        } else {
            PATIENCE
        };
        let http = Http::new(Timeouts {
            connect: PATIENCE,
            first_byte: timeout,
            silence: timeout,
        })
        .expect("a client");
        let (base, key) = (server.base(), "secret-key");
        let policy = RetryPolicy {
            retries: 3,
            first_wait: self.first_wait,
            longest_wait: self.first_wait * 20,
        };
        let backend: Box<dyn Backend> = match self.api {
            Api::OpenAi => {
                let server = OpenAi::new(http, &base, Some(key), Prefill::of_style(self.prefill));
                let mut server = server.expect("an address");
                if !self.streams {
                    server = server.without_streaming();
                }
                Box::new(Retrying::new(server, policy))
            }
            Api::Anthropic => {
                let server = Anthropic::new(http, &base, key, true).expect("an address");
                Box::new(Retrying::new(server, policy))
            }
        };
        let model = Models::default().find("gpt-4o");
        let counter = ChatCounter::for_model(&model);
        // Load the tokenizer before the deadline starts.
        counter.tokens().count("Write the report.");
        let request = ChatRequest::from_value(json!({
            "model": "gpt-4o", "max_tokens": self.max_tokens,
            "response_format": { "type": "json_object" },
            "messages": [{ "role": "user", "content": "Write the report." }],
        }))
        .expect("a request");
        let deadline = self.deadline.map(|deadline| Instant::now() + deadline);
        let drive = Drive {
            backend: backend.as_ref(),
            request: &request,
            counter: &counter,
            plan: &PlanOptions::for_model(&model.model),
            deadline: deadline.as_ref().map(|it| it as &dyn Deadline),
            most_answer_bytes: 100_000,
            live: true,
        };
        let mut run = Continuation::new(self.options);
        let mut recorder = Recorder::default();
        let stop_cause = complete(&mut run, &drive, &mut recorder)
            .await
            .expect("everything can be recorded");
        recorder.check(&run, true);
        let requests = server.asked();
        TrialResult {
            run,
            stop_cause,
            document,
            calls: requests.len(),
            requests,
            steps: recorder.steps,
            overlaps: recorder.overlaps,
            retries: recorder.retries,
            learnt: recorder.learnt,
        }
    }
}

/// Whether a server with this fault never finishes its answer.
fn stalls(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Silence(_)
            | Fault::NoAnswer
            | Fault::KeepsAlive(_)
            | Fault::EmptyPieces(_)
            | Fault::EndlessError
            | Fault::StaysOpen
    )
}

#[track_caller]
pub(crate) fn check_whole(ended: &TrialResult) {
    assert_eq!(
        ended.run.outcome(),
        Some(&Outcome::Complete),
        "{:?}",
        ended.stop_cause
    );
    assert_eq!(ended.run.text().trim_end(), ended.document.trim_end());
}

/// A run with a fault in its second call that still completes the document.
#[track_caller]
fn check_survived(fault: Fault) -> TrialResult {
    let ended = run_with(vec![None, Some(fault)]);
    check_whole(&ended);
    assert_ne!(
        ended.learnt.worked(Strategy::Overlap),
        Some(false),
        "{fault:?}"
    );
    ended
}

#[test]
fn completes_a_document_over_http() {
    check_whole(&Trial::default().run());
    check_whole(
        &Trial {
            streams: false,
            ..Trial::default()
        }
        .run(),
    );
}

#[test]
fn completes_documents_of_every_size_by_overlap() {
    for (bytes, breath) in [
        (1_000, (200, 200)),
        (20_000, (200, 1_000)),
        (300_000, (1_000, 8_000)),
        (2_000_000, (7_000, 8_000)),
    ] {
        let ended = Trial {
            script: Script {
                document: report(bytes),
                breath,
                behaviours: Behaviour::AS_ASKED.to_vec(),
                seed: bytes as u64,
            },
            options: ContinuationOptions {
                kpi: Kpi::Off,
                max_iterations: 10_000,
                ..ContinuationOptions::default()
            },
            ..Trial::default()
        }
        .run();
        check_whole(&ended);
    }
}

#[test]
fn with_any_behaviour_the_result_is_correct_or_marked_partial() {
    /// The seeds that end with a part of the document, and why.
    const PARTIAL: [(u64, Reason); 0] = [];
    let mut partial = Vec::new();
    for seed in 0..30 {
        let ended = Trial {
            script: Script {
                document: report(20_000),
                breath: (800, 4_000),
                behaviours: Behaviour::ALL.to_vec(),
                seed,
            },
            options: ContinuationOptions {
                kpi: Kpi::Off,
                max_failures: 6,
                ..ContinuationOptions::default()
            },
            ..Trial::default()
        }
        .run();
        let parse = |text: &str| serde_json::from_str::<Value>(text).expect("valid");
        match ended.run.outcome() {
            Some(Outcome::Complete) => {
                assert_eq!(
                    parse(ended.run.text()),
                    parse(&ended.document),
                    "seed {seed}"
                );
            }
            Some(Outcome::Partial { reason, .. }) => {
                partial.push((seed, *reason));
                parse(
                    &ended
                        .run
                        .last_valid_complete_part()
                        .expect("something is there"),
                );
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert_eq!(partial, PARTIAL);
}

#[test]
fn every_prefill_style_works() {
    for prefill in [
        PrefillStyle::PrefixMessage,
        PrefillStyle::ContinueFinalMessage,
        PrefillStyle::LastMessage,
        PrefillStyle::RawCompletion,
    ] {
        let ended = Trial {
            prefill,
            options: ContinuationOptions {
                strategies: vec![Strategy::Prefill],
                kpi: Kpi::Off,
                ..ContinuationOptions::default()
            },
            ..Trial::default()
        }
        .run();
        assert_eq!(ended.run.outcome(), Some(&Outcome::Complete), "{prefill:?}");
        check_whole(&ended);
    }
}

#[test]
fn a_server_without_prefill_support_gets_no_prefill() {
    let ended = Trial {
        prefill: PrefillStyle::None,
        options: ContinuationOptions {
            strategies: vec![Strategy::Prefill, Strategy::Overlap],
            kpi: Kpi::Off,
            ..ContinuationOptions::default()
        },
        ..Trial::default()
    }
    .run();
    check_whole(&ended);
    let has_prefill = |request: &Value| request["messages"][1]["role"] == "assistant";
    assert!(!ended.requests.iter().any(has_prefill));
    let StepResult::Failed { failure, .. } = &ended.steps[1].result else {
        panic!("{:?}", ended.steps[1]);
    };
    assert!(matches!(failure, Failure::Refused { .. }), "{failure:?}");
}

#[test]
fn an_anthropic_model_without_prefill_support_gets_no_prefill() {
    let http = Http::new(Timeouts::default()).expect("a client");
    // No server listens there: nothing may be sent.
    let server = Anthropic::new(http, "http://127.0.0.1:1/v1", "key", false);
    let call = overlock_llm::Call {
        request: serde_json::Map::new(),
        prefill: Some("[1".to_owned()),
    };
    let runtime = runtime();
    let server = server.expect("an address");
    let answer = runtime.block_on(server.call(call));
    let error = answer.err().expect("it is refused");
    assert!(
        matches!(error, BackendError::Unsupported { .. }),
        "{error:?}"
    );
}

#[test]
fn the_overlap_call_drops_the_response_format_and_the_remainder_call_keeps_it() {
    for (strategy, kept, calls) in [
        (Strategy::Overlap, false, 6),
        (Strategy::Remainder, true, 7),
    ] {
        let ended = Trial {
            options: ContinuationOptions {
                strategies: vec![strategy],
                kpi: Kpi::Off,
                ..ContinuationOptions::default()
            },
            ..Trial::default()
        }
        .run();
        let has_format = |request: &Value| request.get("response_format").is_some();
        assert!(has_format(&ended.requests[0]));
        assert_eq!(ended.calls, calls, "{strategy:?}");
        let is_kept = |request: &Value| has_format(request) == kept;
        assert!(ended.requests[1..].iter().all(is_kept), "{strategy:?}");
    }
}

#[test]
fn a_transient_error_is_retried_and_reported() {
    for (status, retry_after) in [(429, Some(0)), (429, None), (500, None), (503, None)] {
        let ended = check_survived(Fault::Status(status, retry_after));
        let retried = ended.steps.iter().map(|step| step.end.retried.as_deref());
        let retried: Vec<&Retried> = retried.flatten().collect();
        let [retried] = retried[..] else {
            panic!("{status}: {retried:?}");
        };
        assert_eq!(retried.times, 1, "{status}");
        let status_text = format!("answered {status}");
        assert!(retried.error.contains(&status_text), "{}", retried.error);
        assert_eq!(ended.retries, 1, "{status}");
    }
}

#[test]
fn a_permanent_error_keeps_the_document() {
    let ended = run_with(vec![None, Some(Fault::Status(403, None))]);
    check_model_error(&ended, 403);
    assert_eq!(ended.calls, 2);
}

#[track_caller]
fn check_model_error(ended: &TrialResult, expected: u16) {
    assert_eq!(ended.reason(), Some(Reason::ModelError));
    let Some(StopCause::Backend {
        error: BackendError::Status { status, .. },
        ..
    }) = &ended.stop_cause
    else {
        panic!("{:?}", ended.stop_cause);
    };
    assert_eq!(*status, expected);
    assert!(ended.run.last_valid_complete_part().is_some());
}

/// The rejected strategies, in order.
pub(crate) fn rejected_strategies(ended: &TrialResult) -> Vec<Strategy> {
    let is_refused = |step: &&Step| {
        let StepResult::Failed { failure, .. } = &step.result else {
            return false;
        };
        matches!(failure, Failure::Refused { .. })
    };
    let refused = ended.steps.iter().filter(is_refused);
    refused.filter_map(|step| step.strategy).collect()
}

#[test]
fn a_rejected_strategy_is_followed_by_the_next() {
    for prefill in [
        PrefillStyle::PrefixMessage,
        PrefillStyle::ContinueFinalMessage,
        PrefillStyle::LastMessage,
        PrefillStyle::RawCompletion,
    ] {
        let ended = Trial {
            faults: vec![Some(Fault::RefusesPrefill); 50],
            prefill,
            options: ContinuationOptions {
                strategies: vec![Strategy::Prefill, Strategy::Overlap, Strategy::Remainder],
                kpi: Kpi::Off,
                ..ContinuationOptions::default()
            },
            ..Trial::default()
        }
        .run();
        check_whole(&ended);
        assert_eq!(
            rejected_strategies(&ended),
            [Strategy::Prefill],
            "{prefill:?}"
        );
        assert_eq!(ended.learnt.worked(Strategy::Prefill), Some(false));
        assert_eq!(ended.learnt.worked(Strategy::Overlap), Some(true));
        assert_eq!(ended.stop_cause, None);
    }
}

#[test]
fn a_rejected_overlap_is_followed_by_the_remainder() {
    for status in [400, 422] {
        let ended = run_with(vec![None, Some(Fault::Status(status, None))]);
        assert_eq!(rejected_strategies(&ended), [Strategy::Overlap]);
        assert_eq!(ended.run.outcome(), Some(&Outcome::Complete));
        let parse = |text: &str| serde_json::from_str::<Value>(text).expect("valid");
        assert_eq!(parse(ended.run.text()), parse(&ended.document));
    }
}

#[test]
fn if_every_strategy_is_rejected_the_document_is_kept() {
    let ended = run_with(
        [None]
            .into_iter()
            .chain([Some(Fault::Status(400, None)); 9])
            .collect(),
    );
    check_model_error(&ended, 400);
    assert_eq!(
        rejected_strategies(&ended),
        [Strategy::Overlap, Strategy::Remainder]
    );
    assert!(ended.learnt.is_empty(), "the strategies did not cause this");
    assert_eq!(ended.calls, 3);
}

#[test]
fn a_rejected_first_call_is_a_model_error() {
    let ended = run_with(vec![Some(Fault::Status(400, None))]);
    assert_eq!((ended.calls, ended.run.iterations()), (1, 0));
    assert_eq!(ended.reason(), Some(Reason::ModelError));
}

#[test]
fn the_model_proposes_kpis() {
    let measure = |faults: Vec<Option<Fault>>| {
        let ended = Trial {
            faults,
            options: ContinuationOptions {
                kpi: Kpi::Measured(Vec::new()),
                ..ContinuationOptions::default()
            },
            ..Trial::default()
        }
        .run();
        check_whole(&ended);
        let asked = ended.steps.iter().filter(|step| step.kpis.is_some());
        assert_eq!(asked.count(), 1);
        assert_eq!(ended.steps[1].iteration, 2);
        ended
    };
    let ended = measure(Vec::new());
    let kpis = ended.run.kpis();
    assert_eq!((kpis.len(), kpis[0].json_path()), (1, "$['sections'][*]"));
    assert_eq!(kpis[0].current_value, kpis[0].target_value);
    assert!(ended.requests[1].get("response_format").is_none());

    // A failed KPI question does not stop the run.
    for fault in [Fault::Status(400, None), Fault::Status(403, None)] {
        let ended = measure(vec![None, Some(fault)]);
        assert!(ended.run.kpis().is_empty());
        assert_eq!(ended.stop_cause, None);
    }
}

#[test]
fn surrogate_pairs_split_between_events_are_joined() {
    let ended = run_with(vec![Some(Fault::TornCharacters); 50]);
    assert!(ended.document.contains('🚀'));
    check_whole(&ended);
}

#[test]
fn retries_are_limited() {
    let ended = run_with(vec![Some(Fault::Status(500, None)); 50]);
    assert_eq!(ended.run.outcome().map(Outcome::name), Some("failed"));
    assert_eq!(ended.calls, 4, "one call and three retries");
}

#[test]
fn an_interrupted_stream_is_a_cut_answer() {
    let ended = check_survived(Fault::Reset(900));
    assert_eq!(ended.run.iterations(), 7);
    check_survived(Fault::Reset(0));
    check_survived(Fault::Silence(900));
    check_survived(Fault::MalformedEvent);
}

#[test]
fn unusual_but_readable_answers_are_read() {
    check_survived(Fault::Drip(1));
    check_survived(Fault::NotStreamed);
    check_survived(Fault::WrongContentType);
    check_survived(Fault::WrongFinish);
}

#[test]
fn a_wrong_content_type_does_not_matter() {
    for fault in [Fault::WholeAsText, Fault::StreamAsJson, Fault::Pings] {
        let ended = check_survived(fault);
        assert_eq!(ended.calls, ended.steps.len(), "{fault:?} costs one call");
    }
}

#[test]
fn a_connection_that_stays_open_does_not_break_an_ended_answer() {
    let ended = check_survived(Fault::StaysOpen);
    let broken = ended.steps.iter().filter(|step| step.end.broken.is_some());
    assert_eq!(broken.count(), 0);
}

/// A run that a fault in its second call ends; returns the error message.
#[track_caller]
fn check_given_up(fault: Fault, calls: usize) -> String {
    let ended = run_with(vec![None, Some(fault)]);
    let reason = ended.reason();
    assert_eq!(
        (reason, ended.calls),
        (Some(Reason::ModelError), calls),
        "{fault:?}"
    );
    assert!(!ended.run.text().is_empty());
    match ended.stop_cause {
        Some(StopCause::Backend { error, .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unreadable_answer_is_explained_and_not_requested_again() {
    let message = check_given_up(Fault::Compressed, 2);
    assert!(message.contains("`content-encoding: gzip`"), "{message}");
    let message = check_given_up(Fault::Moved, 2);
    assert!(
        message.contains("`https://elsewhere.example/v1`"),
        "{message}"
    );
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn a_retry_after_beyond_the_longest_wait_is_not_retried() {
    let message = check_given_up(Fault::Status(429, Some(3600)), 2);
    assert!(message.contains("retry after 3600 seconds"), "{message}");
}

#[test]
fn keep_alive_messages_do_not_reset_timeouts() {
    for fault in [
        Fault::KeepsAlive(900),
        Fault::EmptyPieces(900),
        Fault::KeepsAlive(0),
        Fault::EmptyPieces(0),
        Fault::EndlessError,
    ] {
        let ended = Trial {
            faults: vec![None, Some(fault)],
            deadline: Some(PATIENCE),
            ..Trial::default()
        }
        .run();
        check_whole(&ended);
    }
}

#[test]
fn the_error_that_interrupted_an_answer_is_reported() {
    let ended = Trial {
        faults: vec![Some(Fault::ErrorEvent); 50],
        options: ContinuationOptions {
            kpi: Kpi::Off,
            max_iterations: 3,
            ..ContinuationOptions::default()
        },
        ..Trial::default()
    }
    .run();
    assert_eq!(ended.steps.len(), 3);
    for step in &ended.steps {
        let warnings = step.warnings().join("; ");
        assert!(
            warnings.contains("was interrupted") && warnings.contains("overloaded"),
            "{warnings}"
        );
    }
    let stop_cause = format!("{:?}", ended.stop_cause);
    assert!(stop_cause.contains("overloaded"), "{stop_cause}");
}

#[test]
fn finish_reasons_and_refusals_are_reported() {
    let ended = run_with(vec![Some(Fault::Declines)]);
    check_whole(&ended);
    let warnings = ended.steps[0].warnings().join("; ");
    assert!(
        warnings.contains("I would rather not.") && warnings.contains("content_filter"),
        "{warnings}"
    );
    let finishes: Vec<_> = ended.steps[1..]
        .iter()
        .filter_map(|step| step.end.finish.as_deref())
        .collect();
    assert_eq!(
        (finishes.first(), finishes.last()),
        (Some(&"length"), Some(&"stop"))
    );
    let stored = serde_json::to_string(&ended.steps[0]).expect("a step can be written");
    assert_eq!(
        serde_json::from_str::<Step>(&stored).expect("and read"),
        ended.steps[0]
    );
}

#[test]
fn the_providers_usage_counts_against_the_token_limit() {
    const MOST: u64 = 1600;
    let ended = Trial {
        options: ContinuationOptions {
            kpi: Kpi::Off,
            max_output_tokens: Some(MOST),
            ..ContinuationOptions::default()
        },
        ..Trial::default()
    }
    .run();
    let reason = ended.reason();
    assert_eq!(reason, Some(Reason::TokenLimit));
    assert!(ended.run.output_tokens() * 4 >= ended.run.text().len() as u64);
    let mut left = MOST;
    for (request, step) in ended.requests.iter().zip(&ended.steps) {
        assert_eq!(request["max_tokens"], left.min(1000));
        left = left.saturating_sub(step.tokens);
    }
    assert_eq!(ended.calls, 3);
}

#[test]
fn a_short_answer_has_a_short_overlap() {
    let row = "[0, 0], ".repeat(600);
    let ended = Trial {
        script: Script {
            document: format!("[{row}1]"),
            breath: (900, 900),
            behaviours: vec![Behaviour::AsAsked],
            seed: 1,
        },
        max_tokens: 100,
        ..Trial::default()
    }
    .run();
    check_whole(&ended);
    assert!(
        ended.overlaps.iter().all(|overlap| *overlap <= 75),
        "{:?}",
        ended.overlaps
    );
}

#[test]
fn an_error_body_with_status_200_is_an_error() {
    let ended = run_with(vec![None, Some(Fault::ErrorBody)]);
    assert_eq!(ended.reason(), Some(Reason::ModelError));
    let Some(StopCause::Backend { error, .. }) = ended.stop_cause else {
        panic!("{:?}", ended.stop_cause);
    };
    assert!(error.to_string().contains("overloaded"), "{error}");
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let ended = run_with(vec![Some(Fault::NoAnswer); 10]);
    let timed_out = matches!(
        ended.stop_cause,
        Some(StopCause::Backend {
            error: BackendError::TimedOut {
                phase: Phase::FirstByte,
                ..
            },
            retried: Some(Retried { times: 3, .. }),
        })
    );
    assert!(timed_out, "{:?}", ended.stop_cause);
}

#[test]
fn an_endless_answer_is_cut_at_the_limit() {
    let ended = run_with(vec![Some(Fault::Endless)]);
    assert!(ended.run.outcome().is_some());
    // A thousand tokens never have that many bytes.
    let warnings = ended.steps[0].warnings().join("; ");
    assert!(warnings.contains("exceeds 80384 bytes"), "{warnings}");
}

#[test]
fn a_deadline_keeps_what_has_arrived() {
    let ended = Trial {
        faults: vec![
            None,
            Some(Fault::Drip(500)),
            Some(Fault::Drip(500)),
            Some(Fault::Drip(500)),
        ],
        deadline: Some(Duration::from_secs(2)),
        ..Trial::default()
    }
    .run();
    assert_eq!(ended.reason(), Some(Reason::Deadline));
    assert!(ended.document.starts_with(ended.run.text()) && !ended.run.text().is_empty());
}

#[test]
fn a_deadline_during_a_retry_reports_the_failed_call() {
    let ended = Trial {
        faults: vec![None, Some(Fault::Status(503, None))],
        first_wait: Duration::from_mins(1),
        deadline: Some(Duration::from_secs(2)),
        ..Trial::default()
    }
    .run();
    let reason = ended.reason();
    assert_eq!(reason, Some(Reason::Deadline));
    let Some(StopCause::Backend { error, retried }) = ended.stop_cause else {
        panic!("no cause: {:?}", ended.stop_cause);
    };
    assert!(
        matches!(error, BackendError::Status { status: 503, .. }),
        "{error}"
    );
    assert_eq!(retried.map(|retried| retried.times), Some(1));
}

#[test]
fn a_connection_error_does_not_contain_the_key() {
    let runtime = runtime();
    let error = runtime.block_on(async {
        let server = ScriptedServer::start(Trial::default().script, &[])
            .await
            .expect("a server");
        let base = server.base();
        drop(server);
        let address = base.trim_start_matches("http://").trim_end_matches("/v1");
        let connects = async || tokio::net::TcpStream::connect(address).await.is_ok();
        eventually("the server to be gone", connects, |it| !it).await;
        let http = Http::new(Timeouts::default()).expect("a client");
        let backend =
            OpenAi::new(http, &base, Some("secret-key"), Prefill::default()).expect("an address");
        let call = overlock_llm::Call {
            request: serde_json::Map::new(),
            prefill: None,
        };
        Backend::call(&backend, call)
            .await
            .err()
            .expect("no server listens there")
    });
    assert!(
        matches!(error, BackendError::Unreachable { .. }),
        "{error:?}"
    );
    assert!(!format!("{error} {error:?}").contains("secret"));
}

#[test]
fn a_key_that_the_server_echoes_is_redacted() {
    for api in [Api::OpenAi, Api::Anthropic] {
        let ended = Trial {
            api,
            faults: [None]
                .into_iter()
                .chain([Some(Fault::TellsKey); 9])
                .collect(),
            ..Trial::default()
        }
        .run();
        check_model_error(&ended, 400);
        let output = format!("{:?} {:?}", ended.stop_cause, ended.steps);
        let header = match api {
            Api::OpenAi => "Bearer [redacted]",
            Api::Anthropic => "[redacted]",
        };
        assert!(
            output.contains(&format!("this key is not known: {header}")),
            "{output}"
        );
        assert!(!output.contains("secret-key"), "{output}");
    }
}

#[test]
fn an_invalid_url_error_shows_a_valid_one() {
    let http = Http::new(Timeouts::default()).expect("a client");
    for (base, expected) in [
        ("localhost:8080", "http://"),
        ("ftp://host/v1", "http://"),
        ("not an address", "http://127.0.0.1"),
        ("http://user:hunter2@host/v1", "password"),
    ] {
        let Err(error) = OpenAi::new(http.clone(), base, None, Prefill::default()) else {
            panic!("{base} is not a valid URL");
        };
        let message = error.to_string();
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}
