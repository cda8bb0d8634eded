//! Holds a document to a JSON Schema.

use std::path::Path;

use jsonschema::{ValidationError, Validator};
use overlock_json::BoundedSchema;
use overlock_store::RunId;
use serde_json::{Value, json};

use crate::ending::Failure;
use crate::input;

/// Of more violations than this the first are told.
const TOLD: usize = 20;

/// So many bytes are told of one.
const LONGEST_TOLD: usize = 300;

/// Where a document differs from a schema.
#[derive(Default)]
pub(super) struct Violations {
    /// The path and the words of the first of them.
    pub(super) first: Vec<(String, String)>,
    /// How many there are.
    pub(super) count: usize,
}

/// A schema that documents are compared with.
pub(super) struct Schema {
    schema: BoundedSchema,
    validator: Validator,
}

impl Schema {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |reason: String| Failure::Schema {
            path: path.to_owned(),
            reason,
        };
        let text = input::text(path)?;
        let schema = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        Self::new(schema).map_err(wrong)
    }

    /// The schema that a run was begun with.
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

    /// How a provider is asked to hold its answer to it.
    pub(super) fn response_format(&self) -> Value {
        json!({
            "type": "json_schema",
            "json_schema": { "name": "document", "schema": self.value() },
        })
    }

    /// Where a document differs from it, and how: the first twenty places, and how many there are.
    pub(super) fn violations(&self, document: &str) -> Violations {
        let value = match serde_json::from_str(document) {
            Ok(value) => value,
            // Valid JSON that cannot be held as a value: nested too deep, or half a character.
            Err(error) => {
                let message = format!("the document could not be compared: {error}");
                return Violations {
                    first: vec![(String::new(), message)],
                    count: 1,
                };
            }
        };
        let mut violations = Violations::default();
        for error in self.validator.iter_errors(&value) {
            violations.count += 1;
            if violations.first.len() < TOLD {
                let path = error.instance_path().to_string();
                violations.first.push((path, told(&error)));
            }
        }
        violations
    }
}

/// What is wrong, without the value if that is long.
fn told(error: &ValidationError<'_>) -> String {
    let whole = error.to_string();
    if whole.len() <= LONGEST_TOLD {
        return whole;
    }
    let masked = error.masked_with("the value").to_string();
    if masked.len() <= LONGEST_TOLD {
        return masked;
    }
    format!("{}…", &masked[..masked.floor_char_boundary(LONGEST_TOLD)])
}
