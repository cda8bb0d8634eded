//! A request of any protocol.
//!
//! A protocol reads its requests into an [`Outline`] once. The contents of messages are read only
//! when they are counted, so the cost of a long conversation depends on the messages that stay.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::count::Provenance;
use crate::history::{Role, Units};

/// A request to count and plan. Each protocol implements this.
pub trait Request {
    /// Its outline.
    fn outline(&self) -> &Outline;

    /// Reads the contents of a message, in order.
    fn contents<'a>(&'a self, message: usize, each: &mut dyn FnMut(Content<'a>));

    /// Its tools.
    fn tools(&self) -> Vec<Tool<'_>>;

    /// Its tool choice.
    fn tool_choice(&self) -> ToolChoice<'_>;

    /// The schema of the answer with its name, which the model sees.
    fn answer_schema(&self) -> Option<&Value>;

    /// A message in the form for chat templates.
    fn template_message(&self, message: usize) -> Cow<'_, Value>;
}

/// The structure of a request, without its texts.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Its messages.
    pub messages: Vec<MessageKind>,
    /// Which of them are kept or dropped together.
    pub units: Units,
    /// The maximum tokens of the answer, if the request has one.
    pub requested: Option<u64>,
}

impl Outline {
    /// How exact a count of all messages can be.
    pub(crate) fn provenance(&self) -> Provenance {
        let provenances = self.messages.iter().map(|message| message.provenance);
        provenances.max().unwrap_or(Provenance::Exact)
    }

    /// Whether there is a system prompt, which would contain the tools.
    pub(crate) fn has_system(&self) -> bool {
        self.messages.iter().any(|message| message.is_system())
    }
}

/// The kind of a message, without its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageKind {
    /// Its role.
    pub role: ChatRole,
    /// How exact a count of it can be.
    pub provenance: Provenance,
}

impl MessageKind {
    /// An empty message of this role.
    pub fn new(role: ChatRole) -> Self {
        let provenance = match role {
            ChatRole::Tool | ChatRole::Function => Provenance::Calibrated,
            _ => Provenance::Exact,
        };
        Self { role, provenance }
    }

    /// Adds a content.
    pub fn add(&mut self, content: &Content) {
        self.provenance = self.provenance.max(content.provenance());
    }

    /// Whether it is the result of a tool call.
    pub(crate) fn is_result(self) -> bool {
        self.role.in_history() == Role::Tool
    }

    /// Whether it is a system prompt, which always stays.
    pub(crate) fn is_system(self) -> bool {
        self.role.in_history() == Role::System
    }
}

/// A content of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content<'a> {
    /// A text.
    Text(&'a str),
    /// A refusal of the model. A summary does not quote it.
    Refusal(&'a str),
    /// The name of the author.
    Name(&'a str),
    /// A call of a tool.
    Call {
        /// The name of the tool.
        name: &'a str,
        /// The arguments.
        arguments: &'a str,
    },
    /// A picture.
    Picture {
        /// The file in Base64, unless it is a link.
        base64: Option<&'a str>,
        /// Whether it is in low detail.
        is_coarse: bool,
    },
    /// A recording.
    Recording {
        /// The size of the file.
        bytes: u64,
        /// Whether it is compressed.
        is_compressed: bool,
    },
    /// A file.
    File {
        /// Its size, unless it is a link.
        bytes: Option<u64>,
    },
    /// A content of a provider, which counts as its JSON text.
    Other(&'a Value),
}

impl Content<'_> {
    /// How exact a count of it can be.
    fn provenance(&self) -> Provenance {
        match self {
            Self::Text(_) | Self::Refusal(_) | Self::Name(_) => Provenance::Exact,
            Self::Call { .. } => Provenance::Calibrated,
            _ => Provenance::Estimate,
        }
    }
}

/// A tool.
#[derive(Clone, Debug)]
pub struct Tool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether the request requires it.
    pub is_required: bool,
    /// The function, if it is one.
    pub function: Option<Function<'a>>,
    /// The form for chat templates; a tool that is not a function counts as this.
    pub template: Cow<'a, Value>,
}

/// A function of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its description.
    pub description: Option<&'a str>,
    /// The schema of its arguments.
    pub parameters: Option<&'a Map<String, Value>>,
}

/// The tool choice of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice<'a> {
    /// The model chooses.
    Auto,
    /// A keyword: one must be called, or none.
    Word,
    /// One tool, or several under this name.
    Named(&'a str),
}

/// A message that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentMessage<'a> {
    /// The message of the request at this index.
    Kept(usize),
    /// The tool result at this index with another text.
    Shortened(usize, &'a str),
    /// An inserted system message with this text.
    Inserted(&'a str),
}

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatRole {
    /// The application.
    System,
    /// The newer name of `System`.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// The older form of `Tool`.
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

    /// The name in requests.
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

    /// The role in a conversation that is trimmed.
    pub fn in_history(self) -> Role {
        match self {
            Self::System | Self::Developer => Role::System,
            Self::User => Role::User,
            Self::Assistant => Role::Assistant,
            Self::Tool | Self::Function => Role::Tool,
        }
    }
}
