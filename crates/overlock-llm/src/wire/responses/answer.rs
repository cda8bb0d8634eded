//! Reads a response, streamed or not, and writes it with the texts that the assembler accepted.
//!
//! A choice of the assembler is a text with the function calls after it. All other items are
//! opaque: they are forwarded as they are.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::events::is_opaque;
use super::object::{
    cut_items, finish_of, is_commentary, new_message, set_item_status, set_status, text_part,
    write_text,
};
use super::writer::{
    PartPlace, ResponsesEncoder, SharedResponsesWriter, add_indices, closes_part, kind_of, locked,
    place_of,
};
use crate::assembler::{Assembler, Delta, PartText};
use crate::backend::SurrogateBuffer;
use crate::wire::answer::{FinalChoice, Forwarded, REPORT, WireAnswer, WireEncoder, WireEvent};
use crate::wire::choices::{Choices, PartKey, delta, part_in};
use crate::wire::error::ErrorBody;

/// An answer of the upstream.
#[derive(Default)]
pub(in crate::wire) struct ResponsesAnswer {
    writer: SharedResponsesWriter,
    surrogates: SurrogateBuffer,
    choices: Choices<PartPlace>,
    /// The items of the upstream.
    items: BTreeMap<u64, Value>,
    /// The upstream's response, once it has ended.
    response: Option<Value>,
    is_streamed: bool,
    /// The part whose end is held back.
    held: Option<PartKey>,
    /// The response of the last event, and whether its output differs from the upstream's.
    sent: Option<(Value, bool)>,
}

impl ResponsesAnswer {
    /// A stream of which nothing has arrived. Without a first event it gets this id, time and model.
    pub(in crate::wire) fn streamed(id: &str, created: u64, model: &str) -> Self {
        let answer = Self {
            is_streamed: true,
            ..Self::default()
        };
        locked(&answer.writer).response = json!({
            "id": format!("resp_{id}"), "object": "response", "created_at": created,
            "model": model, "status": "in_progress", "output": [], "error": null,
            "incomplete_details": null,
        });
        answer
    }

    /// A response that was not streamed.
    pub(in crate::wire) fn complete(response: Value, assembler: &mut Assembler) -> Self {
        let mut answer = Self::default();
        assembler.feed(0, Delta::Text(""));
        let items = response.get("output").and_then(Value::as_array);
        for (output, item) in (0..).zip(items.into_iter().flatten()) {
            answer.read_item(output, item, assembler);
        }
        if let Some(finish) = finish_of(&response) {
            answer.choices.end(finish, assembler);
        }
        answer.response = Some(response);
        answer
    }

    fn read_item(&mut self, output: u64, item: &Value, assembler: &mut Assembler) {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        match kind_of(item) {
            "message" if is_commentary(item) => {}
            "message" => {
                let parts = item.get("content").and_then(Value::as_array);
                for (content, part) in (0..).zip(parts.into_iter().flatten()) {
                    let text = |name: &str| part.get(name).and_then(Value::as_str);
                    if kind_of(part) == "output_text" {
                        let content = Some(content);
                        let place = PartPlace { output, content };
                        let key = self.choices.text(place, assembler);
                        assembler.feed(key.0, delta(key, text("text").unwrap_or_default()));
                    } else if let Some(refusal) = text("refusal") {
                        assembler.feed(self.choices.last, Delta::Refusal(refusal));
                    }
                }
            }
            "function_call" => {
                let content = None;
                let place = PartPlace { output, content };
                let key = self.choices.call(place, text("name"), assembler);
                assembler.feed(key.0, delta(key, text("arguments").unwrap_or_default()));
            }
            kind if is_opaque(kind) => {
                self.choices.opaque(text("name").unwrap_or(kind), assembler);
            }
            _ => {}
        }
    }

    /// Feeds a text and returns the piece of it that is stable.
    fn feed(&mut self, event: &Value, text: &str, assembler: &mut Assembler) -> String {
        let key = self.key_of(event, assembler);
        assembler.feed(key.0, delta(key, text))
    }

