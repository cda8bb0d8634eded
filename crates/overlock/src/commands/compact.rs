//! `overlock compact`: SQL and .NET with less for a model to read.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use overlock_budget::CountTokens;
use overlock_code::{
    CompactOptions, Compacted, Docs, FitOptions, Fitted, Language, Level, classify, compact, fit,
};
use serde::Serialize;

use super::Form;
use super::tokens::Way;
use crate::batch;
use crate::config::ConfigSource;
use crate::draw;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Make SQL and C# smaller for a prompt
///
/// `lossless` takes out comments, regions, blank lines and layout: what a compiler or a database
/// reads stays the same, byte for byte in every string, hint and directive. `outline` leaves bodies
/// out as well, and keeps declarations, columns, parameters, tables and predicates. A number takes
/// the richest form that has at most so many tokens. What cannot be read with certainty is left as
/// it is, and that is said.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo 'SELECT  a , b /* names */ FROM t' | overlock compact\n  \
    SELECT a,b FROM t\n\n\
    Bodies left out, or as much as has 2,000 tokens:\n  \
    $ overlock compact --level outline Orders.cs\n  \
    $ overlock compact --level 2000 --encoding o200k_base --relevant total Orders.cs\n\n\
    Exit codes: 0 done, or nothing to gain; 1 less was done than asked; 2 bad usage or unreadable\n\
    input.")]
pub(crate) struct Compact {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    form: Form,
    /// How much may go: `lossless`, `outline`, or the tokens that the text may have
    #[arg(long, value_name = "LEVEL", default_value = "lossless", value_parser = parse_level)]
    level: Wanted,
    /// What the text is; told from the text if it is not given
    #[arg(long, value_name = "LANGUAGE", value_parser = parse_language)]
    language: Option<Language>,
    /// What becomes of documentation comments
    #[arg(long, value_enum, default_value_t = DocsChoice::Drop)]
    docs: DocsChoice,
    /// A word whose members keep their bodies longest, with a number as the level; can be repeated
    #[arg(long, value_name = "WORD")]
    relevant: Vec<String>,
    /// Say on standard error how much was saved
    #[arg(long, conflicts_with = "jsonl")]
    stats: bool,
    #[command(flatten)]
    way: Way,
    #[command(flatten)]
    config: ConfigSource,
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Level(Level),
    Tokens(u64),
}

impl Wanted {
    /// The level that comes closest.
    fn level(self) -> Level {
        match self {
            Self::Level(level) => level,
            Self::Tokens(_) => Level::Outline,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DocsChoice {
    /// They stay
    Keep,
    /// They go
    Drop,
}

impl From<DocsChoice> for Docs {
    fn from(choice: DocsChoice) -> Self {
        match choice {
            DocsChoice::Keep => Self::Keep,
            DocsChoice::Drop => Self::Drop,
        }
    }
}

/// The answer to machines, alone or one of many.
#[derive(Serialize)]
struct Answer {
    text: String,
    language: &'static str,
    compacted: bool,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fits: Option<bool>,
    #[serde(skip)]
    as_asked: bool,
}

/// What is done to every text.
struct Task {
    wanted: Wanted,
    language: Option<Language>,
    docs: Docs,
    relevant: Vec<String>,
    /// Who counts, where something is counted; always there with a number of tokens.
    counter: Option<Arc<dyn CountTokens>>,
}

impl Compact {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let task = Task {
            wanted: self.level,
            language: self.language,
            docs: self.docs.into(),
            counter: self.counter(&mut notes)?,
            relevant: self.relevant,
        };
        if self.form.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(source, &self.source.name(), move |mut object| {
                Ok(task.answer(&object.text("text")?))
            });
        }
        let text = self.source.read_text(&mut notes)?;
        let answer = task.answer(&text);
        if self.stats {
            task.tell_savings(&text, &answer.text, &mut notes);
        }
        let mut results = Results::new();
        if self.form.json {
            results.object(&answer)?;
        } else {
            results.document(&[answer.text.as_bytes()])?;
            if !answer.as_asked {
                notes.note(format_args!(
                    "less was done than asked: `{}`",
                    answer.reason
                ));
            }
        }
        Ok(Ending::whole_if(answer.as_asked))
    }

    /// Who counts, if something is to be counted.
    fn counter(&self, notes: &mut Notes) -> Result<Option<Arc<dyn CountTokens>>, Failure> {
        let counts = matches!(self.level, Wanted::Tokens(_)) || (self.stats && self.way.is_named());
        if !counts {
            return Ok(None);
        }
        let config = self.config.load(notes)?;
        let (counter, _) = self.way.counter(&config, notes)?;
        counter.note(notes);
        Ok(Some(counter.tokens))
    }
}

impl Task {
    fn answer(&self, text: &str) -> Answer {
        let language = self.language.unwrap_or_else(|| classify(text).language);
        match (self.wanted, &self.counter) {
            (Wanted::Tokens(tokens), Some(counter)) => {
                let relevant: Vec<&str> = self.relevant.iter().map(String::as_str).collect();
                let options = FitOptions {
                    tokens,
                    docs: self.docs,
                    relevant: &relevant,
                };
                let fitted = fit(text, language, &options, &|text| counter.count(text));
                Answer::fitted(fitted, text, language)
            }
            (wanted, _) => {
                let options = CompactOptions {
                    level: wanted.level(),
                    docs: self.docs,
                };
                Answer::compacted(compact(text, language, &options), language)
            }
        }
    }

    fn tell_savings(&self, text: &str, compacted: &str, notes: &mut Notes) {
        let saved = |before: u64, after: u64, what: &str| {
            let before_shown = draw::grouped_tokens(before);
            let after_shown = draw::grouped_tokens(after);
            let permille = before.saturating_sub(after) * 1000 / before.max(1);
            format!(
                "{before_shown} {what} became {after_shown}: {}.{} % less",
                permille / 10,
                permille % 10
            )
        };
        notes.note(saved(text.len() as u64, compacted.len() as u64, "bytes"));
        if let Some(counter) = &self.counter {
            notes.note(saved(
                counter.count(text),
                counter.count(compacted),
                "tokens",
            ));
        }
    }
}

impl Answer {
    fn compacted(compacted: Compacted, language: Language) -> Self {
        Self {
            language: language.name(),
            compacted: compacted.compacted,
            reason: compacted.reason.name(),
            as_asked: !compacted.reason.is_fall_back(),
            text: compacted.text,
            tokens: None,
            fits: None,
        }
    }

    fn fitted(fitted: Fitted, text: &str, language: Language) -> Self {
        Self {
            language: language.name(),
            compacted: fitted.text.len() < text.len(),
            reason: fitted.form.name(),
            as_asked: fitted.fits,
            text: fitted.text,
            tokens: Some(fitted.tokens),
            fits: Some(fitted.fits),
        }
    }
}

fn parse_level(argument: &str) -> Result<Wanted, String> {
    match argument {
        "lossless" => Ok(Wanted::Level(Level::Lossless)),
        "outline" => Ok(Wanted::Level(Level::Outline)),
        number => number
            .parse()
            .map(Wanted::Tokens)
            .map_err(|_| "must be `lossless`, `outline` or a whole number of tokens".to_owned()),
    }
}

fn parse_language(argument: &str) -> Result<Language, String> {
    Language::from_name(argument)
        .ok_or_else(|| "must be `sql`, `dotnet`, `dotnet_with_sql` or `unknown`".to_owned())
}
