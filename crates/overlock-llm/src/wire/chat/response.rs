//! Reads an answer, streamed or not, and writes it with the texts that the assembler accepted.
//!
//! Unchanged parts stay as the upstream wrote them: an event is forwarded byte for byte unless text
//! in it is held back, and an object is edited only where its texts differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::event::{ChatEncoder, end, first_text, overhead_len, with_choice, with_usage};
use super::members::ChoiceMembers;
use super::object::{edit, indexed, replace};
use super::usage::place_cached;
use crate::assembler::{Assembler, Delta, PartText};
use crate::backend::{SurrogateBuffer, member};
use crate::wire::answer::{
    FinalChoice, Forwarded, REPORT, WireAnswer, WireEncoder, WireEvent, frame,
};
use crate::wire::error::ErrorBody;

/// An answer of the upstream.
#[derive(Default)]
pub(in crate::wire) struct ChatResponse {
    /// The members that every event of the answer has.
    head: Map<String, Value>,
    /// The members of events if the upstream sends no id.
    unnamed: Map<String, Value>,
    surrogates: SurrogateBuffer,
    /// Boxed, because a map has space for eleven, and most answers have one.
    choices: BTreeMap<u64, Box<ChoiceMembers>>,
    /// Members of events that were not forwarded. They are sent with the last event.
    late: Map<String, Value>,
    usage: Option<Value>,
    /// The answer as one object, if it was not streamed.
    object: Option<Value>,
    wants_usage: bool,
}

impl ChatResponse {
    /// An empty stream, which ends with its usage if the client wants that. If the upstream sends
    /// no id, its events get this id, time and model.
    pub(in crate::wire) fn streamed(
        id: &str,
        created: u64,
        model: &str,
        wants_usage: bool,
    ) -> Self {
        let unnamed = json!({
            "id": format!("chatcmpl-{id}"), "object": "chat.completion.chunk",
            "created": created, "model": model,
        });
        Self {
            unnamed: unnamed.as_object().cloned().unwrap_or_default(),
            wants_usage,
            ..Self::default()
        }
    }

    /// An answer that was not streamed.
    pub(in crate::wire) fn complete(mut completion: Value, assembler: &mut Assembler) -> Self {
        place_cached(&mut completion);
        let mut response = Self::default();
        for (index, choice) in indexed(&mut completion) {
            response.read_choice(index, choice, assembler);
        }
        response.object = Some(completion);
        response
    }

    fn read_choice(&mut self, index: u64, choice: &Value, assembler: &mut Assembler) {
        let members = self.choices.entry(index).or_default();
        let in_message = |name| member(choice, ["message", name]);
        let text = |name| in_message(name).and_then(Value::as_str);
        let content = text("content").unwrap_or_default();
        assembler.feed(index, Delta::Text(content));
        if let Some(refusal) = text("refusal") {
            assembler.feed(index, Delta::Refusal(refusal));
        }
        let calls = in_message("tool_calls").and_then(Value::as_array);
        for (call, piece) in calls.into_iter().flatten().enumerate() {
            let mut piece = piece.as_object().cloned().unwrap_or_default();
            piece.insert("index".to_owned(), json!(call));
            members.add_call(&mut piece);
            // Some servers omit empty arguments.
            let text = arguments_of(&piece).unwrap_or_default();
            assembler.feed(index, Delta::ToolArguments { call, text });
        }
        if let Some(Value::Object(function)) = in_message("function_call") {
            let delta = Map::from_iter([("function_call".to_owned(), json!(function))]);
            members.add_message(&mut delta.clone());
            if let Some(text) = function.get("arguments").and_then(Value::as_str) {
                assembler.feed(index, Delta::FunctionArguments(text));
            }
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            assembler.feed(index, Delta::Finish(reason));
        }
    }

    /// Gives an event the id of the answer: that of its first event with a choice or an id. Returns
    /// whether the event changed.
    fn set_head(&mut self, event: &mut Map<String, Value>, has_choices: bool) -> bool {
        let id = event.get("id").and_then(Value::as_str).unwrap_or_default();
        if self.head.is_empty() {
            if id.is_empty() && !has_choices {
                return false;
            }
            let is_set = |value: &Value| !value.is_null() && value != "";
            self.head = self.unnamed.clone();
            let members = event.iter().filter(|(_, value)| is_set(value));
            let members = members.map(|(name, value)| (name.clone(), value.clone()));
            self.head.extend(members);
            self.head.remove("choices");
        }
        let is_same = self.head.get("id").and_then(Value::as_str) == Some(id)
            || !has_choices && id.is_empty();
        if !is_same && let Some(id) = self.head.get("id") {
            event.insert("id".to_owned(), id.clone());
        }
        !is_same
    }

