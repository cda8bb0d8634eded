//! Turns a plan into the request that is sent.

use serde_json::Value;

use super::options::AnswerKey;
use super::text::Pieces;
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

/// What is of no use without tools.
const WITH_TOOLS: [&str; 3] = ["tool_choice", "parallel_tool_calls", "function_call"];

impl Rewrite {
    pub(super) fn apply(&self, request: ChatRequest) -> Value {
        let answer_key = request.requested_key().unwrap_or(self.answer_key.name());
        let tools_key = request.tools_key();
        let is_new = request.requested() != Some(self.answer);
        let mut members = request.into_members();
        if self.changes_messages()
            && let Some(Value::Array(messages)) = members.get_mut("messages")
        {
            *messages = self.arrange(std::mem::take(messages), Value::clone);
        }
        if let Some(Value::Array(tools)) = members.get_mut(tools_key) {
            let had_tools = !tools.is_empty();
            self.keep_tools(tools);
            if had_tools && tools.is_empty() {
                for key in WITH_TOOLS.into_iter().chain([tools_key]) {
                    members.shift_remove(key);
                }
            }
        }
        // A number that stays is left as it was written.
        if is_new {
            members.insert(answer_key.to_owned(), self.answer.into());
        }
        Value::Object(members)
    }

    /// The same in the text of the request, where all that stays is left as it was written.
    pub(super) fn apply_to_text(&self, text: &str) -> Option<String> {
        let mut members = Pieces::of_object(text)?;
        if self.changes_messages() {
            let value = members.value("messages")?;
            *value = self.messages_text(value)?.into();
        }
        let tools_key = match members.value("tools") {
            Some(_) => "tools",
            None => "functions",
        };
        if let Some(value) = members.value(tools_key)
            // Without any there is nothing to change.
            && let Some(mut tools) = Pieces::of_list(&value.clone())
        {
            self.keep_tools(&mut tools.items);
            if tools.items.is_empty() {
                for key in WITH_TOOLS.into_iter().chain([tools_key]) {
                    members.remove(key);
                }
            } else {
                *value = tools.text().into();
            }
        }
        self.answer_in_text(&mut members);
        Some(members.text())
    }

    fn changes_messages(&self) -> bool {
        self.drops_messages || !self.insertions.is_empty()
    }

    fn messages_text(&self, text: &str) -> Option<String> {
        let mut messages = Pieces::of_list(text)?;
        let like = messages.items.first()?.clone();
        let insert = |message: &Value| like.beside(None, message.to_string());
        messages.items = self.arrange(std::mem::take(&mut messages.items), insert);
        Some(messages.text())
    }

    fn answer_in_text(&self, members: &mut Pieces) {
        let asked = ["max_completion_tokens", "max_tokens"].into_iter();
        let mut asked = asked.filter(|key| members.value(key).is_some_and(|value| value != "null"));
        let key = asked.next().unwrap_or(self.answer_key.name());
        let answer = self.answer.to_string();
        if let Some(value) = members.value(key) {
            *value = answer.into();
            return;
        }
        let like = members.items.first();
        let member = like.map(|like| like.beside(Some(key), answer));
        members.items.extend(member);
    }

    /// The messages that stay, and between them those that are added.
    fn arrange<T>(&self, messages: Vec<T>, insert: impl Fn(&Value) -> T) -> Vec<T> {
        let mut kept = self.kept_messages.iter().copied().peekable();
        let mut insertions = self.insertions.iter().peekable();
        let mut arranged = Vec::with_capacity(self.kept_messages.len() + self.insertions.len());
        for (place, message) in messages.into_iter().enumerate() {
            while let Some(insertion) = insertions.next_if(|insertion| insertion.before <= place) {
                arranged.push(insert(&insertion.message));
            }
            if kept.next_if_eq(&place).is_some() {
                arranged.push(message);
            }
        }
        arranged.extend(insertions.map(|insertion| insert(&insertion.message)));
        arranged
    }

    fn keep_tools<T>(&self, tools: &mut Vec<T>) {
        let mut kept = self.kept_tools.iter().copied().peekable();
        let mut place = 0;
        tools.retain(|_| {
            place += 1;
            kept.next_if_eq(&(place - 1)).is_some()
        });
    }
}
