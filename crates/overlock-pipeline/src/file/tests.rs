//! Tests that the schema agrees with the reader.

use serde_json::Value;

use super::findings::Report;
use super::{schema, tree};
use crate::actions::Action;

const WHOLE: &str = include_str!("../../tests/it/whole.yaml");

fn value(text: &str) -> Value {
    let mut report = Report::new(text);
    let root = tree::parse(text, &mut report).expect("it is YAML");
    assert!(!report.has_errors());
    root.to_value()
}

#[test]
fn the_schema_accepts_a_file_with_every_action() {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let errors: Vec<String> = validator
        .iter_errors(&value(WHOLE))
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn the_schema_rejects_every_misspelt_key() {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let whole = value(WHOLE);
    let steps = whole["pipeline"]["steps"].as_array().expect("it has steps");
    for (index, step) in steps.iter().enumerate() {
        for key in step.as_object().expect("a step is a map").keys() {
            let mut file = whole.clone();
            let step = file["pipeline"]["steps"][index].as_object_mut();
            let step = step.expect("a step is a map");
            let moved = step.remove(key).expect("it is there");
            step.insert(format!("{key}x"), moved);
            assert!(!validator.is_valid(&file), "`{key}x` of step {index}");
        }
    }
}

#[test]
fn every_field_of_every_action_is_described() {
    fn check(schema: &Value, path: &str) {
        let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        for (name, field) in fields {
            let about = field.get("description").and_then(Value::as_str);
            let is_described =
                about.is_some_and(|about| !about.is_empty() && !about.contains('\n'));
            assert!(is_described, "{path}.{name}: {about:?}");
            assert_ne!(field["type"], "null", "{path}.{name}");
            check(field, &format!("{path}.{name}"));
            check(&field["items"], &format!("{path}.{name}[]"));
        }
    }
    let schema = schema();
    check(&schema["$defs"]["settings"], "settings");
    for name in Action::NAMES {
        check(&schema["$defs"][*name], name);
    }
}
