//! How is the answer of a model begun for it?

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::Call;

/// How the answer of a model can be begun for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Prefill {
    /// How the server is told what the model has said already.
    pub style: PrefillStyle,
    /// Whether the grammar of `response_format` goes on where the beginning stops, so that the
    /// format stays in the request. Elsewhere the grammar would make the model begin again.
    pub keeps_format: bool,
}

impl Prefill {
    /// What a style implies where nothing else is known of the server.
    pub fn of_style(style: PrefillStyle) -> Self {
        Self {
            style,
            keeps_format: style == PrefillStyle::LastMessage,
        }
    }

    /// Whether the server's grammar goes on from the prefill of a call.
    pub fn carries_grammar(self, call: &Call) -> bool {
        let format = call.request.get("response_format");
        let has_schema = format.is_some_and(|format| format["type"] == "json_schema");
        self.keeps_format && call.prefill.is_some() && has_schema
    }

    /// Whether there is a way to begin an answer.
    pub fn is_possible(self) -> bool {
        self.style != PrefillStyle::None
    }
}

impl Display for Prefill {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let format = match (self.is_possible(), self.keeps_format) {
            (false, _) => "",
            (true, true) => ", the response format is kept",
            (true, false) => ", without the response format",
        };
        write!(formatter, "{}{format}", self.style.name())
    }
}

/// How a server is told what the model has said already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum PrefillStyle {
    /// It cannot be told.
    #[default]
    None,
    /// By a last message of the assistant with `prefix: true`, as Mistral and DeepSeek's beta do.
    PrefixMessage,
    /// By a last message of the assistant and `continue_final_message`, as vLLM does.
    ContinueFinalMessage,
    /// By a last message of the assistant and nothing else, as llama.cpp does.
    LastMessage,
    /// By raw completions of a prompt that ends with it.
    RawCompletion,
}

impl PrefillStyle {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::PrefixMessage,
        Self::ContinueFinalMessage,
        Self::LastMessage,
        Self::RawCompletion,
    ];

    /// The name in settings and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::PrefixMessage => "prefix",
            Self::ContinueFinalMessage => "continue",
            Self::LastMessage => "last-message",
            Self::RawCompletion => "raw",
        }
    }
}

impl From<PrefillStyle> for &'static str {
    fn from(style: PrefillStyle) -> Self {
        style.name()
    }
}
