//! The JSON Schema of pipeline files, generated from the types that read them.

use std::collections::HashMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::actions::Action;
use crate::settings::Settings;

/// The JSON Schema of pipeline files, for editors and other programs.
///
/// ```
/// let schema = overlock_pipeline::schema();
/// let step = &schema["$defs"]["search_nodes"];
/// assert_eq!(step["properties"]["top_k"]["maximum"], 1000);
/// ```
pub fn schema() -> Value {
    let names = Action::NAMES;
    let choices: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({
                "if": { "properties": { "action": { "const": name } }, "required": ["action"] },
                "then": { "$ref": format!("#/$defs/{name}") },
            })
        })
        .collect();
    let step = json!({
        "type": "object",
        "description": "One step: its id, its action, and the next step.",
        "properties": {
            "id": id(),
            "action": {
                "description": "What the step does.",
                "enum": names,
                "enumDescriptions": names.iter().map(|name| description(name)).collect::<Vec<_>>(),
            },
        },
        "required": ["id", "action"],
        "allOf": choices,
    });
    let mut definitions = Map::new();
    definitions.insert("settings".to_owned(), settings());
    definitions.insert("step".to_owned(), step);
    for name in names {
        definitions.insert((*name).to_owned(), action_schema(name));
    }
    let mut pipeline = envelope();
    pipeline["properties"]["settings"] = json!({ "$ref": "#/$defs/settings" });
    pipeline["properties"]["steps"]["items"] = json!({ "$ref": "#/$defs/step" });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Overlock pipeline",
        "description": "A pipeline of steps whose prompts never exceed their budget.",
        "type": "object",
        "properties": { "pipeline": pipeline },
        "required": ["pipeline"],
        "additionalProperties": false,
        "$defs": definitions,
    })
}

/// The parts of a file that are validated separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// The keys directly under `pipeline`.
    Envelope,
    /// The settings, except those that steps name.
    Settings,
    /// A step of this action.
    Step(&'static str),
}

/// The schema of a part and its validator.
pub(super) struct PartSchema {
    pub(super) validator: Validator,
    schema: Value,
}

impl PartSchema {
    /// The keys that the schema allows in the map at a path.
    pub(super) fn keys(&self, path: &[String]) -> Vec<&str> {
        let schema = self.at(path);
        let keys = schema.and_then(|schema| schema.get("properties")?.as_object());
        let keys = keys.into_iter().flat_map(Map::keys);
        keys.map(String::as_str).collect()
    }

    /// The description of the value at a path.
    pub(super) fn description(&self, path: &[String]) -> Option<&str> {
        self.at(path)?.get("description")?.as_str()
    }

    /// Whether the value at a path is required.
    pub(super) fn is_required(&self, path: &[String]) -> bool {
        let Some((name, holder)) = path.split_last() else {
            return true;
        };
        let required = self.at(holder).and_then(|schema| schema.get("required"));
        let required = required.and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|required| required == name))
    }

    fn at(&self, path: &[String]) -> Option<&Value> {
        path.iter().try_fold(&self.schema, |schema, name| {
            let named = schema.get("properties").and_then(|keys| keys.get(name));
            let any = || schema.get("items").or(schema.get("additionalProperties"));
            named.or_else(any)
        })
    }
}

/// The schema of a part.
pub(super) fn part_schema(part: Part) -> &'static PartSchema {
    static SCHEMAS: OnceLock<HashMap<Part, PartSchema>> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(|| {
        let steps = Action::NAMES.iter().map(|name| Part::Step(name));
        let parts = [Part::Envelope, Part::Settings].into_iter().chain(steps);
        let schemas = parts.map(|part| {
            let schema = match part {
                Part::Envelope => envelope(),
                Part::Settings => {
                    // Which other settings are valid depends on the steps.
                    let mut schema = settings();
                    schema["additionalProperties"] = true.into();
                    schema
                }
                Part::Step(name) => action_schema(name),
            };
            let validator = jsonschema::validator_for(&schema)
                .expect("the schema is made from types, and a test compiles it");
            (part, PartSchema { validator, schema })
        });
        schemas.collect()
    });
    &schemas[&part]
}

/// The edge types that a setting may list.
pub(super) fn edge_types() -> Vec<&'static str> {
    let schema = &part_schema(Part::Step("expand_dependency_tree")).schema;
    let kinds = schema["properties"]["edge_types"]["items"]["enum"].as_array();
    kinds
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn id() -> Value {
    json!({ "description": "The id of the step.", "type": "string", "minLength": 1 })
}

