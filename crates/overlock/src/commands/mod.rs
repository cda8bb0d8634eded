//! The commands, one file for each.

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

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use overlock_json::{NoJson, Refusal};

use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};

/// Finish LLM answers that were cut off, and make requests fit the context window
///
/// `serve` is a gateway that does both for any OpenAI client; `complete` does it for one document.
/// The other commands do single steps: close, repair and stitch cut JSON, count tokens and fit
/// requests, compact, index and search source code, store conversations and memories, and run
/// pipelines of such steps.
#[derive(Debug, Parser)]
#[command(
    name = "overlock",
    version,
    after_help = "Exit codes: 0 done; 1 partial result or nothing found; 2 bad usage or unreadable input.\n\
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

/// The format of the output.
#[derive(Args, Debug)]
struct FormatArgs {
    /// Print one JSON object
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Process many texts: one JSON object per line in, one per line out, in the same order
    #[arg(long)]
    jsonl: bool,
}

/// Notes the documents of a text that a command for one document leaves out.
fn note_other_documents(notes: &mut Notes, count: usize) {
    if count > 0 {
        let (documents, are) = if count == 1 {
            ("document", "is")
        } else {
            ("documents", "are")
        };
        notes.note(format_args!(
            "{count} other {documents} in the text {are} left out (`overlock repair` makes an array of all)"
        ));
    }
}

/// The failure for a text without JSON. With `--json` it is printed as an object, too.
fn no_json(reason: NoJson, name: &str, format: &FormatArgs) -> Failure {
    if format.json {
        // The failure reports the same.
        let _ = Results::new().object(&Refusal::from(reason));
    }
    Failure::NoJson {
        name: name.into(),
        source: reason,
    }
}

/// Accepts one of these values by its name.
fn choice_parser<T, const COUNT: usize>(
    all: [T; COUNT],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.map(name)).map(move |given| {
        let choice = all.into_iter().find(|choice| name(*choice) == given);
        choice.expect("only these names are possible")
    })
}

fn parse_tokens(argument: &str) -> Result<u64, String> {
    argument
        .parse()
        .map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}
