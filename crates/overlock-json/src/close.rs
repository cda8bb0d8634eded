//! Closes cut JSON text.
//!
//! A cut text becomes the longest valid value that it contains. Nothing is invented: a half-written
//! member is dropped, never guessed.

use crate::partial_document::PartialDocument;
use crate::repair::Fix;

/// How to close a cut text: keep a prefix and append closing brackets.
///
/// It contains no copy of the text. See [`Scanner::closing`](crate::Scanner::closing) and
/// [`close_trusted`](crate::close_trusted).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// How many bytes of the text are kept.
    pub kept_len: usize,
    /// The closing characters to append.
    pub closers: String,
}

/// What closing a text loses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The pointer of a cut string, whose beginning is kept.
    pub truncated: Option<String>,
    /// The pointer of a value, or of a key without one, that is dropped.
    pub dropped: Option<String>,
}

/// Options of [`close`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseOptions {
    /// Also drop the cut string, so that every remaining value is complete.
    pub strict: bool,
}

/// A closed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Valid JSON.
    pub json: String,
    /// Whether the text was complete already.
    pub complete: bool,
    /// The pointer of a cut string, whose beginning was kept.
    pub truncated: Option<String>,
    /// The pointer of a value, or of a key without one, that was dropped.
    pub dropped: Option<String>,
    /// The repairs that were necessary before closing.
    pub fixes: Vec<Fix>,
}

/// A text contains no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoJson {
    /// The text is empty or white space.
    #[error("the text is empty")]
    Empty,
    /// The text contains no object, array, string, number or literal.
    #[error("there is no object, array or other JSON value in the text")]
    Absent,
}

/// Turns cut JSON into valid JSON without inventing data.
///
/// Prose and fences around the document are left out; a malformed document is repaired first.
///
/// ```
/// use overlock_json::{CloseOptions, close};
///
/// let closed = close(r#"{"name": "Ada", "born": 18"#, &CloseOptions::default())?;
/// assert_eq!(closed.json, r#"{"name": "Ada"}"#);
/// assert_eq!(closed.dropped.as_deref(), Some("/born")); // it might have been 1815
/// # Ok::<(), overlock_json::NoJson>(())
/// ```
pub fn close<T: AsRef<[u8]> + ?Sized>(text: &T, options: &CloseOptions) -> Result<Closed, NoJson> {
    PartialDocument::read(text)?.close(options)
}
