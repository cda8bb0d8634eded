//! Reads a message, streamed or not, and writes it with the texts that the assembler accepted.
//!
//! A choice of the assembler is a text block with the tool calls after it. Thinking and all other
//! blocks are opaque: they are forwarded as they are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::events::{Received, object_at};
use super::object::{finish_of, kind_of, set_stop_reason, set_text, text_block, text_of};
use super::writer::{MessagesEncoder, SharedMessagesWriter, index_of, locked};
use crate::assembler::{Assembler, Delta, PartText};
use crate::backend::SurrogateBuffer;
use crate::wire::answer::{FinalChoice, Forwarded, REPORT, WireAnswer, WireEncoder, WireEvent};
use crate::wire::choices::{Choices, PartKey, delta, part_in};
use crate::wire::error::ErrorBody;

/// An answer of the upstream.
#[derive(Default)]
pub(in crate::wire) struct MessagesAnswer {
    writer: SharedMessagesWriter,
    surrogates: SurrogateBuffer,
    choices: Choices<u64>,
    /// What the upstream has sent.
    received: Received,
    is_streamed: bool,
    /// The last events of the upstream.
    last: Vec<(Value, Option<Vec<u8>>)>,
    /// The part whose end is held back.
    held: Option<PartKey>,
    /// The message that a streaming client got.
    sent: Option<Value>,
}

/// Whether a block acts, and is never continued. Thinking is not part of the answer.
fn is_opaque(kind: &str) -> bool {
    !matches!(kind, "text" | "tool_use" | "thinking" | "redacted_thinking")
}

impl MessagesAnswer {
    /// A stream of which nothing has arrived. Without a first event it gets this id and model.
    pub(in crate::wire) fn streamed(id: &str, model: &str) -> Self {
        let answer = Self {
            is_streamed: true,
            ..Self::default()
        };
        locked(&answer.writer).message = json!({
            "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": model,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": 0, "output_tokens": 0 },
        });
        answer
    }

    /// A message that was not streamed, or that was read to its end.
    pub(in crate::wire) fn complete(message: Value, assembler: &mut Assembler) -> Self {
        let mut answer = Self::default();
        assembler.feed(0, Delta::Text(""));
        let finish = finish_of(&message);
        let blocks = message.get("content").and_then(Value::as_array);
        let blocks = blocks.map_or(&[][..], Vec::as_slice);
        for (place, block) in (0..).zip(blocks) {
            let Some(key) = answer.begin(place, block, assembler) else {
                continue;
            };
            let is_last = place + 1 == blocks.len() as u64;
            // Providers close the input of a call that was cut, so where it was cut is unknown: it
            // is requested again.
            let is_closed = key.1.is_some() && block["input"].is_object();
            if !(is_closed && is_last && finish == Some("length")) {
                assembler.feed(key.0, delta(key, &text_of(block)));
            }
        }
        if let Some(finish) = finish {
            answer.choices.end(finish, assembler);
        }
        answer.received.message = message;
        answer
    }

    /// The part that a block begins.
    fn begin(&mut self, place: u64, block: &Value, assembler: &mut Assembler) -> Option<PartKey> {
        let name = block.get("name").and_then(Value::as_str);
        let key = match kind_of(block) {
            "text" => self.choices.text(place, assembler),
            "tool_use" => self.choices.call(place, name, assembler),
            kind => {
                if is_opaque(kind) {
                    self.choices.opaque(name.unwrap_or(kind), assembler);
                }
                return None;
            }
        };
        locked(&self.writer).places.insert(key, place);
        Some(key)
    }

    /// Begins a block. Events held back before it are released if their part is settled: the model
    /// has gone on to something else. Returns the text that the block begins with.
    fn begin_block(
        &mut self,
        event: &mut Value,
        assembler: &mut Assembler,
        out: &mut Vec<u8>,
    ) -> Option<String> {
        let is_settled = |key: PartKey| part_in(assembler, key).is_none_or(PartText::is_settled);
        if self.held.is_some_and(is_settled) {
            self.held = None;
            locked(&self.writer).release(out);
        }
        let place = index_of(event);
        let block = &mut event["content_block"];
        self.begin(place, block, assembler)?;
        let text = match block["input"].as_object() {
            Some(input) if input.is_empty() => String::new(),
            _ => text_of(block),
        };
        if text.is_empty() {
            return None;
        }
        set_text(block, "");
        Some(text)
    }

