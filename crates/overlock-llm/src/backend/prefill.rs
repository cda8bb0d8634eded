//! How a server accepts the start of the model's answer (a prefill).

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use crate::wire::WireRequest;

/// The prefill support of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Prefill {
    /// How the prefill is sent.
    pub style: PrefillStyle,
    /// Whether the grammar of `response_format` continues from the prefill, so that the format
    /// stays in the request. On other servers the grammar would make the model start again.
    pub keeps_format: bool,
}

impl Prefill {
    /// The usual support with this style.
    pub fn of_style(style: PrefillStyle) -> Self {
        Self {
            style,
            keeps_format: style == PrefillStyle::LastMessage,
        }
    }

    /// Whether the server's grammar continues a prefill in calls for this request.
    pub fn carries_grammar(self, request: &dyn WireRequest) -> bool {
        self.keeps_format && request.document_schema().is_some()
    }

    /// Whether prefills are supported.
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

/// How a prefill is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub enum PrefillStyle {
    /// Not supported.
    #[default]
    None,
    /// As a last assistant message with `prefix: true` (Mistral, DeepSeek beta).
    PrefixMessage,
    /// As a last assistant message with `continue_final_message` (vLLM).
    ContinueFinalMessage,
    /// As a last assistant message (llama.cpp).
    LastMessage,
    /// At the end of the prompt of a raw completion.
    RawCompletion,
}

impl PrefillStyle {
    /// All styles.
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
