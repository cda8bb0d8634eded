//! The object that was asked, or why it cannot be answered.

use crate::NoJson;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The object of one request. Fields nobody asks for may be there and are left alone.
#[derive(Clone, Debug, Default)]
pub struct Object {
    fields: Map<String, Value>,
}

impl Object {
    /// Reads an object; messages call the text by `what` it is, such as `line`.
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

    /// Says a field as it was written.
    pub fn set(&mut self, field: &str, value: &RawValue) -> Result<(), Refusal> {
        let read = serde_json::from_str(value.get());
        let value = read.map_err(|error| Refusal::unusable(not_json(field, &error)))?;
        self.fields.insert(field.to_owned(), value);
        Ok(())
    }

    /// Says a text where there is none.
    pub fn put_if_missing(&mut self, field: &str, text: &str) {
        if !self.fields.contains_key(field) {
            self.fields.insert(field.to_owned(), text.into());
        }
    }

    /// Puts a text before those of a list.
    pub fn put_first(&mut self, field: &str, text: &str) {
        if let Some(Value::Array(items)) = self.fields.get_mut(field) {
            items.insert(0, text.into());
        }
    }

    /// A string that must be there.
    pub fn text(&mut self, field: &str) -> Result<String, Refusal> {
        match self.fields.remove(field) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(mistyped(field, &other, "a string")),
            None => Err(missing(field)),
        }
    }

    /// A string that may be there.
    pub fn optional_text(&mut self, field: &str) -> Result<Option<String>, Refusal> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.text(field).map(Some),
        }
    }

    /// A list of strings that must be there.
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

    /// A string or a list of strings and nulls; not given, an empty list.
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

    /// A whole number that may be there.
    pub fn number(&mut self, field: &str) -> Result<Option<usize>, Refusal> {
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => whole_number(&value)
                .and_then(|number| usize::try_from(number).ok())
                .map(Some)
                .ok_or_else(|| mistyped(field, &value, "a whole number from 0 on")),
        }
    }

    /// Yes or no, which may be there.
    pub fn flag(&mut self, field: &str) -> Result<Option<bool>, Refusal> {
        match self.fields.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(mistyped(field, &other, "`true` or `false`")),
        }
    }

    /// One of several names, which may be there.
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

/// Why there is no answer. Serialised, it is `{"error":{"code","message"}}`.
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
    /// What was asked cannot be used; on the command line that is one line of many.
    pub fn unusable(message: impl Into<String>) -> Self {
        Self::new("bad-line", message.into())
    }

    /// What was given is no request.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new("bad-request", message.into())
    }

    /// The same to somebody who sent no lines.
    #[must_use]
    pub fn of_a_request(self) -> Self {
        match self.error.code {
            "bad-line" => Self::bad_request(self.error.message),
            _ => self,
        }
    }

    /// Whether the text was read and there is nothing in it.
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

/// What is wrong with a text, without the number of a line where there is only one.
fn not_json(what: &str, error: &serde_json::Error) -> String {
    let told = error.to_string();
    let wrong = told.split(" at line ").next().unwrap_or_default();
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

/// A number that is whole, however it is written: some programs know no others than `100.0`.
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