    /// Sends an event, or holds it back.
    fn send(&self, event: Value, data: Option<Vec<u8>>, out: &mut Vec<u8>) {
        let mut writer = locked(&self.writer);
        if self.held.is_some() && kind_of(&event) != "ping" {
            writer.hold(event, data);
        } else {
            writer.send(event, data, out);
        }
    }

    /// Feeds a delta of a part. Returns whether a piece of it is stable, and whether that differs.
    fn feed(&self, event: &mut Value, assembler: &mut Assembler) -> Option<(bool, bool)> {
        let key = *self.choices.parts.get(&index_of(event))?;
        let name = match kind_of(&event["delta"]) {
            "text_delta" => "text",
            "input_json_delta" => "partial_json",
            _ => return None,
        };
        let text = &mut event["delta"][name];
        let piece = text.as_str().unwrap_or_default();
        let stable = assembler.feed(key.0, delta(key, piece));
        let result = (!stable.is_empty(), stable != piece);
        *text = json!(stable);
        Some(result)
    }
}

impl WireAnswer for MessagesAnswer {
    fn read_event(&mut self, data: Vec<u8>) -> Result<WireEvent, serde_json::Error> {
        let read = self.surrogates.read(&data)?;
        let mut value = read.value;
        if let Some(half) = read.alone {
            let text = ["/delta/text", "/delta/partial_json"]
                .into_iter()
                .find(|path| value.pointer(path).is_some());
            match text.and_then(|path| value.pointer_mut(path)) {
                Some(Value::String(text)) => text.insert(0, char::REPLACEMENT_CHARACTER),
                _ => self.surrogates.hold(half),
            }
        }
        Ok(WireEvent {
            value,
            data,
            is_changed: read.is_repaired,
        })
    }

    fn forward(&mut self, event: WireEvent, assembler: &mut Assembler) -> Forwarded {
        let WireEvent {
            value: mut event,
            data,
            mut is_changed,
        } = event;
        let mut bytes = Vec::new();
        let text = ["text", "partial_json", "thinking"]
            .into_iter()
            .find_map(|name| event.get("delta")?.get(name)?.as_str());
        let overhead = data.len().saturating_sub(text.map_or(0, str::len));
        let data = Some(data);
        let kind = kind_of(&event).to_owned();
        if kind != "content_block_delta" || !self.choices.parts.contains_key(&index_of(&event)) {
            self.received.add(&event);
        }
        match kind.as_str() {
            "message_delta" | "message_stop" => {
                if let Some(finish) = finish_of(&event["delta"]) {
                    self.choices.end(finish, assembler);
                }
                self.last.push((event, data.filter(|_| !is_changed)));
                return Forwarded { bytes, overhead };
            }
            "content_block_start" => {
                let place = index_of(&event);
                if let Some(text) = self.begin_block(&mut event, assembler, &mut bytes) {
                    let delta = match kind_of(&event["content_block"]) {
                        "text" => json!({ "type": "text_delta", "text": text }),
                        _ => json!({ "type": "input_json_delta", "partial_json": text }),
                    };
                    self.send(event, None, &mut bytes);
                    event = json!({
                        "type": "content_block_delta", "index": place, "delta": delta,
                    });
                    is_changed = true;
                    self.feed(&mut event, assembler);
                }
            }
            "content_block_delta" => {
                if let Some((has_text, differs)) = self.feed(&mut event, assembler) {
                    if !has_text {
                        return Forwarded { bytes, overhead };
                    }
                    is_changed |= differs;
                }
            }
            "content_block_stop" => {
                if let Some(key) = self.choices.parts.get(&index_of(&event)) {
                    self.held.get_or_insert(*key);
                }
            }
            _ => {}
        }
        self.send(event, data.filter(|_| !is_changed), &mut bytes);
        Forwarded { bytes, overhead }
    }

    fn is_over(&self) -> bool {
        let last = self.last.last();
        last.is_some_and(|(event, _)| kind_of(event) == "message_stop")
    }

    fn encoder(&self) -> Box<dyn WireEncoder> {
        Box::new(MessagesEncoder(SharedMessagesWriter::clone(&self.writer)))
    }

