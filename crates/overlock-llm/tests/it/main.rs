//! Requests, plans, and runs with a scripted model.

// Anthropic's API.
mod anthropic;
// White space at the end of a prefill.
mod blanks;
// A scripted model behind an HTTP server with faults.
mod http;
// Plans, and the requests that are sent.
mod plans;
// Validation and token counts of chat requests.
mod requests;
// A scripted model in the same process.
mod scripted;

use futures_util::future::BoxFuture;
use overlock_budget::Plan;
use overlock_llm::{CallEnd, Continuation, NextCall, Observe, Retry, Run, Step, StrategyResults};

/// Records what an observer receives.
#[derive(Default)]
struct Recorder {
    streamed: String,
    pieces: usize,
    steps: Vec<Step>,
    /// The characters of the overlap in each call.
    overlaps: Vec<usize>,
    /// The number of retries.
    retries: usize,
    /// The strategy results of the run.
    learnt: StrategyResults,
}

impl Observe for Recorder {
    fn asking(&mut self, ask: &NextCall, _plan: &Plan) {
        self.overlaps.push(ask.overlap.chars().count());
    }

    fn retrying(&mut self, _retry: &Retry) {
        self.retries += 1;
    }

    fn stable<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        self.streamed.push_str(text);
        self.pieces += 1;
        Box::pin(std::future::ready(()))
    }

    fn stepped<'a>(
        &'a mut self,
        _run: Run<'a>,
        step: &'a Step,
        _end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn std::error::Error + Send + Sync>>> {
        self.steps.push(step.clone());
        Box::pin(std::future::ready(Ok(())))
    }

    fn learnt(&mut self, results: StrategyResults) {
        self.learnt = results;
    }
}

impl Recorder {
    /// The streamed text is the settled text, and was never revised.
    #[track_caller]
    fn check(&self, run: &Continuation, live: bool) {
        let settled = run
            .base()
            .map_or(0, overlock_json::PartialDocument::settled_len);
        let expected = if live { &run.text()[..settled] } else { "" };
        assert!(
            self.streamed == expected,
            "{:?} {expected:?}",
            self.streamed
        );
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

/// A report with sections of several kinds, of about this many bytes.
fn report(bytes: usize) -> String {
    let mut text = String::from("{\"title\": \"Überblick – 概要\", \"sections\": [");
    for number in 0.. {
        let section = format!(
            "\n  {{\"id\": \"section-{number}\", \"content_type\": \"table\", \"rows\": [[\"a{number}\", {}, true], [\"b{number}\", -{number}.5e3, null]], \"note\": \"Zeile \\\"{number}\\\"\\n\\u00e9 🚀 {}\"}},",
            number * 7919,
            number * 31,
        );
        text.push_str(&section);
        if text.len() >= bytes {
            break;
        }
    }
    text.pop();
    text + "\n]}\n"
}
