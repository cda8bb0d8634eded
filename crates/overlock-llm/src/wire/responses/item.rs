//! A view of an item of the input, without copies.

use overlock_budget::{ChatRole, Content, Message, MessageKind, Role};
use serde_json::{Map, Value, json};

use crate::wire::error::{RequestError, missing, wrong_at};

/// A message of a request: the instructions, an input that is one text, or an item of the input.
#[derive(Clone, Copy, Debug)]
pub(super) enum InputItem<'a> {
    Instructions(&'a str),
    Text(&'a str),
    Item(&'a Map<String, Value>),
}

impl<'a> InputItem<'a> {
    /// Checks an item of the input.
    pub(super) fn checked(item: &'a Value, index: usize) -> Result<Self, RequestError> {
        let place = format!("input[{index}]");
        let Some(members) = item.as_object() else {
            return Err(wrong_at(place, item, "an object"));
        };
        let text = |key: &str, expected: &str| match members.get(key) {
            Some(Value::String(_)) => Ok(()),
            Some(other) => Err(wrong_at(format!("{place}.{key}"), other, expected)),
            None => Err(missing(format!("{place}.{key}"), expected)),
        };
        match kind(members) {
            "message" => {
                let role = members.get("role").and_then(Value::as_str);
                if role.and_then(message_role).is_none() {
                    let expected = "one of `user`, `assistant`, `system`, `developer`";
                    let place = format!("{place}.role");
                    return Err(match members.get("role") {
                        Some(role) => wrong_at(place, role, expected),
                        None => missing(place, expected),
                    });
                }
                match members.get("content") {
                    Some(Value::String(_) | Value::Array(_)) => {}
                    Some(other) => {
                        let place = format!("{place}.content");
                        return Err(wrong_at(place, other, "a string or an array of parts"));
                    }
                    None => {
                        let place = format!("{place}.content");
                        return Err(missing(place, "a string or an array of parts"));
                    }
                }
            }
            "function_call" => {
                text("call_id", "the id of the call")?;
                text("name", "the name of the function")?;
                text("arguments", "the arguments as text")?;
            }
            "function_call_output" => text("call_id", "the id of the call it answers")?,
            _ => {}
        }
        Ok(Self::Item(members))
    }

    pub(super) fn role(&self) -> ChatRole {
        match self {
            Self::Instructions(_) => ChatRole::System,
            Self::Text(_) => ChatRole::User,
            Self::Item(members) => match kind(members) {
                "message" => {
                    let role = members.get("role").and_then(Value::as_str);
                    role.and_then(message_role).unwrap_or(ChatRole::User)
                }
                kind if kind.ends_with("_output") => ChatRole::Tool,
                // Reasoning and calls belong to the model's turn.
                _ => ChatRole::Assistant,
            },
        }
    }

    pub(super) fn kind(&self) -> MessageKind {
        let mut kind = MessageKind::new(self.role());
        self.contents(&mut |content| kind.add(&content));
        kind
    }

    /// Calls `each` for every content.
    pub(super) fn contents(&self, each: &mut dyn FnMut(Content<'a>)) {
        let members = match self {
            Self::Instructions(text) | Self::Text(text) => return each(Content::Text(text)),
            Self::Item(members) => *members,
        };
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let called = |arguments: &str| Content::Call {
            name: text("name").unwrap_or_default(),
            arguments: text(arguments).unwrap_or_default(),
        };
        match kind(members) {
            "message" => contents_of(members.get("content"), each),
            "function_call" => each(called("arguments")),
            "custom_tool_call" => each(called("input")),
            "function_call_output" | "custom_tool_call_output" => {
                contents_of(members.get("output"), each);
            }
            // Encrypted reasoning is not counted as text: it takes about a token for four bytes.
            "reasoning" => {
                for texts in ["summary", "content"] {
                    contents_of(members.get(texts), each);
                }
                if let Some(data) = text("encrypted_content") {
                    each(file(data));
                }
            }
            _ => members
                .values()
                .for_each(|value| each(Content::Other(value))),
        }
    }

    /// The message in the form for chat templates.
    pub(super) fn as_chat_message(&self) -> Value {
        let mut content = String::new();
        let (mut calls, mut id) = (Vec::new(), None);
        self.contents(&mut |part| match part {
            Content::Text(text) | Content::Refusal(text) => content.push_str(text),
            Content::Call { name, arguments } => {
                let function = json!({ "name": name, "arguments": arguments });
                calls.push(json!({ "type": "function", "function": function }));
            }
            _ => {}
        });
        if let Self::Item(members) = self {
            id = members.get("call_id").cloned();
        }
        let mut message = json!({ "role": self.role().name(), "content": content });
        if let [call, ..] = calls.as_mut_slice() {
            call["id"] = json!(id);
            message["tool_calls"] = Value::Array(calls);
        } else if let Some(id) = id {
            message["tool_call_id"] = id;
        }
        message
    }
}

impl Message for InputItem<'_> {
    fn role(&self) -> Role {
        self.role().in_history()
    }

    fn calls(&self) -> Vec<&str> {
        self.call_id(ChatRole::Assistant)
    }

    fn answers(&self) -> Vec<&str> {
        self.call_id(ChatRole::Tool)
    }
}

impl InputItem<'_> {
    /// The id of its call, if the item has this role.
    fn call_id(&self, role: ChatRole) -> Vec<&str> {
        match self {
            Self::Item(members) if self.role() == role => {
                let id = members.get("call_id").and_then(Value::as_str);
                id.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The type of an item; a message may leave it out.
fn kind(members: &Map<String, Value>) -> &str {
    let kind = members.get("type").and_then(Value::as_str);
    kind.unwrap_or("message")
}

fn message_role(name: &str) -> Option<ChatRole> {
    let role = ChatRole::from_name(name)?;
    (!matches!(role, ChatRole::Tool | ChatRole::Function)).then_some(role)
}

/// The contents of a text or of an array of parts.
fn contents_of<'a>(value: Option<&'a Value>, each: &mut dyn FnMut(Content<'a>)) {
    match value {
        Some(Value::String(text)) => each(Content::Text(text)),
        Some(Value::Array(parts)) => parts.iter().map(part).for_each(each),
        _ => {}
    }
}

fn part(part: &Value) -> Content<'_> {
    let text = |name: &str| part.get(name).and_then(Value::as_str);
    match text("type").unwrap_or_default() {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => {
            Content::Text(text("text").unwrap_or_default())
        }
        "refusal" => Content::Refusal(text("refusal").unwrap_or_default()),
        "input_image" => Content::Picture {
            base64: text("image_url").and_then(base64),
            is_coarse: text("detail") == Some("low"),
        },
        "input_file" => text("file_data").map_or(Content::File { bytes: None }, file),
        _ => Content::Other(part),
    }
}

/// A file in Base64.
fn file(base64: &str) -> Content<'_> {
    let bytes = Some(base64.len() as u64 / 4 * 3);
    Content::File { bytes }
}

/// The data in a `data:` URL.
fn base64(url: &str) -> Option<&str> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    kind.ends_with(";base64").then_some(data)
}
