//! Why something is not a chat request.

use std::fmt;

use serde_json::Value;

use super::depth::DEEPEST;

/// Why something is no chat request.
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
    /// The text is larger than any request.
    #[error("the request has {bytes} bytes, which is more than the limit of {limit}")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The value nests deeper than any request.
    #[error("the request nests deeper than {limit} levels")]
    TooDeep {
        /// How deep it may nest.
        limit: usize,
    },
    /// Something is there, but not what it must be.
    #[error("{place} is {found}, but must be {expected}")]
    Wrong {
        /// Where, such as `` `messages[3].role` ``; the request itself if it is no object.
        place: String,
        /// What is there.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// Something that must be there is not.
    #[error("{place} is missing: it must be {expected}")]
    Missing {
        /// Where.
        place: String,
        /// What would be right.
        expected: String,
    },
    /// The length of the answer is asked for twice.
    #[error("`max_tokens` and `max_completion_tokens` are both set, but only one of them may be")]
    TwoLengths,
    /// There are tools in the newer and in the older form.
    #[error("`tools` and `functions` are both set, but only one of them may be")]
    TwoToolLists,
}

pub(super) fn syntax(error: &serde_json::Error) -> RequestError {
    let (line, column) = (error.line(), error.column());
    let whole = error.to_string();
    // The place is a field of its own.
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

/// What a value is, in a few words.
fn describe(value: &Value) -> String {
    const SHORT: usize = 40;
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().nth(SHORT).is_some() => "a text".to_owned(),
        Value::Number(number) if number.to_string().len() > SHORT => "a number".to_owned(),
        short => quoted(short),
    }
}
