//! stub
use std::borrow::Cow;
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extracted {
    pub start: usize,
    pub end: usize,
}
pub fn extract<T: AsRef<[u8]> + ?Sized>(_text: &T) -> Option<Extracted> {
    todo!()
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned<'a> {
    pub text: Cow<'a, str>,
    pub dropped: usize,
}
pub fn clean_encoding(bytes: &[u8]) -> Cleaned<'_> {
    match std::str::from_utf8(bytes) {
        Ok(t) => Cleaned {
            text: Cow::Borrowed(t),
            dropped: 0,
        },
        Err(_) => {
            let t: String = bytes.utf8_chunks().map(|c| c.valid()).collect();
            let d = bytes.len() - t.len();
            Cleaned {
                text: Cow::Owned(t),
                dropped: d,
            }
        }
    }
}
