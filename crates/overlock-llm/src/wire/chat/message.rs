//! A view of a message in a checked chat request, without copies.

use overlock_budget::{ChatRole, Content, Message, MessageKind, Role};
use serde_json::{Map, Value};

/// A message of a chat request.
#[derive(Clone, Copy, Debug)]
pub struct ChatMessage<'a> {
    role: ChatRole,
    members: &'a Map<String, Value>,
}

/// A member by its name. Requests have small objects, for which comparing names is faster than
/// hashing.
pub(super) fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    const FEW: usize = 16;
    if members.len() > FEW {
        return members.get(name);
    }
    let mut members = members.iter();
    members.find_map(|(own, value)| (own == name).then_some(value))
}

impl<'a> ChatMessage<'a> {
    pub(super) fn new(role: ChatRole, members: &'a Map<String, Value>) -> Self {
        Self { role, members }
    }

    /// The role.
    pub fn role(&self) -> ChatRole {
        self.role
    }

    /// The members of the message.
    pub fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    pub(super) fn kind(&self) -> MessageKind {
        let mut kind = MessageKind::new(self.role);
        self.contents(&mut |content| kind.add(&content));
        kind
    }

    /// Calls `each` for every content.
    pub(super) fn contents(&self, each: &mut dyn FnMut(Content<'a>)) {
        let is_model = self.role == ChatRole::Assistant;
        // Iterating over the few members is faster than looking each up.
        for (key, value) in self.members {
            match (key.as_str(), value) {
                ("content", Value::String(text)) => each(Content::Text(text)),
                ("content", Value::Array(parts)) => parts.iter().map(part).for_each(&mut *each),
                ("name", Value::String(name)) => each(Content::Name(name)),
                ("refusal", Value::String(refusal)) if is_model => each(Content::Refusal(refusal)),
                // It has only the id of the audio.
                ("audio", _) => each(Content::Recording {
                    bytes: 0,
                    is_compressed: true,
                }),
                ("tool_calls", Value::Array(calls)) if is_model => {
                    calls.iter().map(call).for_each(&mut *each);
                }
                ("function_call", Value::Object(_)) if is_model => {
                    each(called(value, "arguments"));
                }
                _ => {}
            }
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// A part of the content.
fn part(part: &Value) -> Content<'_> {
    let inner = |key: &str| part.get(key).unwrap_or(&Value::Null);
    match text(part, "type").unwrap_or_default() {
        key @ ("text" | "refusal") => Content::Text(text(part, key).unwrap_or_default()),
        "image_url" => Content::Picture {
            base64: text(inner("image_url"), "url").and_then(base64),
            is_coarse: text(inner("image_url"), "detail") == Some("low"),
        },
        "input_audio" => Content::Recording {
            bytes: text(inner("input_audio"), "data").map_or(0, decoded_len),
            is_compressed: text(inner("input_audio"), "format") != Some("wav"),
        },
        "file" => Content::File {
            bytes: text(inner("file"), "file_data").map(decoded_len),
        },
        _ => Content::Other(part),
    }
}

/// The data in a `data:` URL.
fn base64(url: &str) -> Option<&str> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    kind.ends_with(";base64").then_some(data)
}

fn decoded_len(base64: &str) -> u64 {
    base64.len() as u64 / 4 * 3
}

fn call(call: &Value) -> Content<'_> {
    match (call.get("function"), call.get("custom")) {
        (Some(function), _) => called(function, "arguments"),
        (None, Some(custom)) => called(custom, "input"),
        (None, None) => called(&Value::Null, ""),
    }
}

fn called<'a>(function: &'a Value, arguments: &str) -> Content<'a> {
    Content::Call {
        name: text(function, "name").unwrap_or_default(),
        arguments: text(function, arguments).unwrap_or_default(),
    }
}

impl Message for ChatMessage<'_> {
    fn role(&self) -> Role {
        self.role.in_history()
    }

    fn calls(&self) -> Vec<&str> {
        match member(self.members, "tool_calls") {
            Some(Value::Array(calls)) if self.role == ChatRole::Assistant => {
                calls.iter().filter_map(|call| text(call, "id")).collect()
            }
            _ => Vec::new(),
        }
    }

    fn answers(&self) -> Vec<&str> {
        if self.role != ChatRole::Tool {
            return Vec::new();
        }
        let call = member(self.members, "tool_call_id").and_then(Value::as_str);
        call.into_iter().collect()
    }
}
