//! stub
use std::borrow::Cow;
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted { pub start: usize, pub end: usize }
pub fn extract<T: AsRef<[u8]> + ?Sized>(_text: &T) -> Option<Extracted> { todo!() }
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned<'a> { pub text: Cow<'a, str>, pub dropped: usize }
pub fn clean_encoding(_bytes: &[u8]) -> Cleaned<'_> { todo!() }
