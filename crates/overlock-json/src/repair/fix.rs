//! Names what a repair changed.

use serde::{Deserialize, Serialize};

/// One change that made a text valid JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// What was wrong.
    pub kind: FixKind,
    /// Where: a byte in the text as it was given.
    pub offset: usize,
}

/// What was wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixKind {
    /// Bytes that are not UTF-8 were dropped.
    Encoding,
    /// Prose before or after the document was left out.
    Prose,
    /// A Markdown fence was left out.
    Fence,
    /// The whole document was escaped as if it stood in a string: `{\"a\": 1}`.
    Escaped,
    /// A comment was removed.
    Comment,
    /// White space that JSON does not know became a space.
    WhiteSpace,
    /// A comma before a closing bracket was removed.
    TrailingComma,
    /// A comma was put between two values.
    MissingComma,
    /// A comma with no value before it was removed.
    ExtraComma,
    /// Another separator, such as `;` or `=>`, became a comma or a colon.
    Separator,
    /// A colon was put between a key and its value.
    MissingColon,
    /// Other quotes became double quotes.
    Quotes,
    /// A quote that begins or ends a string was added.
    MissingQuote,
    /// A key without quotes was quoted.
    UnquotedKey,
    /// A value without quotes was quoted.
    UnquotedValue,
    /// A quote inside a string was escaped.
    InnerQuote,
    /// A quote that was written twice was removed.
    ExtraQuote,
    /// A raw line break or another control character in a string was escaped.
    ControlCharacter,
    /// An escape sequence that JSON does not know was rewritten.
    Escape,
    /// A literal of another language, such as `None`, was translated.
    Literal,
    /// A number that is not written as JSON writes it was rewritten.
    Number,
    /// An ellipsis that stood for left-out values was removed.
    Ellipsis,
    /// Strings joined with `+` became one string.
    Concatenation,
    /// A call such as `ObjectId("1")` was replaced by its argument.
    Call,
    /// Round or curly brackets around a list became square ones, or were removed.
    Brackets,
    /// A bracket was closed by one of another kind.
    MismatchedBracket,
    /// A bracket that was never opened or closed was added.
    MissingBracket,
    /// A bracket too many was removed.
    ExtraBracket,
    /// A key had no value: it became `null`.
    MissingValue,
    /// Text that belongs to nothing was removed.
    StrayText,
    /// Several documents became one array, or all but the first were left out.
    Several,
    /// The text stops in the middle of the document.
    Truncated,
}
