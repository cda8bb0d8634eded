//! Violations of the JSON grammar.

use serde::{Deserialize, Serialize};

/// The first violation of the JSON grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct SyntaxError {
    /// The byte offset.
    pub offset: usize,
    /// What the grammar expected.
    pub kind: SyntaxErrorKind,
}

/// What the grammar expected at a syntax error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum SyntaxErrorKind {
    /// A value.
    #[error("expected a value")]
    ValueExpected,
    /// The name of a member.
    #[error("expected a key in double quotes")]
    KeyExpected,
    /// A colon after the name.
    #[error("expected `:` after the key")]
    ColonExpected,
    /// A comma or the end of the container.
    #[error("expected `,` or the end of the container")]
    CommaExpected,
    /// The closing bracket of the container, not of another kind.
    #[error("the closing bracket does not match the open one")]
    WrongCloser,
    /// A string contains a raw control character.
    #[error("control character in a string (it must be escaped)")]
    ControlCharacter,
    /// A backslash is not followed by one of `"\/bfnrtu`, or `\u` not by four hex digits.
    #[error("invalid escape sequence")]
    InvalidEscape,
    /// A number is malformed.
    #[error("invalid number")]
    InvalidNumber,
    /// A bare word that is not `true`, `false` or `null`.
    #[error("expected `true`, `false` or `null`")]
    InvalidLiteral,
    /// Text follows the complete document.
    #[error("text after the end of the document")]
    TrailingText,
}
