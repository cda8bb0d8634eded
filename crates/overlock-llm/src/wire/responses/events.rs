//! The answer to a call for one text.

use serde_json::Value;

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
