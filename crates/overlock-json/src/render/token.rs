//! Finds where a token of well-formed JSON ends.
//!
//! Every function takes the start of a token, returns an offset within the text, and needs no stack.

use std::ops::Range;

use crate::{plain, vector};

/// Where white space that begins at `at` ends.
pub(super) fn skip_space(bytes: &[u8], at: usize) -> usize {
    plain::skip_white_space(bytes, at)
}

/// Where the string with its opening quote at `start` ends, after its closing quote if it has one.
pub(super) fn string_end(bytes: &[u8], start: usize) -> StringClose {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return StringClose::Closed(at + 1),
            b'\\' => at += 2,
            // The run also stops at control characters, which valid strings do not contain.
            _ => at = vector::string_stop(bytes, at + 1),
        }
    }
    StringClose::Open(bytes.len())
}

/// The end of a string.
#[derive(Clone, Copy)]
pub(super) enum StringClose {
    /// After the closing quote.
    Closed(usize),
    /// At the end of the text, which came first.
    Open(usize),
}

impl StringClose {
    /// The offset after the last byte of the string.
    pub(super) fn offset(self) -> usize {
        match self {
            Self::Closed(end) | Self::Open(end) => end,
        }
    }
}

/// Where the number or literal that begins at `start` ends.
pub(super) fn word_end(bytes: &[u8], start: usize) -> usize {
    skip_while(bytes, start + 1, |byte| {
        !matches!(
            byte,
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'[' | b']' | b'{' | b'}' | b'"'
        )
    })
}

/// Where the value that begins at `start` ends.
pub(super) fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'"' => at = string_end(bytes, at).offset(),
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => at += 1,
            _ => at = word_end(bytes, at),
        }
        if depth == 0 {
            break;
        }
    }
    at.min(bytes.len())
}

/// Where the value of the member whose key begins at `start` begins.
pub(super) fn member_value(bytes: &[u8], start: usize) -> usize {
    let after_key = string_end(bytes, start).offset();
    let colon = skip_space(bytes, after_key);
    skip_space(bytes, (colon + 1).min(bytes.len()))
}

/// Where the items begin that lie in the last `allowance` bytes of a container: at the comma before
/// the first of them, or at the end of the span.
///
/// The span contains complete items, so its end is outside of strings. Going backwards from there,
/// the next quote that is not escaped begins the string that the quote before it ended.
pub(super) fn first_item_within(bytes: &[u8], items: Range<usize>, allowance: usize) -> usize {
    let farthest = items.end.saturating_sub(allowance).max(items.start);
    let (mut depth, mut in_string) = (0_usize, false);
    let mut from = match bytes[items.clone()].trim_ascii_end() {
        [before @ .., b','] => items.start + before.len(),
        _ => items.end,
    };
    for at in (farthest..items.end).rev() {
        match bytes[at] {
            b'"' if !in_string => in_string = true,
            b'"' => in_string = is_escaped(bytes, at),
            b']' | b'}' if !in_string => depth += 1,
            b'[' | b'{' if !in_string => depth = depth.saturating_sub(1),
            b',' if !in_string && depth == 0 => from = at,
            _ => {}
        }
    }
    from
}

/// Whether an odd number of backslashes precedes a byte.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev();
    before.take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Which values [`next_value`] stops at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Scalars only; containers are entered.
    Leaf,
    /// Also arrays, which are not entered.
    Array,
    /// Also containers, which are not entered.
    Value,
}

/// The first value in `span`, which lies within one complete value and splits no token.
pub(super) fn next_value(bytes: &[u8], span: Range<usize>, stop: Stop) -> Option<Range<usize>> {
    let mut at = span.start;
    while at < span.end {
        match bytes[at] {
            b'[' if stop != Stop::Leaf => return Some(at..value_end(bytes, at)),
            b'{' if stop == Stop::Value => return Some(at..value_end(bytes, at)),
            b'{' | b'[' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => at += 1,
            b'"' => {
                let end = string_end(bytes, at).offset();
                // In well-formed JSON, a colon follows every key and no value.
                let next = skip_space(bytes, end);
                if bytes.get(next) != Some(&b':') {
                    return Some(at..end);
                }
                at = next;
            }
            _ => return Some(at..word_end(bytes, at)),
        }
    }
    None
}

