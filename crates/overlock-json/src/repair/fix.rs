//! The changes of a repair.

use serde::{Deserialize, Serialize};

/// One change that made a text valid JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// What was wrong.
    pub kind: FixKind,
    /// The byte offset in the given text.
    pub offset: usize,
}

/// What was wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixKind {
    /// Bytes that are not UTF-8 were dropped.
    Encoding,
    /// Prose before or after the document was removed.
    Prose,
    /// A Markdown fence was removed.
    Fence,
    /// The whole document was escaped like the content of a string: `{\"a\": 1}`.
    Escaped,
    /// A comment was removed.
    Comment,
    /// White space that is invalid in JSON became a space.
    WhiteSpace,
    /// A comma before a closing bracket was removed.
    TrailingComma,
    /// A comma was inserted between two values.
    MissingComma,
    /// A comma with no value before it was removed.
    ExtraComma,
    /// Another separator, such as `;` or `=>`, became a comma or a colon.
    Separator,
    /// A colon was inserted between a key and its value.
    MissingColon,
    /// Other quotes became double quotes.
    Quotes,
    /// A missing quote of a string was added.
    MissingQuote,
    /// A key without quotes was quoted.
    UnquotedKey,
    /// A value without quotes was quoted.
    UnquotedValue,
    /// A quote inside a string was escaped.
    InnerQuote,
    /// A duplicate quote was removed.
    ExtraQuote,
    /// A raw line break or another control character in a string was escaped.
    ControlCharacter,
    /// An escape sequence that is invalid in JSON was rewritten.
    Escape,
    /// A literal of another language, such as `None`, was translated.
    Literal,
    /// A number in another notation was rewritten.
    Number,
    /// An ellipsis in place of values was removed.
    Ellipsis,
    /// Strings joined with `+` became one string.
    Concatenation,
    /// A call such as `ObjectId("1")` was replaced by its argument.
    Call,
    /// Round or curly brackets around a list became square ones, or were removed.
    Brackets,
    /// A closing bracket of the wrong kind was replaced.
    MismatchedBracket,
    /// A missing opening or closing bracket was added.
    MissingBracket,
    /// An extra bracket was removed.
    ExtraBracket,
    /// A key without a value got `null`.
    MissingValue,
    /// Stray text was removed.
    StrayText,
    /// Several documents became one array, or all but the first were left out.
    Several,
    /// The text ends inside the document.
    Truncated,
}
