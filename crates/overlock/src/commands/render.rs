//! `overlock render`: prints a cut document within a budget of characters.

use clap::{Args, ValueEnum};
use overlock_json::{LEAST_LIMIT, RenderedText, render_object};
use overlock_json::{PartialDocument, RenderOptions};

use super::{FormatArgs, no_json};
use crate::batch;
use crate::draw;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Shorten a cut document for a prompt
///
/// The output ends exactly at the cut. Only the characters of values count; keys and brackets are
/// free. Values near the cut are kept first, all others become hints such as `<str>` or `<object>`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock render --budget 100 --cut-value tail report.cut.json\n\n\
    Keys of a --jsonl line: text, budget, cut_value, summary, limit.\n\n\
    Exit codes: 0 done; 1 no JSON in the text; 2 bad usage or unreadable input.")]
pub(crate) struct Render {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    format: FormatArgs,
    /// The largest number of characters of values
    #[arg(long, value_name = "N", default_value_t = RenderOptions::default().budget, value_parser = parse_budget, allow_negative_numbers = true)]
    budget: usize,
    /// How to show the value that was cut
    #[arg(long, value_name = "HOW", default_value = "hint")]
    cut_value: CutValue,
    /// What to show of containers far from the cut, when the budget is spent
    #[arg(long, value_name = "WHAT", default_value = "types")]
    summary: SummaryMode,
    /// The largest number of characters of the output, at least 200; on a terminal 10,000 by default
    #[arg(long, value_name = "N", value_parser = parse_limit, allow_negative_numbers = true)]
    limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CutValue {
    /// Like every value: in full if it fits, otherwise as a hint
    Hint,
    /// In full, without counting its characters
    Keep,
    /// The last characters that fit
    Tail,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SummaryMode {
    /// Their types: `<object>` or `<array>`
    Types,
    /// The keys of objects, without values
    Keys,
}

impl From<SummaryMode> for overlock_json::SummaryMode {
    fn from(summary: SummaryMode) -> Self {
        match summary {
            SummaryMode::Types => Self::Types,
            SummaryMode::Keys => Self::Keys,
        }
    }
}

impl From<CutValue> for overlock_json::CutValue {
    fn from(cut_value: CutValue) -> Self {
        match cut_value {
            CutValue::Hint => Self::Hint,
            CutValue::Keep => Self::Keep,
            CutValue::Tail => Self::Tail,
        }
    }
}

impl Render {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let options = RenderOptions {
            budget: self.budget,
            cut_value: self.cut_value.into(),
            summary: self.summary.into(),
            limit: self.limit,
            ..RenderOptions::default()
        };
        if self.format.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(
                source,
                &self.source.name(),
                &["text", "budget", "cut_value", "summary", "limit"],
                move |object| render_object(object, options),
            );
        }
        let text = self.source.read(&mut notes)?;
        let base = PartialDocument::read(&text.bytes)
            .map_err(|reason| no_json(reason, &text.name, &self.format))?;
        let mut rendered = base.render(&options);
        let mut results = Results::new();
        if self.format.json {
            results.object(&RenderedText { rendered })?;
            return Ok(Ending::Done);
        }
        let is_long = || rendered.chars().nth(TERMINAL_LIMIT).is_some();
        let shorten = self.limit.is_none() && results.is_terminal() && is_long();
        if shorten {
            rendered = base.render(&RenderOptions {
                limit: Some(TERMINAL_LIMIT),
                ..options
            });
        }
        results.document(&[rendered.as_bytes()])?;
        if shorten {
            notes.note(format_args!(
                "shortened to {} characters for the terminal; set --limit for more",
                draw::grouped(TERMINAL_LIMIT)
            ));
        }
        Ok(Ending::Done)
    }
}

/// The limit on a terminal, unless one is given: a few screens.
const TERMINAL_LIMIT: usize = 10_000;

const NOT_A_NUMBER: &str = "must be a non-negative integer";

fn parse_budget(argument: &str) -> Result<usize, String> {
    argument.parse().map_err(|_| NOT_A_NUMBER.into())
}

fn parse_limit(argument: &str) -> Result<usize, String> {
    match argument.parse() {
        Ok(limit) if limit >= LEAST_LIMIT => Ok(limit),
        Ok(_) => Err(format!("must be at least {LEAST_LIMIT}")),
        Err(_) => Err(NOT_A_NUMBER.into()),
    }
}
