//! `overlock tokens`: how many tokens a text is.

use std::sync::Arc;

use clap::Args;
use overlock_budget::{CountTokens, Keep, Provenance};
use overlock_json::clean_encoding;
use serde::Serialize;

use super::models::note_unknown;
use super::{Form, parse_tokens};
use crate::batch;
use crate::config::{Config, ConfigSource};
use crate::counter::{Counter, Named};
use crate::draw;
use crate::ending::{Ending, Failure};
use crate::input::Source;
use crate::output::{Notes, Results};

/// Count the tokens of a text
///
/// With the tokenizer of a model, an encoding by name, or any Hugging Face tokenizer.json. Text
/// that only looks like a control token is counted as text. Where a model's own tokenizer is not
/// at hand another one stands in, and the answer says that it is an estimate.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ echo -n 'Where is the nearest river?' | overlock tokens --model gpt-4o\n  \
    6\n\n\
    Exit codes: 0 done; 1 more tokens than --limit; 2 bad usage or unreadable input.")]
pub(crate) struct Tokens {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    way: Way,
    /// Stop at this many tokens: a text with more gets no number, and exit code 1
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true)]
    limit: Option<u64>,
    /// Print the longest beginning of the text that has at most this many tokens
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true,
          conflicts_with = "limit")]
    truncate: Option<u64>,
    /// Keep the end of the text, and not its beginning
    #[arg(long, requires = "truncate")]
    from_end: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// What to count with; one of them.
#[derive(Args, Debug)]
pub(super) struct Way {
    /// Count as this model does [default: `budget.model` of the configuration]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["encoding", "tokenizer"])]
    model: Option<String>,
    #[command(flatten)]
    named: Named,
}

/// The answer to machines.
#[derive(Serialize)]
struct Answer {
    /// None if there are more than the limit.
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

/// The answer to one line of many.
#[derive(Serialize)]
struct LineAnswer {
    tokens: Option<u64>,
    exact: bool,
    counter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// What is asked of a text.
#[derive(Clone, Copy)]
enum Question {
    Count,
    CountUpTo(u64),
    Truncate(u64, Keep),
}

impl Tokens {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let (counter, model) = self.way.counter(&config, &mut notes)?;
        let question = self.question();
        let exact = counter.provenance == Provenance::Exact;
        counter.note(&mut notes);
        if self.form.jsonl {
            let source = self.source.open(&mut notes)?;
            let tokens = Arc::clone(&counter.tokens);
            let name = counter.name;
            return batch::run(source, &self.source.name(), move |mut object| {
                let text = object.text("text")?;
                let (count, kept) = question.answer(&text, tokens.as_ref());
                Ok(LineAnswer {
                    tokens: count,
                    exact,
                    counter: name.clone(),
                    text: kept.map(str::to_owned),
                })
            });
        }
        let text = self.source.read(&mut notes)?;
        let text = clean_encoding(&text.bytes).text;
        let (count, kept) = question.answer(&text, counter.tokens.as_ref());
        let mut results = Results::new();
        if self.form.json {
            results.object(&Answer {
                tokens: count,
                exact,
                counter: counter.name,
                provenance: counter.provenance.name(),
                model,
                limit: self.limit,
                text: kept.map(str::to_owned),
            })?;
        } else {
            self.tell(count, kept, &mut results, &mut notes)?;
        }
        Ok(Ending::whole_if(count.is_some()))
    }

    fn tell(
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
                notes.note(format_args!("there are more than {limit} tokens"));
            }
        }
        Ok(())
    }

    fn question(&self) -> Question {
        let keep = if self.from_end {
            Keep::End
        } else {
            Keep::Start
        };
        match (self.limit, self.truncate) {
            (_, Some(tokens)) => Question::Truncate(tokens, keep),
            (Some(limit), None) => Question::CountUpTo(limit),
            (None, None) => Question::Count,
        }
    }
}

impl Question {
    /// The tokens, unless there are too many; and what is kept of the text, if that was asked.
    fn answer<'text>(
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

impl Way {
    /// Whether something to count with was named on the command line.
    pub(super) fn is_named(&self) -> bool {
        self.model.is_some() || self.named.encoding.is_some() || self.named.tokenizer.is_some()
    }

    /// Who counts, and the model it is for.
    pub(super) fn counter(
        &self,
        config: &Config,
        notes: &mut Notes,
    ) -> Result<(Counter, Option<String>), Failure> {
        if let Some(counter) = self.named.counter()? {
            return Ok((counter, None));
        }
        let Some(model) = self.model.as_deref().or(config.budget.model.as_deref()) else {
            return Err(Failure::Usage {
                message: "nothing to count with is named".into(),
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
