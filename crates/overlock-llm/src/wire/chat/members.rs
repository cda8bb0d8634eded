//! The members of a choice of a streamed answer apart from its texts, and the choice as one object.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::delta_merge::{merge, merge_members};
use super::event::is_choice_member;

/// The members of a choice apart from its texts.
#[derive(Default)]
pub(super) struct ChoiceMembers {
    /// The other members of the message.
    message: Map<String, Value>,
    logprobs: Value,
    /// The other members of the choice, each with its last value.
    others: Map<String, Value>,
    /// The other members that arrived with the end, and are sent with it.
    pub(super) at_end: Map<String, Value>,
    /// The tool calls, without their arguments.
    calls: Vec<Map<String, Value>>,
    /// The position of the last call with each index.
    last_calls: BTreeMap<u64, usize>,
    has_role: bool,
}

impl ChoiceMembers {
    /// Adds the members of a choice other than its message. Returns whether they must be sent now:
    /// members that arrive with the end are sent with the end.
    pub(super) fn add(&mut self, choice: &mut Map<String, Value>, is_end: bool) -> bool {
        if let Some(logprobs) = choice.get("logprobs") {
            merge(&mut self.logprobs, logprobs);
        }
        let others = choice.iter();
        let others = others.filter(|(name, value)| !is_choice_member(name) && !value.is_null());
        let others = others.map(|(name, value)| (name.clone(), value.clone()));
        let others: Map<String, Value> = others.collect();
        let has_logprobs = choice.get("logprobs").is_some_and(|it| !it.is_null());
        let has_more = has_logprobs || !is_end && !others.is_empty();
        if is_end {
            choice.retain(|name, _| is_choice_member(name));
            self.at_end.extend(others.clone());
        }
        self.others.extend(others);
        has_more
    }

    /// Adds the members of a message other than its texts. Returns whether the message was changed:
    /// a role is sent once, with the first piece.
    pub(super) fn add_message(&mut self, delta: &mut Map<String, Value>) -> bool {
        let has_role = delta.get("role").is_some_and(|role| !role.is_null());
        let is_changed = match (self.has_role, has_role) {
            (true, true) => delta.remove("role").is_some(),
            (false, false) => delta
                .insert("role".to_owned(), json!("assistant"))
                .is_none(),
            _ => false,
        };
        self.has_role = true;
        merge_members(&mut self.message, delta, &["content", "tool_calls"]);
        is_changed
    }

    /// Adds the members of a tool call other than its arguments. Returns the position of the call,
    /// and whether the piece was changed: the index of a call is its position.
    pub(super) fn add_call(&mut self, piece: &mut Map<String, Value>) -> (usize, bool) {
        let index = piece.get("index").and_then(Value::as_u64).unwrap_or(0);
        let place = self.place_of(index, piece).unwrap_or_else(|| {
            self.calls.push(Map::new());
            let place = self.calls.len() - 1;
            self.last_calls.insert(index, place);
            place
        });
        let is_changed = index != place as u64;
        if is_changed {
            piece.insert("index".to_owned(), json!(place));
        }
        let call = &mut self.calls[place];
        merge_members(call, piece, &["function"]);
        if let Some(Value::Object(function)) = piece.get("function") {
            let known = call.entry("function").or_insert(json!({}));
            if let Some(known) = known.as_object_mut() {
                merge_members(known, function, &["arguments"]);
            }
        }
        (place, is_changed)
    }

    /// The call that a piece belongs to; `None` if it starts another one. Some upstreams give all
    /// calls one index, so that only the id distinguishes them.
    fn place_of(&self, index: u64, piece: &Map<String, Value>) -> Option<usize> {
        let place = *self.last_calls.get(&index)?;
        let is_set = |id: &&Value| !id.is_null() && *id != "";
        let known = self.calls[place].get("id").filter(is_set);
        let id = piece.get("id").filter(is_set);
        let is_other = known.is_some() && id.is_some() && known != id;
        (!is_other).then_some(place)
    }

    /// The name of the tool that is called.
    pub(super) fn tool(&self, call: Option<usize>) -> &str {
        let function = match call {
            Some(call) => self.calls.get(call).and_then(|call| call.get("function")),
            None => self.message.get("function_call"),
        };
        let name = function.and_then(|function| function.get("name"));
        name.and_then(Value::as_str).unwrap_or_default()
    }

    /// The choice with these texts, as one object.
    pub(super) fn choice<'a>(
        &self,
        index: u64,
        finish: Option<&str>,
        content: &str,
        arguments: impl Iterator<Item = &'a str>,
    ) -> Value {
        let calls = self.calls.iter().zip(arguments);
        let calls: Vec<Value> = calls
            .map(|(members, arguments)| tool_call(members.clone(), arguments))
            .collect();
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        let has_more = !calls.is_empty() || self.message.keys().any(|name| name != "role");
        let content = (!content.is_empty() || !has_more).then_some(content);
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
        choice.extend(self.others.clone());
        Value::Object(choice)
    }
}

/// A tool call as one object.
fn tool_call(mut members: Map<String, Value>, arguments: &str) -> Value {
    members.shift_remove("index");
    if let Some(function) = members.get_mut("function").and_then(Value::as_object_mut) {
        function.insert("arguments".to_owned(), json!(arguments));
        members.entry("type").or_insert(json!("function"));
    }
    Value::Object(members)
}
