//! Reads and checks pipeline files.

// The syntax tree.
mod tree;

// The schema.
mod explain;
mod schema;

// Errors and warnings.
mod check;
mod findings;
mod warnings;
mod window;

// The graph of the steps.
mod flow;
mod graph;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::actions::Action;
use crate::settings::Settings;
use flow::always_chooses;

pub use check::read;
pub(crate) use findings::Findings;
pub use findings::{Problem, Severity};
pub use graph::{drawing, graph};
pub use schema::schema;

/// A pipeline that can be run.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: Settings,
    /// Its steps, in the order of the file.
    pub steps: Vec<Step>,
}

/// One step of a pipeline.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its id.
    pub id: String,
    /// Its action.
    pub action: Action,
    /// The next step, unless the action chooses it.
    pub next: Option<String>,
    /// Whether the run ends after it.
    pub end: bool,
}

impl Step {
    /// The possible next steps, each after the name of the transition; none if the run can only
    /// end here.
    pub fn transitions(&self) -> Vec<(String, &str)> {
        let chosen = self.action.targets().into_iter();
        let chosen = chosen.filter(|target| !target.is_mail);
        let chosen = chosen.map(|target| (target.label, target.step));
        let is_next_used = !self.end && !always_chooses(&self.action);
        let next = self.next.iter().filter(|_| is_next_used);
        let next = next.map(|next| ("next".to_owned(), next.as_str()));
        chosen.chain(next).collect()
    }
}

impl Pipeline {
    /// The step with this id.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }
}

/// The texts of prompt files, by key.
pub type Prompts = BTreeMap<String, String>;

/// What a file is checked with.
pub struct ReadOptions<'a> {
    /// Settings that override those of the file.
    pub settings: &'a Map<String, Value>,
    /// The model, if the settings name none.
    pub model: Option<&'a str>,
    /// Reads a prompt by folder and key; the error says why it cannot be read.
    pub prompt: &'a dyn Fn(&str, &str) -> Result<String, String>,
    /// Windows and token counts of models.
    pub measures: &'a dyn Measures,
}

/// Windows and token counts of models.
pub trait Measures {
    /// The window of a model and the tokens of a text; nothing for an unknown model.
    fn measure(&self, model: &str, text: &str) -> Option<Measure>;

    /// Whether a counter of this name is known.
    fn is_counter(&self, name: &str) -> bool;
}

/// The window of a model and the tokens of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The tokens of its window.
    pub window: u64,
    /// Whether the answer takes its room from the window.
    pub is_shared: bool,
    /// The tokens of the text.
    pub tokens: u64,
    /// The safety margin.
    pub margin: u64,
}

/// The result of checking a file.
#[derive(Debug)]
pub struct Checked {
    /// The pipeline, if there are no errors.
    pub pipeline: Option<Pipeline>,
    /// The prompt files that its steps name.
    pub prompts: Prompts,
    /// All errors and warnings, in the order of the file.
    pub problems: Vec<Problem>,
}
