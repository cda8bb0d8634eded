//! The JSON object of a request, and the error reply.

use crate::NoJson;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The object of one request. Unknown fields are ignored, unless [`only`](Self::only) checks them.
#[derive(Clone, Debug, Default)]
pub struct Object {
    fields: Map<String, Value>,
}

impl Object {
    /// Parses an object. Error messages call the text `what`, such as `line`.
    pub fn parse(text: &str, what: &str) -> Result<Self, Refusal> {
        if text.trim().is_empty() {
            return Err(Refusal::unusable(format!("the {what} is empty")));
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(Self { fields }),
            Ok(other) => Err(Refusal::unusable(format!(
                "the {what} is {}, not an object",
                kind(&other)
            ))),
            Err(error) => Err(Refusal::unusable(not_json(what, &error))),
        }
    }

    /// Checks that every field is one of these.
    pub fn only(self, known: &[&str]) -> Result<Self, Refusal> {
        let unknown = self
            .fields
            .keys()
            .find(|key| !known.contains(&key.as_str()));
        match unknown {
            None => Ok(self),
            Some(key) => Err(Refusal::unusable(format!(
                "`{key}` is not a known key; known: {}",
                known.join(", ")
            ))),
        }
    }

    /// Sets a field to a raw value.
    pub fn set(&mut self, field: &str, value: &RawValue) -> Result<(), Refusal> {
        let read = serde_json::from_str(value.get());
        let value = read.map_err(|error| Refusal::unusable(not_json(field, &error)))?;
        self.fields.insert(field.to_owned(), value);
        Ok(())
    }

    /// Sets a field to a text if it is missing.
    pub fn put_if_missing(&mut self, field: &str, text: &str) {
        if !self.fields.contains_key(field) {
            self.fields.insert(field.to_owned(), text.into());
        }
    }

    /// Inserts a text at the start of a list.
    pub fn put_first(&mut self, field: &str, text: &str) {
        if let Some(Value::Array(items)) = self.fields.get_mut(field) {
            items.insert(0, text.into());
        }
    }

    /// Takes a required string.
    pub fn text(&mut self, field: &str) -> Result<String, Refusal> {
        match self.fields.remove(field) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(mistyped(field, &other, "a string")),
            None => Err(missing(field)),
        }
    }

    /// Takes an optional string.
    pub fn optional_text(&mut self, field: &str) -> Result<Option<String>, Refusal> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.text(field).map(Some),
        }
    }

    /// Takes a required list of strings.
    pub fn texts(&mut self, field: &str) -> Result<Vec<String>, Refusal> {
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

    /// Takes a string or a list of strings and nulls; an empty list if missing.
    pub fn one_or_more_texts(&mut self, field: &str) -> Result<Vec<Option<String>>, Refusal> {
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

    /// Takes an optional whole number.
    pub fn number(&mut self, field: &str) -> Result<Option<usize>, Refusal> {
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => whole_number(&value)
                .and_then(|number| usize::try_from(number).ok())
                .map(Some)
                .ok_or_else(|| mistyped(field, &value, "a whole number from 0 on")),
        }
    }

    /// Takes an optional boolean.
    pub fn flag(&mut self, field: &str) -> Result<Option<bool>, Refusal> {
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(mistyped(field, &other, "`true` or `false`")),
        }
    }

    /// Takes an optional name and returns its value.
    pub fn choice<T: Copy>(
        &mut self,
        field: &str,
        names: &[(&str, T)],
    ) -> Result<Option<T>, Refusal> {
        let listed = || {
            let names: Vec<_> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
            names.join(" or ")
        };
        let name = match self.fields.remove(field) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(name)) => name,
            Some(other) => return Err(mistyped(field, &other, &listed())),
        };
        match names.iter().find(|(known, _)| *known == name) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => Err(Refusal::unusable(format!(
                "`{field}` is `{name}`, and must be {}",
                listed()
            ))),
        }
    }
}

/// An error reply. Serialised, it is `{"error":{"code","message"}}`.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    error: Reason,
}

#[derive(Clone, Debug, Serialize)]
struct Reason {
    code: &'static str,
    message: String,
}

impl Refusal {
    /// The request is invalid; on the command line, it is one line of several.
    pub fn unusable(message: impl Into<String>) -> Self {
        Self::new("bad-line", message.into())
    }

    /// The request is invalid; it is the only one.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new("bad-request", message.into())
    }

    /// Turns the error for a line into one for a single request.
    #[must_use]
    pub fn of_a_request(self) -> Self {
        match self.error.code {
            "bad-line" => Self::bad_request(self.error.message),
            _ => self,
        }
    }

    /// Whether the text contains no JSON.
    pub fn is_no_json(&self) -> bool {
        self.error.code == NO_JSON
    }

    fn new(code: &'static str, message: String) -> Self {
        Self {
            error: Reason { code, message },
        }
    }
}

const NO_JSON: &str = "no-json";

impl From<NoJson> for Refusal {
    fn from(reason: NoJson) -> Self {
        Self::new(NO_JSON, reason.to_string())
    }
}

/// The message for invalid JSON, without the line number if there is only one line.
fn not_json(what: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let wrong = message.split(" at line ").next().unwrap_or_default();
    match error.line() {
        0 | 1 => format!(
            "the {what} is not JSON: {wrong} at column {}",
            error.column()
        ),
        line => format!(
            "the {what} is not JSON: {wrong} at line {line}, column {}",
            error.column()
        ),
    }
}

/// A whole number in any notation, because some programs write `100.0`.
fn whole_number(value: &Value) -> Option<u64> {
    let rounded = || {
        let float = value.as_f64()?;
        let is_whole = float.fract() == 0.0;
        is_whole.then(|| format!("{float:.0}"))?.parse().ok()
    };
    value.as_u64().or_else(rounded)
}

fn missing(field: &str) -> Refusal {
    Refusal::unusable(format!("`{field}` is missing"))
}

fn mistyped(field: &str, value: &Value, expected: &str) -> Refusal {
    Refusal::unusable(format!(
        "`{field}` is {}, but must be {expected}",
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
