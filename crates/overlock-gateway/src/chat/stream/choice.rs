//! What has come of one of the answers of a stream, and how it would have come at once.

use std::collections::BTreeMap;

use overlock_model::StepEnd;
use serde_json::{Map, Value, json};

use super::super::merged::merge;
use super::super::reading::{Found, Reading};
use super::events::stands_beside;

/// One of the answers to a request, which usually is the only one.
pub(super) struct Choice {
    pub(super) content: Reading,
    pub(super) calls: Vec<ToolCall>,
    /// Where the last call with an index is among them.
    pub(super) last_calls: BTreeMap<u64, usize>,
    /// The arguments of a call in the older form.
    pub(super) older_call: Option<Reading>,
    pub(super) others: Others,
    pub(super) finish: Option<String>,
    pub(super) has_role: bool,
    /// The content with what was added to it.
    pub(super) said: Option<String>,
}

/// What there is of a choice besides its texts.
#[derive(Default)]
pub(super) struct Others {
    /// The other members of the message.
    pub(super) message: Map<String, Value>,
    pub(super) logprobs: Value,
    /// What stands beside the message, each as it came last.
    pub(super) beside: Map<String, Value>,
    /// The part of it that came with the end, and is told with it.
    pub(super) beside_end: Map<String, Value>,
}

pub(super) struct ToolCall {
    /// All but its arguments.
    pub(super) members: Map<String, Value>,
    pub(super) arguments: Reading,
    /// The arguments with what was added to them.
    pub(super) said: Option<String>,
}

impl ToolCall {
    pub(super) fn name(&self) -> &str {
        let function = self.members.get("function");
        let name = function.and_then(|function| function.get("name"));
        name.and_then(Value::as_str).unwrap_or_default()
    }
}

/// A tool call as it would have come at once.
fn tool_call(mut members: Map<String, Value>, arguments: &str) -> Value {
    members.shift_remove("index");
    if let Some(function) = members.get_mut("function").and_then(Value::as_object_mut) {
        function.insert("arguments".to_owned(), json!(arguments));
        members.entry("type").or_insert(json!("function"));
    }
    Value::Object(members)
}

impl Choice {
    /// Whether its end can still be known if the stream broke off. A whole tool call cannot tell
    /// whether it was the last one, nor a text whether it was done.
    pub(super) fn outlives_a_break(&self) -> bool {
        let content = &self.content;
        let is_document =
            content.is_open() || content.is_to_be_read_again() || content.found() == Found::Whole;
        let calls_nothing = self.calls.is_empty() && self.older_call.is_none();
        self.finish.is_some() || calls_nothing && is_document
    }

    /// How it ended, as far as the upstream says, or what broke it off.
    pub(super) fn end(&self, broken: Option<&str>) -> StepEnd {
        let refusal = self.others.message.get("refusal").and_then(Value::as_str);
        let refusal = refusal.filter(|text| !text.is_empty());
        StepEnd {
            finish: self.finish.clone(),
            refusal: refusal.map(str::to_owned),
            broken: broken.map(str::to_owned),
            ..StepEnd::default()
        }
    }

    /// How many texts there are of it.
    pub(super) fn texts(&self) -> usize {
        usize::from(!self.content.text().is_empty()) + self.calls.len()
    }

    /// The bytes of its texts.
    pub(super) fn bytes(&self) -> u64 {
        let calls = self.calls.iter().map(|call| call.arguments.text().len());
        (self.content.text().len() + calls.sum::<usize>()) as u64
    }

    /// The text that is being written.
    pub(super) fn written(&self) -> &str {
        let call = self.calls.last();
        call.map_or(self.content.text(), |call| call.arguments.text())
    }

    /// Which of the calls a piece is of; nothing if it begins another one. Some upstreams give all
    /// calls one index, and only the name of the call tells them apart.
    pub(super) fn call_of(&self, index: u64, piece: &Value) -> Option<usize> {
        let at = *self.last_calls.get(&index)?;
        let is_said = |id: &&Value| !id.is_null() && *id != "";
        let known = self.calls[at].members.get("id").filter(is_said);
        let id = piece.get("id").filter(is_said);
        let is_other = known.is_some() && id.is_some() && known != id;
        (!is_other).then_some(at)
    }

    /// The choice as it would have come at once.
    pub(super) fn into_whole(self, index: u64, finish: &str) -> Value {
        let content = self.said.unwrap_or_else(|| self.content.into_text());
        let calls = self.calls.into_iter().map(|call| {
            let arguments = call.said.unwrap_or_else(|| call.arguments.into_text());
            tool_call(call.members, &arguments)
        });
        let calls = calls.collect();
        self.others.choice(index, Some(finish), &content, calls)
    }

    /// The same of what came, before anything was made of it.
    pub(super) fn first(&self, index: u64) -> Value {
        let calls = self.calls.iter();
        let calls = calls.map(|call| tool_call(call.members.clone(), call.arguments.text()));
        let (finish, content) = (self.finish.as_deref(), self.content.text());
        self.others.choice(index, finish, content, calls.collect())
    }
}

impl Others {
    /// The choice with these texts, as it would have come at once.
    fn choice(&self, index: u64, finish: Option<&str>, content: &str, calls: Vec<Value>) -> Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        let says_more = !calls.is_empty() || self.message.keys().any(|name| name != "role");
        let content = (!content.is_empty() || !says_more).then_some(content);
        message.insert("content".to_owned(), json!(content));
        message.extend(self.message.clone());
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        let mut choice = Map::new();
        choice.insert("index".to_owned(), json!(index));
        choice.insert("message".to_owned(), Value::Object(message));
        if !self.logprobs.is_null() {
            choice.insert("logprobs".to_owned(), self.logprobs.clone());
        }
        choice.insert("finish_reason".to_owned(), json!(finish));
        choice.extend(self.beside.clone());
        Value::Object(choice)
    }

    /// Takes what stands beside a piece of the message; whether that is to be passed on with it.
    /// What comes with the end is left for the end.
    pub(super) fn take_beside(&mut self, choice: &mut Map<String, Value>, is_end: bool) -> bool {
        if let Some(logprobs) = choice.get("logprobs") {
            merge(&mut self.logprobs, logprobs);
        }
        let is_said = |(name, value): &(&String, &Value)| stands_beside(name) && !value.is_null();
        let said = choice.iter().filter(is_said);
        let said: Map<String, Value> = said
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let has_logprobs = choice.get("logprobs").is_some_and(|it| !it.is_null());
        let says_more = has_logprobs || !is_end && !said.is_empty();
        if is_end {
            choice.retain(|name, _| !stands_beside(name));
            self.beside_end.extend(said.clone());
        }
        // The last of them tells of all that came.
        self.beside.extend(said);
        says_more
    }
}