/// The keys directly under `pipeline`.
fn envelope() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {
                "description": "The name of the pipeline; by default that of its file.",
                "type": "string",
                "minLength": 1,
            },
            "description": { "description": "The purpose of the pipeline.", "type": "string" },
            "settings": { "description": "The settings of the pipeline.", "type": "object" },
            "steps": {
                "description": "The steps.",
                "type": "array",
                "minItems": 1,
                "maxItems": 1000,
            },
        },
        "required": ["settings", "steps"],
        "additionalProperties": false,
    })
}

fn settings() -> Value {
    let mut schema = generator().into_root_schema_for::<Settings>().to_value();
    tidy(&mut schema);
    let edges = {
        let mut generator = generator();
        let action = Action::schema("expand_dependency_tree", &mut generator);
        let mut action = action.map(schemars::Schema::to_value).unwrap_or_default();
        tidy(&mut action);
        action["properties"]["edge_types"].take()
    };
    schema["additionalProperties"] = json!({
        "description": "A value that steps name by `…_from_settings`.",
        "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "array", "items": edges["items"] },
        ],
    });
    for key in ["$schema", "title"] {
        schema.as_object_mut().map(|schema| schema.remove(key));
    }
    schema
}

/// The schema of a step with this action: the action's own fields and the common ones.
fn action_schema(name: &str) -> Value {
    let own = Action::schema(name, &mut generator());
    let mut own = own.map(schemars::Schema::to_value).unwrap_or_default();
    tidy(&mut own);
    let mut properties = Map::new();
    properties.insert("id".to_owned(), id());
    properties.insert(
        "action".to_owned(),
        json!({ "description": "What the step does.", "const": name }),
    );
    properties.insert(
        "description".to_owned(),
        json!({ "description": "The purpose of the step.", "type": "string" }),
    );
    if let Some(Value::Object(fields)) = own.get_mut("properties").map(Value::take) {
        properties.extend(fields);
    }
    properties.insert(
        "next".to_owned(),
        json!({
            "description": "The next step, unless the action chooses it.",
            "type": "string",
            "minLength": 1,
        }),
    );
    properties.insert(
        "end".to_owned(),
        json!({ "description": "Whether the run ends after this step.", "type": "boolean" }),
    );
    let required = own.get_mut("required").map(Value::take);
    let required = required.and_then(|names| match names {
        Value::Array(names) => Some(names),
        _ => None,
    });
    let mut names = vec![json!("id"), json!("action")];
    names.extend(required.into_iter().flatten());
    json!({
        "title": name,
        "description": own.get("description"),
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": false,
    })
}

/// The description of an action.
fn description(name: &str) -> String {
    let schema = Action::schema(name, &mut generator());
    let about = schema.as_ref().and_then(|schema| schema.get("description"));
    about.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
}

/// Simplifies a generated schema: optional fields do not allow null, choices are one list, and
/// numbers have the range of their types.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(members) => {
            without_null(members);
            flatten_choices(members);
            limit_to_type(members);
            // Doc comments have line breaks.
            if let Some(Value::String(about)) = members.get_mut("description") {
                *about = about.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            for (key, value) in members.iter_mut() {
                if key != "default" && key != "enum" {
                    tidy(value);
                }
            }
        }
        _ => {}
    }
}

fn without_null(schema: &mut Map<String, Value>) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| choice["type"] != "null");
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        schema.remove("anyOf");
        for (key, value) in only {
            // The description of the field takes precedence over that of its type.
            schema.entry(key).or_insert(value);
        }
    }
}

/// Turns described choices into one list of values and one of descriptions.
fn flatten_choices(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else {
        return;
    };
    let mut values = Vec::new();
    let mut descriptions = Vec::new();
    for choice in choices {
        let described = choice.get("description").cloned().unwrap_or_default();
        let described = described.as_str().unwrap_or_default().to_owned();
        match (choice.get("const"), choice.get("enum")) {
            (Some(value), _) => {
                values.push(value.clone());
                descriptions.push(described);
            }
            (None, Some(Value::Array(more))) => {
                descriptions.extend(more.iter().map(|_| described.clone()));
                values.extend(more.iter().cloned());
            }
            _ => return,
        }
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), values.into());
    schema.insert("enumDescriptions".to_owned(), descriptions.into());
}

/// Sets the maximum of a number to that of its type.
fn limit_to_type(schema: &mut Map<String, Value>) {
    let most = match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => Some(json!(u32::MAX)),
        Some("uint64") => Some(json!(u64::MAX)),
        Some("double") => None,
        _ => return,
    };
    schema.remove("format");
    if let Some(most) = most {
        schema.entry("maximum").or_insert(most);
    }
}
