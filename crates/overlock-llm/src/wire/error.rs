//! The errors of an invalid request, and errors for clients.

use std::fmt;

use serde_json::{Value, json};

use super::depth::DEEPEST;

/// Why a request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The text is not JSON.
    #[error("the request is not JSON: {reason} at line {line}, column {column}")]
    Syntax {
        /// What is wrong.
        reason: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The text is too long.
    #[error("the request has {bytes} bytes, but the limit is {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The maximum.
        limit: usize,
    },
    /// The value nests too deeply.
    #[error("the request nests deeper than {limit} levels")]
    TooDeep {
        /// The maximum depth.
        limit: usize,
    },
    /// A value has the wrong type or is not allowed.
    #[error("{place} is {found}, but must be {expected}")]
    Wrong {
        /// The place, such as `` `messages[3].role` ``, or the request itself.
        place: String,
        /// The value.
        found: String,
        /// The expected values.
        expected: String,
    },
    /// A required value is missing.
    #[error("{place} is missing: it must be {expected}")]
    Missing {
        /// The place.
        place: String,
        /// The expected values.
        expected: String,
    },
    /// The answer limit is set twice.
    #[error("`max_tokens` and `max_completion_tokens` must not both be set")]
    TwoLengths,
    /// There are tools in the newer and in the older form.
    #[error("`tools` and `functions` must not both be set")]
    TwoToolLists,
}

/// An error for a client.
#[derive(Clone, Copy, Debug)]
pub struct ErrorBody<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The type of the error, such as `invalid_request_error`.
    pub kind: &'a str,
    /// The code of the error, such as `context_length_exceeded`.
    pub code: Option<&'a str>,
    /// The parameter that is wrong.
    pub param: Option<&'a str>,
    /// The message.
    pub message: &'a str,
}

impl ErrorBody<'_> {
    /// The error as `OpenAI` writes it.
    pub(super) fn as_openai(&self) -> Value {
        json!({ "error": {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        } })
    }
}

pub(super) fn syntax(error: &serde_json::Error) -> RequestError {
    let (line, column) = (error.line(), error.column());
    let whole = error.to_string();
    // Line and column are separate fields.
    let reason = whole.strip_suffix(&format!(" at line {line} column {column}"));
    let reason = reason.unwrap_or(&whole);
    if reason == "recursion limit exceeded" {
        return RequestError::TooDeep { limit: DEEPEST };
    }
    RequestError::Syntax {
        reason: reason.to_owned(),
        line,
        column,
    }
}

pub(super) fn missing(place: impl fmt::Display, expected: &str) -> RequestError {
    RequestError::Missing {
        place: quoted(place),
        expected: expected.to_owned(),
    }
}

pub(super) fn wrong_at(place: impl fmt::Display, found: &Value, expected: &str) -> RequestError {
    wrong(&quoted(place), found, expected)
}

pub(super) fn wrong(place: &str, found: &Value, expected: &str) -> RequestError {
    RequestError::Wrong {
        place: place.to_owned(),
        found: describe(found),
        expected: expected.to_owned(),
    }
}

pub(super) fn quoted(place: impl fmt::Display) -> String {
    format!("`{place}`")
}

/// A short description of a value.
fn describe(value: &Value) -> String {
    const SHORT: usize = 40;
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().nth(SHORT).is_some() => "a string".to_owned(),
        Value::Number(number) if number.to_string().len() > SHORT => "a number".to_owned(),
        short => quoted(short),
    }
}
