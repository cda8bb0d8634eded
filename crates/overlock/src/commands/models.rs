//! `overlock models`: what a model can take, and how that is known.

use clap::Args;
use overlock_budget::{DEFAULT_WINDOW, Found, How, Model, Sharing};
use serde::Serialize;

use crate::config::{Config, ConfigSource};
use crate::draw::{self, ModelDrawing};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};
use crate::suggest::several_nearest;

/// Show what models can take: windows, longest answers, tokenizers
///
/// A name is looked up as it is, then without its host, date or `:latest`, then by its
/// beginning. For a model that nothing is known about the answer is a careful guess, and
/// says so. Without a name all models are listed.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock models openai/gpt-4-0613 | head -4\n  \
    name: openai/gpt-4-0613\n  \
    context window: 8192\n  \
    longest answer: 4096\n  \
    tokenizer: cl100k_base\n\n\
    Exit codes: 0 done; 1 no model holds the word to filter by; 2 bad usage or configuration.")]
pub(crate) struct Models {
    /// The model to look up
    name: Option<String>,
    /// List only models whose name holds this
    #[arg(long, value_name = "WORD", conflicts_with = "name")]
    filter: Option<String>,
    /// Answer with one JSON object, or a list of them
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// The answer to machines.
#[derive(Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of its own in the answer"
)]
struct Answer<'a> {
    /// As it was asked for.
    name: &'a str,
    context_window: u64,
    max_output_tokens: Option<u64>,
    tokenizer: Option<&'a str>,
    found: &'static str,
    /// The name in the table.
    entry: Option<&'a str>,
    /// Whether the entry is the user's own.
    own: bool,
    shared: bool,
    prefill: bool,
    json: bool,
    tools: bool,
    disputed: Option<u64>,
    /// What a million tokens cost, where the user has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    prices: Option<AnsweredPrices>,
}

#[derive(Serialize)]
struct AnsweredPrices {
    input: String,
    output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_input: Option<String>,
}

impl<'a> Answer<'a> {
    fn new(name: &'a str, found: &'a Found, config: &Config) -> Self {
        let Model {
            window,
            window_source: _,
            sharing,
            answer_cap,
            ref tokenizer,
            prefill,
            json,
            tools,
            disputed,
            prices: _,
        } = found.model;
        let entry = found.entry.as_deref();
        Self {
            name,
            context_window: window,
            max_output_tokens: answer_cap,
            tokenizer: tokenizer.as_deref(),
            found: found.how.name(),
            entry,
            own: entry.is_some_and(|entry| config.is_own_model(entry)),
            shared: sharing == Sharing::Shared,
            prefill,
            json,
            tools,
            disputed,
            prices: config.models().prices(name).map(|prices| AnsweredPrices {
                input: prices.input.to_string(),
                output: prices.output.to_string(),
                cached_input: prices.cached_input.map(|price| price.to_string()),
            }),
        }
    }
}

impl Models {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        match &self.name {
            Some(name) => self.one(name, &config, &mut notes),
            None => self.list(&config, &mut notes),
        }
    }

    fn one(&self, name: &str, config: &Config, notes: &mut Notes) -> Result<Ending, Failure> {
        let models = config.models();
        let found = models.find(name);
        let mut results = Results::new();
        if self.json {
            results.object(&Answer::new(name, &found, config))?;
        } else {
            let own = found
                .entry
                .as_deref()
                .is_some_and(|entry| config.is_own_model(entry));
            let drawing = ModelDrawing {
                name,
                found: &found,
                own,
            };
            for line in drawing.lines() {
                results.line(&line)?;
            }
        }
        note_unknown(name, &models, notes);
        Ok(Ending::Whole)
    }

    fn list(&self, config: &Config, notes: &mut Notes) -> Result<Ending, Failure> {
        let word = self
            .filter
            .as_deref()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let listed: Vec<(String, Found)> = config
            .models()
            .all()
            .into_iter()
            .filter(|(name, _)| name.contains(&word))
            .map(|(name, model)| {
                let found = Found {
                    entry: Some(name.clone()),
                    model,
                    how: How::Exact,
                };
                (name, found)
            })
            .collect();
        let mut results = Results::new();
        if self.json {
            let answers: Vec<_> = listed
                .iter()
                .map(|(name, found)| Answer::new(name, found, config))
                .collect();
            results.object(&answers)?;
        } else {
            let width = results.is_terminal().then(draw::terminal_width);
            for line in draw::model_table(&listed, width) {
                results.line(&line)?;
                if results.is_closed() {
                    break;
                }
            }
        }
        if listed.is_empty() {
            notes.note(format_args!("no model has `{word}` in its name"));
        }
        Ok(Ending::whole_if(!listed.is_empty()))
    }
}

/// Says so if nothing is known about a model, and which was perhaps meant.
pub(super) fn note_unknown(name: &str, models: &overlock_budget::Models, notes: &mut Notes) {
    if models.find(name).how != How::Default {
        return;
    }
    notes.note(format_args!(
        "nothing is known about `{}`: a window of {DEFAULT_WINDOW} is a guess",
        draw::head(name.as_bytes(), draw::SENTENCE_COLUMNS).text
    ));
    let all = models.all();
    let like = several_nearest(name, all.keys().map(String::as_str), 3);
    notes.hint(if like.is_empty() {
        "say what it can take in overlock.toml, under [models]".to_owned()
    } else {
        let like: Vec<_> = like.iter().map(|name| format!("`{name}`")).collect();
        format!("did you mean {}?", like.join(", "))
    });
}