    /// Feeds a choice of an event to the assembler and keeps only what the client gets now. Returns
    /// whether that is anything.
    fn forward_choice(
        &mut self,
        choice: &mut Value,
        assembler: &mut Assembler,
        is_changed: &mut bool,
    ) -> bool {
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let members = self.choices.entry(index).or_default();
        assembler.feed(index, Delta::Text(""));
        let Some(choice) = choice.as_object_mut() else {
            return false;
        };
        let finish = choice.get_mut("finish_reason").filter(|it| !it.is_null());
        let is_end = finish.is_some();
        if let Some(finish) = finish {
            if let Some(reason) = finish.as_str() {
                assembler.feed(index, Delta::Finish(reason));
            }
            *finish = Value::Null;
            *is_changed = true;
        }
        let has_more = members.add(choice, is_end);
        let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) else {
            return has_more;
        };
        *is_changed |= members.add_message(delta);
        if let Some(Value::String(refusal)) = delta.get("refusal") {
            assembler.feed(index, Delta::Refusal(refusal));
        }
        if let Some(Value::String(content)) = delta.get_mut("content") {
            let stable = assembler.feed(index, Delta::Text(content));
            *is_changed |= replace(content, stable);
        }
        let function = delta.get("function_call");
        if let Some(text) = function.and_then(|function| function.get("arguments")?.as_str()) {
            assembler.feed(index, Delta::FunctionArguments(text));
        }
        let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
        for piece in calls.into_iter().flatten() {
            let Some(piece) = piece.as_object_mut() else {
                continue;
            };
            let (call, is_moved) = members.add_call(piece);
            *is_changed |= is_moved;
            let function = piece.get_mut("function");
            match function.and_then(|function| function.get_mut("arguments")) {
                Some(Value::String(text)) => {
                    let stable = assembler.feed(index, Delta::ToolArguments { call, text });
                    *is_changed |= replace(text, stable);
                }
                _ => {
                    assembler.feed(index, Delta::ToolArguments { call, text: "" });
                }
            }
        }
        // A choice with only a finish reason or held-back text is empty now.
        let has_content = |(name, value): (&String, &Value)| match value {
            Value::Null => false,
            Value::String(text) if name == "content" => !text.is_empty(),
            _ => true,
        };
        has_more || delta.iter().any(has_content)
    }

    fn choice<'a>(
        &self,
        index: u64,
        finish: Option<&str>,
        content: &str,
        calls: impl Iterator<Item = &'a str>,
    ) -> Value {
        let none = ChoiceMembers::default();
        let members = self.choices.get(&index).map_or(&none, Box::as_ref);
        members.choice(index, finish, content, calls)
    }

    fn completion(&self, choices: Value, usage: Value) -> Value {
        let mut completion = self.head.clone();
        completion.extend(self.late.clone());
        completion.insert("object".to_owned(), json!("chat.completion"));
        completion.insert("choices".to_owned(), choices);
        completion.insert("usage".to_owned(), usage);
        Value::Object(completion)
    }
}

impl WireAnswer for ChatResponse {
    fn read_event(&mut self, data: Vec<u8>) -> Result<WireEvent, serde_json::Error> {
        let read = self.surrogates.read(&data)?;
        let mut value = read.value;
        if let Some(half) = read.alone {
            match first_text(&mut value) {
                Some(text) => text.insert(0, char::REPLACEMENT_CHARACTER),
                None => self.surrogates.hold(half),
            }
        }
        place_cached(&mut value);
        Ok(WireEvent {
            value,
            data,
            is_changed: read.is_repaired,
        })
    }

    fn forward(&mut self, event: WireEvent, assembler: &mut Assembler) -> Forwarded {
        let WireEvent {
            mut value,
            data,
            mut is_changed,
        } = event;
        let overhead = 0;
        let Some(event) = value.as_object_mut() else {
            let bytes = Vec::new();
            return Forwarded { bytes, overhead };
        };
        let has_usage = event.get("usage").is_some_and(Value::is_object);
        if has_usage {
            // The last event reports the usage of all calls.
            self.usage = event.remove("usage");
            is_changed = true;
        }
        let choices = event.get("choices").and_then(Value::as_array);
        let has_choices = choices.is_some_and(|choices| !choices.is_empty());
        let overhead = overhead_len(data.len(), choices);
        is_changed |= self.set_head(event, has_choices);
        let mut choices = event.get_mut("choices").and_then(Value::as_array_mut);
        if let Some(choices) = &mut choices {
            choices.retain_mut(|choice| self.forward_choice(choice, assembler, &mut is_changed));
        }
        if choices.is_none_or(|choices| choices.is_empty()) && (has_choices || has_usage) {
            let others = event.iter().filter(|(name, value)| {
                !is_event_member(name) && !value.is_null() && self.head.get(*name) != Some(*value)
            });
            let others = others.map(|(name, value)| (name.clone(), value.clone()));
            self.late.extend(others);
            let bytes = Vec::new();
            return Forwarded { bytes, overhead };
        }
        let data = if is_changed {
            value.to_string().into_bytes()
        } else {
            data
        };
        Forwarded {
            bytes: frame(&data),
            overhead,
        }
    }

