//! `overlock models`: shows the limits of models, and how they are known.

use clap::Args;
use overlock_budget::{DEFAULT_WINDOW, Found, How, Model, Sharing};
use serde::Serialize;

use crate::config::{Config, ConfigSource};
use crate::draw::{self, ModelDrawing};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};
use crate::suggest::several_nearest;

/// Show model limits: context windows, longest answers, tokenizers
///
/// A name is looked up as given, then without its host, date or `:latest`, then by its beginning.
/// For an unknown model defaults are shown, with a note. Without a name all models are listed.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock models openai/gpt-4-0613 | head -4\n  \
    name: openai/gpt-4-0613\n  \
    context window: 8192\n  \
    longest answer: 4096\n  \
    tokenizer: cl100k_base\n\n\
    Exit codes: 0 done; 1 no model matches the filter; 2 bad usage or configuration.")]
pub(crate) struct Models {
    /// The model to look up
    name: Option<String>,
    /// List only models whose name contains this
    #[arg(long, value_name = "WORD", conflicts_with = "name")]
    filter: Option<String>,
    /// Print one JSON object, or a list of them
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// The output of `--json`.
#[derive(Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a separate field of the output"
)]
struct ModelReport<'a> {
    /// As given on the command line.
    name: &'a str,
    context_window: u64,
    max_output_tokens: Option<u64>,
    tokenizer: Option<&'a str>,
    found: &'static str,
    /// The name in the table.
    entry: Option<&'a str>,
    /// Whether the entry is in the configuration.
    own: bool,
    shared: bool,
    prefill: bool,
    json: bool,
    tools: bool,
    disputed: Option<u64>,
    /// The configured prices of a million tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    prices: Option<PriceReport>,
}

#[derive(Serialize)]
struct PriceReport {
    input: String,
    output: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_input: Option<String>,
}

impl<'a> ModelReport<'a> {
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
            prices: config.models().prices(name).map(|prices| PriceReport {
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
            Some(name) => self.show(name, &config, &mut notes),
            None => self.list(&config, &mut notes),
        }
    }

    fn show(&self, name: &str, config: &Config, notes: &mut Notes) -> Result<Ending, Failure> {
        let models = config.models();
        let found = models.find(name);
        let mut results = Results::new();
        if self.json {
            results.object(&ModelReport::new(name, &found, config))?;
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
        Ok(Ending::Done)
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
            let reports: Vec<_> = listed
                .iter()
                .map(|(name, found)| ModelReport::new(name, found, config))
                .collect();
            results.object(&reports)?;
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
            notes.note(format_args!("no model name contains `{word}`"));
        }
        Ok(Ending::done_if(!listed.is_empty()))
    }
}

/// Notes that a model is unknown, with similar names.
pub(super) fn note_unknown(name: &str, models: &overlock_budget::Models, notes: &mut Notes) {
    if models.find(name).how != How::Default {
        return;
    }
    notes.note(format_args!(
        "unknown model `{}`: assuming a context window of {DEFAULT_WINDOW} tokens",
        draw::head(name.as_bytes(), draw::SENTENCE_COLUMNS).text
    ));
    let all = models.all();
    let similar = several_nearest(name, all.keys().map(String::as_str), 3);
    notes.hint(if similar.is_empty() {
        "describe it in overlock.toml, under [models]".to_owned()
    } else {
        let similar: Vec<_> = similar.iter().map(|name| format!("`{name}`")).collect();
        format!("did you mean {}?", similar.join(", "))
    });
}
