//! How does a provider write a tool down before the model sees it?
//!
//! As a TypeScript type in a namespace, with descriptions as comments. Nobody publishes the text,
//! but many have measured it, and the harmony format of open models shows it; so a count of it is
//! close, and not more.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::request::ChatRequest;

/// What stands before the tools.
pub(super) const OPENING: &str = "namespace functions {\n\n";

/// What stands after them.
pub(super) const CLOSING: &str = "} // namespace functions";

/// A function as it is written between opening and closing, or nothing if it is another tool.
pub(super) fn function_type(tool: &Value) -> Option<String> {
    let function = match tool.get("type").and_then(Value::as_str) {
        Some("function") => tool.get("function")?,
        Some(_) => return None,
        // The older form is the function itself.
        None => tool,
    };
    let name = function.get("name")?.as_str()?;
    let mut out = String::new();
    comment(function, 0, &mut out);
    let parameters = function.get("parameters").and_then(Value::as_object);
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
    Some(out)
}

/// The name by which a tool is chosen and reported.
pub(crate) fn tool_name(tool: &Value) -> Option<&str> {
    let inner = ["function", "custom"].iter().find_map(|key| tool.get(key));
    let named = inner.unwrap_or(tool).get("name");
    named.or_else(|| tool.get("type"))?.as_str()
}

/// The names of the tools that a request insists on.
pub(crate) fn chosen_names(request: &ChatRequest) -> HashSet<&str> {
    let member = |key: &str| request.members().get(key).filter(|value| value.is_object());
    let Some(choice) = member("tool_choice").or_else(|| member("function_call")) else {
        return HashSet::new();
    };
    let allowed = choice
        .get("allowed_tools")
        .and_then(|allowed| allowed.get("tools"));
    match allowed.and_then(Value::as_array) {
        Some(tools) => tools.iter().filter_map(tool_name).collect(),
        None => tool_name(choice).into_iter().collect(),
    }
}

fn properties(schema: &Map<String, Value>, indent: usize, out: &mut String) {
    let Some(members) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let required: HashSet<&str> = required.collect();
    for (name, property) in members {
        comment(property, indent, out);
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
        // A type named twice would write all that is in it twice, and again at every level.
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
            comment(schema, 0, out);
            out.push_str("type ");
            out.push_str(name);
            out.push_str(" = ");
            type_of(schema, 0, out);
            out.push_str(";\n\n");
        }
    }
}

fn comment(described: &Value, indent: usize, out: &mut String) {
    let description = described.get("description").and_then(Value::as_str);
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
