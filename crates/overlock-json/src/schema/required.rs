//! The part of a schema that is about required members.

use serde_json::{Map, Value, json};

/// An object schema reduced to its rules about required members. Whatever violates them violates
/// the schema. Returns nothing if there are no such rules.
pub fn required_members(schema: &Value) -> Option<Value> {
    let mut rules = required(schema)?;
    rules["type"] = json!("object");
    Some(rules)
}

fn required(schema: &Value) -> Option<Value> {
    let schema = schema.as_object()?;
    // In older drafts, a reference overrides all other members.
    if schema.contains_key("$ref") {
        return None;
    }
    let mut rules = Map::new();
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.filter(|names| !names.is_empty() && names.iter().all(Value::is_string));
    if let Some(names) = names {
        rules.insert("required".to_owned(), json!(names));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), required(schema)?)))
        .collect();
    if !properties.is_empty() {
        rules.insert("properties".to_owned(), Value::Object(properties));
    }
    if let Some(items) = schema.get("items").and_then(required) {
        rules.insert("items".to_owned(), items);
    }
    (!rules.is_empty()).then_some(Value::Object(rules))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_rules_about_required_members() {
        let point = json!({ "type": "object", "required": ["x"], "maxProperties": 2 });
        let schema = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": { "type": "string" }, "b": point, "c": { "type": "array", "items": point },
            },
        });
        let rules = json!({
            "required": ["a"], "type": "object",
            "properties": { "b": { "required": ["x"] }, "c": { "items": { "required": ["x"] } } },
        });
        assert_eq!(required_members(&schema), Some(rules));
    }

    #[test]
    fn a_schema_without_required_members_has_no_rules() {
        for schema in [
            json!(null),
            json!({}),
            json!({ "required": [] }),
            json!({ "required": "a" }),
            json!({ "$ref": "#/$defs/a", "required": ["a"] }),
            json!({ "anyOf": [{ "required": ["a"] }] }),
        ] {
            assert_eq!(required_members(&schema), None, "{schema}");
        }
    }
}
