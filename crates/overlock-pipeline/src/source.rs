//! The names of state fields that steps read and set.
//!
//! A source is a field of the state, optionally with a dotted path into it, such as
//! `variables.plan.title`, or `last_model_response.query` for a JSON response.

use overlock_json::{RepairOptions, repair};
use serde_json::Value;

use crate::context::joined;
use overlock_runs::{State, Turn};

/// A field that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source<'a> {
    field: &'static str,
    path: &'a str,
}

/// A field that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// A field of the state.
    Known(&'static str),
    /// A variable.
    Variable(&'a str),
}

/// An unknown or read-only name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct UnknownSource {
    what: String,
    hint: String,
}

impl UnknownSource {
    /// What would help.
    pub fn hint(&self) -> String {
        self.hint.clone()
    }
}

/// The fields of the state that steps can read.
pub(crate) const FIELDS: [&str; 16] = [
    "user_question",
    "session_id",
    "repository",
    "history",
    "memories",
    "search_hits",
    "graph_nodes",
    "graph_edges",
    "node_texts",
    "context_blocks",
    "last_model_response",
    "answer",
    "variables",
    "loop_counters",
    "inbox",
    "inbox_last_consumed",
];

/// The fields that only the engine sets.
const READ_ONLY: [&str; 3] = ["loop_counters", "inbox", "inbox_last_consumed"];

/// An alternative name, from the format's first version.
const ALIAS: (&str, &str) = ("user_question_en", "user_question");

fn field(name: &str) -> Option<&'static str> {
    let name = if name == ALIAS.0 { ALIAS.1 } else { name };
    FIELDS.into_iter().find(|field| *field == name)
}

