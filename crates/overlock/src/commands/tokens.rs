//! `overlock tokens`: counts the tokens of a text.

use std::sync::Arc;

use clap::Args;
use overlock_budget::{CountTokens, Keep, Provenance};
use overlock_json::clean_encoding;
use serde::Serialize;

use super::models::note_unknown;
use super::{FormatArgs, parse_tokens};
use crate::batch;
use crate::config::{Config, ConfigSource};
use crate::counter::{Counter, EncodingArgs};
use crate::draw;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Count the tokens of a text
///
/// Uses the tokenizer of a model, an encoding, or any Hugging Face tokenizer.json. Text that looks
/// like a control token is counted as text. If the model's own tokenizer is not available, another
/// one is used, and the count is marked as an estimate.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo -n 'Where is the nearest river?' | overlock tokens --model gpt-4o\n  \
    6\n\n\
    Keys of a --jsonl line: text.\n\n\
    Exit codes: 0 done; 1 more tokens than --limit; 2 bad usage or unreadable input.")]
pub(crate) struct Tokens {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    counter: CounterArgs,
    /// Stop counting at this many tokens; a longer text gives no count and exit code 1
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true)]
    limit: Option<u64>,
    /// Print the longest beginning of the text with at most this many tokens
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true,
          conflicts_with = "limit")]
    truncate: Option<u64>,
    /// Keep the end of the text instead of the beginning
    #[arg(long, requires = "truncate")]
    from_end: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// How to count: at most one of these.
#[derive(Args, Debug)]
pub(super) struct CounterArgs {
    /// Count with the tokenizer of this model [default: `budget.model` of the configuration]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["encoding", "tokenizer"])]
    model: Option<String>,
    #[command(flatten)]
    encoding: EncodingArgs,
}

/// The output of `--json`.
#[derive(Serialize)]
struct TokensReport {
    /// `None` above the limit.
    tokens: Option<u64>,
    exact: bool,
    counter: String,
    provenance: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// An output line of `--jsonl`.
#[derive(Serialize)]
struct TokensLine {
    tokens: Option<u64>,
    exact: bool,
    counter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// What to do with a text.
#[derive(Clone, Copy)]
enum CountTask {
    Count,
    CountUpTo(u64),
    Truncate(u64, Keep),
}

impl Tokens {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let (counter, model) = self.counter.open(&config, &mut notes)?;
        let task = self.task();
        let exact = counter.provenance == Provenance::Exact;
        counter.note(&mut notes);
        if self.format.jsonl {
            let source = self.source.open(&mut notes)?;
            let tokens = Arc::clone(&counter.tokens);
            let name = counter.name;
            return batch::run(source, &self.source.name(), &["text"], move |mut object| {
                let text = object.text("text")?;
                let (count, kept) = task.run(&text, tokens.as_ref());
                Ok(TokensLine {
                    tokens: count,
                    exact,
                    counter: name.clone(),
                    text: kept.map(str::to_owned),
                })
            });
        }
        let text = self.source.read(&mut notes)?;
        let text = clean_encoding(&text.bytes).text;
        let (count, kept) = task.run(&text, counter.tokens.as_ref());
        let mut results = Results::new();
        if self.format.json {
            results.object(&TokensReport {
                tokens: count,
                exact,
                counter: counter.name,
                provenance: counter.provenance.name(),
                model,
                limit: self.limit,
                text: kept.map(str::to_owned),
            })?;
        } else {
            self.print(count, kept, &mut results, &mut notes)?;
        }
        Ok(Ending::done_if(count.is_some()))
    }

    fn print(
        &self,
        count: Option<u64>,
        kept: Option<&str>,
        results: &mut Results,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        match (count, kept) {
            (Some(count), Some(kept)) => {
                results.document(&[kept.as_bytes()])?;
                notes.note(format_args!("kept {} tokens", draw::grouped_tokens(count)));
            }
            (Some(count), None) => results.line(&count.to_string())?,
            (None, _) => {
                let limit = draw::grouped_tokens(self.limit.unwrap_or(u64::MAX));
                notes.note(format_args!("the text has more than {limit} tokens"));
            }
        }
        Ok(())
    }

    fn task(&self) -> CountTask {
        let keep = if self.from_end {
            Keep::End
        } else {
            Keep::Start
        };
        match (self.limit, self.truncate) {
            (_, Some(tokens)) => CountTask::Truncate(tokens, keep),
            (Some(limit), None) => CountTask::CountUpTo(limit),
            (None, None) => CountTask::Count,
        }
    }
}

impl CountTask {
    /// The number of tokens, unless it exceeds the limit, and the truncated text.
    fn run<'text>(
        self,
        text: &'text str,
        tokens: &dyn CountTokens,
    ) -> (Option<u64>, Option<&'text str>) {
        match self {
            Self::Count => (Some(tokens.count(text)), None),
            Self::CountUpTo(limit) => (tokens.count_up_to(text, limit), None),
            Self::Truncate(limit, keep) => {
                let kept = tokens.truncate_to(text, limit, keep);
                (Some(tokens.count(kept)), Some(kept))
            }
        }
    }
}

impl CounterArgs {
    pub(super) fn is_given(&self) -> bool {
        let EncodingArgs {
            encoding,
            tokenizer,
        } = &self.encoding;
        self.model.is_some() || encoding.is_some() || tokenizer.is_some()
    }

    /// The counter, and the model whose tokens it counts.
    pub(super) fn open(
        &self,
        config: &Config,
        notes: &mut Notes,
    ) -> Result<(Counter, Option<String>), Failure> {
        if let Some(counter) = self.encoding.counter()? {
            return Ok((counter, None));
        }
        let Some(model) = self.model.as_deref().or(config.budget.model.as_deref()) else {
            return Err(Failure::Usage {
                message: "no model or encoding given".into(),
                hint: "give --model NAME, --encoding NAME or --tokenizer FILE, or set \
                       `budget.model` in overlock.toml"
                    .into(),
            });
        };
        let models = config.models();
        let found = models.find(model);
        note_unknown(model, &models, notes);
        let counter = Counter::for_model(model, &found, config)?;
        Ok((counter, Some(model.to_owned())))
    }
}