    /// The end is `[DONE]`, which is not JSON.
    fn is_over(&self) -> bool {
        false
    }

    fn encoder(&self) -> Box<dyn WireEncoder> {
        Box::new(ChatEncoder(self.head.clone()))
    }

    fn encode_end(
        &mut self,
        choices: &BTreeMap<u64, FinalChoice>,
        usage: Option<&Value>,
        report: Option<&Value>,
    ) -> Vec<u8> {
        let ends = choices.iter().map(|(index, choice)| {
            let members = self.choices.get(index);
            let others = members.map(|members| members.at_end.clone());
            let others = others.unwrap_or_default().into_iter();
            let choice = end(&json!(index), &json!(choice.finish), others);
            with_choice(&self.head, &choice)
        });
        let mut ends: Vec<Value> = ends.collect();
        if let Some(Value::Object(last)) = ends.last_mut() {
            last.extend(self.late.clone());
            last.extend(report.map(|report| (REPORT.to_owned(), report.clone())));
        }
        let usage = usage.filter(|_| self.wants_usage);
        ends.extend(usage.map(|usage| with_usage(&self.head, usage.clone())));
        let frames = ends
            .iter()
            .flat_map(|event| frame(event.to_string().as_bytes()));
        frames.collect()
    }

    fn encode_error(&mut self, error: &ErrorBody<'_>) -> Vec<u8> {
        frame(error.as_openai().to_string().as_bytes())
    }

    fn usage(&self) -> Option<&Value> {
        let in_object = || {
            self.object
                .as_ref()?
                .get("usage")
                .filter(|it| it.is_object())
        };
        self.usage.as_ref().or_else(in_object)
    }

    fn model(&self) -> Option<&str> {
        let head = self.object.as_ref().and_then(Value::as_object);
        head.unwrap_or(&self.head).get("model")?.as_str()
    }

    fn tool(&self, index: u64, call: Option<usize>) -> String {
        let members = self.choices.get(&index);
        members.map_or("", |members| members.tool(call)).to_owned()
    }

    fn first(&self, assembler: &Assembler) -> Value {
        if let Some(object) = &self.object {
            return object.clone();
        }
        let choices = assembler.choices().map(|(index, parts)| {
            let finish = parts.finish.as_deref();
            let calls = parts.calls.iter().map(PartText::text);
            self.choice(index, finish, parts.content.text(), calls)
        });
        let usage = self.usage.clone().unwrap_or_default();
        self.completion(choices.collect(), usage)
    }

    fn finished(
        &mut self,
        choices: &BTreeMap<u64, FinalChoice>,
        usage: Option<&Value>,
        report: Option<&Value>,
    ) -> (Value, bool) {
        let received = self.object.take();
        let mut is_changed = received.is_none();
        let mut object = received.unwrap_or_else(|| {
            let choices = choices.iter().map(|(index, end)| {
                let calls = end.calls.iter().map(String::as_str);
                self.choice(*index, end.finish.as_deref(), &end.content, calls)
            });
            self.completion(choices.collect(), Value::Null)
        });
        for (index, choice) in indexed(&mut object) {
            if let Some(end) = choices.get(&index) {
                is_changed |= edit(choice, end);
            }
        }
        for (name, value) in [("usage", usage), (REPORT, report)] {
            if let Some(value) = value
                && object.get(name) != Some(value)
            {
                object[name] = value.clone();
                is_changed = true;
            }
        }
        (object, is_changed)
    }
}

/// The arguments in a piece of a tool call.
fn arguments_of(piece: &Map<String, Value>) -> Option<&str> {
    piece.get("function")?.get("arguments")?.as_str()
}

/// Whether every event has this member.
fn is_event_member(name: &str) -> bool {
    matches!(
        name,
        "id" | "object" | "created" | "model" | "choices" | "usage"
    )
}
