//! Checks a document against a JSON Schema.

use std::path::Path;

use jsonschema::{ValidationError, Validator};
use overlock_json::BoundedSchema;
use overlock_store::RunId;
use serde_json::{Value, json};

use crate::ending::Failure;
use crate::input;

const MOST_SHOWN: usize = 20;

const LONGEST_MESSAGE: usize = 300;

#[derive(Default)]
pub(super) struct Violations {
    /// The path and the message of each of the first [`MOST_SHOWN`].
    pub(super) first: Vec<(String, String)>,
    /// How many there are.
    pub(super) count: usize,
}

pub(super) struct DocumentSchema {
    schema: BoundedSchema,
    validator: Validator,
}

impl DocumentSchema {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |reason: String| Failure::Schema {
            path: path.to_owned(),
            reason,
        };
        let text = input::text(path)?;
        let schema = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        Self::new(schema).map_err(wrong)
    }

    /// The schema of a recorded run.
    pub(super) fn recorded(id: &RunId, schema: Value) -> Result<Self, Failure> {
        Self::new(schema).map_err(|reason| Failure::DamagedRun {
            id: id.to_string(),
            reason,
        })
    }

    fn new(schema: Value) -> Result<Self, String> {
        let schema = BoundedSchema::new(schema).map_err(|error| error.to_string())?;
        let validator = schema.validator()?;
        Ok(Self { schema, validator })
    }

    pub(super) fn value(&self) -> &Value {
        self.schema.value()
    }

    /// The `response_format` that requests this schema.
    pub(super) fn response_format(&self) -> Value {
        json!({
            "type": "json_schema",
            "json_schema": { "name": "document", "schema": self.value() },
        })
    }

    pub(super) fn violations(&self, document: &str) -> Violations {
        let value = match serde_json::from_str(document) {
            Ok(value) => value,
            // Valid JSON that `Value` does not support: nested too deep, or a lone surrogate.
            Err(error) => {
                let message = format!("the document could not be checked: {error}");
                return Violations {
                    first: vec![(String::new(), message)],
                    count: 1,
                };
            }
        };
        let mut violations = Violations::default();
        for error in self.validator.iter_errors(&value) {
            violations.count += 1;
            if violations.first.len() < MOST_SHOWN {
                let path = error.instance_path().to_string();
                violations.first.push((path, message(&error)));
            }
        }
        violations
    }
}

/// The message of an error, without the value if it is long.
fn message(error: &ValidationError<'_>) -> String {
    let full = error.to_string();
    if full.len() <= LONGEST_MESSAGE {
        return full;
    }
    let masked = error.masked_with("the value").to_string();
    if masked.len() <= LONGEST_MESSAGE {
        return masked;
    }
    format!(
        "{}…",
        &masked[..masked.floor_char_boundary(LONGEST_MESSAGE)]
    )
}
