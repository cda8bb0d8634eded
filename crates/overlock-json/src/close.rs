//! stub
use crate::Fix;
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing { pub kept_len: usize, pub closers: String, pub truncated: Option<String>, pub dropped: Option<String> }
#[derive(Clone, Copy, Debug, Default)]
pub struct CloseOptions { pub strict: bool }
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed { pub json: String, pub complete: bool, pub truncated: Option<String>, pub dropped: Option<String>, pub fixes: Vec<Fix> }
/// There is no JSON in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoJson {
    /// The text is empty, or white space alone.
    #[error("the text is empty")]
    Empty,
    /// The text has words, but no object, array, string, number or literal.
    #[error("there is no JSON in the text")]
    Absent,
}
pub fn close<T: AsRef<[u8]> + ?Sized>(_text: &T, _options: &CloseOptions) -> Result<Closed, NoJson> { todo!() }
