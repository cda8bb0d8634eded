//! A file with every action, and the environment it is checked in.

use overlock_pipeline::{Checked, Measure, Measures, ReadOptions, read};
use serde_json::{Map, Value};

/// A pipeline without mistakes that has a step of every action.
pub(crate) const WHOLE: &str = include_str!("whole.yaml");

/// Counts four characters as a token and knows the windows of two models.
pub(crate) struct Quarters;

impl Measures for Quarters {
    fn measure(&self, model: &str, text: &str) -> Option<Measure> {
        let (window, is_shared) = match model {
            "gpt-4" => (8192, true),
            "own-room" => (8192, false),
            _ => return None,
        };
        Some(Measure {
            window,
            is_shared,
            tokens: text.chars().count() as u64 / 4,
            margin: 50,
        })
    }

    fn is_counter(&self, name: &str) -> bool {
        matches!(name, "o200k_base" | "approx:chars/4")
    }
}

/// The prompt files.
fn prompt(folder: &str, key: &str) -> Result<String, String> {
    match (folder, key) {
        ("prompts", "summarizer" | "sumarizer") => Ok("Summarise.".to_owned()),
        _ => Err("there is no such file".to_owned()),
    }
}

/// Reads a file.
pub(crate) fn reading(text: &str) -> Checked {
    reading_with(text, &Map::new(), None)
}

/// Reads a file with `--set` options and a model.
pub(crate) fn reading_with(
    text: &str,
    settings: &Map<String, Value>,
    model: Option<&str>,
) -> Checked {
    let options = ReadOptions {
        settings,
        model,
        prompt: &prompt,
        measures: &Quarters,
    };
    read("files/some.yaml", text, &options)
}
