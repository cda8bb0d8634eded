//! Keeps values that nest too deeply away from everything that recurses.
//!
//! Dropping, printing and cloning a JSON value all recurse on its depth, so a value from outside
//! is measured before anything else is done with it, and one that is refused is taken apart level
//! by level.

use serde_json::{Map, Value};

/// How deep a request may nest; `serde_json` reads texts just as deep.
pub(super) const DEEPEST: usize = 128;

/// The value as the object it is, unless it nests too deeply or is something else.
pub(super) fn shallow_object(value: Value) -> Result<Map<String, Value>, Refused> {
    if is_deep(&value) {
        take_apart(value);
        return Err(Refused::Deep);
    }
    match value {
        Value::Object(object) => Ok(object),
        other => Err(Refused::NoObject(other)),
    }
}

pub(super) enum Refused {
    Deep,
    NoObject(Value),
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

fn take_apart(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(values) => open.extend(values),
            Value::Object(members) => open.extend(members.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}
