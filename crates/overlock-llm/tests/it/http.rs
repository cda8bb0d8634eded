//! Over a real connection, good and bad.

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

use crate::{Listener, report};

/// What a run is tried with.
pub(crate) struct Trial {
    pub(crate) script: Script,
    pub(crate) faults: Vec<Option<Fault>>,
    pub(crate) options: ContinuationOptions,
    pub(crate) speech: Speech,
    pub(crate) prefill: PrefillStyle,
    pub(crate) streams: bool,
    pub(crate) deadline: Option<Duration>,
    /// The wait before the first retry.
    pub(crate) first_wait: Duration,
    pub(crate) max_tokens: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
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
            speech: Speech::OpenAi,
            prefill: PrefillStyle::None,
            streams: true,
            deadline: None,
            first_wait: Duration::from_millis(1),
            max_tokens: 1000,
        }
    }
}

pub(crate) struct Ended {
    pub(crate) run: Continuation,
    pub(crate) obstacle: Option<StopCause>,
    pub(crate) document: String,
    pub(crate) calls: usize,
    pub(crate) asked: Vec<Value>,
    pub(crate) steps: Vec<Step>,
    pub(crate) overlaps: Vec<usize>,
    pub(crate) retries: usize,
    pub(crate) learnt: StrategyResults,
}

impl Trial {
    pub(crate) fn run(self) -> Ended {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(self.drive())
    }

    async fn drive(self) -> Ended {
        let document = self.script.document.clone();
        let server = ScriptedServer::start(self.script, &self.faults)
            .await
            .expect("a server");
        // Only a server that falls silent is given up soon, so that a busy machine changes nothing.
        let longest = if self.faults.iter().flatten().any(falls_silent) {
            Duration::from_millis(300)
        } else {
            PATIENCE
        };
        let http = Http::new(Timeouts {
            connect: PATIENCE,
            first_byte: longest,
            silence: longest,
        })
        .expect("a client");
        let (base, key) = (server.base(), "secret-key");
        let policy = RetryPolicy {
            retries: 3,
            first_wait: self.first_wait,
            longest_wait: self.first_wait * 20,
        };
        let backend: Box<dyn Backend> = match self.speech {
            Speech::OpenAi => {
                let server = OpenAi::new(http, &base, Some(key), Prefill::of_style(self.prefill));
                let mut server = server.expect("an address");
                if !self.streams {
                    server = server.without_streaming();
                }
                Box::new(Retrying::new(server, policy))
            }
            Speech::Anthropic => {
                let server = Anthropic::new(http, &base, key, true).expect("an address");
                Box::new(Retrying::new(server, policy))
            }
        };
        let found = Models::default().find("gpt-4o");
        let counter = ChatCounter::for_model(&found);
        // The tables of the tokenizer are loaded before the time of the run begins.
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
            plan: &PlanOptions::for_model(&found.model),
            deadline: deadline.as_ref().map(|it| it as &dyn Deadline),
            most_answer_bytes: 100_000,
            live: true,
        };
        let mut run = Continuation::new(self.options);
        let mut listener = Listener::default();
        let obstacle = complete(&mut run, &drive, &mut listener)
            .await
            .expect("everything can be recorded");
        listener.check(&run, true);
        let asked = server.asked();
        Ended {
            run,
            obstacle,
            document,
            calls: asked.len(),
            asked,
            steps: listener.steps,
            overlaps: listener.overlaps,
            retries: listener.retries,
            learnt: listener.learnt,
        }
    }
}

