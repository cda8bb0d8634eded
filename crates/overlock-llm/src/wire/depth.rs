//! Rejects values that nest too deeply.
//!
//! Dropping, printing and cloning a JSON value recurse on its depth. The depth of untrusted values
//! is therefore checked first, and values that are too deep are dropped level by level.

use serde_json::{Map, Value};

/// The maximum depth of a request, which is also the limit of `serde_json`'s parser.
pub(super) const DEEPEST: usize = 128;

/// The value as an object, unless it nests too deeply or has another type.
pub(super) fn shallow_object(value: Value) -> Result<Map<String, Value>, DepthError> {
    if is_deep(&value) {
        drop_by_level(value);
        return Err(DepthError::TooDeep);
    }
    match value {
        Value::Object(object) => Ok(object),
        other => Err(DepthError::NotAnObject(other)),
    }
}

pub(super) enum DepthError {
    TooDeep,
    NotAnObject(Value),
}

fn is_deep(value: &Value) -> bool {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > DEEPEST {
            return true;
        }
        match value {
            Value::Array(values) => open.extend(values.iter().map(|value| (value, depth + 1))),
            Value::Object(members) => {
                open.extend(members.values().map(|value| (value, depth + 1)));
            }
            _ => {}
        }
    }
    false
}

fn drop_by_level(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(values) => open.extend(values),
            Value::Object(members) => open.extend(members.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}
