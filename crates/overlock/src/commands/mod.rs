//! The commands: what can be asked, one file for each.

mod chat;
mod classify;
mod close;
mod compact;
mod complete;
mod completions;
mod cut;
mod demo;
mod fit;
mod index;
mod inspect;
mod models;
mod pipeline;
mod render;
mod repair;
mod search;
mod serve;
mod stitch;
mod tokens;

use clap::{Args, Parser, Subcommand};
use overlock_json::NoJson;
use overlock_json::Refusal;

use crate::ending::{Ending, Failure};
use crate::output::Results;

/// Keeps language-model calls whole
///
/// Has a model write one whole document, however often its answers are cut.
/// Finds where JSON was cut, closes and repairs it, shows it under a budget, and
/// stitches the pieces of a long answer into one document. Counts tokens, knows what
/// models can take, and fits requests into their windows. Tells SQL and .NET from other
/// text, makes them smaller for a prompt, and searches folders of them. Keeps conversations
/// and memories, and builds the context of an answer from them. Checks and runs pipelines of such
/// steps.
#[derive(Debug, Parser)]
#[command(
    name = "overlock",
    version,
    after_help = "Exit codes: 0 done; 1 an honest partial or negative result; 2 bad usage or unreadable input.\n\
                  New here? Try: overlock demo"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Complete(complete::Complete),
    Cut(cut::Cut),
    Close(close::Close),
    Repair(repair::Repair),
    Render(render::Render),
    Stitch(stitch::Stitch),
    Tokens(tokens::Tokens),
    Models(models::Models),
    Fit(fit::Fit),
    Classify(classify::Classify),
    Compact(compact::Compact),
    Index(index::Index),
    Search(search::Search),
    Chat(chat::Chat),
    Check(pipeline::Check),
    Graph(pipeline::Graph),
    Schema(pipeline::Schema),
    Run(pipeline::Run),
    Inspect(inspect::Inspect),
    Serve(serve::Serve),
    Demo(demo::Demo),
    Completions(completions::Completions),
}

impl Command {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        match self {
            Self::Complete(complete) => complete.run(),
            Self::Cut(cut) => cut.run(),
            Self::Close(close) => close.run(),
            Self::Repair(repair) => repair.run(),
            Self::Render(render) => render.run(),
            Self::Stitch(stitch) => stitch.run(),
            Self::Tokens(tokens) => tokens.run(),
            Self::Models(models) => models.run(),
            Self::Fit(fit) => fit.run(),
            Self::Classify(classify) => classify.run(),
            Self::Compact(compact) => compact.run(),
            Self::Index(index) => index.run(),
            Self::Search(search) => search.run(),
            Self::Chat(chat) => chat.run(),
            Self::Check(check) => check.run(),
            Self::Graph(graph) => graph.run(),
            Self::Schema(schema) => schema.run(),
            Self::Run(run) => run.run(),
            Self::Inspect(inspect) => inspect.run(),
            Self::Serve(serve) => serve.run(),
            Self::Demo(demo) => demo.run(),
            Self::Completions(completions) => completions.run(),
        }
    }
}

/// How the answer is wanted.
#[derive(Args, Debug)]
struct Form {
    /// Answer with one JSON object
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Answer many texts: one JSON object a line in, one a line out, in the same order
    #[arg(long)]
    jsonl: bool,
}

/// Turns "no JSON" into a failure that names the text, and tells machines as well.
fn no_json(reason: NoJson, name: &str, form: &Form) -> Failure {
    if form.json {
        // The failure that follows says the same; one that cannot be written adds nothing.
        let _ = Results::new().object(&Refusal::from(reason));
    }
    Failure::NoJson {
        name: name.into(),
        source: reason,
    }
}

fn parse_tokens(argument: &str) -> Result<u64, String> {
    argument
        .parse()
        .map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}
