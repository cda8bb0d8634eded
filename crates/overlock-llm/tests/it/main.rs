//! Requests as they are read and planned, and runs with a model behind them.

// The same over Anthropic's protocol.
mod anthropic;
// White space at the end of what is put in a model's mouth.
mod blanks;
// A scripted model behind a server, with all that can go wrong between.
mod http;
// What goes into the window, and what is sent.
mod plans;
// What is a chat request, and what it counts.
mod requests;
// A scripted model in the same process.
mod scripted;

use futures_util::future::BoxFuture;
use overlock_budget::Plan;
use overlock_llm::{CallEnd, Continuation, NextCall, Observe, Retry, Run, Step, StrategyResults};

/// Puts together what is told of a document while it arrives, and keeps all steps.
#[derive(Default)]
struct Listener {
    told: String,
    pieces: usize,
    steps: Vec<Step>,
    /// How many characters each call asked to have repeated.
    overlaps: Vec<usize>,
    /// How often a call was made again.
    retries: usize,
    /// What the run has shown about its strategies.
    learnt: StrategyResults,
}

impl Observe for Listener {
    fn asking(&mut self, ask: &NextCall, _plan: &Plan) {
        self.overlaps.push(ask.overlap.chars().count());
    }

    fn retrying(&mut self, _retry: &Retry) {
        self.retries += 1;
    }

    fn certain<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        self.told.push_str(text);
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

impl Listener {
    /// What was told was never taken back, and is all there is.
    #[track_caller]
    fn check(&self, run: &Continuation, live: bool) {
        let settled = run
            .base()
            .map_or(0, overlock_json::PartialDocument::settled_len);
        let expected = if live { &run.text()[..settled] } else { "" };
        assert!(self.told == expected, "{:?} {expected:?}", self.told);
    }
}

/// A report with sections of several kinds, of about so many bytes.
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
