//! Says where and how a JSON text stops.

use serde::{Deserialize, Serialize};

/// The point at which a document is still open although the text has ended.
///
/// Complete JSON has no cut, and malformed is not cut: `{'a': 1}` has an
/// [`SyntaxError`](crate::SyntaxError), but every bracket in it is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The byte in the text as it was given at which the document stops.
    pub offset: usize,
    /// What the cut is inside of or next to, as a JSON Pointer (RFC 6901).
    ///
    /// Beyond 1,000 levels the middle is elided: the pointer is there to be shown.
    pub path: String,
    /// What the text was in the middle of.
    pub place: CutPlace,
}

/// What a text was in the middle of when it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutPlace {
    /// Nothing of the document has come yet.
    Root,
    /// Right after `{` or `[`.
    ContainerStart,
    /// Inside the name of a member.
    Key,
    /// After a whole name, before its colon.
    AfterKey,
    /// After the colon, before the value.
    AfterColon,
    /// Inside a string value.
    String,
    /// Inside an escape sequence, or between the halves of a surrogate pair, in a string value.
    Escape,
    /// At the end of a number that may have more digits to come.
    Number,
    /// Inside `true`, `false` or `null`.
    Literal,
    /// After a whole value in a container that is still open.
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

    /// Where that is in words, to go after "cut" or "stops".
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
