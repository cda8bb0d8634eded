//! The tools of a chat request, in the newer and in the older form.

use std::borrow::Cow;
use std::collections::HashSet;

use overlock_budget::{Function, Tool, ToolChoice};
use serde_json::{Map, Value};

/// Parameters that are invalid without tools.
pub(super) const WITH_TOOLS: [&str; 3] = ["tool_choice", "parallel_tool_calls", "function_call"];

/// The tools of a request.
pub(super) fn read<'a>(tools: &'a [Value], request: &'a Map<String, Value>) -> Vec<Tool<'a>> {
    let chosen = chosen_names(request);
    let tools = tools.iter().map(|tool| {
        let name = name(tool);
        Tool {
            name: name.unwrap_or_default(),
            is_required: name.is_some_and(|name| chosen.contains(name)),
            function: function(tool),
            template: Cow::Borrowed(tool),
        }
    });
    tools.collect()
}

/// The tool choice of a request.
pub(super) fn choice(request: &Map<String, Value>) -> ToolChoice<'_> {
    let choices = ["tool_choice", "function_call"];
    match choices.iter().find_map(|key| request.get(*key)) {
        Some(Value::String(word)) if word != "auto" => ToolChoice::Word,
        Some(choice @ Value::Object(_)) => ToolChoice::Named(name(choice).unwrap_or_default()),
        _ => ToolChoice::Auto,
    }
}

fn function(tool: &Value) -> Option<Function<'_>> {
    let function = match tool.get("type").and_then(Value::as_str) {
        Some("function") => tool.get("function")?,
        Some(_) => return None,
        // The older form is the function itself.
        None => tool,
    };
    Some(Function {
        name: function.get("name")?.as_str()?,
        description: function.get("description").and_then(Value::as_str),
        parameters: function.get("parameters").and_then(Value::as_object),
    })
}

/// The name of a tool.
fn name(tool: &Value) -> Option<&str> {
    let inner = ["function", "custom"].iter().find_map(|key| tool.get(key));
    let named = inner.unwrap_or(tool).get("name");
    named.or_else(|| tool.get("type"))?.as_str()
}

/// The names of the tools that a request requires.
fn chosen_names(request: &Map<String, Value>) -> HashSet<&str> {
    let member = |key: &str| request.get(key).filter(|value| value.is_object());
    let Some(choice) = member("tool_choice").or_else(|| member("function_call")) else {
        return HashSet::new();
    };
    let allowed = choice
        .get("allowed_tools")
        .and_then(|allowed| allowed.get("tools"));
    match allowed.and_then(Value::as_array) {
        Some(tools) => tools.iter().filter_map(name).collect(),
        None => name(choice).into_iter().collect(),
    }
}
