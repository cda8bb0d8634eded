//! Every strategy and every behaviour, with a model in the same process.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, future, stream};
use overlock_budget::{ChatCounter, Models, PlanOptions};
use overlock_llm::testing::{Behaviour, Script, ScriptedModel};
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{
    Backend, BackendError, Call, Continuation, ContinuationOptions, Deadline, Drive, Events, Kpi,
    Outcome, Reason, RefusedSize, Strategy, complete,
};
use tokio::time::Instant;

use crate::{Recorder, report, runtime};

struct Played {
    run: Continuation,
    document: String,
    /// The number of streamed pieces.
    pieces: usize,
}

/// Plays a script twice, streamed and not, which makes no difference for most scripts.
fn play(script: Script, options: ContinuationOptions) -> Played {
    play_once(script.clone(), options.clone(), false);
    play_once(script, options, true)
}

fn play_once(script: Script, options: ContinuationOptions, live: bool) -> Played {
    let document = script.document.clone();
    let (run, recorder) = drive(&ScriptedModel::new(script), options, live);
    Played {
        run,
        document,
        pieces: recorder.pieces,
    }
}

fn drive(
    model: &ScriptedModel,
    options: ContinuationOptions,
    live: bool,
) -> (Continuation, Recorder) {
    drive_until(model, options, live, None)
}

fn drive_until(
    model: &dyn Backend,
    options: ContinuationOptions,
    live: bool,
    deadline: Option<Duration>,
) -> (Continuation, Recorder) {
    let found = Models::default().find("gpt-4o");
    let counter = ChatCounter::for_model(&found);
    let request = ChatRequest::from_json(
        r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Write the report."}]}"#,
    )
    .expect("a request");
    let deadline = deadline.map(|after| Instant::now() + after);
    let drive = Drive {
        backend: model,
        request: &request,
        counter: &counter,
        plan: &PlanOptions::for_model(&found.model),
        deadline: deadline.as_ref().map(|it| it as &dyn Deadline),
        most_answer_bytes: 1 << 20,
        live,
    };
    let mut run = Continuation::new(options);
    let runtime = runtime();
    let mut recorder = Recorder::default();
    runtime
        .block_on(complete(&mut run, &drive, &mut recorder))
        .expect("nothing is recorded that could fail");
    recorder.check(&run, live);
    (run, recorder)
}

/// A model whose answers after the first one stall.
struct StallingModel(ScriptedModel);

impl Backend for StallingModel {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        async {
            let is_first = self.0.behaved().is_empty();
            let events = self.0.call(call).await?;
            Ok(if is_first {
                events
            } else {
                events.take(1).chain(stream::pending()).boxed()
            })
        }
        .boxed()
    }
}

#[test]
fn an_answer_that_the_deadline_cuts_off_says_nothing_about_its_strategy() {
    let model = StallingModel(ScriptedModel::new(Script {
        document: report(12_000),
        breath: (1500, 3000),
        behaviours: vec![Behaviour::Apologises],
        seed: 1,
    }));
    let deadline = Some(Duration::from_millis(500));
    let (run, recorder) = drive_until(&model, many_iterations(), false, deadline);
    let reason = run.outcome().and_then(Outcome::reason);
    assert_eq!(reason, Some(Reason::Deadline));
    assert!(recorder.learnt.is_empty(), "{:?}", recorder.learnt);
}

/// A server that rejects every call with an overlap, with this message and these sizes.
struct RejectsOverlap(ScriptedModel, &'static str, Option<RefusedSize>);

impl Backend for RejectsOverlap {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let request = serde_json::to_string(&call.request).expect("JSON");
        if !request.contains("[[overlap-") {
            return self.0.call(call);
        }
        let refusal = BackendError::Status {
            host: "127.0.0.1".to_owned(),
            status: 400,
            message: self.1.to_owned(),
            retry_after: None,
            size: self.2,
        };
        future::ready(Err(refusal)).boxed()
    }
}

#[test]
fn a_size_error_says_nothing_about_the_strategy() {
    let too_large = "the request exceeds the available context size";
    // No call fits these sizes, so none is planned again.
    let size = RefusedSize {
        window: Some(9),
        input: None,
    };
    for (message, size, worked) in [
        ("the last message must be from the user", None, Some(false)),
        (too_large, None, None),
        (too_large, Some(size), None),
    ] {
        let model = ScriptedModel::new(Script {
            document: report(12_000),
            breath: (1500, 3000),
            behaviours: Vec::new(),
            seed: 1,
        });
        let server = RejectsOverlap(model, message, size);
        let (run, recorder) = drive_until(&server, many_iterations(), false, None);
        assert_eq!(run.outcome(), Some(&Outcome::Complete));
        assert_eq!(
            recorder.learnt.worked(Strategy::Overlap),
            worked,
            "{message}"
        );
        assert_eq!(recorder.learnt.worked(Strategy::Remainder), Some(true));
    }
}

