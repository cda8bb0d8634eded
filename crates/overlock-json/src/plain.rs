//! Skips white space.

use crate::vector;

/// The first byte from `at` on that is not JSON white space, or the end.
#[inline]
pub(crate) fn skip_white_space(bytes: &[u8], at: usize) -> usize {
    if !is_white_space(bytes.get(at)) {
        return at;
    }
    // After a colon there is one space; longer white space is indentation.
    if !is_white_space(bytes.get(at + 1)) {
        return at + 1;
    }
    vector::white_space_stop(bytes, at + 2)
}

#[inline]
fn is_white_space(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b' ' | b'\n' | b'\r' | b'\t'))
}