    fn key_of(&mut self, event: &Value, assembler: &mut Assembler) -> PartKey {
        let place = place_of(event);
        let key = match place.content {
            Some(_) => self.choices.text(place, assembler),
            None => self.choices.call(place, None, assembler),
        };
        locked(&self.writer).places.insert(key, place);
        key
    }

    /// Notes what an event begins. Events held back before it are released if their part is
    /// settled: the model has gone on to something else.
    fn begin(&mut self, event: &Value, assembler: &mut Assembler, out: &mut Vec<u8>) {
        let place = place_of(event);
        let is_settled = |key: PartKey| {
            let part = part_in(assembler, key);
            part.is_none_or(PartText::is_settled)
        };
        if self.held.is_some_and(is_settled) {
            self.held = None;
            locked(&self.writer).release(out);
        }
        if let Some(item) = event.get("item") {
            self.items.insert(place.output, item.clone());
            let name = item.get("name").and_then(Value::as_str);
            match kind_of(item) {
                "function_call" => {
                    let key = self.choices.call(place, name, assembler);
                    locked(&self.writer).places.insert(key, place);
                }
                kind if is_opaque(kind) => self.choices.opaque(name.unwrap_or(kind), assembler),
                _ => {}
            }
        } else if event["part"]["type"] == "output_text" && !self.is_commentary(event) {
            self.key_of(event, assembler);
        }
    }

    /// Whether an event is about a commentary.
    fn is_commentary(&self, event: &Value) -> bool {
        let item = self.items.get(&place_of(event).output);
        item.is_some_and(is_commentary)
    }

    /// The response of the upstream, as far as it has arrived.
    fn received(&self, assembler: &Assembler) -> Value {
        let mut response = locked(&self.writer).response.clone();
        let items = self.items.iter().map(|(output, item)| {
            let mut item = item.clone();
            for (place, key) in self
                .choices
                .parts
                .iter()
                .filter(|(it, _)| it.output == *output)
            {
                let text = part_in(assembler, *key).map_or("", PartText::text);
                write_text(&mut item, *place, text);
            }
            item
        });
        response["output"] = items.collect();
        response
    }
}

