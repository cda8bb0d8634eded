//! `overlock demo`: shows Overlock at work without any setup.

use std::path::PathBuf;

use clap::Args;
use overlock_json::Cut;
use overlock_llm::Outcome;
use overlock_store::Access;
use serde::Serialize;

use crate::demo::{self, DemoCall, DemoOutput, DemoRun, REPORT, complete_document};
use crate::draw::Join;
use crate::ending::{Ending, Failure};
use crate::input;
use crate::output::{Notes, Results};
use crate::runs;

/// Watch a document being cut and stitched
///
/// A scripted model, served on a local port, writes a long document and is cut off again and again;
/// it makes the mistakes that real models make. It is called as by `overlock complete`. Each call,
/// cut and seam is shown, and the result is compared with the original byte for byte.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock demo --seed 8\n  \
    $ overlock demo --document package-lock.json --fast\n\n\
    Exit codes: 0 the result is identical; 1 it is not; 2 bad usage or unreadable input.")]
pub(crate) struct Demo {
    /// The document to cut: a file with complete JSON [default: a built-in report]
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// The seed for the positions of the cuts and the behaviour of the model
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Record the run in this store, for `overlock inspect` [default: not recorded]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Do not pause, even on a terminal
    #[arg(long)]
    fast: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct DemoReport<'a> {
    json: &'a str,
    identical: bool,
    #[serde(flatten)]
    ended: &'a Outcome,
    calls: Vec<CallReport<'a>>,
}

#[derive(Serialize)]
struct CallReport<'a> {
    behaviour: &'static str,
    input_tokens: u64,
    max_tokens: u64,
    text: &'a str,
    outcome: &'a str,
    overlap: usize,
    cut: Option<&'a Cut>,
}

impl Demo {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let Some(path) = &self.document else {
            return self.play(REPORT.trim_end());
        };
        let text = input::read(path, &mut Notes::new())?;
        let document = complete_document(&text.bytes).map_err(|unusable| Failure::Usage {
            message: format!("{} {unusable}", text.name),
            hint: "give a complete document; `overlock close` or `overlock repair` makes one"
                .into(),
        })?;
        self.play(document)
    }

    fn play(&self, document: &str) -> Result<Ending, Failure> {
        let address = self.store.as_deref();
        let store = address.map(|address| runs::open_at(address, Access::Create));
        let store = store.transpose()?;
        let run = demo::play(document, self.seed, store.as_deref())?;
        if self.json {
            Results::new().object(&DemoReport::from(&run))?;
        } else {
            DemoOutput::new(self.fast).print(&run)?;
        }
        Ok(Ending::done_if(run.is_identical()))
    }
}

impl<'a> From<&'a DemoRun<'_>> for DemoReport<'a> {
    fn from(run: &'a DemoRun<'_>) -> Self {
        Self {
            json: &run.result,
            identical: run.is_identical(),
            ended: &run.outcome,
            calls: run.calls.iter().map(CallReport::from).collect(),
        }
    }
}

impl<'a> From<&'a DemoCall> for CallReport<'a> {
    fn from(call: &'a DemoCall) -> Self {
        let (outcome, overlap) = match &call.join {
            Join::Made { name, overlap, .. } => (name.as_str(), *overlap),
            Join::Rejected { name, .. } => (*name, 0),
        };
        Self {
            behaviour: call.behaviour.name(),
            input_tokens: call.plan.input_token_count,
            max_tokens: call.plan.adjusted_max_tokens,
            text: &call.text,
            outcome,
            overlap,
            cut: call.cut.as_ref().map(|state| &state.cut),
        }
    }
}
