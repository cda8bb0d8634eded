//! The response as one object: its status, its usage, and its events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::writer::PartPlace;
use crate::backend::{Usage, member};
use crate::wire::answer::{AnswerSummary, FinalChoice, REPORT};
use crate::wire::choices::PartKey;
use crate::wire::protocol::is_normal_end;

/// The finish reason of a response, if it has ended.
pub(super) fn finish_of(response: &Value) -> Option<&str> {
    match response.get("status")?.as_str()? {
        "completed" => Some("stop"),
        "incomplete" => match incomplete_reason(response) {
            Some("max_output_tokens") | None => Some("length"),
            Some(reason) => Some(reason),
        },
        "in_progress" => None,
        other => Some(other),
    }
}

fn incomplete_reason(response: &Value) -> Option<&str> {
    member(response, ["incomplete_details", "reason"])?.as_str()
}

/// Writes how the choices ended into a response. Returns whether that changes it.
pub(super) fn set_status(response: &mut Value, choices: &BTreeMap<u64, FinalChoice>) -> bool {
    let finishes = || {
        choices
            .values()
            .filter_map(|choice| choice.finish.as_deref())
    };
    let (status, reason) = if finishes().any(|finish| finish == "content_filter") {
        ("incomplete", Some("content_filter"))
    } else if finishes().any(|finish| finish == "length") {
        ("incomplete", Some("max_output_tokens"))
    } else if finishes().all(is_normal_end) {
        ("completed", None)
    } else {
        return false;
    };
    if response["status"] == status && incomplete_reason(response) == reason {
        return false;
    }
    response["status"] = json!(status);
    response["incomplete_details"] = json!(reason.map(|reason| json!({ "reason": reason })));
    true
}

/// Writes the status of an item. Returns whether that changes it.
pub(super) fn set_item_status(item: &mut Value, is_cut: bool) -> bool {
    let Some(status) = item.get_mut("status") else {
        return false;
    };
    let new = match status.as_str() {
        Some("completed") if is_cut => "incomplete",
        Some("incomplete" | "in_progress") if !is_cut => "completed",
        Some("in_progress") => "incomplete",
        _ => return false,
    };
    *status = json!(new);
    true
}

/// Whether an item says what the model does next. It is no part of the answer, and is forwarded as
/// it is.
pub(super) fn is_commentary(item: &Value) -> bool {
    item["phase"] == "commentary"
}

/// A message without text in the response with this id.
pub(super) fn new_message(response: &Value, output: u64, status: &str) -> Value {
    let id = response.as_str().unwrap_or_default();
    json!({
        "id": format!("msg_{id}_{output}"), "type": "message", "status": status,
        "role": "assistant", "content": [],
    })
}

/// A message of the model as input, as all servers accept it.
pub(in crate::wire) fn assistant_message(text: &str) -> Value {
    json!({
        "type": "message", "role": "assistant", "status": "completed",
        "content": [text_part(text)],
    })
}

/// A text part of a message.
pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [] })
}

/// A response as the events of a stream. The number of an event is its position.
pub(in crate::wire) fn events(response: &Value) -> Vec<Value> {
    let mut begun = response.clone();
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    begun["incomplete_details"] = Value::Null;
    if let Some(members) = begun.as_object_mut() {
        members.shift_remove(REPORT);
    }
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
    ];
    let items = response.get("output").and_then(Value::as_array);
    for (output, item) in items.into_iter().flatten().enumerate() {
        item_events(output, item, &mut events);
    }
    let kind = match finish_of(response) {
        Some("length" | "content_filter") => "response.incomplete",
        _ => "response.completed",
    };
    events.push(json!({ "type": kind, "response": response }));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events
}

