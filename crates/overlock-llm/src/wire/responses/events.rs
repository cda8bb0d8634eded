//! What events say: the texts of the answer to a call, errors, and whether they have output.

use serde_json::{Value, json};

use super::object::{finish_of, read_usage};
use super::writer::kind_of;
use crate::backend::Event;

/// The events in an event of a stream or in a response.
pub(in crate::wire) fn events_of(value: &Value) -> Vec<Event> {
    let text = |text: &Value| {
        let text = text.as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    match kind_of(value) {
        "response.output_text.delta" => {
            text(&value["delta"]).map(Event::Text).into_iter().collect()
        }
        "response.refusal.delta" => text(&value["delta"])
            .map(Event::Refusal)
            .into_iter()
            .collect(),
        _ if is_last(value) => ending(&value["response"]),
        "" => {
            let items = value.get("output").and_then(Value::as_array);
            let messages = items
                .into_iter()
                .flatten()
                .filter(|item| kind_of(item) == "message");
            let parts = messages
                .filter_map(|item| item.get("content")?.as_array())
                .flatten();
            let mut events: Vec<Event> = parts
                .filter_map(|part| match kind_of(part) {
                    "output_text" => text(&part["text"]).map(Event::Text),
                    "refusal" => text(&part["refusal"]).map(Event::Refusal),
                    _ => None,
                })
                .collect();
            events.extend(ending(value));
            events
        }
        _ => Vec::new(),
    }
}

/// Whether an event is the last one of a stream.
fn is_last(event: &Value) -> bool {
    matches!(kind_of(event), "response.completed" | "response.incomplete")
}

fn ending(response: &Value) -> Vec<Event> {
    let finish = finish_of(response).map(|finish| Event::Finish(finish.to_owned()));
    let usage = response.get("usage").and_then(read_usage).map(Event::Usage);
    finish.into_iter().chain(usage).collect()
}

/// The error in an event or in a response.
pub(in crate::wire) fn error_in(value: &Value) -> Option<Value> {
    let error = match kind_of(value) {
        "error" => value.get("error").unwrap_or(value),
        "response.failed" => value.pointer("/response/error").unwrap_or(value),
        _ => value.get("error").filter(|error| !error.is_null())?,
    };
    Some(json!({ "error": error }))
}

/// Whether an event has output of the model.
pub(in crate::wire) fn has_output(event: &Value) -> bool {
    let is_head = |kind: &str| {
        matches!(
            kind,
            "response.created" | "response.in_progress" | "response.queued" | "keepalive"
        )
    };
    let is_empty = event.get("delta").is_some_and(|delta| delta == "");
    !is_head(kind_of(event)) && !is_empty
}

/// Whether an item is neither a message nor a function call, and acts.
pub(super) fn is_opaque(kind: &str) -> bool {
    !matches!(
        kind,
        "message" | "function_call" | "reasoning" | "compaction"
    )
}
