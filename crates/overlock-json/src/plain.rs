//! Skips white space.

/// The next byte from `at` on that is no white space of JSON's, or the end.
#[inline]
pub(crate) fn skip_white_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
        // Indentation is long runs of spaces.
        while let Some(b"        ") = bytes.get(at..at + 8) {
            at += 8;
        }
    }
    at
}
