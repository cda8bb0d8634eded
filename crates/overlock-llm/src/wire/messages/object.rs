//! The message as one object: its stop reason, its usage, its events, and errors.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::backend::Usage;
use crate::wire::answer::{AnswerSummary, FinalChoice, REPORT};
use crate::wire::error::ErrorBody;
use crate::wire::protocol::is_normal_end;

/// The type of an event, a block or a delta.
pub(super) fn kind_of(value: &Value) -> &str {
    value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The finish reason of a message, if it has ended.
pub(super) fn finish_of(message: &Value) -> Option<&str> {
    Some(match message.get("stop_reason")?.as_str()? {
        "end_turn" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "refusal" => "content_filter",
        other => other,
    })
}

/// Writes how the choices ended into a message. Returns whether that changes it.
pub(super) fn set_stop_reason(message: &mut Value, choices: &BTreeMap<u64, FinalChoice>) -> bool {
    let finishes = || {
        choices
            .values()
            .filter_map(|choice| choice.finish.as_deref())
    };
    let reported = finish_of(message);
    let reason = if finishes().any(|finish| finish == "content_filter") {
        "refusal"
    } else if finishes().any(|finish| finish == "length") {
        if reported == Some("length") {
            return false;
        }
        "max_tokens"
    } else if finishes().all(is_normal_end) && matches!(reported, None | Some("length")) {
        match finishes().next_back() {
            Some("tool_calls") => "tool_use",
            _ => "end_turn",
        }
    } else {
        return false;
    };
    let is_changed = message["stop_reason"] != reason;
    message["stop_reason"] = json!(reason);
    is_changed
}

/// The text of a part: of a text block, or the input of a call as JSON. The answer to a call that
/// was cut is stored with the text of its input.
pub(super) fn text_of(block: &Value) -> String {
    match kind_of(block) {
        "tool_use" => match &block["input"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            input => input.to_string(),
        },
        _ => block["text"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Writes the text of a part into its block. An input that is cut stays empty: clients read any
/// object as a complete input.
pub(super) fn set_text(block: &mut Value, text: &str) {
    if kind_of(block) == "text" {
        block["text"] = json!(text);
        return;
    }
    let input: Option<Value> = serde_json::from_str(text).ok();
    let input = input.filter(Value::is_object);
    block["input"] = input.unwrap_or_else(|| json!({}));
}

/// A text block.
pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// A message as the events of a stream.
pub(in crate::wire) fn events(message: &Value) -> Vec<Value> {
    let mut begun = message.clone();
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    begun["stop_sequence"] = Value::Null;
    if let Some(members) = begun.as_object_mut() {
        members.shift_remove(REPORT);
    }
    let mut events = vec![json!({ "type": "message_start", "message": begun })];
    let blocks = message.get("content").and_then(Value::as_array);
    for (index, block) in blocks.into_iter().flatten().enumerate() {
        block_events(index, block, &mut events);
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {
            "stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"],
        },
        "usage": message["usage"],
    }));
    let mut stop = json!({ "type": "message_stop" });
    if let Some(report) = message.get(REPORT) {
        stop[REPORT] = report.clone();
    }
    events.push(stop);
    events
}

fn block_events(index: usize, block: &Value, events: &mut Vec<Value>) {
    let mut begun = block.clone();
    let mut deltas = Vec::new();
    match kind_of(block) {
        "text" => {
            begun["text"] = json!("");
            deltas.push(json!({ "type": "text_delta", "text": block["text"] }));
            let citations = block.get("citations").and_then(Value::as_array);
            for citation in citations.into_iter().flatten() {
                deltas.push(json!({ "type": "citations_delta", "citation": citation }));
            }
            if begun.get("citations").is_some_and(Value::is_array) {
                begun["citations"] = json!([]);
            }
        }
        "thinking" => {
            begun["thinking"] = json!("");
            begun["signature"] = json!("");
            deltas.push(json!({ "type": "thinking_delta", "thinking": block["thinking"] }));
            deltas.push(json!({ "type": "signature_delta", "signature": block["signature"] }));
        }
        "tool_use" => {
            begun["input"] = json!({});
            deltas.push(json!({ "type": "input_json_delta", "partial_json": text_of(block) }));
        }
        _ => {}
    }
    events.push(json!({ "type": "content_block_start", "index": index, "content_block": begun }));
    let deltas = deltas.into_iter();
    events.extend(
        deltas
            .map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
    );
    events.push(json!({ "type": "content_block_stop", "index": index }));
}

/// The figures of a message.
pub(in crate::wire) fn summary(message: &Value) -> AnswerSummary<'_> {
    AnswerSummary {
        model: message.get("model").and_then(Value::as_str),
        finishes: finish_of(message).into_iter().collect(),
        usage: message.get("usage").and_then(read_usage),
    }
}

/// A usage object. Its input tokens are those that were not read from the cache.
pub(in crate::wire) fn usage_object(usage: Usage) -> Value {
    let cached = usage.cached.unwrap_or_default();
    json!({
        "input_tokens": usage.input.saturating_sub(cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output,
    })
}

/// Reads a usage object: all input tokens, cached or not, as the other protocols count them.
pub(in crate::wire) fn read_usage(usage: &Value) -> Option<Usage> {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let cached = count("cache_read_input_tokens");
    let written = count("cache_creation_input_tokens").unwrap_or_default();
    let input = count("input_tokens")?.saturating_add(written);
    Some(Usage {
        input: input.saturating_add(cached.unwrap_or_default()),
        output: count("output_tokens")?,
        cached,
    })
}

/// The usage object of a first call with the tokens of later calls added. Its other members stay.
pub(in crate::wire) fn add_usage(first: &Value, later: Usage) -> Value {
    let mut usage: Map<String, Value> = first.as_object().cloned().unwrap_or_default();
    let cached = later.cached.unwrap_or_default();
    for (name, tokens) in [
        ("input_tokens", later.input.saturating_sub(cached)),
        ("cache_read_input_tokens", cached),
        ("output_tokens", later.output),
    ] {
        let before = usage.get(name).and_then(Value::as_u64);
        if tokens > 0 || before.is_some() {
            let sum = before.unwrap_or_default().saturating_add(tokens);
            usage.insert(name.to_owned(), json!(sum));
        }
    }
    Value::Object(usage)
}

/// An error as Anthropic writes it.
pub(in crate::wire) fn error(error: &ErrorBody<'_>) -> Value {
    let kind = match error.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    };
    // Clients recognise these words.
    let message = match error.code {
        Some("context_length_exceeded") => format!("prompt is too long: {}", error.message),
        _ => error.message.to_owned(),
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}
