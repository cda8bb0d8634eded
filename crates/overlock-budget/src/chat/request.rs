//! What is a request, whatever protocol it is written in?
//!
//! A protocol reads its requests into an [`Outline`] once. What messages hold is read when it is
//! counted, and not before: a long conversation costs what is kept of it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::count::Provenance;
use crate::history::{Role, Units};

/// A request as it is counted and planned. Each protocol implements this for its own requests.
pub trait Request {
    /// What is known without reading any text.
    fn outline(&self) -> &Outline;

    /// Reads what the message at this place holds, in order.
    fn contents<'a>(&'a self, message: usize, each: &mut dyn FnMut(Content<'a>));

    /// The tools that may be called.
    fn tools(&self) -> Vec<Tool<'_>>;

    /// What is said about the choice among them.
    fn tool_choice(&self) -> ToolChoice<'_>;

    /// The schema of the answer, with its name, which the model is shown.
    fn answer_schema(&self) -> Option<&Value>;

    /// The message at this place in the form that chat templates take.
    fn template_message(&self, message: usize) -> Cow<'_, Value>;
}

/// What is known of a request without reading its texts.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Its messages.
    pub messages: Vec<MessageKind>,
    /// Which of them stay or go together.
    pub units: Units,
    /// The tokens the answer may have, if the request says so.
    pub requested: Option<u64>,
}

impl Outline {
    /// What a count of all messages rests on at best.
    pub(crate) fn provenance(&self) -> Provenance {
        let provenances = self.messages.iter().map(|message| message.provenance);
        provenances.max().unwrap_or(Provenance::Exact)
    }

    /// Whether tools find a system prompt to stand in.
    pub(crate) fn has_system(&self) -> bool {
        self.messages.iter().any(|message| message.is_system())
    }
}

/// What is known of a message without reading its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageKind {
    /// Who speaks.
    pub role: ChatRole,
    /// What a count of it rests on at best.
    pub provenance: Provenance,
}

impl MessageKind {
    /// A message of this role that holds nothing yet.
    pub fn new(role: ChatRole) -> Self {
        let provenance = match role {
            ChatRole::Tool | ChatRole::Function => Provenance::Calibrated,
            _ => Provenance::Exact,
        };
        Self { role, provenance }
    }

    /// Adds something that it holds.
    pub fn add(&mut self, content: &Content) {
        self.provenance = self.provenance.max(content.provenance());
    }

    /// Whether it is a system prompt, which always stays.
    pub(crate) fn is_system(self) -> bool {
        self.role.in_history() == Role::System
    }
}

/// Something that a message holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content<'a> {
    /// What is said.
    Text(&'a str),
    /// Why the model says nothing else. A summary does not quote it.
    Refusal(&'a str),
    /// The name of who speaks.
    Name(&'a str),
    /// A call of a tool.
    Call {
        /// The name of the tool.
        name: &'a str,
        /// What it is called with.
        arguments: &'a str,
    },
    /// A picture.
    Picture {
        /// The file in Base64, unless it is only linked to.
        base64: Option<&'a str>,
        /// Whether the model is shown a small copy.
        is_coarse: bool,
    },
    /// A recording.
    Recording {
        /// The size of the file.
        bytes: u64,
        /// Whether it is smaller than its samples.
        is_compressed: bool,
    },
    /// A file.
    File {
        /// Its size, unless it is only linked to.
        bytes: Option<u64>,
    },
    /// What only its provider knows; it counts as it is written.
    Other(&'a Value),
}

impl Content<'_> {
    /// What a count of it rests on at best.
    fn provenance(&self) -> Provenance {
        match self {
            Self::Text(_) | Self::Refusal(_) | Self::Name(_) => Provenance::Exact,
            Self::Call { .. } => Provenance::Calibrated,
            _ => Provenance::Estimate,
        }
    }
}

/// A tool that may be called.
#[derive(Clone, Debug)]
pub struct Tool<'a> {
    /// The name by which it is chosen and reported.
    pub name: &'a str,
    /// Whether the request insists on it.
    pub is_required: bool,
    /// What the model is told of it, if it is a function.
    pub function: Option<Function<'a>>,
    /// The form that chat templates take; a tool that is no function counts as this.
    pub template: Cow<'a, Value>,
}

/// A function that may be called.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub description: Option<&'a str>,
    /// The schema of its arguments.
    pub parameters: Option<&'a Map<String, Value>>,
}

/// What a request says about the choice among its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// The model chooses.
    Auto,
    /// A word says that one must be called, or none.
    Word,
    /// One is named, or several under this name.
    Named(&'a str),
}

/// A message as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentMessage<'a> {
    /// The message of the request at this place.
    Kept(usize),
    /// A system message with this text, which the request does not have.
    Inserted(&'a str),
}

/// Who speaks in a message.
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

    /// The name that models know it by.
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
