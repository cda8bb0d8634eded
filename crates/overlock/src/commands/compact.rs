//! `overlock compact`: makes SQL and .NET source code smaller for prompts.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use overlock_budget::CountTokens;
use overlock_code::{
    CompactOptions, Compacted, Docs, FitOptions, Fitted, Language, Level, classify, compact, fit,
};
use serde::Serialize;

use super::FormatArgs;
use super::tokens::CounterArgs;
use crate::batch;
use crate::config::ConfigSource;
use crate::draw;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Make SQL and C# smaller for a prompt
///
/// `lossless` removes comments, regions, blank lines and layout; strings, hints and directives stay
/// byte for byte, and so does the meaning. `outline` also removes bodies, and keeps declarations,
/// columns, parameters, tables and predicates. A number selects the most detailed form with at most
/// that many tokens. Code that cannot be parsed with certainty stays unchanged, with a note.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo 'SELECT  a , b /* names */ FROM t' | overlock compact\n  \
    SELECT a,b FROM t\n\n\
    Without bodies, or with at most 2,000 tokens:\n  \
    $ overlock compact --level outline Orders.cs\n  \
    $ overlock compact --level 2000 --encoding o200k_base --relevant total Orders.cs\n\n\
    Keys of a --jsonl line: text.\n\n\
    Exit codes: 0 done, or nothing to remove; 1 could not compact fully; 2 bad usage or unreadable\n\
    input.")]
pub(crate) struct Compact {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    format: FormatArgs,
    /// How much to remove: `lossless`, `outline`, or the largest number of tokens of the result
    #[arg(long, value_name = "LEVEL", default_value = "lossless", value_parser = parse_level)]
    level: CompactTarget,
    /// The language: `sql`, `dotnet`, `dotnet_with_sql` or `unknown` [default: detected]
    #[arg(long, value_name = "LANGUAGE", value_parser = parse_language)]
    language: Option<Language>,
    /// What to do with documentation comments
    #[arg(long, value_enum, default_value_t = DocsChoice::Drop)]
    docs: DocsChoice,
    /// With a number as the level: members that contain this word keep their bodies longest; can
    /// be repeated
    #[arg(long, value_name = "WORD")]
    relevant: Vec<String>,
    /// Print on standard error how much was saved
    #[arg(long, conflicts_with = "jsonl")]
    stats: bool,
    #[command(flatten)]
    counter: CounterArgs,
    #[command(flatten)]
    config: ConfigSource,
}

#[derive(Clone, Copy, Debug)]
enum CompactTarget {
    Level(Level),
    Tokens(u64),
}

impl CompactTarget {
    /// The level, or the lowest one for a number of tokens.
    fn level(self) -> Level {
        match self {
            Self::Level(level) => level,
            Self::Tokens(_) => Level::Outline,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DocsChoice {
    /// Keep them
    Keep,
    /// Remove them
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

/// The output of `--json`, or an output line of `--jsonl`.
#[derive(Serialize)]
struct CompactReport {
    text: String,
    language: &'static str,
    compacted: bool,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fits: Option<bool>,
    #[serde(skip)]
    is_complete: bool,
}

/// The options for every text.
struct Compactor {
    target: CompactTarget,
    language: Option<Language>,
    docs: Docs,
    relevant: Vec<String>,
    /// Always set if the target is a number of tokens.
    counter: Option<Arc<dyn CountTokens>>,
}

impl Compact {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let compactor = Compactor {
            target: self.level,
            language: self.language,
            docs: self.docs.into(),
            counter: self.counter(&mut notes)?,
            relevant: self.relevant,
        };
        if self.format.jsonl {
            let source = self.source.open(&mut notes)?;
            return batch::run(source, &self.source.name(), &["text"], move |mut object| {
                Ok(compactor.compact(&object.text("text")?))
            });
        }
        let text = self.source.read_text(&mut notes)?;
        let report = compactor.compact(&text);
        if self.stats {
            compactor.note_savings(&text, &report.text, &mut notes);
        }
        let mut results = Results::new();
        if self.format.json {
            results.object(&report)?;
        } else {
            results.document(&[report.text.as_bytes()])?;
            if !report.is_complete {
                notes.note(format_args!("could not compact fully: `{}`", report.reason));
            }
        }
        Ok(Ending::done_if(report.is_complete))
    }

    /// The counter, if tokens are counted.
    fn counter(&self, notes: &mut Notes) -> Result<Option<Arc<dyn CountTokens>>, Failure> {
        let counts = matches!(self.level, CompactTarget::Tokens(_))
            || (self.stats && self.counter.is_given());
        if !counts {
            return Ok(None);
        }
        let config = self.config.load(notes)?;
        let (counter, _) = self.counter.open(&config, notes)?;
        counter.note(notes);
        Ok(Some(counter.tokens))
    }
}

impl Compactor {
    fn compact(&self, text: &str) -> CompactReport {
        let language = self.language.unwrap_or_else(|| classify(text).language);
        match (self.target, &self.counter) {
            (CompactTarget::Tokens(tokens), Some(counter)) => {
                let relevant: Vec<&str> = self.relevant.iter().map(String::as_str).collect();
                let options = FitOptions {
                    tokens,
                    docs: self.docs,
                    relevant: &relevant,
                };
                let fitted = fit(text, language, &options, &|text| counter.count(text));
                CompactReport::fitted(fitted, text, language)
            }
            (target, _) => {
                let options = CompactOptions {
                    level: target.level(),
                    docs: self.docs,
                };
                CompactReport::compacted(compact(text, language, &options), language)
            }
        }
    }

    fn note_savings(&self, text: &str, compacted: &str, notes: &mut Notes) {
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

impl CompactReport {
    fn compacted(compacted: Compacted, language: Language) -> Self {
        Self {
            language: language.name(),
            compacted: compacted.compacted,
            reason: compacted.reason.name(),
            is_complete: !compacted.reason.is_fall_back(),
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
            is_complete: fitted.fits,
            text: fitted.text,
            tokens: Some(fitted.tokens),
            fits: Some(fitted.fits),
        }
    }
}

fn parse_level(argument: &str) -> Result<CompactTarget, String> {
    match argument {
        "lossless" => Ok(CompactTarget::Level(Level::Lossless)),
        "outline" => Ok(CompactTarget::Level(Level::Outline)),
        number => number
            .parse()
            .map(CompactTarget::Tokens)
            .map_err(|_| "must be `lossless`, `outline` or a whole number of tokens".to_owned()),
    }
}

fn parse_language(argument: &str) -> Result<Language, String> {
    Language::from_name(argument)
        .ok_or_else(|| "must be `sql`, `dotnet`, `dotnet_with_sql` or `unknown`".to_owned())
}
