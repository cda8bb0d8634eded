//! What a pipeline file says, and what is wrong with it.

// What it says, and where.
mod tree;

// What it must be.
mod explain;
mod schema;

// What is wrong with it.
mod check;
mod doubts;
mod findings;
mod window;

// How its steps hang together.
mod flow;
mod graph;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::actions::Action;
use crate::settings::Settings;

pub use check::read;
pub(crate) use findings::Findings;
pub use findings::{Problem, Severity};
pub use graph::{drawing, graph};
pub use schema::schema;

/// A pipeline that can be run.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// What it is called.
    pub name: String,
    /// What holds for all of it.
    pub settings: Settings,
    /// Its steps, in the order of the file.
    pub steps: Vec<Step>,
}

/// One step of a pipeline.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it is called.
    pub id: String,
    /// What it does.
    pub action: Action,
    /// Where the run goes on, unless the action chooses.
    pub next: Option<String>,
    /// Whether the run ends after it.
    pub end: bool,
}

impl Step {
    /// Where the run may go from here: what that way is called, and the step it leads to.
    pub fn ways(&self) -> Vec<(String, &str)> {
        let chosen = self.action.targets().into_iter();
        let chosen = chosen.filter(|target| !target.is_mail);
        let chosen = chosen.map(|target| (target.label, target.step));
        let next = self
            .next
            .iter()
            .map(|next| ("next".to_owned(), next.as_str()));
        chosen.chain(next).collect()
    }
}

impl Pipeline {
    /// The step of this name.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }
}

/// The texts of prompts, by their keys.
pub type Prompts = BTreeMap<String, String>;

/// What a file is checked with.
pub struct ReadOptions<'a> {
    /// The settings that are set over those of the file.
    pub settings: &'a Map<String, Value>,
    /// The model, if the settings name none.
    pub model: Option<&'a str>,
    /// Reads the prompt of a key from the folder of prompts; the error says why it cannot.
    pub prompt: &'a dyn Fn(&str, &str) -> Result<String, String>,
    /// Who knows windows and counts.
    pub measures: &'a dyn Measures,
}

/// Knows what models take.
pub trait Measures {
    /// The window of a model, and the tokens of a text to it; nothing if nobody can say.
    fn measure(&self, model: &str, text: &str) -> Option<Measure>;

    /// Whether a counter of this name is known.
    fn is_counter(&self, name: &str) -> bool;
}

/// What a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The tokens of its window.
    pub window: u64,
    /// Whether the answer takes its room from the window.
    pub is_shared: bool,
    /// The tokens of the text.
    pub tokens: u64,
    /// What is left free of the window.
    pub margin: u64,
}

/// A file that was checked.
#[derive(Debug)]
pub struct Checked {
    /// The pipeline, if nothing is wrong with it.
    pub pipeline: Option<Pipeline>,
    /// The prompts that its steps name.
    pub prompts: Prompts,
    /// Everything that is wrong, and what is doubtful, in the order of the file.
    pub problems: Vec<Problem>,
}
