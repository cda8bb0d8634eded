//! What is a message of a chat request?
//!
//! These are views on a request that was checked when it was read, so that nothing is copied and
//! nothing can be missing.

use serde_json::{Map, Value};

use crate::count::Provenance;
use crate::history::{Message, Role};

/// Who speaks in a message of a chat request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatRole {
    /// Whoever runs the conversation.
    System,
    /// The newer name of the same.
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// The older form of the same.
    Function,
}

impl ChatRole {
    /// All of them, in the order in which messages name them.
    pub const ALL: [Self; 6] = [
        Self::System,
        Self::Developer,
        Self::User,
        Self::Assistant,
        Self::Tool,
        Self::Function,
    ];

    /// The name in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Function => "function",
        }
    }

    /// The role with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// What the role means to a conversation that is trimmed.
    pub fn in_history(self) -> Role {
        match self {
            Self::System | Self::Developer => Role::System,
            Self::User => Role::User,
            Self::Assistant => Role::Assistant,
            Self::Tool | Self::Function => Role::Tool,
        }
    }
}

/// A message of a chat request.
#[derive(Clone, Copy, Debug)]
pub struct ChatMessage<'a> {
    facts: Facts,
    members: &'a Map<String, Value>,
}

/// What is asked of every message of a request, found out once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    role: ChatRole,
    pub(super) provenance: Provenance,
    calls_anything: bool,
}

impl Facts {
    /// Looks at a message that was checked.
    pub(super) fn of(role: ChatRole, members: &Map<String, Value>) -> Self {
        let mut facts = Self {
            role,
            provenance: Provenance::Exact,
            calls_anything: false,
        };
        let message = ChatMessage { facts, members };
        let is_text = |part: &Value| matches!(part_type(part), "text" | "refusal");
        let is_result = matches!(role, ChatRole::Tool | ChatRole::Function);
        facts.calls_anything = message.called().next().is_some();
        if !message.parts().iter().all(is_text) || member(members, "audio").is_some() {
            facts.provenance = Provenance::Estimate;
        } else if is_result || facts.calls_anything {
            facts.provenance = Provenance::Calibrated;
        }
        facts
    }
}

/// A member by its name. Objects of requests have few, and to compare a name with all of them takes
/// less than to hash it.
pub(super) fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    const FEW: usize = 16;
    if members.len() > FEW {
        return members.get(name);
    }
    let mut members = members.iter();
    members.find_map(|(own, value)| (own == name).then_some(value))
}

/// What a part of a message's content is.
pub(super) fn part_type(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}

impl<'a> ChatMessage<'a> {
    pub(super) fn new(facts: Facts, members: &'a Map<String, Value>) -> Self {
        Self { facts, members }
    }

    /// Who speaks.
    pub fn role(&self) -> ChatRole {
        self.facts.role
    }

    /// What a count of it rests on at best.
    pub(crate) fn provenance(&self) -> Provenance {
        self.facts.provenance
    }

    /// Whether it calls a function.
    pub(super) fn calls_anything(&self) -> bool {
        self.facts.calls_anything
    }

    /// The message as it came.
    pub fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    /// Everything in its content that is text, in order.
    pub fn texts(&self) -> impl Iterator<Item = &'a str> {
        let (text, parts) = match member(self.members, "content") {
            Some(Value::String(text)) => (Some(text.as_str()), &[][..]),
            Some(Value::Array(parts)) => (None, parts.as_slice()),
            _ => (None, &[][..]),
        };
        let parts = parts.iter().filter_map(|part| {
            let key @ ("text" | "refusal") = part_type(part) else {
                return None;
            };
            part.get(key)?.as_str()
        });
        text.into_iter().chain(parts)
    }

    /// The parts of its content, if it is not one text.
    pub(super) fn parts(&self) -> &'a [Value] {
        match member(self.members, "content") {
            Some(Value::Array(parts)) => parts,
            _ => &[],
        }
    }

    /// The names and arguments of the functions it calls.
    pub(super) fn called(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let of = |function: &'a Value, arguments: &str| {
            let text = |key: &str| {
                function
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            (text("name"), text(arguments))
        };
        let calls = self.tool_calls().iter().map(move |call| {
            match (call.get("function"), call.get("custom")) {
                (Some(function), _) => of(function, "arguments"),
                (None, Some(custom)) => of(custom, "input"),
                (None, None) => ("", ""),
            }
        });
        let is_model = self.facts.role == ChatRole::Assistant;
        let older = is_model.then(|| member(self.members, "function_call"));
        let older = older.flatten().filter(|call| call.is_object());
        calls.chain(older.map(move |call| of(call, "arguments")))
    }

    /// The names of the functions it calls.
    pub(crate) fn called_names(&self) -> impl Iterator<Item = &'a str> {
        self.called().map(|(name, _)| name)
    }

    fn tool_calls(&self) -> &'a [Value] {
        if self.facts.role != ChatRole::Assistant {
            return &[];
        }
        match member(self.members, "tool_calls") {
            Some(Value::Array(calls)) => calls,
            _ => &[],
        }
    }
}

impl Message for ChatMessage<'_> {
    fn role(&self) -> Role {
        self.facts.role.in_history()
    }

    fn calls(&self) -> Vec<&str> {
        let calls = self.tool_calls().iter();
        calls.filter_map(|call| call.get("id")?.as_str()).collect()
    }

    fn answers(&self) -> Vec<&str> {
        if self.facts.role != ChatRole::Tool {
            return Vec::new();
        }
        let call = member(self.members, "tool_call_id").and_then(Value::as_str);
        call.into_iter().collect()
    }
}
