//! Skips white space and terminal codes.

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

/// The length of a terminal code such as a colour (`ESC [ 32 m`) at the start of `bytes`; 0 if there
/// is none.
pub(crate) fn terminal_code_len(bytes: &[u8]) -> usize {
    let Some(code) = bytes.strip_prefix(b"\x1B[") else {
        return 0;
    };
    let parameters = code
        .iter()
        .take(LONGEST_CODE)
        .take_while(|byte| matches!(byte, 0x20..=0x3F))
        .count();
    match code.get(parameters) {
        Some(b'@'..=b'Z' | b'a'..=b'z') => 2 + parameters + 1,
        _ => 0,
    }
}

/// More parameters than any colour has; a limit keeps look-ahead linear.
const LONGEST_CODE: usize = 40;

#[inline]
fn is_white_space(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b' ' | b'\n' | b'\r' | b'\t'))
}