impl WireAnswer for ResponsesAnswer {
    fn read_event(&mut self, data: Vec<u8>) -> Result<WireEvent, serde_json::Error> {
        let read = self.surrogates.read(&data)?;
        let mut value = read.value;
        if let Some(half) = read.alone {
            match value.get_mut("delta") {
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
        is_changed |= add_indices(&mut event, &self.items);
        let mut bytes = Vec::new();
        // Other events repeat texts that were counted.
        let mut overhead = data.len();
        let kind = kind_of(&event).to_owned();
        if let Some(text) = event.get("delta").and_then(Value::as_str) {
            overhead = data.len().saturating_sub(text.len());
        }
        match kind.as_str() {
            "response.completed" | "response.incomplete" => {
                if let Some(finish) = finish_of(&event["response"]) {
                    self.choices.end(finish, assembler);
                }
                self.response = Some(event["response"].take());
                return Forwarded { bytes, overhead };
            }
            "response.output_item.added" | "response.content_part.added" => {
                self.begin(&event, assembler, &mut bytes);
            }
            "response.output_item.done" => {
                let output = place_of(&event).output;
                self.items.insert(output, event["item"].clone());
            }
            _ if self.is_commentary(&event) => {}
            "response.output_text.delta" | "response.function_call_arguments.delta" => {
                let text = event["delta"].as_str().unwrap_or_default().to_owned();
                let stable = self.feed(&event, &text, assembler);
                if stable.is_empty() {
                    return Forwarded { bytes, overhead };
                }
                is_changed |= stable != text;
                event["delta"] = json!(stable);
            }
            "response.refusal.delta" => {
                let text = event["delta"].as_str().unwrap_or_default();
                assembler.feed(self.choices.last, Delta::Refusal(text));
            }
            kind if closes_part(kind) => {
                let key = self.key_of(&event, assembler);
                self.held.get_or_insert(key);
            }
            _ => {}
        }
        let data = (!is_changed).then_some(data);
        let mut writer = locked(&self.writer);
        if self.held.is_some() {
            writer.hold(event, data);
        } else {
            writer.send(event, data, &mut bytes);
        }
        Forwarded { bytes, overhead }
    }

    fn is_over(&self) -> bool {
        self.response.is_some()
    }

    fn encoder(&self) -> Box<dyn WireEncoder> {
        Box::new(ResponsesEncoder(SharedResponsesWriter::clone(&self.writer)))
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
        let cut = cut_items(choices, &writer.places);
        writer.close(cut, &mut out);
        let ended = self.response.take();
        let mut response = ended.unwrap_or_else(|| writer.response.clone());
        let output = writer.output();
        let is_changed = response["output"] != output;
        response["output"] = output;
        set_status(&mut response, choices);
        response["usage"] = json!(usage);
        if let Some(report) = report {
            response[REPORT] = report.clone();
        }
        let kind = match finish_of(&response) {
            Some("length" | "content_filter") => "response.incomplete",
            _ => "response.completed",
        };
        let event = json!({ "type": kind, "response": response });
        writer.send(event, None, &mut out);
        self.sent = Some((response, is_changed));
        out
    }

    fn encode_error(&mut self, error: &ErrorBody<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = locked(&self.writer);
        writer.release(&mut out);
        let mut response = writer.response.clone();
        response["output"] = writer.output();
        response["status"] = json!("failed");
        let code = error.code.unwrap_or("server_error");
        response["error"] = json!({ "code": code, "message": error.message });
        let event = json!({ "type": "response.failed", "response": response });
        writer.send(event, None, &mut out);
        out
    }

    fn usage(&self) -> Option<&Value> {
        let usage = self.response.as_ref()?.get("usage")?;
        usage.is_object().then_some(usage)
    }

    fn model(&self) -> Option<&str> {
        self.response.as_ref()?.get("model")?.as_str()
    }

    fn tool(&self, index: u64, call: Option<usize>) -> String {
        let tool = self.choices.tools.get(&(index, call));
        tool.cloned().unwrap_or_default()
    }

    fn first(&self, assembler: &Assembler) -> Value {
        match &self.response {
            Some(response) => response.clone(),
            None => self.received(assembler),
        }
    }

    fn finished(
        &mut self,
        choices: &BTreeMap<u64, FinalChoice>,
        usage: Option<&Value>,
        report: Option<&Value>,
    ) -> (Value, bool) {
        if let Some(sent) = self.sent.take() {
            return sent;
        }
        let mut response = self.response.take().unwrap_or_default();
        let mut places: BTreeMap<PartKey, PartPlace> = BTreeMap::new();
        places.extend(self.choices.parts.iter().map(|(place, key)| (*key, *place)));
        let mut is_changed = false;
        let id = response["id"].clone();
        if let Some(Value::Array(output)) = response.get_mut("output") {
            for (index, choice) in choices {
                let texts = choice.calls.iter().enumerate();
                let texts = texts.map(|(call, text)| ((*index, Some(call)), text));
                for (key, text) in [((*index, None), &choice.content)].into_iter().chain(texts) {
                    if let Some(place) = places.get(&key) {
                        let at = usize::try_from(place.output).unwrap_or(usize::MAX);
                        is_changed |= output
                            .get_mut(at)
                            .is_some_and(|item| write_text(item, *place, text));
                    } else if !text.is_empty() {
                        let mut message = new_message(&id, output.len() as u64, "completed");
                        message["content"] = json!([text_part(text)]);
                        let content = Some(0);
                        let place = PartPlace {
                            output: output.len() as u64,
                            content,
                        };
                        places.insert(key, place);
                        output.push(message);
                        is_changed = true;
                    }
                }
            }
        }
        let is_other_status = set_status(&mut response, choices);
        let cut = cut_items(choices, &places);
        if is_changed || is_other_status {
            let items = response.get_mut("output").and_then(Value::as_array_mut);
            for (output, item) in (0..).zip(items.into_iter().flatten()) {
                if places.values().any(|place| place.output == output) {
                    set_item_status(item, cut.contains(&output));
                }
            }
        }
        is_changed |= is_other_status;
        for (name, value) in [("usage", usage), (REPORT, report)] {
            if let Some(value) = value
                && response.get(name) != Some(value)
            {
                response[name] = value.clone();
                is_changed = true;
            }
        }
        (response, is_changed)
    }
}
