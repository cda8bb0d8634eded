//! Writes the events that the client gets: one sequence in which each item and each part is opened
//! and closed once.
//!
//! The end of a part is held back, with all that follows it, until the part can grow no more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::object::{is_commentary, new_message, set_item_status, text_part};
use crate::assembler::Delta;
use crate::wire::answer::WireEncoder;
use crate::wire::choices::PartKey;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a part is: a text in a message, or the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartPlace {
    pub(super) output: u64,
    /// The index in its message; `None` for arguments.
    pub(super) content: Option<u64>,
}

/// The stream as the client sees it.
#[derive(Default)]
pub(super) struct ResponsesWriter {
    sequence: u64,
    /// The response, as its last event shows it.
    pub(super) response: Value,
    items: BTreeMap<u64, SentItem>,
    held: VecDeque<(Value, Option<Vec<u8>>)>,
    pub(super) places: BTreeMap<PartKey, PartPlace>,
    /// The items that end incomplete.
    cut: BTreeSet<u64>,
}

/// An item that was sent.
#[derive(Default)]
struct SentItem {
    value: Value,
    parts: BTreeMap<u64, SentPart>,
    arguments: SentPart,
    is_done: bool,
}

#[derive(Default)]
struct SentPart {
    text: String,
    is_text: bool,
    /// How far it was closed: 1 for its text, 2 for all of it.
    closed: u8,
}

/// A writer that encoders share.
pub(super) type SharedResponsesWriter = Arc<Mutex<ResponsesWriter>>;

pub(super) fn locked(writer: &SharedResponsesWriter) -> std::sync::MutexGuard<'_, ResponsesWriter> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place that an event is about.
pub(super) fn place_of(event: &Value) -> PartPlace {
    PartPlace {
        output: event
            .get("output_index")
            .and_then(Value::as_u64)
            .unwrap_or(0),
        content: event.get("content_index").and_then(Value::as_u64),
    }
}

/// Adds the indices that llama.cpp leaves out. Returns whether that changes the event.
pub(super) fn add_indices(event: &mut Value, items: &BTreeMap<u64, Value>) -> bool {
    let kind = kind_of(event);
    let is_in_message = kind.starts_with("response.output_text.")
        || kind.starts_with("response.refusal.")
        || kind.starts_with("response.content_part.");
    let mut is_changed = false;
    let item = event.get("item");
    let id = event.get("item_id").or_else(|| item?.get("id"));
    if event.get("output_index").is_none() && (id.is_some() || item.is_some()) {
        let named = items
            .iter()
            .find(|(_, item)| id.is_some() && (item.get("id") == id || item.get("call_id") == id));
        let last = items.keys().next_back().copied();
        let output = match named {
            Some((output, _)) => *output,
            None if kind == "response.output_item.added" => last.map_or(0, |last| last + 1),
            None => last.unwrap_or(0),
        };
        event["output_index"] = json!(output);
        is_changed = true;
    }
    if is_in_message && event.get("content_index").is_none() {
        event["content_index"] = json!(0);
        is_changed = true;
    }
    is_changed
}

