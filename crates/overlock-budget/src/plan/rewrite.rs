//! Turns a plan into the request that is sent.

use serde_json::{Map, Value};

use super::options::AnswerKey;
use crate::chat::ChatRequest;

/// What is to be changed in a request.
#[derive(Clone, Debug)]
pub(super) struct Rewrite {
    pub(super) drops_messages: bool,
    /// The places of the messages that stay, in order.
    pub(super) kept_messages: Vec<usize>,
    /// The places of the tools that stay, in order.
    pub(super) kept_tools: Vec<usize>,
    /// In the order of their places.
    pub(super) insertions: Vec<Insertion>,
    pub(super) answer: u64,
    pub(super) answer_key: AnswerKey,
}

/// A message that is added.
#[derive(Clone, Debug)]
pub(super) struct Insertion {
    /// The place of the message it is put before.
    pub(super) before: usize,
    message: Value,
}

impl Insertion {
    pub(super) fn new(before: usize, message: Value) -> Self {
        Self { before, message }
    }
}

impl Rewrite {
    pub(super) fn apply(&self, request: ChatRequest) -> Value {
        let answer_key = request.requested_key().unwrap_or(self.answer_key.name());
        let tools_key = request.tools_key();
        let is_new = request.requested() != Some(self.answer);
        let mut members = request.into_members();
        if self.drops_messages || !self.insertions.is_empty() {
            self.rewrite_messages(&mut members);
        }
        self.rewrite_tools(&mut members, tools_key);
        // A number that stays is left as it was written.
        if is_new {
            members.insert(answer_key.to_owned(), self.answer.into());
        }
        Value::Object(members)
    }

    fn rewrite_messages(&self, members: &mut Map<String, Value>) {
        let Some(Value::Array(messages)) = members.get_mut("messages") else {
            return;
        };
        let mut kept = self.kept_messages.iter().copied().peekable();
        let mut insertions = self.insertions.iter().peekable();
        let mut rewritten = Vec::with_capacity(self.kept_messages.len() + self.insertions.len());
        for (place, message) in std::mem::take(messages).into_iter().enumerate() {
            while let Some(insertion) = insertions.next_if(|insertion| insertion.before <= place) {
                rewritten.push(insertion.message.clone());
            }
            if kept.next_if_eq(&place).is_some() {
                rewritten.push(message);
            }
        }
        rewritten.extend(insertions.map(|insertion| insertion.message.clone()));
        *messages = rewritten;
    }

    fn rewrite_tools(&self, members: &mut Map<String, Value>, key: &str) {
        let Some(Value::Array(tools)) = members.get_mut(key) else {
            return;
        };
        if tools.len() == self.kept_tools.len() {
            return;
        }
        if self.kept_tools.is_empty() {
            for key in [key, "tool_choice", "parallel_tool_calls", "function_call"] {
                members.shift_remove(key);
            }
            return;
        }
        let mut kept = self.kept_tools.iter().copied().peekable();
        let mut place = 0;
        tools.retain(|_| {
            place += 1;
            kept.next_if_eq(&(place - 1)).is_some()
        });
    }
}
