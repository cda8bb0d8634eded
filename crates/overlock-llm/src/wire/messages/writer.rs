//! Writes the events that the client gets: one sequence in which each block is opened and closed
//! once.
//!
//! The end of a block is held back, with all that follows it, until its part can grow no more.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::events::object_at;
use super::object::{kind_of, set_text, text_block};
use crate::assembler::Delta;
use crate::wire::answer::WireEncoder;
use crate::wire::choices::PartKey;

/// The stream as the client sees it.
#[derive(Default)]
pub(super) struct MessagesWriter {
    /// The message, as its first event shows it.
    pub(super) message: Value,
    is_begun: bool,
    blocks: Vec<SentBlock>,
    /// The index of each block of the upstream among those that were sent.
    indices: BTreeMap<u64, usize>,
    held: VecDeque<(Value, Option<Vec<u8>>)>,
    /// The upstream's index of the block of a part.
    pub(super) places: BTreeMap<PartKey, u64>,
}

/// A block that was sent.
struct SentBlock {
    value: Value,
    /// Its text, or the text of its input.
    text: String,
    is_open: bool,
}

/// A writer that encoders share.
pub(super) type SharedMessagesWriter = Arc<Mutex<MessagesWriter>>;

pub(super) fn locked(writer: &SharedMessagesWriter) -> MutexGuard<'_, MessagesWriter> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The index of the block that an event is about.
pub(super) fn index_of(event: &Value) -> u64 {
    event.get("index").and_then(Value::as_u64).unwrap_or(0)
}

impl MessagesWriter {
    pub(super) fn hold(&mut self, event: Value, data: Option<Vec<u8>>) {
        self.held.push_back((event, data));
    }

    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        while let Some((event, data)) = self.held.pop_front() {
            self.send(event, data, out);
        }
    }

    /// Releases the events before the end of a block.
    fn release_to(&mut self, place: u64, out: &mut Vec<u8>) {
        let closes =
            |event: &Value| kind_of(event) == "content_block_stop" && index_of(event) == place;
        while let Some((event, data)) = self.held.pop_front_if(|(event, _)| !closes(event)) {
            self.send(event, data, out);
        }
    }

    /// Sends an event; `data` is its text if it is unchanged.
    pub(super) fn send(&mut self, mut event: Value, data: Option<Vec<u8>>, out: &mut Vec<u8>) {
        let mut is_changed = false;
        match kind_of(&event) {
            "message_start" if self.is_begun => return,
            "message_start" => {
                self.is_begun = true;
                self.message = object_at(&event, "message");
            }
            "ping" | "error" => {}
            _ if !self.is_begun => self.begin(out),
            _ => {}
        }
        if event.get("index").is_some() {
            let Some(index) = self.apply(&event) else {
                return;
            };
            if event["index"] != index {
                event["index"] = json!(index);
                is_changed = true;
            }
        }
        let data = data.filter(|_| !is_changed);
        let data = data.unwrap_or_else(|| event.to_string().into_bytes());
        out.extend_from_slice(format!("event: {}\ndata: ", kind_of(&event)).as_bytes());
        out.extend_from_slice(&data);
        out.extend_from_slice(b"\n\n");
    }

    /// Sends the first event, which the upstream did not.
    fn begin(&mut self, out: &mut Vec<u8>) {
        let event = json!({ "type": "message_start", "message": self.message });
        self.send(event, None, out);
    }

    /// Takes note of what an event shows. Returns the index of its block for the client, unless the
    /// block is not open.
    fn apply(&mut self, event: &Value) -> Option<usize> {
        let place = index_of(event);
        if kind_of(event) == "content_block_start" {
            let value = object_at(event, "content_block");
            self.indices.insert(place, self.blocks.len());
            self.blocks.push(SentBlock {
                value,
                text: String::new(),
                is_open: true,
            });
            return Some(self.blocks.len() - 1);
        }
        let index = *self.indices.get(&place)?;
        let block = self.blocks.get_mut(index).filter(|block| block.is_open)?;
        match kind_of(event) {
            "content_block_delta" => block.add(&event["delta"]),
            "content_block_stop" => block.is_open = false,
            _ => {}
        }
        Some(index)
    }

    /// Closes what is still open.
    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        self.release(out);
        let open: Vec<u64> = self.indices.keys().copied().collect();
        for place in open {
            let event = json!({ "type": "content_block_stop", "index": place });
            // A block that is closed already is not closed again.
            self.send(event, None, out);
        }
    }

    /// The blocks as the client has them.
    pub(super) fn content(&self) -> Value {
        self.blocks.iter().map(SentBlock::finished).collect()
    }

    /// Opens a block for a text that has no place.
    fn open_text(&mut self, key: PartKey, out: &mut Vec<u8>) -> u64 {
        self.release(out);
        let place = self.indices.keys().last().map_or(0, |last| last + 1);
        let event = json!({
            "type": "content_block_start", "index": place, "content_block": text_block(""),
        });
        self.send(event, None, out);
        self.places.insert(key, place);
        place
    }

    /// Sends the next piece of a part.
    fn send_piece(&mut self, key: PartKey, text: &str, out: &mut Vec<u8>) {
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => self.open_text(key, out),
        };
        self.release_to(place, out);
        let delta = match key.1 {
            None => json!({ "type": "text_delta", "text": text }),
            Some(_) => json!({ "type": "input_json_delta", "partial_json": text }),
        };
        let event = json!({ "type": "content_block_delta", "index": place, "delta": delta });
        self.send(event, None, out);
    }
}

impl SentBlock {
    fn add(&mut self, delta: &Value) {
        add_delta(&mut self.value, &mut self.text, delta);
    }

    fn finished(&self) -> Value {
        let mut value = self.value.clone();
        finish_block(&mut value, &self.text);
        value
    }
}

/// Adds a delta to a block. Its text is collected separately, since that of an input may be cut.
pub(super) fn add_delta(block: &mut Value, text: &mut String, delta: &Value) {
    let piece = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
    match kind_of(delta) {
        "text_delta" => text.push_str(piece("text")),
        "input_json_delta" => text.push_str(piece("partial_json")),
        "thinking_delta" => match &mut block["thinking"] {
            Value::String(thinking) => thinking.push_str(piece("thinking")),
            other => *other = json!(piece("thinking")),
        },
        "signature_delta" => block["signature"] = json!(piece("signature")),
        "citations_delta" => {
            if !block["citations"].is_array() {
                block["citations"] = json!([]);
            }
            if let Value::Array(citations) = &mut block["citations"] {
                citations.push(delta["citation"].clone());
            }
        }
        _ => {}
    }
}

/// Writes the collected text into a block.
pub(super) fn finish_block(block: &mut Value, text: &str) {
    if kind_of(block) == "text" || !text.is_empty() {
        set_text(block, text);
    }
}

/// Writes the rest of parts.
pub(super) struct MessagesEncoder(pub(super) SharedMessagesWriter);

impl WireEncoder for MessagesEncoder {
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
