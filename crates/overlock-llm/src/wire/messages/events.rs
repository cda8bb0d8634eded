//! What events say: the texts of the answer to a call, the message that they make, errors, and
//! whether they have output.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::object::{finish_of, kind_of, read_usage};
use super::writer::{add_delta, finish_block, index_of};
use crate::backend::{Event, Usage};

/// The events in an event of a stream or in a message. Only the first event of a stream has the
/// input tokens, which are reported with the last.
pub(in crate::wire) fn events_of(value: &Value, started: &mut Usage) -> Vec<Event> {
    match kind_of(value) {
        "message_start" => {
            let usage = value.pointer("/message/usage").and_then(read_usage);
            *started = usage.unwrap_or_default();
            Vec::new()
        }
        // A block may start with some of its text.
        "content_block_start" => text_event(&value["content_block"]),
        "content_block_delta" => text_event(&value["delta"]),
        "message_delta" => {
            let mut events = Vec::from_iter(ending(&value["delta"]));
            let output = value
                .pointer("/usage/output_tokens")
                .and_then(Value::as_u64);
            let usage = value.get("usage").and_then(read_usage);
            let usage = usage.or_else(|| {
                let output = output?;
                Some(Usage { output, ..*started })
            });
            events.extend(usage.map(Event::Usage));
            events
        }
        "message" => {
            let blocks = value.get("content").and_then(Value::as_array);
            let mut events: Vec<Event> =
                blocks.into_iter().flatten().flat_map(text_event).collect();
            events.extend(ending(value));
            events.extend(value.get("usage").and_then(read_usage).map(Event::Usage));
            events
        }
        _ => Vec::new(),
    }
}

fn text_event(block: &Value) -> Vec<Event> {
    let text = block.get("text").and_then(Value::as_str);
    let text = text.filter(|text| !text.is_empty());
    text.map(|text| Event::Text(text.to_owned()))
        .into_iter()
        .collect()
}

fn ending(message: &Value) -> Option<Event> {
    finish_of(message).map(|finish| Event::Finish(finish.to_owned()))
}

/// The error in an event or in place of a message.
pub(in crate::wire) fn error_in(value: &Value) -> Option<Value> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    Some(json!({ "type": "error", "error": error }))
}

/// Whether an event has output of the model.
pub(in crate::wire) fn has_output(event: &Value) -> bool {
    !matches!(
        kind_of(event),
        "message_start" | "ping" | "message_delta" | "message_stop"
    )
}

/// The message that events make.
#[derive(Default)]
pub(super) struct Received {
    /// The message without its content; an object once it has begun.
    pub(super) message: Value,
    blocks: BTreeMap<u64, (Value, String)>,
}

impl Received {
    /// Adds an event.
    pub(super) fn add(&mut self, event: &Value) {
        let place = index_of(event);
        match kind_of(event) {
            "message_start" => self.message = object_at(event, "message"),
            "content_block_start" => {
                let block = object_at(event, "content_block");
                self.blocks.insert(place, (block, String::new()));
            }
            "content_block_delta" => {
                if let Some((block, text)) = self.blocks.get_mut(&place) {
                    add_delta(block, text, &event["delta"]);
                }
            }
            "message_delta" => {
                merge(&mut self.message, &event["delta"]);
                let mut usage = object_at(&self.message, "usage");
                merge(&mut usage, &event["usage"]);
                self.message["usage"] = usage;
            }
            _ => {}
        }
    }

    /// The message so far. `text` is the text of a block that is assembled elsewhere. The input of
    /// a call is its text, since it may be cut.
    pub(super) fn message<'a>(&self, text: impl Fn(u64) -> Option<&'a str>) -> Value {
        let mut message = self.message.clone();
        if !message.is_object() {
            return message;
        }
        let blocks = self.blocks.iter().map(|(place, (block, own))| {
            let mut block = block.clone();
            let text = text(*place).unwrap_or(own);
            match kind_of(&block) {
                "tool_use" => block["input"] = json!(text),
                _ => finish_block(&mut block, text),
            }
            block
        });
        message["content"] = blocks.collect();
        message
    }
}

/// The message of a stream that was read to its end; `None` if it has no end.
pub(in crate::wire) fn joined(events: &[Value]) -> Option<Value> {
    let mut received = Received::default();
    for event in events {
        received.add(event);
    }
    finish_of(&received.message)?;
    Some(received.message(|_| None))
}

/// The object in a member, or an empty one.
pub(super) fn object_at(value: &Value, name: &str) -> Value {
    let object = value.get(name).filter(|value| value.is_object());
    object.cloned().unwrap_or_else(|| json!({}))
}

/// Writes the members of an object into another one, except for those that are null.
fn merge(into: &mut Value, from: &Value) {
    for (name, value) in from.as_object().into_iter().flatten() {
        if !value.is_null() {
            into[name] = value.clone();
        }
    }
}
