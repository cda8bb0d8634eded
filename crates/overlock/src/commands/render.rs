//! `overlock render`: the structure from the root to the cut, under a budget.

use clap::{Args, ValueEnum};
use overlock_json::{LEAST_LIMIT, RenderedText, render_object};
use overlock_json::{RenderOptions, render};

use super::{Form, no_json};
use crate::batch;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Show a cut document under a budget, for a prompt
///
/// The text ends exactly at the cut. Only values cost budget, structure is free; the
/// budget is spent from the cut towards the root, and what it does not reach appears
/// as hints such as `<str>` or `<object>`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock render --budget 100 --cut-value tail report.cut.json\n\n\
    Exit codes: 0 done; 1 no JSON in the text; 2 bad usage or unreadable input.")]
pub(crate) struct Render {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    form: Form,
    /// How many characters of values may be written
    #[arg(long, value_name = "N", default_value_t = RenderOptions::default().budget, value_parser = parse_budget, allow_negative_numbers = true)]
    budget: usize,
    /// How the value that was cut appears
    #[arg(long, value_name = "HOW", default_value = "hint")]
    cut_value: CutValue,
    /// The most characters the whole text may have, structure included; at least 200
    #[arg(long, value_name = "N", value_parser = parse_limit, allow_negative_numbers = true)]
    limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CutValue {
    /// By the rule for every value: in full if it fits, else as a hint
    Hint,
    /// Always verbatim, outside of the budget
    Keep,
    /// Its last characters that fit
    Tail,
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
            limit: self.limit,
            ..RenderOptions::default()
        };
        if self.form.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(source, &self.source.name(), move |object| {
                render_object(object, options)
            });
        }
        let text = self.source.read(&mut notes)?;
        let rendered = render(&text.bytes, &options)
            .map_err(|reason| no_json(reason, &text.name, &self.form))?;
        if self.form.json {
            Results::new().object(&RenderedText { rendered })?;
        } else {
            Results::new().document(&[rendered.as_bytes()])?;
        }
        Ok(Ending::Whole)
    }
}

const NOT_A_NUMBER: &str = "must be a whole number from 0 on";

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