fn listed(names: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

impl<'a> Source<'a> {
    /// Parses the name of a source.
    pub(crate) fn read(name: &'a str) -> Result<Self, UnknownSource> {
        let (first, path) = name.split_once('.').unwrap_or((name, ""));
        let Some(field) = field(first) else {
            let nearest = crate::suggest::nearest(first, FIELDS);
            return Err(UnknownSource {
                what: format!("the state has no field `{first}`"),
                hint: match nearest {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!(
                        "expected one of {}; a pipeline's own values are in `variables.NAME`",
                        listed(FIELDS.into_iter())
                    ),
                },
            });
        };
        Ok(Self { field, path })
    }

    /// Whether it is this whole field.
    pub(crate) fn is(self, field: &str) -> bool {
        self.field == field && self.path.is_empty()
    }

    /// Its value.
    pub(crate) fn value(self, state: &State) -> Result<Value, UnknownSource> {
        let value = Field::Known(self.field).value(state);
        if self.path.is_empty() {
            return Ok(value);
        }
        let value = match value {
            // A text with a path is a response in JSON.
            Value::String(text) => tolerant_json(&text),
            other => other,
        };
        let found = within(&value, self.path).cloned();
        found.ok_or_else(|| UnknownSource {
            what: format!("`{}` has no `{}`", self.field, self.path),
            hint: "it must be set, or returned by the model, before this step".to_owned(),
        })
    }

    /// Its value formatted for a prompt.
    pub(crate) fn text(self, state: &State) -> Result<String, UnknownSource> {
        if self.is("context_blocks") {
            return Ok(joined(state.context_blocks.iter().map(String::as_str)));
        }
        if self.is("history") {
            let turns = state.history.iter();
            let speaker = |turn: &Turn| turn.name.clone().unwrap_or(turn.role.name().to_owned());
            let turns = turns.map(|turn| format!("{}: {}", speaker(turn), turn.content));
            return Ok(turns.collect::<Vec<_>>().join("\n"));
        }
        if self.is("memories") {
            let memories = state.memories.iter();
            let memories = memories.map(|memory| format!("- {}", memory.text));
            return Ok(memories.collect::<Vec<_>>().join("\n"));
        }
        Ok(match self.value(state)? {
            Value::Null => String::new(),
            Value::String(text) => text,
            Value::Array(items) if items.iter().all(Value::is_string) => {
                let lines: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                lines.join("\n")
            }
            Value::Array(items) if items.is_empty() => String::new(),
            other => serde_json::to_string_pretty(&other).unwrap_or_default(),
        })
    }
}

impl<'a> Field<'a> {
    pub(crate) const CONTEXT_BLOCKS: Self = Self::Known("context_blocks");

    /// Parses the name of a field to set.
    pub(crate) fn read(name: &'a str) -> Result<Self, UnknownSource> {
        if let Some(variable) = name.strip_prefix("variables.") {
            if !variable.is_empty() && !variable.contains('.') {
                return Ok(Self::Variable(variable));
            }
            return Err(UnknownSource {
                what: format!("`{name}` is not the name of a variable"),
                hint: "use one name after the dot, as in `variables.plan`".to_owned(),
            });
        }
        match field(name) {
            Some(field) if READ_ONLY.contains(&field) => Err(UnknownSource {
                what: format!("`{field}` is managed by the engine and cannot be set"),
                hint: "send mail with the action `send`".to_owned(),
            }),
            Some(field) => Ok(Self::Known(field)),
            None => {
                let settable = FIELDS.into_iter().filter(|name| !READ_ONLY.contains(name));
                Err(UnknownSource {
                    what: format!("the state has no field `{name}`"),
                    hint: match crate::suggest::nearest(name, FIELDS) {
                        Some(near) => format!(
                            "did you mean `{near}`? A variable of your own is `variables.{name}`"
                        ),
                        None => format!(
                            "expected one of {}; a variable of your own is `variables.{name}`",
                            listed(settable)
                        ),
                    },
                })
            }
        }
    }

    /// Its current value.
    pub(crate) fn value(self, state: &State) -> Value {
        let written = match self {
            Self::Variable(name) => return state.variables.get(name).cloned().unwrap_or_default(),
            Self::Known(field) => match field {
                "user_question" => serde_json::to_value(&state.user_question),
                "session_id" => serde_json::to_value(&state.session_id),
                "repository" => serde_json::to_value(&state.repository),
                "history" => serde_json::to_value(&state.history),
                "memories" => serde_json::to_value(&state.memories),
                "search_hits" => serde_json::to_value(&state.search_hits),
                "graph_nodes" => serde_json::to_value(&state.graph_nodes),
                "graph_edges" => serde_json::to_value(&state.graph_edges),
                "node_texts" => serde_json::to_value(&state.node_texts),
                "context_blocks" => serde_json::to_value(&state.context_blocks),
                "last_model_response" => serde_json::to_value(&state.last_model_response),
                "answer" => serde_json::to_value(&state.answer),
                "variables" => serde_json::to_value(&state.variables),
                "loop_counters" => serde_json::to_value(&state.loop_counters),
                "inbox" => serde_json::to_value(&state.inbox),
                _ => serde_json::to_value(&state.inbox_last_consumed),
            },
        };
        written.expect("the state is plain data")
    }

    /// Sets it; null clears it. The error says what the value must be.
    pub(crate) fn set(self, state: &mut State, value: Value) -> Result<(), String> {
        let field = match self {
            Self::Variable(name) if value.is_null() => {
                state.variables.remove(name);
                return Ok(());
            }
            Self::Variable(name) => {
                state.variables.insert(name.to_owned(), value);
                return Ok(());
            }
            Self::Known(field) => field,
        };
        match field {
            "user_question" => to(&mut state.user_question, value),
            "session_id" => to(&mut state.session_id, value),
            "repository" => to(&mut state.repository, value),
            "history" => to(&mut state.history, value),
            "memories" => to(&mut state.memories, value),
            "search_hits" => to(&mut state.search_hits, value),
            "graph_nodes" => to(&mut state.graph_nodes, value),
            "graph_edges" => to(&mut state.graph_edges, value),
            "node_texts" => to(&mut state.node_texts, value),
            "context_blocks" => to(&mut state.context_blocks, value),
            "last_model_response" => to(&mut state.last_model_response, value),
            "answer" => to(&mut state.answer, value),
            "variables" => to(&mut state.variables, value),
            _ => Err("it is managed by the engine".to_owned()),
        }
    }
}

/// Sets a field to a value; null clears it.
fn to<T: serde::de::DeserializeOwned + Default>(place: &mut T, value: Value) -> Result<(), String> {
    *place = match value {
        Value::Null => T::default(),
        value => serde_json::from_value(value).map_err(|error| wanted(&error.to_string()))?,
    };
    Ok(())
}

/// The expected type by a serde error. The rest of that error may quote model output, which does not
/// belong into messages.
fn wanted(error: &str) -> String {
    match error.rsplit_once(", expected ") {
        Some((_, wanted)) => format!("expected {wanted}"),
        None => "it has the wrong type".to_owned(),
    }
}

/// A field of the last response, read as JSON, by its dotted path.
pub(crate) fn response_field(state: &State, path: &str) -> Option<Value> {
    let response = state.last_model_response.as_deref()?;
    within(&tolerant_json(response), path).cloned()
}

/// The JSON in a text, even if it is cut or malformed; null if there is none.
pub(crate) fn tolerant_json(text: &str) -> Value {
    let Ok(repaired) = repair(text, &RepairOptions::default()) else {
        return Value::Null;
    };
    serde_json::from_str(&repaired.json).unwrap_or_default()
}

fn within<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}