fn many_iterations() -> ContinuationOptions {
    ContinuationOptions {
        max_iterations: 10_000,
        // A percentage cannot rise with each of more than a hundred answers.
        kpi: Kpi::Off,
        ..ContinuationOptions::default()
    }
}

#[track_caller]
fn check_whole(ran: &Played) {
    assert_eq!(
        ran.run.outcome(),
        Some(&Outcome::Complete),
        "{:?}",
        ran.run.base().and_then(overlock_json::PartialDocument::cut)
    );
    assert_eq!(ran.run.text().trim_end(), ran.document.trim_end());
}

#[test]
fn every_strategy_completes_the_document() {
    for strategy in [Strategy::Prefill, Strategy::Overlap, Strategy::Remainder] {
        for breath in [(200, 400), (1000, 3000)] {
            let script = Script {
                document: report(20_000),
                breath,
                behaviours: vec![Behaviour::AsAsked],
                seed: 1,
            };
            let ran = play(
                script,
                ContinuationOptions {
                    strategies: vec![strategy],
                    ..many_iterations()
                },
            );
            assert_eq!(
                ran.run.outcome(),
                Some(&Outcome::Complete),
                "{strategy:?} {breath:?}"
            );
            let (is, should): (serde_json::Value, serde_json::Value) = (
                serde_json::from_str(ran.run.text()).expect("a complete document is valid"),
                serde_json::from_str(&ran.document).expect("valid"),
            );
            assert_eq!(is, should, "{strategy:?}");
        }
    }
}

#[test]
fn answers_with_their_overlap_are_joined_exactly() {
    for (bytes, breath) in [
        (1_000, (200, 300)),
        (50_000, (200, 8_000)),
        (1_000_000, (4_000, 8_000)),
    ] {
        let script = Script {
            document: report(bytes),
            breath,
            behaviours: Behaviour::AS_ASKED.to_vec(),
            seed: bytes as u64,
        };
        check_whole(&play(script, many_iterations()));
    }
}

#[test]
fn a_restarted_document_is_completed_with_the_default_options() {
    let script = Script {
        document: report(8_000),
        breath: (600, 800),
        behaviours: vec![Behaviour::RestartsDocument],
        seed: 3,
    };
    check_whole(&play(script, ContinuationOptions::default()));
}

#[test]
fn a_document_is_streamed_while_it_arrives() {
    let script = Script {
        document: report(50_000),
        breath: (4_000, 4_000),
        behaviours: vec![Behaviour::AsAsked, Behaviour::TellsProgress],
        seed: 1,
    };
    let ran = play(script, many_iterations());
    check_whole(&ran);
    // Many more pieces than answers.
    assert_eq!((ran.pieces, ran.run.iterations()), (178, 13));
}

#[test]
fn every_behaviour_comes_once_before_any_comes_twice() {
    let script = Script {
        document: report(20_000),
        breath: (500, 1_000),
        behaviours: Behaviour::ALL.to_vec(),
        seed: 5,
    };
    let model = ScriptedModel::new(script);
    drive(
        &model,
        ContinuationOptions {
            strategies: vec![Strategy::Overlap],
            ..many_iterations()
        },
        false,
    );
    let behaved = model.behaved();
    for behaviour in Behaviour::ALL {
        assert!(behaved.contains(&behaviour), "{behaviour:?}: {behaved:?}");
    }
    let mut pairs = behaved.windows(2);
    assert!(pairs.all(|pair| pair.iter().any(|behaviour| behaviour.has_new_text())));
}

#[test]
fn with_mixed_behaviours_the_result_is_correct_or_marked_partial() {
    /// The seeds that end with a part of the document, and why.
    const PARTIAL: [(u64, Reason); 0] = [];
    let mut partial = Vec::new();
    for seed in 0..40 {
        let script = Script {
            document: report(30_000),
            breath: (500, 4_000),
            behaviours: Behaviour::ALL.to_vec(),
            seed,
        };
        let ran = play(
            script,
            ContinuationOptions {
                kpi: Kpi::Off,
                max_failures: 6,
                ..many_iterations()
            },
        );
        match ran.run.outcome() {
            Some(Outcome::Complete) => {
                let is: serde_json::Value =
                    serde_json::from_str(ran.run.text()).expect("a complete document is valid");
                let should: serde_json::Value = serde_json::from_str(&ran.document).expect("valid");
                assert_eq!(is, should, "seed {seed}");
            }
            Some(Outcome::Partial { reason, .. }) => {
                partial.push((seed, *reason));
                let part = ran
                    .run
                    .last_valid_complete_part()
                    .expect("something is there");
                assert!(serde_json::from_str::<serde_json::Value>(&part).is_ok());
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert_eq!(partial, PARTIAL);
}
