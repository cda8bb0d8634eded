//! Names what a text does that JSON forbids.

use serde::{Deserialize, Serialize};

/// The first thing in a text that the JSON grammar forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct SyntaxError {
    /// The byte that does not belong there.
    pub offset: usize,
    /// What the grammar wanted instead.
    pub kind: SyntaxErrorKind,
}

/// What the grammar wanted where something else stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum SyntaxErrorKind {
    /// A value had to come.
    #[error("expected a value")]
    ValueExpected,
    /// A member's name had to come.
    #[error("expected a key in double quotes")]
    KeyExpected,
    /// A colon had to come after the name.
    #[error("expected `:` after the key")]
    ColonExpected,
    /// A comma or the closer of the container had to come.
    #[error("expected `,` or the end of the container")]
    CommaExpected,
    /// The closer is the other container's.
    #[error("the closing bracket does not match the open one")]
    WrongCloser,
    /// A string holds a raw control character.
    #[error("control character in a string (it must be escaped)")]
    ControlCharacter,
    /// A backslash is followed by none of `"\/bfnrtu`, or `\u` not by four hex digits.
    #[error("invalid escape sequence")]
    InvalidEscape,
    /// A number is not written as JSON writes numbers.
    #[error("invalid number")]
    InvalidNumber,
    /// A bare word that is not `true`, `false` or `null`.
    #[error("expected `true`, `false` or `null`")]
    InvalidLiteral,
    /// The document is whole, and then something else follows.
    #[error("text after the end of the document")]
    TrailingText,
}
