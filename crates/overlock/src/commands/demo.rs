//! `overlock demo`: the product at work, with nothing set up.

use std::path::PathBuf;

use clap::Args;
use overlock_json::Cut;
use overlock_llm::Outcome;
use overlock_store::Access;
use serde::Serialize;

use crate::demo::{self, Call, REPORT, Story, Teller, whole_document};
use crate::draw::Join;
use crate::ending::{Ending, Failure};
use crate::input;
use crate::output::{Notes, Results};
use crate::runs;

/// Watch a document being cut and stitched
///
/// A scripted model writes a long document and is cut off again and again; its answers
/// come back the way real ones do. It stands behind a server on this machine's own address and
/// is asked as `overlock complete` asks any other. Every call, every cut and every seam is
/// shown, and the result is compared with the original, byte for byte.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock demo --seed 8\n  \
    $ overlock demo --document package-lock.json --fast\n\n\
    Exit codes: 0 the result is identical; 1 it is not; 2 bad usage or unreadable input.")]
pub(crate) struct Demo {
    /// The document to cut: any file with whole JSON in it
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// Cut elsewhere, and let the model behave in another order
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Record the run there, for `overlock inspect` [default: it is not recorded]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// No pauses, even on a terminal
    #[arg(long)]
    fast: bool,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
}

/// The answer to machines.
#[derive(Serialize)]
struct Answer<'a> {
    json: &'a str,
    identical: bool,
    #[serde(flatten)]
    ended: &'a Outcome,
    calls: Vec<CallAnswer<'a>>,
}

#[derive(Serialize)]
struct CallAnswer<'a> {
    behaviour: &'static str,
    /// What was sent and what was left for the answer, in tokens.
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
        let document = whole_document(&text.bytes).map_err(|unusable| Failure::Usage {
            message: format!("{} {unusable}", text.name),
            hint: "the demo cuts a whole document; `overlock close` or `overlock repair` makes one"
                .into(),
        })?;
        self.play(document)
    }

    fn play(&self, document: &str) -> Result<Ending, Failure> {
        let address = self.store.as_deref();
        let recorded_in = address.map(|address| runs::open_at(address, Access::Make));
        let recorded_in = recorded_in.transpose()?;
        let story = demo::play(document, self.seed, recorded_in.as_deref())?;
        if self.json {
            Results::new().object(&Answer::from(&story))?;
        } else {
            Teller::new(self.fast).tell(&story)?;
        }
        Ok(Ending::whole_if(story.is_identical()))
    }
}

impl<'a> From<&'a Story<'_>> for Answer<'a> {
    fn from(story: &'a Story<'_>) -> Self {
        Self {
            json: &story.result,
            identical: story.is_identical(),
            ended: &story.outcome,
            calls: story.calls.iter().map(CallAnswer::from).collect(),
        }
    }
}

impl<'a> From<&'a Call> for CallAnswer<'a> {
    fn from(call: &'a Call) -> Self {
        let (outcome, overlap) = match &call.join {
            Join::Made { name, overlap, .. } => (name.as_str(), *overlap),
            Join::Refused { name, .. } => (*name, 0),
        };
        Self {
            behaviour: call.behaviour.name(),
            input_tokens: call.plan.input_token_count,
            max_tokens: call.plan.adjusted_max_tokens,
            text: &call.text,
            outcome,
            overlap,
            cut: call.stop.as_ref().map(|stop| &stop.cut),
        }
    }
}
