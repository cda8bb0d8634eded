//! Closes JSON text that stopped too early.
//!
//! A cut text becomes the longest valid value it already contains. Nothing is invented: a
//! half-written member is dropped, never guessed.

use crate::partial_document::PartialDocument;
use crate::repair::Fix;

/// How to close a cut text: keep a prefix, write closers after it.
///
/// It holds no copy of the text. See [`Scanner::closing`](crate::Scanner::closing) and
/// [`close_trusted`](crate::close_trusted).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// How many bytes of the text are kept.
    pub kept_len: usize,
    /// What must follow them.
    pub closers: String,
}

/// What closing a text costs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The pointer of a string that was cut and is kept as far as it came.
    pub truncated: Option<String>,
    /// The pointer of a value, or of a key without one, that has to be left out.
    pub dropped: Option<String>,
}

/// How [`close`] treats what was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseOptions {
    /// Also drop the string that was cut, so that every value is one the writer finished.
    pub strict: bool,
}

/// A text made whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Valid JSON.
    pub json: String,
    /// Whether the text was whole already.
    pub complete: bool,
    /// The pointer of a string that was cut and is kept as far as it came.
    pub truncated: Option<String>,
    /// The pointer of a value, or of a key without one, that had to be left out.
    pub dropped: Option<String>,
    /// What had to be mended before the text could be closed.
    pub fixes: Vec<Fix>,
}

/// There is no JSON in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoJson {
    /// The text is empty, or white space alone.
    #[error("the text is empty")]
    Empty,
    /// The text has words, but no object, array, string, number or literal.
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