/// Whether a server with this fault would keep its client waiting for ever.
fn falls_silent(fault: &Fault) -> bool {
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
pub(crate) fn check_whole(ended: &Ended) {
    assert_eq!(
        ended.run.outcome(),
        Some(&Outcome::Complete),
        "{:?}",
        ended.obstacle
    );
    assert_eq!(ended.run.text().trim_end(), ended.document.trim_end());
}

/// A run with a fault in its second call that ends with the whole document all the same.
#[track_caller]
fn check_survived(fault: Fault) -> Ended {
    let ended = Trial {
        faults: vec![None, Some(fault)],
        ..Trial::default()
    }
    .run();
    check_whole(&ended);
    assert_ne!(
        ended.learnt.worked(Strategy::Overlap),
        Some(false),
        "{fault:?}"
    );
    ended
}

#[test]
fn a_document_comes_home_over_http() {
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
fn documents_of_every_size_come_home_where_the_overlap_comes_back() {
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
fn whatever_the_model_does_the_result_is_right_or_says_that_it_is_not() {
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
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("valid");
        match ended.run.outcome() {
            Some(Outcome::Complete) => {
                assert_eq!(read(ended.run.text()), read(&ended.document), "seed {seed}");
            }
            Some(Outcome::Partial { reason, .. }) => {
                partial.push((seed, *reason));
                read(
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
fn every_style_of_prefill_is_understood() {
    for prefill in [
        PrefillStyle::PrefixMessage,
        PrefillStyle::ContinueFinalMessage,
        PrefillStyle::LastMessage,
        PrefillStyle::RawCompletion,
    ] {
        let ended = Trial {
            prefill,
            options: ContinuationOptions {
                ways: vec![Strategy::Prefill],
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
fn a_server_that_takes_no_beginning_is_not_given_one() {
    let ended = Trial {
        prefill: PrefillStyle::None,
        options: ContinuationOptions {
            ways: vec![Strategy::Prefill, Strategy::Overlap],
            kpi: Kpi::Off,
            ..ContinuationOptions::default()
        },
        ..Trial::default()
    }
    .run();
    check_whole(&ended);
    let is_begun = |request: &Value| request["messages"][1]["role"] == "assistant";
    assert!(!ended.asked.iter().any(is_begun));
    let StepResult::Failed { failure, .. } = &ended.steps[1].result else {
        panic!("{:?}", ended.steps[1]);
    };
    assert!(matches!(failure, Failure::Refused { .. }), "{failure:?}");
}

#[test]
fn a_model_of_anthropics_that_takes_no_beginning_is_not_given_one() {
    let http = Http::new(Timeouts::default()).expect("a client");
    // Nobody is there: nothing may be sent.
    let server = Anthropic::new(http, "http://127.0.0.1:1/v1", "key", false);
    let call = overlock_llm::Call {
        request: serde_json::Map::new(),
        prefill: Some("[1".to_owned()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
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
    for (way, kept, calls) in [
        (Strategy::Overlap, false, 6),
        (Strategy::Remainder, true, 7),
    ] {
        let ended = Trial {
            options: ContinuationOptions {
                ways: vec![way],
                kpi: Kpi::Off,
                ..ContinuationOptions::default()
            },
            ..Trial::default()
        }
        .run();
        let has_format = |request: &Value| request.get("response_format").is_some();
        assert!(has_format(&ended.asked[0]));
        assert_eq!(ended.calls, calls, "{way:?}");
        let is_kept = |request: &Value| has_format(request) == kept;
        assert!(ended.asked[1..].iter().all(is_kept), "{way:?}");
    }
}

#[test]
fn a_refusal_for_now_is_asked_again_and_told() {
    for (status, asks) in [(429, Some(0)), (429, None), (500, None), (503, None)] {
        let ended = check_survived(Fault::Status(status, asks));
        let retried = ended.steps.iter().map(|step| step.end.retried.as_deref());
        let retried: Vec<&Retried> = retried.flatten().collect();
        let [retried] = retried[..] else {
            panic!("{status}: {retried:?}");
        };
        assert_eq!(retried.times, 1, "{status}");
        let said = format!("answered {status}");
        assert!(retried.error.contains(&said), "{}", retried.error);
        assert_eq!(ended.retries, 1, "{status}");
    }
}

#[test]
fn a_refusal_for_good_keeps_what_there_is() {
    let ended = Trial {
        faults: vec![None, Some(Fault::Status(403, None))],
        ..Trial::default()
    }
    .run();
    check_model_error(&ended, 403);
    assert_eq!(ended.calls, 2);
}

#[track_caller]
fn check_model_error(ended: &Ended, expected: u16) {
    assert_eq!(
        ended.run.outcome().and_then(Outcome::reason),
        Some(Reason::ModelError)
    );
    let Some(StopCause::Backend {
        error: BackendError::Status { status, .. },
        ..
    }) = &ended.obstacle
    else {
        panic!("{:?}", ended.obstacle);
    };
    assert_eq!(*status, expected);
    assert!(ended.run.last_valid_complete_part().is_some());
}

/// The ways that were refused, in their order.
pub(crate) fn refused_ways(ended: &Ended) -> Vec<Strategy> {
    let is_refused = |step: &&Step| {
        let StepResult::Failed { failure, .. } = &step.result else {
            return false;
        };
        matches!(failure, Failure::Refused { .. })
    };
    let refused = ended.steps.iter().filter(is_refused);
    refused.filter_map(|step| step.way).collect()
}

#[test]
fn a_way_that_is_refused_gives_way_to_the_next() {
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
                ways: vec![Strategy::Prefill, Strategy::Overlap, Strategy::Remainder],
                kpi: Kpi::Off,
                ..ContinuationOptions::default()
            },
            ..Trial::default()
        }
        .run();
        check_whole(&ended);
        assert_eq!(refused_ways(&ended), [Strategy::Prefill], "{prefill:?}");
        assert_eq!(ended.learnt.worked(Strategy::Prefill), Some(false));
        assert_eq!(ended.learnt.worked(Strategy::Overlap), Some(true));
        assert_eq!(ended.obstacle, None);
    }
}

#[test]
fn a_refused_overlap_gives_way_to_the_remainder() {
    for status in [400, 422] {
        let ended = Trial {
            faults: vec![None, Some(Fault::Status(status, None))],
            ..Trial::default()
        }
        .run();
        assert_eq!(refused_ways(&ended), [Strategy::Overlap]);
        assert_eq!(ended.run.outcome(), Some(&Outcome::Complete));
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("valid");
        assert_eq!(read(ended.run.text()), read(&ended.document));
    }
}

#[test]
fn a_run_that_is_refused_in_every_way_keeps_what_there_is() {
    let ended = Trial {
        faults: [None]
            .into_iter()
            .chain([Some(Fault::Status(400, None)); 9])
            .collect(),
        ..Trial::default()
    }
    .run();
    check_model_error(&ended, 400);
    assert_eq!(
        refused_ways(&ended),
        [Strategy::Overlap, Strategy::Remainder]
    );
    assert!(ended.learnt.is_empty(), "the strategies are not to blame");
    assert_eq!(ended.calls, 3);
}

#[test]
fn a_refusal_of_the_first_prompt_is_the_models_error() {
    let ended = Trial {
        faults: vec![Some(Fault::Status(400, None))],
        ..Trial::default()
    }
    .run();
    assert_eq!((ended.calls, ended.run.iterations()), (1, 0));
    assert_eq!(
        ended.run.outcome().and_then(Outcome::reason),
        Some(Reason::ModelError)
    );
}

#[test]
fn the_model_says_what_to_count() {
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
    assert!(ended.asked[1].get("response_format").is_none());

    // Nobody who can be reached for it is no reason to stop.
    for fault in [Fault::Status(400, None), Fault::Status(403, None)] {
        let ended = measure(vec![None, Some(fault)]);
        assert!(ended.run.kpis().is_empty());
        assert_eq!(ended.obstacle, None);
    }
}

#[test]
fn characters_that_are_torn_between_events_are_whole_again() {
    let ended = Trial {
        faults: vec![Some(Fault::TornCharacters); 50],
        ..Trial::default()
    }
    .run();
    assert!(ended.document.contains('🚀'));
    check_whole(&ended);
}

#[test]
fn patience_with_refusals_ends() {
    let ended = Trial {
        faults: vec![Some(Fault::Status(500, None)); 50],
        ..Trial::default()
    }
    .run();
    assert_eq!(ended.run.outcome().map(Outcome::name), Some("failed"));
    assert_eq!(ended.calls, 4, "one call and three retries");
}

#[test]
fn a_stream_that_breaks_off_is_an_answer_that_was_cut() {
    let ended = check_survived(Fault::Reset(900));
    assert_eq!(ended.run.iterations(), 7);
    check_survived(Fault::Reset(0));
    check_survived(Fault::Silence(900));
    check_survived(Fault::MalformedEvent);
}

#[test]
fn odd_but_readable_answers_are_read() {
    check_survived(Fault::Drip(1));
    check_survived(Fault::NotStreamed);
    check_survived(Fault::WrongContentType);
    check_survived(Fault::WrongFinish);
}

#[test]
fn what_an_answer_calls_itself_does_not_matter() {
    for fault in [Fault::WholeAsText, Fault::StreamAsJson, Fault::Pings] {
        let ended = check_survived(fault);
        assert_eq!(ended.calls, ended.steps.len(), "{fault:?} is paid once");
    }
}

#[test]
fn an_answer_that_has_ended_is_not_broken_by_what_becomes_of_the_connection() {
    let ended = check_survived(Fault::StaysOpen);
    let broken = ended.steps.iter().filter(|step| step.end.broken.is_some());
    assert_eq!(broken.count(), 0);
}

/// A run that a fault in its second call ends, and what is told of it.
#[track_caller]
fn check_given_up(fault: Fault, calls: usize) -> String {
    let ended = Trial {
        faults: vec![None, Some(fault)],
        ..Trial::default()
    }
    .run();
    let reason = ended.run.outcome().and_then(Outcome::reason);
    assert_eq!(
        (reason, ended.calls),
        (Some(Reason::ModelError), calls),
        "{fault:?}"
    );
    assert!(!ended.run.text().is_empty());
    match ended.obstacle {
        Some(StopCause::Backend { error, .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_read_says_why_and_is_not_paid_again() {
    let told = check_given_up(Fault::Compressed, 2);
    assert!(told.contains("`content-encoding: gzip`"), "{told}");
    let told = check_given_up(Fault::Moved, 2);
    assert!(told.contains("`https://elsewhere.example/v1`"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn who_asks_for_more_patience_than_there_is_is_not_asked_again() {
    let told = check_given_up(Fault::Status(429, Some(3600)), 2);
    assert!(told.contains("it asks to wait for 3600 seconds"), "{told}");
}

#[test]
fn a_sign_of_life_is_no_answer() {
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
fn what_broke_an_answer_off_is_kept_and_told() {
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
        let told = step.warnings().join("; ");
        assert!(
            told.contains("broke off") && told.contains("overloaded"),
            "{told}"
        );
    }
    let told = format!("{:?}", ended.obstacle);
    assert!(told.contains("overloaded"), "{told}");
}

#[test]
fn why_an_answer_ended_is_kept_and_a_refusal_told() {
    let ended = Trial {
        faults: vec![Some(Fault::Declines)],
        ..Trial::default()
    }
    .run();
    check_whole(&ended);
    let told = ended.steps[0].warnings().join("; ");
    assert!(
        told.contains("I would rather not.") && told.contains("content_filter"),
        "{told}"
    );
    let finishes: Vec<_> = ended.steps[1..]
        .iter()
        .filter_map(|step| step.end.finish.as_deref())
        .collect();
    assert_eq!(
        (finishes.first(), finishes.last()),
        (Some(&"length"), Some(&"stop"))
    );
    let kept = serde_json::to_string(&ended.steps[0]).expect("a step can be written");
    assert_eq!(
        serde_json::from_str::<Step>(&kept).expect("and read"),
        ended.steps[0]
    );
}

#[test]
fn tokens_are_counted_as_the_provider_says_and_no_call_may_take_more_than_is_left() {
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
    let reason = ended.run.outcome().and_then(Outcome::reason);
    assert_eq!(reason, Some(Reason::TokenLimit));
    assert!(ended.run.output_tokens() * 4 >= ended.run.text().len() as u64);
    let mut left = MOST;
    for (request, step) in ended.asked.iter().zip(&ended.steps) {
        assert_eq!(request["max_tokens"], left.min(1000));
        left = left.saturating_sub(step.tokens);
    }
    assert_eq!(ended.calls, 3);
}

#[test]
fn a_short_answer_is_not_spent_on_what_is_repeated() {
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
fn an_error_that_calls_itself_a_success_is_an_error() {
    let ended = Trial {
        faults: vec![None, Some(Fault::ErrorBody)],
        ..Trial::default()
    }
    .run();
    assert_eq!(
        ended.run.outcome().and_then(Outcome::reason),
        Some(Reason::ModelError)
    );
    let Some(StopCause::Backend { error, .. }) = ended.obstacle else {
        panic!("{:?}", ended.obstacle);
    };
    assert!(error.to_string().contains("overloaded"), "{error}");
}

#[test]
fn silence_from_the_start_is_given_up() {
    let ended = Trial {
        faults: vec![Some(Fault::NoAnswer); 10],
        ..Trial::default()
    }
    .run();
    let timed_out = matches!(
        ended.obstacle,
        Some(StopCause::Backend {
            error: BackendError::TimedOut {
                phase: Phase::FirstByte,
                ..
            },
            retried: Some(Retried { times: 3, .. }),
        })
    );
    assert!(timed_out, "{:?}", ended.obstacle);
}

#[test]
fn an_answer_without_end_ends_at_the_limit() {
    let ended = Trial {
        faults: vec![Some(Fault::Endless)],
        ..Trial::default()
    }
    .run();
    assert!(ended.run.outcome().is_some());
    // A thousand tokens were agreed, and they are never that long.
    let told = ended.steps[0].warnings().join("; ");
    assert!(told.contains("beyond 80384 bytes"), "{told}");
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
    assert_eq!(
        ended.run.outcome().and_then(Outcome::reason),
        Some(Reason::Deadline)
    );
    assert!(ended.document.starts_with(ended.run.text()) && !ended.run.text().is_empty());
}

#[test]
fn a_run_that_is_late_while_it_waits_says_what_it_waited_for() {
    let ended = Trial {
        faults: vec![None, Some(Fault::Status(503, None))],
        first_wait: Duration::from_mins(1),
        deadline: Some(Duration::from_secs(2)),
        ..Trial::default()
    }
    .run();
    let reason = ended.run.outcome().and_then(Outcome::reason);
    assert_eq!(reason, Some(Reason::Deadline));
    let Some(StopCause::Backend { error, retried }) = ended.obstacle else {
        panic!("nobody knows why: {:?}", ended.obstacle);
    };
    assert!(
        matches!(error, BackendError::Status { status: 503, .. }),
        "{error}"
    );
    assert_eq!(retried.map(|retried| retried.times), Some(1));
}

#[test]
fn nobody_there_is_told_without_the_key() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let error = runtime.block_on(async {
        let server = ScriptedServer::start(Trial::default().script, &[])
            .await
            .expect("a server");
        let base = server.base();
        drop(server);
        let address = base.trim_start_matches("http://").trim_end_matches("/v1");
        let look = async || tokio::net::TcpStream::connect(address).await.is_ok();
        eventually("the server to be gone", look, |is_there| !is_there).await;
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
            .expect("nobody is there")
    });
    assert!(
        matches!(error, BackendError::Unreachable { .. }),
        "{error:?}"
    );
    assert!(!format!("{error} {error:?}").contains("secret"));
}

#[test]
fn a_key_that_the_server_says_back_is_not_told() {
    for speech in [Speech::OpenAi, Speech::Anthropic] {
        let ended = Trial {
            speech,
            faults: [None]
                .into_iter()
                .chain([Some(Fault::TellsKey); 9])
                .collect(),
            ..Trial::default()
        }
        .run();
        check_model_error(&ended, 400);
        let told = format!("{:?} {:?}", ended.obstacle, ended.steps);
        let header = match speech {
            Speech::OpenAi => "Bearer [redacted]",
            Speech::Anthropic => "[redacted]",
        };
        assert!(
            told.contains(&format!("this key is not known: {header}")),
            "{told}"
        );
        assert!(!told.contains("secret-key"), "{told}");
    }
}

#[test]
fn an_address_that_is_none_says_what_would_be_right() {
    let http = Http::new(Timeouts::default()).expect("a client");
    for (base, expected) in [
        ("localhost:8080", "http://"),
        ("ftp://host/v1", "http://"),
        ("not an address", "http://127.0.0.1"),
        ("http://user:hunter2@host/v1", "password"),
    ] {
        let Err(error) = OpenAi::new(http.clone(), base, None, Prefill::default()) else {
            panic!("{base} is no address");
        };
        let message = error.to_string();
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}
