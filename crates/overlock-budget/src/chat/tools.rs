//! Writes tools as providers do for the model.
//!
//! A tool becomes a TypeScript type in a namespace, with descriptions as comments. The exact text is
//! not published, but it was measured, and the harmony format of open models shows it, so the counts
//! are close.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::request::Function;

/// The text before the tools.
pub(super) const OPENING: &str = "namespace functions {\n\n";

/// The text after them.
pub(super) const CLOSING: &str = "} // namespace functions";

/// A function between opening and closing.
pub(super) fn function_type(function: &Function) -> String {
    let Function {
        name,
        description,
        parameters,
    } = *function;
    let mut out = String::new();
    comment(description, 0, &mut out);
    let has_some = |parameters: &&Map<String, Value>| {
        let properties = parameters.get("properties").and_then(Value::as_object);
        properties.is_some_and(|properties| !properties.is_empty())
    };
    out.push_str("type ");
    out.push_str(name);
    match parameters.filter(has_some) {
        Some(parameters) => {
            out.push_str(" = (_: {\n");
            properties(parameters, 0, &mut out);
            out.push_str("}) => any;\n\n");
        }
        None => out.push_str(" = () => any;\n\n"),
    }
    if let Some(parameters) = parameters {
        definitions(parameters, &mut out);
    }
    out
}

fn properties(schema: &Map<String, Value>, indent: usize, out: &mut String) {
    let Some(members) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let required: HashSet<&str> = required.collect();
    for (name, property) in members {
        comment(description(property), indent, out);
        indentation(indent, out);
        out.push_str(name);
        out.push_str(if required.contains(name.as_str()) {
            ": "
        } else {
            "?: "
        });
        type_of(property, indent, out);
        out.push(',');
        if let Some(default) = property.get("default") {
            out.push_str(" // default: ");
            out.push_str(&default.to_string());
        }
        out.push('\n');
    }
}

fn type_of(schema: &Value, indent: usize, out: &mut String) {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(values) = list("enum") {
        joined(values.iter(), " | ", out, |value, out| {
            out.push_str(&value.to_string());
        });
    } else if let Some(value) = schema.get("const") {
        out.push_str(&value.to_string());
    } else if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        out.push_str(name.rsplit('/').next().unwrap_or(name));
    } else if let Some(schemas) = list("anyOf").or_else(|| list("oneOf")) {
        joined(schemas.iter(), " | ", out, |schema, out| {
            type_of(schema, indent, out);
        });
    } else if let Some(schemas) = list("allOf") {
        joined(schemas.iter(), " & ", out, |schema, out| {
            type_of(schema, indent, out);
        });
    } else if let Some(types) = list("type") {
        // A type that is referred to twice would be written twice at every level.
        let mut written = HashSet::new();
        let names = types.iter().map(Value::as_str);
        let names = names.filter(|name| written.insert(*name));
        joined(names, " | ", out, |name, out| {
            named_type(name, schema, indent, out);
        });
    } else {
        let name = schema.get("type").and_then(Value::as_str);
        named_type(name, schema, indent, out);
    }
    if schema.get("nullable").and_then(Value::as_bool) == Some(true) {
        out.push_str(" | null");
    }
}

fn named_type(name: Option<&str>, schema: &Value, indent: usize, out: &mut String) {
    match name {
        Some("integer" | "number") => out.push_str("number"),
        Some(name @ ("string" | "boolean" | "null")) => out.push_str(name),
        Some("array") => {
            match schema.get("items") {
                Some(items) => type_of(items, indent, out),
                None => out.push_str("any"),
            }
            out.push_str("[]");
        }
        Some("object") => match schema.as_object() {
            Some(members) if members.contains_key("properties") => {
                out.push_str("{\n");
                properties(members, indent + 2, out);
                out.push('}');
            }
            _ => out.push_str("object"),
        },
        _ => out.push_str("any"),
    }
}

/// Schemas that others point to.
fn definitions(parameters: &Map<String, Value>, out: &mut String) {
    for key in ["$defs", "definitions"] {
        let Some(schemas) = parameters.get(key).and_then(Value::as_object) else {
            continue;
        };
        for (name, schema) in schemas {
            comment(description(schema), 0, out);
            out.push_str("type ");
            out.push_str(name);
            out.push_str(" = ");
            type_of(schema, 0, out);
            out.push_str(";\n\n");
        }
    }
}

fn description(schema: &Value) -> Option<&str> {
    schema.get("description")?.as_str()
}

fn comment(description: Option<&str>, indent: usize, out: &mut String) {
    for line in description.into_iter().flat_map(str::lines) {
        indentation(indent, out);
        out.push_str("// ");
        out.push_str(line);
        out.push('\n');
    }
}

fn indentation(indent: usize, out: &mut String) {
    // Deeper levels look alike, lest short lines become long ones.
    const DEEPEST: usize = 16;
    out.extend(std::iter::repeat_n(' ', indent.min(DEEPEST)));
}

fn joined<T>(
    values: impl Iterator<Item = T>,
    separator: &str,
    out: &mut String,
    write: impl Fn(T, &mut String),
) {
    for (place, value) in values.enumerate() {
        if place > 0 {
            out.push_str(separator);
        }
        write(value, out);
    }
}
