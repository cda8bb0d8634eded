//! `set_variables`: moves what a run knows from one place to another.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{ActionError, Next, Perform, Place, Target, Work};
use crate::context::joined;
use crate::file::Findings;
use crate::source::{Field, Source};
use overlock_runs::State;

/// Sets fields of the state by rules: all of them or, if one fails, none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct SetVariables {
    /// The rules, each of which sees what those before it did.
    #[schemars(length(min = 1))]
    pub rules: Vec<SetRule>,
}

/// One thing to set.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct SetRule {
    /// What to set: a field of the state, or a variable (`variables.NAME`, or a name of its own).
    #[schemars(length(min = 1))]
    pub set: String,
    /// The field that it is set from.
    #[schemars(length(min = 1))]
    pub from: Option<String>,
    /// The value that it is set to.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    pub value: Option<Value>,
    /// What is done to the value on the way.
    #[serde(default)]
    pub transform: Transform,
}

/// What is done to a value on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transform {
    /// Nothing.
    #[default]
    Copy,
    /// A list of it, unless it is one; of nothing an empty one.
    ToList,
    /// Its lines, without blank ones.
    SplitLines,
    /// The JSON in it, even if it was cut or is malformed.
    ParseJson,
    /// Blocks of context: a text is one block, a list is one for each; blank ones are left out.
    ToContextBlocks,
    /// Nothing at all: empty.
    Clear,
}

/// What is there is a value, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Perform for SetVariables {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    fn sources(&self) -> Vec<(Place, &str)> {
        let rules = self.rules.iter().enumerate();
        rules
            .filter_map(|(index, rule)| {
                Some((Place::item("rules", index, "from"), rule.from.as_deref()?))
            })
            .collect()
    }

    fn check(&self, findings: &mut Findings<'_>) {
        for (index, rule) in self.rules.iter().enumerate() {
            let place = |key| Place::item("rules", index, key);
            if let Err(error) = Field::read(&rule.set) {
                findings.error(&place("set"), &error.to_string(), &error.hint());
            }
            if let (Ok(field), Some(value)) = (Field::read(&rule.set), &rule.value) {
                let value = transformed(value.clone(), rule.transform);
                if let Err(reason) = field.set(&mut State::default(), value) {
                    findings.error(
                        &place("value"),
                        &format!("`{}` cannot be set to that: {reason}", rule.set),
                        "give it a value of the kind that the field holds, or use a `transform`",
                    );
                }
            }
            match (&rule.from, &rule.value, rule.transform) {
                (Some(_), Some(_), _) => findings.error(
                    &place("value"),
                    "`from` and `value` are both there, but only one of them may be",
                    "leave one of them out",
                ),
                (None, None, transform) if transform != Transform::Clear => findings.error(
                    &place("set"),
                    "nothing says what it is set to",
                    "give it `from: FIELD` or `value: …`",
                ),
                _ => {}
            }
        }
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let mut state = work.state.clone();
        let mut told = Vec::new();
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
            if wipes(field, &was, &state, rule) {
                work.warn("the summary is empty: the context is gone");
            }
            told.push(rule.set.as_str());
        }
        work.note("set", told);
        if state.context_blocks != work.state.context_blocks {
            let tokens = |state: &State| {
                let blocks = state.context_blocks.iter().map(String::as_str);
                work.counter.count(&joined(blocks))
            };
            let (before, after) = (tokens(work.state), tokens(&state));
            work.note("context_tokens_before", before);
            work.note("context_tokens_after", after);
        }
        *work.state = state;
        Ok(Next::Onward)
    }
}

/// Whether a context that was there is gone, although nobody said that it should be.
fn wipes(field: Field<'_>, was: &Value, state: &State, rule: &SetRule) -> bool {
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
