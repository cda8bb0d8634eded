//! What the arguments of a tool call are compared with.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use overlock_json::{BoundedSchema, Comparison};

/// What the arguments of a tool are compared with.
#[derive(Debug)]
pub(crate) struct ToolRules {
    pub(super) name: String,
    schema: Value,
    pub(super) is_strict: bool,
}

impl ToolRules {
    /// Those of all tools of a request that have any.
    pub(crate) fn of(request: &Map<String, Value>) -> Vec<Arc<Self>> {
        let list = |name| {
            let list = request.get(name).and_then(Value::as_array);
            list.into_iter().flatten()
        };
        let tools = list("tools").filter_map(|tool| tool.get("function"));
        let functions = tools.chain(list("functions"));
        functions
            .filter_map(|function| Self::of_function(function).map(Arc::new))
            .collect()
    }

    fn of_function(function: &Value) -> Option<Self> {
        let name = function.get("name")?.as_str()?.to_owned();
        let parameters = function.get("parameters").filter(|it| it.is_object())?;
        let is_strict = function.get("strict") == Some(&Value::Bool(true));
        let schema = if is_strict {
            parameters.clone()
        } else {
            let mut required = required_members(parameters)?;
            required["type"] = json!("object");
            required
        };
        Some(Self {
            name,
            schema,
            is_strict,
        })
    }

    pub(super) fn compare(&self, arguments: &str) -> Comparison {
        match BoundedSchema::new(self.schema.clone()) {
            Ok(schema) => {
                let name = &self.name;
                let violates =
                    format!("the arguments of a call of `{name}` violate the tool's parameters");
                schema.compare(arguments, &violates)
            }
            Err(error) => Comparison::undecided(error),
        }
    }
}

/// What a schema says about required members, and nothing else: whatever violates this violates
/// the schema.
fn required_members(schema: &Value) -> Option<Value> {
    let schema = schema.as_object()?;
    // Beside a reference nothing else counts, in older drafts.
    if schema.contains_key("$ref") {
        return None;
    }
    let mut rules = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    if let Some(names) =
        required.filter(|names| !names.is_empty() && names.iter().all(Value::is_string))
    {
        rules.insert("required".to_owned(), json!(names));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), required_members(schema)?)))
        .collect();
    if !properties.is_empty() {
        rules.insert("properties".to_owned(), Value::Object(properties));
    }
    if let Some(items) = schema.get("items").and_then(required_members) {
        rules.insert("items".to_owned(), items);
    }
    (!rules.is_empty()).then_some(Value::Object(rules))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(function: &Value, rules: Option<&Value>) {
        let found = ToolRules::of_function(function);
        assert_eq!(
            found.as_ref().map(|found| &found.schema),
            rules,
            "{function}"
        );
    }

    #[test]
    fn of_a_tool_that_is_not_strict_only_required_members_count() {
        let point = json!({ "type": "object", "required": ["x"], "maxProperties": 2 });
        let parameters = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": { "type": "string" }, "b": point, "c": { "type": "array", "items": point },
            },
        });
        let function = json!({ "name": "f", "parameters": parameters });
        let rules = json!({
            "required": ["a"], "type": "object",
            "properties": { "b": { "required": ["x"] }, "c": { "items": { "required": ["x"] } } },
        });
        check(&function, Some(&rules));
        let strict = json!({ "name": "f", "strict": true, "parameters": parameters });
        check(&strict, Some(&parameters));
    }

    #[test]
    fn a_tool_without_required_members_has_no_rules() {
        for parameters in [
            json!(null),
            json!({}),
            json!({ "required": [] }),
            json!({ "required": "a" }),
            json!({ "$ref": "#/$defs/a", "required": ["a"] }),
            json!({ "anyOf": [{ "required": ["a"] }] }),
        ] {
            check(&json!({ "name": "f", "parameters": parameters }), None);
        }
    }
}
