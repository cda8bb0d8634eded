//! Does a document keep to the schema that came with the request?

use serde_json::Value;

/// Where a document differs first from a schema; nothing if it does not. A schema that is none
/// holds nobody.
pub(crate) fn violation(schema: &Value, document: &str) -> Option<String> {
    let validator = jsonschema::validator_for(schema).ok()?;
    let value = match serde_json::from_str(document) {
        Ok(value) => value,
        Err(error) => return Some(format!("the document could not be compared: {error}")),
    };
    let first = validator.iter_errors(&value).next()?;
    let place = first.instance_path().to_string();
    let place = if place.is_empty() { "/" } else { &place };
    Some(format!("at `{place}`: {}", first.masked()))
}