fn item_events(output: usize, item: &Value, events: &mut Vec<Value>) {
    let id = item.get("id").cloned().unwrap_or_default();
    let mut begun = item.clone();
    if begun.get("status").is_some() {
        begun["status"] = json!("in_progress");
    }
    let mut event = |kind: &str, members: Value| {
        let mut event = json!({ "type": kind });
        if let (Value::Object(event), Value::Object(members)) = (&mut event, members) {
            event.extend(members);
        }
        events.push(event);
    };
    let is_call = item["type"] == "function_call";
    if is_call {
        begun["arguments"] = json!("");
    } else if begun["type"] == "message" {
        begun["content"] = json!([]);
    }
    event(
        "response.output_item.added",
        json!({ "output_index": output, "item": begun }),
    );
    if is_call {
        let arguments = &item["arguments"];
        let place = json!({ "item_id": id, "output_index": output });
        let with = |name: &str, value: &Value| {
            let mut place = place.clone();
            place[name] = value.clone();
            place
        };
        event(
            "response.function_call_arguments.delta",
            with("delta", arguments),
        );
        let mut done = with("arguments", arguments);
        done["name"] = item["name"].clone();
        event("response.function_call_arguments.done", done);
    }
    let parts = item.get("content").and_then(Value::as_array);
    let parts = parts.filter(|_| item["type"] == "message");
    for (content, part) in parts.into_iter().flatten().enumerate() {
        let place = json!({ "item_id": id, "output_index": output, "content_index": content });
        let with = |name: &str, value: &Value| {
            let mut place = place.clone();
            place[name] = value.clone();
            place
        };
        let kind = part["type"].as_str().unwrap_or_default();
        let name = if kind == "output_text" { "text" } else { kind };
        let mut begun = part.clone();
        begun[name] = json!("");
        event("response.content_part.added", with("part", &begun));
        if matches!(kind, "output_text" | "refusal") {
            let mut delta = with("delta", &part[name]);
            let mut done = with(name, &part[name]);
            if kind == "output_text" {
                delta["logprobs"] = json!([]);
                done["logprobs"] = json!([]);
            }
            event(&format!("response.{kind}.delta"), delta);
            event(&format!("response.{kind}.done"), done);
        }
        event("response.content_part.done", with("part", part));
    }
    event(
        "response.output_item.done",
        json!({ "output_index": output, "item": item }),
    );
}

/// The figures of a response.
pub(in crate::wire) fn summary(response: &Value) -> AnswerSummary<'_> {
    AnswerSummary {
        model: response.get("model").and_then(Value::as_str),
        finishes: finish_of(response).into_iter().collect(),
        usage: response.get("usage").and_then(read_usage),
    }
}

/// A usage object.
pub(in crate::wire) fn usage_object(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached.unwrap_or_default(), "cache_write_tokens": 0,
        },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.input.saturating_add(usage.output),
    })
}

/// Reads a usage object.
pub(in crate::wire) fn read_usage(usage: &Value) -> Option<Usage> {
    let cached = member(usage, ["input_tokens_details", "cached_tokens"]);
    Some(Usage {
        input: usage.get("input_tokens")?.as_u64()?,
        output: usage.get("output_tokens")?.as_u64()?,
        cached: cached.and_then(Value::as_u64),
    })
}

/// The usage object of a first call with the tokens of later calls added. Its other members stay.
pub(in crate::wire) fn add_usage(first: &Value, later: Usage) -> Value {
    let mut usage: Map<String, Value> = first.as_object().cloned().unwrap_or_default();
    let mut sum = read_usage(first).unwrap_or_default();
    sum += later;
    usage.insert("input_tokens".to_owned(), json!(sum.input));
    usage.insert("output_tokens".to_owned(), json!(sum.output));
    let total = sum.input.saturating_add(sum.output);
    usage.insert("total_tokens".to_owned(), json!(total));
    if let Some(cached) = sum.cached {
        let details = usage.entry("input_tokens_details").or_insert(json!({}));
        if !details.is_object() {
            *details = json!({});
        }
        details["cached_tokens"] = json!(cached);
    }
    Value::Object(usage)
}

/// Writes the text of a part into an item. Returns whether that changes it.
pub(super) fn write_text(item: &mut Value, place: PartPlace, text: &str) -> bool {
    let at = match place.content {
        None => item.get_mut("arguments"),
        Some(content) => {
            let content = usize::try_from(content).unwrap_or(usize::MAX);
            let parts = item.get_mut("content").and_then(Value::as_array_mut);
            parts.and_then(|parts| {
                if parts.len() == content {
                    parts.push(text_part(""));
                }
                parts.get_mut(content)?.get_mut("text")
            })
        }
    };
    let Some(at) = at.filter(|at| at.as_str() != Some(text)) else {
        return false;
    };
    *at = json!(text);
    true
}

/// The last item of every choice that is not complete.
pub(super) fn cut_items(
    choices: &BTreeMap<u64, FinalChoice>,
    places: &BTreeMap<PartKey, PartPlace>,
) -> BTreeSet<u64> {
    let is_cut = |choice: &FinalChoice| {
        matches!(choice.finish.as_deref(), Some("length" | "content_filter"))
    };
    let cut = choices.iter().filter(|(_, choice)| is_cut(choice));
    let last = cut.filter_map(|(index, _)| {
        let parts = places.range((*index, None)..=(*index, Some(usize::MAX)));
        parts.map(|(_, place)| place.output).max()
    });
    last.collect()
}
