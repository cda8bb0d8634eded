//! `overlock models`: shows the limits of models, and how they are known.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;
use overlock_budget::{DEFAULT_WINDOW, Found, How, Model, Sharing};
use serde::Serialize;

use crate::config::{Config, ConfigError, ConfigSource, models_file};
use crate::draw::{self, ModelDrawing};
use crate::ending::{Ending, Failure};
use crate::input;
use crate::output::{Notes, Results};
use crate::suggest::several_nearest;

/// Show model limits: context windows, longest answers, tokenizers
///
/// A name is looked up as given, then without its host, date or `:latest`, then by its beginning.
/// For an unknown model defaults are shown, with a note. Without a name all models are listed.
/// `--update FILE` uses a newer table in the format of models.toml; your own entries under `[models]`
/// stay above it.
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
    /// Use the entries of a newer table, which is copied to the user's data folder
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "filter", "json"])]
    update: Option<PathBuf>,
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
        if let Some(path) = &self.update {
            return update(path, &config, &mut notes);
        }
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

/// Stores a newer table, and notes what it changes.
fn update(path: &Path, config: &Config, notes: &mut Notes) -> Result<Ending, Failure> {
    let text = input::text(path)?;
    let entries = overlock_budget::Models::parse_table(&text).map_err(|source| {
        let path = path.to_owned();
        ConfigError::Models { path, source }
    })?;
    let known = config.models().all();
    let (old, new): (Vec<_>, Vec<_>) = entries
        .iter()
        .partition(|(name, _)| known.contains_key(name));
    let changed = old.iter().filter(|(name, model)| known[name] != *model);
    let stored = models_file().ok_or_else(|| Failure::OutputUnwritable {
        path: "overlock/models.toml".into(),
        source: io::ErrorKind::NotFound.into(),
    })?;
    let folder = stored.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&stored, &text));
    written.map_err(|source| Failure::OutputUnwritable {
        path: stored.clone(),
        source,
    })?;
    notes.note(format_args!(
        "{} models, {} of them new and {} changed, in {}",
        entries.len(),
        new.len(),
        changed.count(),
        stored.display()
    ));
    Ok(Ending::Done)
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
    let similar = similar_models(name, all.keys().map(String::as_str));
    notes.hint(if similar.is_empty() {
        "describe it in overlock.toml, under [models]".to_owned()
    } else {
        let similar: Vec<_> = similar.iter().map(|name| format!("`{name}`")).collect();
        format!("did you mean {}?", similar.join(", "))
    });
}

/// Up to three names without a host that a name contains, in any spelling, or that are similar to it.
fn similar_models<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const MOST: usize = 3;
    /// A shorter name is part of many others.
    const SHORTEST: usize = 4;
    let letters = |name: &str| -> String {
        let name = name.chars().filter(char::is_ascii_alphanumeric);
        name.map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let bare = name.rsplit('/').next().unwrap_or(name);
    let wanted = letters(bare);
    let models: Vec<&str> = all.filter(|model| !model.contains('/')).collect();
    let is_contained = |model: &&str| {
        let model = letters(model);
        model.len() >= SHORTEST && wanted.contains(&model)
    };
    let mut contained: Vec<&str> = models.iter().copied().filter(is_contained).collect();
    contained.sort_by_key(|model| std::cmp::Reverse(model.len()));
    contained.truncate(MOST);
    if contained.is_empty() {
        return several_nearest(bare, models, MOST);
    }
    contained
}

#[cfg(test)]
mod tests {
    use super::similar_models;

    #[test]
    fn suggests_the_models_that_a_name_contains_and_then_similar_ones() {
        let all = overlock_budget::Models::default().all();
        let similar = |name: &str| similar_models(name, all.keys().map(String::as_str));
        assert_eq!(similar("azure/my-gpt4o-deployment"), ["gpt-4o", "gpt-4"]);
        assert_eq!(similar("prod-claude-3-opus")[0], "claude-3-opus");
        assert_eq!(similar("gtp-4o")[0], "gpt-4o");
        assert_eq!(similar("host/zzzzzz"), [""; 0]);
    }
}
