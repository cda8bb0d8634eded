//! Where and how a JSON text is cut.

use serde::{Deserialize, Serialize};

/// The point where the text ends although the document is still open.
///
/// Complete JSON has no cut, and malformed is not cut: `{'a': 1}` has an
/// [`SyntaxError`](crate::SyntaxError), but every bracket in it is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The byte offset of the cut in the given text.
    pub offset: usize,
    /// The JSON Pointer (RFC 6901) of the value at the cut.
    ///
    /// Beyond 1,000 levels, the middle is elided.
    pub path: String,
    /// The grammatical position of the cut.
    pub place: CutPlace,
}

/// What a text was in the middle of when it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutPlace {
    /// Before the document.
    Root,
    /// Right after `{` or `[`.
    ContainerStart,
    /// Inside the name of a member.
    Key,
    /// After a complete name, before its colon.
    AfterKey,
    /// After the colon, before the value.
    AfterColon,
    /// Inside a string value.
    String,
    /// Inside an escape sequence, or between the halves of a surrogate pair, in a string value.
    Escape,
    /// At the end of a number, which may continue.
    Number,
    /// Inside `true`, `false` or `null`.
    Literal,
    /// After a complete value in an open container.
    AfterValue,
    /// After a comma.
    AfterComma,
}

impl CutPlace {
    /// The name of the place as every door of the product spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::ContainerStart => "container-start",
            Self::Key => "key",
            Self::AfterKey => "after-key",
            Self::AfterColon => "after-colon",
            Self::String => "string",
            Self::Escape => "escape",
            Self::Number => "number",
            Self::Literal => "literal",
            Self::AfterValue => "after-value",
            Self::AfterComma => "after-comma",
        }
    }

    /// A phrase that follows "cut" or "stops" in a message.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Root => "before anything began",
            Self::ContainerStart => "right after an opening bracket",
            Self::Key => "inside a key",
            Self::AfterKey => "after a key",
            Self::AfterColon => "after a colon",
            Self::String => "inside a string",
            Self::Escape => "inside an escape",
            Self::Number => "inside a number",
            Self::Literal => "inside a literal",
            Self::AfterValue => "after a value",
            Self::AfterComma => "after a comma",
        }
    }
}
