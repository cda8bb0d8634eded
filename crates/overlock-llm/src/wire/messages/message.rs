//! A view of a message, without copies.

use overlock_budget::{ChatRole, Content, Message, MessageKind, Role};
use serde_json::{Value, json};

use crate::wire::error::{RequestError, missing, wrong_at};

/// A message of a request: the system prompt, or one of the messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum InputMessage<'a> {
    System(&'a Value),
    Message(&'a Value),
}

impl<'a> InputMessage<'a> {
    /// Checks a message. Blocks of unknown types are allowed.
    pub(super) fn checked(message: &'a Value, index: usize) -> Result<Self, RequestError> {
        const CONTENT: &str = "a string or an array of blocks";
        let place = format!("messages[{index}]");
        let Some(members) = message.as_object() else {
            return Err(wrong_at(place, message, "an object"));
        };
        let expected = "one of `user`, `assistant`, `system`";
        match members.get("role") {
            Some(Value::String(role)) if role_named(role).is_some() => {}
            Some(other) => return Err(wrong_at(format!("{place}.role"), other, expected)),
            None => return Err(missing(format!("{place}.role"), expected)),
        }
        match members.get("content") {
            Some(Value::String(_)) => {}
            Some(Value::Array(blocks)) => {
                for (block, value) in blocks.iter().enumerate() {
                    if value.get("type").is_none_or(|kind| !kind.is_string()) {
                        let place = format!("{place}.content[{block}]");
                        return Err(wrong_at(place, value, "an object with a `type`"));
                    }
                }
            }
            Some(other) => return Err(wrong_at(format!("{place}.content"), other, CONTENT)),
            None => return Err(missing(format!("{place}.content"), CONTENT)),
        }
        Ok(Self::Message(message))
    }

    fn content(&self) -> &'a Value {
        match self {
            Self::System(system) => system,
            Self::Message(message) => &message["content"],
        }
    }

    fn blocks(&self) -> impl Iterator<Item = &'a Value> {
        self.content().as_array().into_iter().flatten()
    }

    /// Its role. Only a message of one tool result is one to the plan, which may shorten its text.
    pub(super) fn role(&self) -> ChatRole {
        match self {
            Self::System(_) => ChatRole::System,
            Self::Message(message) => {
                let role = message["role"].as_str().and_then(role_named);
                let role = role.unwrap_or(ChatRole::User);
                let mut blocks = self.blocks();
                let is_result = blocks.next().is_some_and(|it| it["type"] == "tool_result");
                let is_result = is_result && blocks.next().is_none();
                match role {
                    ChatRole::User if is_result => ChatRole::Tool,
                    role => role,
                }
            }
        }
    }

    pub(super) fn kind(&self) -> MessageKind {
        let mut kind = MessageKind::new(self.role());
        self.contents(&mut |content| kind.add(&content));
        kind
    }

    /// Calls `each` for every content.
    pub(super) fn contents(&self, each: &mut dyn FnMut(Content<'a>)) {
        contents_of(self.content(), each);
    }

    /// The message in the form for chat templates.
    pub(super) fn as_chat_message(&self) -> Value {
        let mut text = String::new();
        self.contents(&mut |content| {
            if let Content::Text(piece) = content {
                text.push_str(piece);
            }
        });
        let mut message = json!({ "role": self.role().name(), "content": text });
        let calls = self.blocks().filter(|block| block["type"] == "tool_use");
        let calls: Vec<Value> = calls
            .map(|call| {
                json!({ "id": call["id"], "type": "function", "function": {
                    "name": call["name"], "arguments": call["input"].to_string(),
                } })
            })
            .collect();
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        if let Some(id) = self.answers().first() {
            message["tool_call_id"] = json!(id);
        }
        message
    }

    /// The ids of its blocks of a type.
    fn ids(&self, kind: &str, name: &str) -> Vec<&'a str> {
        let blocks = self.blocks().filter(|block| block["type"] == kind);
        blocks
            .filter_map(|block| block.get(name)?.as_str())
            .collect()
    }
}

impl Message for InputMessage<'_> {
    fn role(&self) -> Role {
        self.role().in_history()
    }

    fn calls(&self) -> Vec<&str> {
        self.ids("tool_use", "id")
    }

    fn answers(&self) -> Vec<&str> {
        self.ids("tool_result", "tool_use_id")
    }
}

fn role_named(name: &str) -> Option<ChatRole> {
    match name {
        "user" => Some(ChatRole::User),
        "assistant" => Some(ChatRole::Assistant),
        "system" => Some(ChatRole::System),
        _ => None,
    }
}

/// The contents of a text or of an array of blocks.
fn contents_of<'a>(value: &'a Value, each: &mut dyn FnMut(Content<'a>)) {
    match value {
        Value::String(text) => each(Content::Text(text)),
        Value::Array(blocks) => {
            for block in blocks {
                if block["type"] == "tool_result" {
                    contents_of(&block["content"], each);
                } else {
                    each(block_content(block));
                }
            }
        }
        _ => {}
    }
}

fn block_content(block: &Value) -> Content<'_> {
    let source = |name: &str| block.get("source")?.get(name)?.as_str();
    let data = || source("data").filter(|_| source("type") == Some("base64"));
    match block["type"].as_str() {
        Some("text") => Content::Text(block["text"].as_str().unwrap_or_default()),
        Some("image") => Content::Picture {
            base64: data(),
            is_coarse: false,
        },
        Some("document") => Content::File {
            bytes: data().map(|data| data.len() as u64 / 4 * 3),
        },
        _ => Content::Other(block),
    }
}
