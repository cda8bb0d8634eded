//! stub
use crate::{Fix, NoJson};
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing { pub kept_len: usize, pub closers: String, pub truncated: Option<String>, pub dropped: Option<String> }
#[derive(Clone, Copy, Debug, Default)]
pub struct CloseOptions { pub strict: bool }
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed { pub json: String, pub complete: bool, pub truncated: Option<String>, pub dropped: Option<String>, pub fixes: Vec<Fix> }
pub fn close<T: AsRef<[u8]> + ?Sized>(_text: &T, _options: &CloseOptions) -> Result<Closed, NoJson> { todo!() }