pub(super) fn kind_of(event: &Value) -> &str {
    event
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether an event closes a part that may be continued.
pub(super) fn closes_part(kind: &str) -> bool {
    matches!(
        kind,
        "response.output_text.done" | "response.function_call_arguments.done"
    )
}

impl ResponsesWriter {
    pub(super) fn hold(&mut self, event: Value, data: Option<Vec<u8>>) {
        self.held.push_back((event, data));
    }

    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        while let Some((event, data)) = self.held.pop_front() {
            self.send(event, data, out);
        }
    }

    /// Releases the events before the end of a part.
    fn release_to(&mut self, place: PartPlace, out: &mut Vec<u8>) {
        let closes = |event: &Value| closes_part(kind_of(event)) && place_of(event) == place;
        while let Some((event, data)) = self.held.pop_front_if(|(event, _)| !closes(event)) {
            self.send(event, data, out);
        }
    }

    /// Sends an event; `data` is its text if it is unchanged.
    pub(super) fn send(&mut self, mut event: Value, data: Option<Vec<u8>>, out: &mut Vec<u8>) {
        let mut is_changed = self.apply(&mut event);
        let number = json!(self.sequence);
        if event.get("sequence_number") != Some(&number) {
            event["sequence_number"] = number;
            is_changed = true;
        }
        self.sequence += 1;
        let data = data.filter(|_| !is_changed);
        let data = data.unwrap_or_else(|| event.to_string().into_bytes());
        out.extend_from_slice(format!("event: {}\ndata: ", kind_of(&event)).as_bytes());
        out.extend_from_slice(&data);
        out.extend_from_slice(b"\n\n");
    }

    /// Takes note of what an event shows, and writes the texts as they were sent into an event that
    /// closes them. Returns whether the event changes.
    fn apply(&mut self, event: &mut Value) -> bool {
        let place = place_of(event);
        let kind = kind_of(event).to_owned();
        let Some(name) = kind.strip_prefix("response.") else {
            return false;
        };
        if let Some(response) = event.get("response") {
            self.response = response.clone();
            return false;
        }
        let item = self.items.entry(place.output).or_default();
        let part = match place.content {
            Some(content) => item.parts.entry(content).or_default(),
            None => &mut item.arguments,
        };
        match name {
            "output_item.added" => item.value = event["item"].clone(),
            "content_part.added" => part.is_text = event["part"]["type"] == "output_text",
            "output_text.delta" | "function_call_arguments.delta" => {
                part.is_text = true;
                part.text
                    .push_str(event["delta"].as_str().unwrap_or_default());
            }
            "output_text.done" => {
                part.closed = 1;
                return set(&mut event["text"], &part.text);
            }
            "function_call_arguments.done" => {
                part.closed = 2;
                return set(&mut event["arguments"], &part.text);
            }
            "content_part.done" => {
                part.closed = 2;
                return part.is_text && set(&mut event["part"]["text"], &part.text);
            }
            "output_item.done" => {
                let is_cut = self.cut.contains(&place.output);
                let mut is_changed = item.write_texts(&mut event["item"]);
                if item.has_text() && !is_commentary(&item.value) {
                    is_changed |= set_item_status(&mut event["item"], is_cut);
                }
                item.value = event["item"].clone();
                item.is_done = true;
                return is_changed;
            }
            _ => {}
        }
        false
    }

    /// Closes what is still open. `cut` are the items that end incomplete.
    pub(super) fn close(&mut self, cut: BTreeSet<u64>, out: &mut Vec<u8>) {
        self.cut = cut;
        self.release(out);
        let open: Vec<u64> = self.items.keys().copied().collect();
        for output in open {
            for event in self.items[&output].closing(output) {
                self.send(event, None, out);
            }
        }
    }

    /// The items as the client has them.
    pub(super) fn output(&self) -> Value {
        self.items.values().map(|item| item.value.clone()).collect()
    }

    /// Opens a message for a text that has no place.
    fn open_message(&mut self, key: PartKey, out: &mut Vec<u8>) -> PartPlace {
        self.release(out);
        let output = self.items.keys().last().map_or(0, |last| last + 1);
        let item = new_message(&self.response["id"], output, "in_progress");
        let added = json!({
            "type": "response.content_part.added", "item_id": item["id"],
            "output_index": output, "content_index": 0, "part": text_part(""),
        });
        let event = json!({
            "type": "response.output_item.added", "output_index": output, "item": item,
        });
        self.send(event, None, out);
        self.send(added, None, out);
        let place = PartPlace {
            output,
            content: Some(0),
        };
        self.places.insert(key, place);
        place
    }

    /// Sends the next piece of a part.
    pub(super) fn send_piece(&mut self, key: PartKey, text: &str, out: &mut Vec<u8>) {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => self.open_message(key, out),
        };
        self.release_to(place, out);
        let item = self.items.get(&place.output);
        let id = item
            .map(|item| item.value["id"].clone())
            .unwrap_or_default();
        let event = match place.content {
            Some(content) => json!({
                "type": "response.output_text.delta", "item_id": id,
                "output_index": place.output, "content_index": content, "delta": text,
                "logprobs": [],
            }),
            None => json!({
                "type": "response.function_call_arguments.delta", "item_id": id,
                "output_index": place.output, "delta": text,
            }),
        };
        self.send(event, None, out);
    }
}

impl SentItem {
    /// Whether it has a part that may be continued.
    fn has_text(&self) -> bool {
        self.arguments.is_text || self.parts.values().any(|part| part.is_text)
    }

    /// Writes the sent texts into an item. Returns whether that changes it.
    fn write_texts(&self, item: &mut Value) -> bool {
        let mut is_changed = false;
        if item["type"] == "function_call" {
            return set(&mut item["arguments"], &self.arguments.text);
        }
        for (content, part) in self.parts.iter().filter(|(_, part)| part.is_text) {
            let content = usize::try_from(*content).unwrap_or(usize::MAX);
            if let Some(Value::Array(parts)) = item.get_mut("content") {
                if parts.len() == content {
                    parts.push(text_part(""));
                }
                if let Some(value) = parts.get_mut(content) {
                    is_changed |= set(&mut value["text"], &part.text);
                }
            }
        }
        is_changed
    }

    /// The events that close it, unless it is closed.
    fn closing(&self, output: u64) -> Vec<Value> {
        let mut events = Vec::new();
        if self.is_done || self.value.is_null() {
            return events;
        }
        let id = &self.value["id"];
        let mut event = |kind: &str, content: Option<u64>, name: &str, value: Value| {
            let mut event = json!({ "type": kind, "item_id": id, "output_index": output });
            if let Some(content) = content {
                event["content_index"] = json!(content);
            }
            event[name] = value;
            events.push(event);
        };
        for (content, part) in self.parts.iter().filter(|(_, part)| part.is_text) {
            if part.closed < 1 {
                event(
                    "response.output_text.done",
                    Some(*content),
                    "text",
                    json!(""),
                );
            }
            if part.closed < 2 {
                let part = text_part("");
                event("response.content_part.done", Some(*content), "part", part);
            }
        }
        if self.value["type"] == "function_call" && self.arguments.closed < 2 {
            event(
                "response.function_call_arguments.done",
                None,
                "arguments",
                json!(""),
            );
        }
        let item = json!({
            "type": "response.output_item.done", "output_index": output, "item": self.value,
        });
        events.push(item);
        events
    }
}

/// Sets a text. Returns whether that changes it.
fn set(place: &mut Value, text: &str) -> bool {
    let is_changed = place.as_str() != Some(text);
    if is_changed {
        *place = json!(text);
    }
    is_changed
}

/// Writes the rest of parts.
pub(super) struct ResponsesEncoder(pub(super) SharedResponsesWriter);

impl WireEncoder for ResponsesEncoder {
    fn encode(&mut self, index: u64, delta: Delta<'_>) -> Vec<u8> {
        let Self(writer) = self;
        let (key, text) = match delta {
            Delta::Text(text) => ((index, None), text),
            Delta::ToolArguments { call, text } => ((index, Some(call)), text),
            Delta::FunctionArguments(_) | Delta::Refusal(_) | Delta::Finish(_) => {
                return Vec::new();
            }
        };
        let mut out = Vec::new();
        locked(writer).send_piece(key, text, &mut out);
        out
    }
}
