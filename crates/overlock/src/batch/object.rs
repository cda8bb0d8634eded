//! One line of a batch: the object that was asked, or why it cannot be answered.

use overlock_json::NoJson;
use serde::Serialize;
use serde_json::{Map, Value};

/// The object of one line. Fields nobody asks for may be there and are left alone.
pub(crate) struct Object {
    fields: Map<String, Value>,
}

impl Object {
    pub(super) fn parse(line: &str) -> Result<Self, Refusal> {
        if line.trim().is_empty() {
            return Err(Refusal::bad_line("the line is empty"));
        }
        match serde_json::from_str(line) {
            Ok(Value::Object(fields)) => Ok(Self { fields }),
            Ok(other) => Err(Refusal::bad_line(format!(
                "the line is {}, not an object",
                kind(&other)
            ))),
            Err(error) => Err(Refusal::bad_line(not_json(&error))),
        }
    }

    /// A string that must be there.
    pub(crate) fn text(&mut self, field: &str) -> Result<String, Refusal> {
        match self.fields.remove(field) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(mistyped(field, &other, "a string")),
            None => Err(missing(field)),
        }
    }

    /// A list of strings that must be there.
    pub(crate) fn texts(&mut self, field: &str) -> Result<Vec<String>, Refusal> {
        let Some(value) = self.fields.remove(field) else {
            return Err(missing(field));
        };
        let Value::Array(items) = value else {
            return Err(mistyped(field, &value, "a list of strings"));
        };
        let texts = items.into_iter().map(|item| match item {
            Value::String(text) => Ok(text),
            other => Err(mistyped(field, &other, "a list of strings")),
        });
        texts.collect()
    }

    /// A string or a list of strings and nulls; not given, an empty list.
    pub(crate) fn one_or_more_texts(
        &mut self,
        field: &str,
    ) -> Result<Vec<Option<String>>, Refusal> {
        let expected = "a string or a list of strings";
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![Some(text)]),
            Some(Value::Array(items)) => {
                let texts = items.into_iter().map(|item| match item {
                    Value::Null => Ok(None),
                    Value::String(text) => Ok(Some(text)),
                    other => Err(mistyped(field, &other, expected)),
                });
                texts.collect()
            }
            Some(other) => Err(mistyped(field, &other, expected)),
        }
    }

    /// A whole number that may be there.
    pub(crate) fn number(&mut self, field: &str) -> Result<Option<usize>, Refusal> {
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .map(Some)
                .ok_or_else(|| mistyped(field, &value, "a whole number from 0 on")),
        }
    }

    /// One of several names, which may be there.
    pub(crate) fn choice<T: clap::ValueEnum>(&mut self, field: &str) -> Result<Option<T>, Refusal> {
        let name = match self.fields.remove(field) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(name)) => name,
            Some(other) => return Err(mistyped(field, &other, &names::<T>())),
        };
        match T::from_str(&name, false) {
            Ok(choice) => Ok(Some(choice)),
            Err(_) => Err(Refusal::bad_line(format!(
                "`{field}` is `{name}`, and must be {}",
                names::<T>()
            ))),
        }
    }
}

/// Why a line has no answer. Serialised, it is `{"error":{"code","message"}}`.
#[derive(Debug, Serialize)]
pub(crate) struct Refusal {
    error: Reason,
}

#[derive(Debug, Serialize)]
struct Reason {
    code: &'static str,
    message: String,
}

impl Refusal {
    /// The line itself cannot be used.
    pub(crate) fn bad_line(message: impl Into<String>) -> Self {
        Self::new("bad-line", message.into())
    }

    /// What was given is no chat request.
    pub(crate) fn bad_request(message: String) -> Self {
        Self::new("bad-request", message)
    }

    pub(super) fn too_long() -> Self {
        Self::bad_line("the line is longer than 1 GiB")
    }

    fn new(code: &'static str, message: String) -> Self {
        Self {
            error: Reason { code, message },
        }
    }
}

impl From<NoJson> for Refusal {
    fn from(reason: NoJson) -> Self {
        Self::new("no-json", reason.to_string())
    }
}

/// What is wrong with a line, without the number the parser gives it: it knows only this one.
fn not_json(error: &serde_json::Error) -> String {
    let told = error.to_string();
    let what = told.split(" at line ").next().unwrap_or_default();
    format!("the line is not JSON: {what} at column {}", error.column())
}

fn missing(field: &str) -> Refusal {
    Refusal::bad_line(format!("`{field}` is missing"))
}

fn mistyped(field: &str, value: &Value, expected: &str) -> Refusal {
    Refusal::bad_line(format!(
        "`{field}` holds {}, and must be {expected}",
        kind(value)
    ))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn names<T: clap::ValueEnum>() -> String {
    let names: Vec<_> = T::value_variants()
        .iter()
        .filter_map(clap::ValueEnum::to_possible_value)
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    names.join(" or ")
}
