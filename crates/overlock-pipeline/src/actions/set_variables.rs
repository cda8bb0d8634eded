//! `set_variables`: sets fields of the state.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{ActionError, KeyPath, Next, Perform, Target, Work};
use crate::context::joined;
use crate::file::Findings;
use crate::source::{Field, Source};
use overlock_runs::State;

/// Sets fields of the state by rules. If one fails, none is applied.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct SetVariables {
    /// The rules, applied in order.
    #[schemars(length(min = 1))]
    pub rules: Vec<SetRule>,
}

/// A rule that sets one field.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct SetRule {
    /// The field to set, or a variable (`variables.NAME`).
    #[schemars(length(min = 1))]
    pub set: String,
    /// The field to copy from.
    #[schemars(length(min = 1))]
    pub from: Option<String>,
    /// The value to set.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    pub value: Option<Value>,
    /// How to convert the value.
    #[serde(default)]
    pub transform: Transform,
}

/// How to convert a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transform {
    /// Unchanged.
    #[default]
    Copy,
    /// As a list: a single value becomes a list of one, null an empty list.
    ToList,
    /// As its lines, without blank ones.
    SplitLines,
    /// As the JSON it contains, even if that is cut or malformed.
    ParseJson,
    /// As context blocks: one for a text, one per item of a list, without blank ones.
    ToContextBlocks,
    /// Clears the field.
    Clear,
}

/// Distinguishes a null value from a missing one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Perform for SetVariables {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    fn sources(&self) -> Vec<(KeyPath, &str)> {
        let rules = self.rules.iter().enumerate();
        rules
            .filter_map(|(index, rule)| {
                Some((KeyPath::item("rules", index, "from"), rule.from.as_deref()?))
            })
            .collect()
    }

    fn check(&self, findings: &mut Findings<'_>) {
        for (index, rule) in self.rules.iter().enumerate() {
            let path = |key| KeyPath::item("rules", index, key);
            if let Err(error) = Field::read(&rule.set) {
                findings.error(&path("set"), &error.to_string(), &error.hint());
            }
            if let (Ok(field), Some(value)) = (Field::read(&rule.set), &rule.value) {
                let value = transformed(value.clone(), rule.transform);
                if let Err(reason) = field.set(&mut State::default(), value) {
                    findings.error(
                        &path("value"),
                        &format!("`{}` cannot be set to this value: {reason}", rule.set),
                        "use a value of the field's type, or a `transform`",
                    );
                }
            }
            match (&rule.from, &rule.value, rule.transform) {
                (Some(_), Some(_), _) => findings.error(
                    &path("value"),
                    "`from` and `value` cannot be combined",
                    "remove one of them",
                ),
                (None, None, transform) if transform != Transform::Clear => findings.error(
                    &path("set"),
                    "the rule has neither `from` nor `value`",
                    "add `from: FIELD` or `value: …`",
                ),
                _ => {}
            }
        }
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let mut state = work.state.clone();
        let mut fields_set = Vec::new();
        for rule in &self.rules {
            let field = Field::read(&rule.set)?;
            let value = match (&rule.from, &rule.value) {
                (Some(source), _) => Source::read(source)?.value(&state)?,
                (None, value) => value.clone().unwrap_or_default(),
            };
            let value = transformed(value, rule.transform);
            let was = field.value(&state);
            field
                .set(&mut state, value)
                .map_err(|reason| ActionError::CannotSet {
                    field: rule.set.clone(),
                    reason,
                })?;
            if clears_context(field, &was, &state, rule) {
                work.warn("the summary is empty, so the context was cleared");
            }
            fields_set.push(rule.set.as_str());
        }
        work.note("set", fields_set);
        if state.context_blocks != work.state.context_blocks {
            let tokens = |state: &State| {
                let blocks = state.context_blocks.iter().map(String::as_str);
                work.world.counter.count(&joined(blocks))
            };
            let (before, after) = (tokens(work.state), tokens(&state));
            work.note("context_tokens_before", before);
            work.note("context_tokens_after", after);
        }
        *work.state = state;
        Ok(Next::Onward)
    }
}

/// Whether a rule cleared the context by copying an empty field, which is probably a mistake.
fn clears_context(field: Field<'_>, was: &Value, state: &State, rule: &SetRule) -> bool {
    let had = was.as_array().is_some_and(|blocks| !blocks.is_empty());
    field == Field::CONTEXT_BLOCKS && had && state.context_blocks.is_empty() && rule.from.is_some()
}

fn transformed(value: Value, transform: Transform) -> Value {
    match (transform, value) {
        (Transform::Clear, _) | (Transform::ParseJson, Value::Null) => Value::Null,
        (Transform::ToList | Transform::ToContextBlocks | Transform::SplitLines, Value::Null) => {
            Value::Array(Vec::new())
        }
        (Transform::ToList, Value::Array(items)) => Value::Array(items),
        (Transform::ToList, value) => Value::Array(vec![value]),
        (Transform::SplitLines, value) => {
            let text = match value {
                Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join("\n"),
                other => text_of(&other),
            };
            let lines = text
                .lines()
                .map(str::trim_end)
                .filter(|line| !line.trim().is_empty());
            lines.map(Value::from).collect()
        }
        (Transform::ParseJson, Value::String(text)) => crate::source::tolerant_json(&text),
        (Transform::Copy | Transform::ParseJson, value) => value,
        (Transform::ToContextBlocks, value) => {
            let blocks = match value {
                Value::Array(items) => items,
                other => vec![other],
            };
            let blocks = blocks.iter().map(text_of);
            let blocks = blocks.map(|block| block.trim().to_owned());
            blocks
                .filter(|block| !block.is_empty())
                .map(Value::from)
                .collect()
        }
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
