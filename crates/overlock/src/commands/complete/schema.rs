//! Holds a document to a JSON Schema.

use std::fs;
use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::ending::Failure;

/// Of more violations than this the first are told.
const TOLD: usize = 20;

/// A schema that documents are compared with.
pub(super) struct Schema {
    schema: Value,
    validator: Validator,
}

impl Schema {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |reason: String| Failure::Schema {
            path: path.to_owned(),
            reason,
        };
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let schema: Value =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let validator =
            jsonschema::validator_for(&schema).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { schema, validator })
    }

    /// How a provider is asked to hold its answer to it.
    pub(super) fn response_format(&self) -> Value {
        json!({
            "type": "json_schema",
            "json_schema": { "name": "document", "schema": self.schema },
        })
    }

    /// Where a document differs from it, and how; at most twenty places.
    pub(super) fn violations(&self, document: &str) -> Vec<(String, String)> {
        let Ok(value) = serde_json::from_str(document) else {
            return Vec::new();
        };
        let errors = self.validator.iter_errors(&value).take(TOLD);
        errors
            .map(|error| (error.instance_path().to_string(), error.to_string()))
            .collect()
    }
}
