//! The scripted server's Responses.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::dialect::{CollectedAnswer, Heading};
use super::fault::HALF;
use crate::backend::Call;
use crate::wire::Protocol;

/// The members that the API knows.
const KNOWN: [&str; 29] = [
    "background",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "client_metadata",
];

/// The fewest tokens that a request may ask for.
const LEAST_TOKENS: u64 = 16;

/// The tool that a request forces.
pub(super) fn forced_tool(request: &Map<String, Value>) -> Option<String> {
    let choice = request.get("tool_choice")?;
    let name = choice.get("name").filter(|_| choice["type"] == "function");
    name?.as_str().map(str::to_owned)
}

/// Validates a request like `OpenAI`.
pub(super) fn check(request: &Map<String, Value>) -> Result<(), String> {
    if let Some(name) = request.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!("Unknown parameter: '{name}'."));
    }
    if request.get("model").is_none_or(|model| !model.is_string()) {
        return Err("Missing required parameter: 'model'.".to_owned());
    }
    let limit = request.get("max_output_tokens").and_then(Value::as_u64);
    if limit.is_some_and(|limit| limit < LEAST_TOKENS) {
        return Err("Invalid 'max_output_tokens': integer below minimum value.".to_owned());
    }
    for tool in request
        .get("tools")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if tool["type"] == "function" && !tool["name"].is_string() {
            return Err("Missing required parameter: 'tools[0].name'.".to_owned());
        }
    }
    let items = match request.get("input") {
        Some(Value::String(_)) => return Ok(()),
        Some(Value::Array(items)) => items,
        _ => return Err("Missing required parameter: 'input'.".to_owned()),
    };
    check_items(items)
}

fn check_items(items: &[Value]) -> Result<(), String> {
    let (mut calls, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for (index, item) in items.iter().enumerate() {
        let kind = item
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("message");
        let id = item.get("call_id").and_then(Value::as_str);
        match kind {
            "message" => check_message(index, item)?,
            "function_call" | "custom_tool_call" => {
                calls.insert(id.ok_or("Missing required parameter: 'call_id'.")?);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let id = id.ok_or("Missing required parameter: 'call_id'.")?;
                if !calls.contains(id) {
                    return Err(format!(
                        "No tool call found for function call output with call_id {id}."
                    ));
                }
                answered.insert(id);
            }
            "reasoning" => {
                let next = items.get(index + 1);
                let has_follower = next.is_some_and(|next| {
                    let kind = next["type"].as_str().unwrap_or("message");
                    next["role"] == "assistant" || kind.ends_with("_call") || kind == "reasoning"
                });
                if !has_follower {
                    let id = item["id"].as_str().unwrap_or_default();
                    return Err(format!(
                        "Item '{id}' of type 'reasoning' was provided without its required \
                         following item."
                    ));
                }
            }
            _ => return Err(format!("Invalid value: '{kind}'.")),
        }
    }
    match calls.difference(&answered).next() {
        Some(call) => Err(format!("No tool output found for function call {call}.")),
        None => Ok(()),
    }
}

fn check_message(index: usize, item: &Value) -> Result<(), String> {
    let role = item["role"].as_str().unwrap_or_default();
    if !matches!(role, "user" | "assistant" | "system" | "developer") {
        return Err(format!("Invalid value: '{role}'."));
    }
    let allowed: &[&str] = match role {
        "assistant" => &["output_text", "refusal"],
        _ => &["input_text", "input_image", "input_file"],
    };
    match &item["content"] {
        Value::String(_) => Ok(()),
        Value::Array(parts) => {
            let kinds = parts
                .iter()
                .map(|part| part["type"].as_str().unwrap_or_default());
            let mut wrong = kinds.filter(|kind| !allowed.contains(kind));
            wrong.next().map_or(Ok(()), |kind| {
                Err(format!(
                    "Invalid value: '{kind}' at 'input[{index}].content[0].type'."
                ))
            })
        }
        _ => Err(format!(
            "Missing required parameter: 'input[{index}].content'."
        )),
    }
}

/// The call of the scripted model in a request: its messages.
pub(super) fn call(mut request: Map<String, Value>) -> Call {
    let input = request.remove("input").unwrap_or_default();
    let messages = match input {
        Value::Array(items) => {
            let messages = items.into_iter().filter(|item| item["role"].is_string());
            messages.map(as_message).collect()
        }
        text => vec![json!({ "role": "user", "content": text })],
    };
    let mut call = Map::new();
    call.insert("model".to_owned(), request["model"].clone());
    call.insert("messages".to_owned(), Value::Array(messages));
    Call {
        request: call,
        prefill: None,
    }
}

/// A message with its text in one piece.
pub(super) fn as_message(mut item: Value) -> Value {
    if let Value::Array(parts) = &item["content"] {
        let text: String = parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        item["content"] = json!(text);
    }
    json!({ "role": item["role"], "content": item["content"] })
}

/// The response.
pub(super) fn object(heading: &Heading, answer: &CollectedAnswer, tool: Option<&str>) -> Value {
    let is_cut = answer.finish == "length";
    let status = if is_cut { "incomplete" } else { "completed" };
    let reasoning = json!({ "id": format!("rs_{}", heading.number), "type": "reasoning",
        "summary": [], "encrypted_content": "gAAAAABscripted" });
    let item = match tool {
        Some(tool) => json!({
            "id": format!("fc_{}", heading.number), "type": "function_call", "status": status,
            "call_id": format!("call_{}", heading.number), "name": tool,
            "arguments": answer.text,
        }),
        None => json!({
            "id": format!("msg_{}", heading.number), "type": "message", "status": status,
            "role": "assistant",
            "content": [{
                "type": "output_text", "text": answer.text, "annotations": [], "logprobs": [],
            }],
        }),
    };
    json!({
        "id": format!("resp_scripted_{}", heading.number), "object": "response", "created_at": 0,
        "model": heading.model, "status": status, "background": false, "error": null,
        "incomplete_details": is_cut.then(|| json!({ "reason": "max_output_tokens" })),
        "instructions": null, "max_output_tokens": null, "metadata": {},
        "parallel_tool_calls": true, "previous_response_id": null, "store": true,
        "temperature": 1.0, "text": { "format": { "type": "text" } }, "tool_choice": "auto",
        "tools": [], "top_p": 1.0, "truncation": "disabled",
        "output": [reasoning, item],
        "usage": Protocol::Responses.usage_object(answer.usage),
    })
}

/// The response as a stream, with pieces of a few characters, or of half a character.
pub(super) fn stream(response: &Value) -> Vec<String> {
    const PIECE: usize = 40;
    let mut events = Vec::new();
    for event in Protocol::Responses.events(response, false) {
        let Some(text) = event["delta"].as_str().map(str::to_owned) else {
            events.push(event);
            continue;
        };
        for text in text.split_inclusive(HALF) {
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(PIECE) {
                let mut event = event.clone();
                event["delta"] = json!(String::from_iter(piece));
                events.push(event);
            }
        }
    }
    let frames = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        String::from_utf8_lossy(&Protocol::Responses.frame(&event)).into_owned()
    });
    frames.collect()
}