    fn encode_end(
        &mut self,
        choices: &BTreeMap<u64, FinalChoice>,
        usage: Option<&Value>,
        report: Option<&Value>,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.is_streamed {
            return out;
        }
        let mut writer = locked(&self.writer);
        writer.close(&mut out);
        let mut message = self.received.message.clone();
        if !message.is_object() {
            message = writer.message.clone();
        }
        message["content"] = writer.content();
        let mut is_changed = set_stop_reason(&mut message, choices);
        if let Some(usage) = usage
            && message.get("usage") != Some(usage)
        {
            message["usage"] = usage.clone();
            is_changed = true;
        }
        let mut last = std::mem::take(&mut self.last).into_iter();
        let is_delta = |event: &(Value, _)| kind_of(&event.0) == "message_delta";
        let ended = last.by_ref().take_while(is_delta).last();
        let (mut event, data) = ended.unwrap_or_else(|| {
            is_changed = true;
            let delta = json!({ "stop_reason": null, "stop_sequence": null });
            (json!({ "type": "message_delta", "delta": delta }), None)
        });
        if is_changed {
            event["delta"] = object_at(&event, "delta");
            event["delta"]["stop_reason"] = message["stop_reason"].clone();
            event["usage"] = message["usage"].clone();
        }
        writer.send(event, data.filter(|_| !is_changed), &mut out);
        let mut stop = json!({ "type": "message_stop" });
        if let Some(report) = report {
            stop[REPORT] = report.clone();
            message[REPORT] = report.clone();
        }
        writer.send(stop, None, &mut out);
        self.sent = Some(message);
        out
    }

    fn encode_error(&mut self, error: &ErrorBody<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = locked(&self.writer);
        writer.release(&mut out);
        writer.send(super::error(error), None, &mut out);
        out
    }

    fn usage(&self) -> Option<&Value> {
        // Without the last events, the usage is that of the first one.
        if self.is_streamed && self.last.is_empty() {
            return None;
        }
        let usage = self.received.message.get("usage")?;
        super::read_usage(usage).map(|_| usage)
    }

    fn model(&self) -> Option<&str> {
        self.received.message.get("model")?.as_str()
    }

    fn tool(&self, index: u64, call: Option<usize>) -> String {
        let tool = self.choices.tools.get(&(index, call));
        tool.cloned().unwrap_or_default()
    }

    fn first(&self, assembler: &Assembler) -> Value {
        if !self.is_streamed {
            return self.received.message.clone();
        }
        let text = |place: u64| {
            let key = self.choices.parts.get(&place)?;
            Some(part_in(assembler, *key)?.text())
        };
        let message = self.received.message(text);
        if message.is_object() {
            return message;
        }
        locked(&self.writer).message.clone()
    }

    fn finished(
        &mut self,
        choices: &BTreeMap<u64, FinalChoice>,
        usage: Option<&Value>,
        report: Option<&Value>,
    ) -> (Value, bool) {
        if let Some(sent) = self.sent.take() {
            return (sent, true);
        }
        let mut message = std::mem::take(&mut self.received.message);
        let places = &locked(&self.writer).places;
        let mut is_changed = false;
        if let Some(Value::Array(blocks)) = message.get_mut("content") {
            for (index, choice) in choices {
                let texts = choice.calls.iter().enumerate();
                let texts = texts.map(|(call, text)| ((*index, Some(call)), text));
                for (key, text) in [((*index, None), &choice.content)].into_iter().chain(texts) {
                    let place = places.get(&key).map(|place| usize::try_from(*place));
                    let block = place.and_then(|place| blocks.get_mut(place.ok()?));
                    if let Some(block) = block {
                        if text_of(block) != *text || block["input"].is_string() {
                            set_text(block, text);
                            is_changed = true;
                        }
                    } else if !text.is_empty() {
                        blocks.push(text_block(text));
                        is_changed = true;
                    }
                }
            }
        }
        is_changed |= set_stop_reason(&mut message, choices);
        for (name, value) in [("usage", usage), (REPORT, report)] {
            if let Some(value) = value
                && message.get(name) != Some(value)
            {
                message[name] = value.clone();
                is_changed = true;
            }
        }
        (message, is_changed)
    }
}
