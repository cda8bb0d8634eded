//! The settings of a pipeline.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The settings of a pipeline.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Settings {
    /// The step a run begins with.
    pub entry_step_id: String,
    /// The maximum tokens of all context blocks together.
    #[schemars(range(min = 1))]
    pub max_context_tokens: Option<u64>,
    /// How often a loop guard lets a run pass, unless it sets its own limit.
    #[schemars(range(min = 0))]
    pub max_turn_loops: Option<u64>,
    /// The model to call, unless a step sets another.
    #[schemars(length(min = 1))]
    pub model: Option<String>,
    /// The token counter: by default the model's own tokenizer, else one such as `o200k_base` or
    /// the rule of thumb `approx:chars/4`.
    #[schemars(length(min = 1))]
    pub token_counter: Option<String>,
    /// The folder of the prompts that steps name by `prompt_key`, relative to the pipeline file.
    #[serde(default = "prompts_dir")]
    pub prompts_dir: String,
    /// The maximum number of steps of a run.
    #[serde(default = "max_steps")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_steps: u64,
    /// Whether undelivered mail is an error.
    #[serde(default)]
    pub inbox: InboxRule,
    /// Values that steps name by `…_from_settings`.
    #[serde(flatten)]
    #[schemars(skip)]
    pub own: BTreeMap<String, Value>,
}

/// What happens with undelivered mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InboxRule {
    /// It is reported.
    #[default]
    Report,
    /// It is an error.
    Strict,
}

fn prompts_dir() -> String {
    "prompts".to_owned()
}

fn max_steps() -> u64 {
    1000
}

impl Settings {
    /// A setting by its name, if it is a whole number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match name {
            "max_context_tokens" => self.max_context_tokens,
            "max_turn_loops" => self.max_turn_loops,
            "max_steps" => Some(self.max_steps),
            _ => self.own.get(name)?.as_u64(),
        }
    }
}