/// The length of the content of a string without half an escape or half a surrogate pair at its end.
pub(super) fn settled_len(content: &str) -> usize {
    pieces(content)
        .find(|piece| !is_whole(content, piece))
        .map_or(content.len(), |piece| piece.start)
}

/// The end of the content of a string, in about that many bytes, without splitting a character or an
/// escape.
pub(super) fn end_within(content: &str, bytes: usize) -> &str {
    let Some(at) = content.len().checked_sub(bytes) else {
        return content;
    };
    let at = content.ceil_char_boundary(at);
    // Only escapes are pieces of several characters, and they begin with backslashes.
    let nearby = content.floor_char_boundary(at.saturating_sub(LONGEST_PIECE));
    let Some(backslash) = content[nearby..at].rfind('\\') else {
        return &content[at..];
    };
    let run = content[..=nearby + backslash].trim_end_matches('\\').len();
    let from = pieces(&content[run..])
        .map(|piece| run + piece.start)
        .find(|&start| start >= at);
    &content[from.unwrap_or(content.len())..]
}

/// The longest end of the content of a string that fits, without splitting a character or an escape.
pub(super) fn longest_tail<'a>(content: &'a str, fits: &dyn Fn(&str) -> bool) -> &'a str {
    let mut window = 1024_usize;
    loop {
        // Only the starts near the end are stored, because the string may be very long.
        let from = content.len().saturating_sub(window);
        let starts: Vec<usize> = pieces(content)
            .map(|piece| piece.start)
            .filter(|&start| start >= from)
            .collect();
        let (mut low, mut high) = (0, starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if fits(&content[starts[middle]..]) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        if high > 0 || from == 0 {
            let start = starts.get(high).copied().unwrap_or(content.len());
            return &content[start..];
        }
        window = window.saturating_mul(8);
    }
}

/// A surrogate pair in escapes.
const LONGEST_PIECE: usize = 12;

/// The characters and escape sequences of the content of a string; a surrogate pair is one piece.
fn pieces(content: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let first = content[start..].chars().next()?;
        let len = match content.as_bytes().get(start + 1) {
            _ if first != '\\' => first.len_utf8(),
            Some(b'u') if begins_pair(&content[start..]) => LONGEST_PIECE,
            Some(b'u') => 6,
            _ => 2,
        };
        at = (start + len).min(content.len());
        // Escapes of well-formed JSON are ASCII; other text must not split a character.
        while !content.is_char_boundary(at) {
            at += 1;
        }
        Some(start..at)
    })
}

/// Whether an escape is the first half of a surrogate pair whose second half follows or may follow.
fn begins_pair(escape: &str) -> bool {
    let bytes = escape.as_bytes();
    let is_high = matches!(bytes.get(2), Some(b'd' | b'D'))
        && matches!(bytes.get(3), Some(b'8' | b'9' | b'a' | b'b' | b'A' | b'B'))
        && bytes.len() >= 6;
    let low = [
        |byte: u8| byte == b'\\',
        |byte: u8| byte == b'u',
        |byte: u8| matches!(byte, b'd' | b'D'),
        |byte: u8| matches!(byte, b'c'..=b'f' | b'C'..=b'F'),
    ];
    is_high
        && bytes[6..]
            .iter()
            .zip(low)
            .all(|(&byte, expected)| expected(byte))
}

/// Whether a piece at the end of the content is complete.
fn is_whole(content: &str, piece: &Range<usize>) -> bool {
    let escape = &content[piece.clone()];
    let needed = match escape.as_bytes() {
        [b'\\', b'u', ..] if begins_pair(&content[piece.start..]) => LONGEST_PIECE,
        [b'\\', b'u', ..] => 6,
        [b'\\', ..] => 2,
        _ => 1,
    };
    escape.len() >= needed
}

fn skip_while(bytes: &[u8], at: usize, skip: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter()
        .position(|&byte| !skip(byte))
        .map_or(bytes.len(), |len| at + len)
}
