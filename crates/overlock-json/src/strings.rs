//! Decodes the content of JSON strings.

use std::borrow::Cow;

/// The decoded text of a raw string. Incomplete escapes, half surrogate pairs and bytes that are not
/// UTF-8 are left out.
pub(crate) fn decode(raw: &[u8]) -> Cow<'_, str> {
    if !raw.contains(&b'\\') {
        return crate::extract::clean_encoding(raw).text;
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        decoded.extend_from_slice(&rest[..at]);
        let (character, len) = unescape(&rest[at..]);
        if let Some(character) = character {
            decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        rest = &rest[at + len..];
    }
    decoded.extend_from_slice(rest);
    Cow::Owned(crate::extract::clean_encoding(&decoded).text.into_owned())
}

/// The code points of a raw string, each with where it ends in the raw text. Half a surrogate pair
/// counts as one, so different strings never compare equal.
pub(crate) fn code_points(raw: &str) -> impl Iterator<Item = (u32, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = raw.get(at..)?;
        let first = rest.chars().next()?;
        let (code_point, len) = match first {
            '\\' => match unescape(rest.as_bytes()) {
                (Some(character), len) => (u32::from(character), len),
                (None, len) => (code_unit(rest.as_bytes()).map_or(0x11_0000, u32::from), len),
            },
            _ => (u32::from(first), first.len_utf8()),
        };
        at = raw.ceil_char_boundary(at + len);
        Some((code_point, at))
    })
}

/// Decodes the escape at the start of `raw`: the character, and the length of the escape.
fn unescape(raw: &[u8]) -> (Option<char>, usize) {
    let character = match raw.get(1) {
        None => return (None, raw.len()),
        Some(b'u') => return unescape_unicode(raw),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(other) => char::from(*other),
    };
    (Some(character), 2)
}

fn unescape_unicode(raw: &[u8]) -> (Option<char>, usize) {
    let Some(first) = code_unit(raw) else {
        return (None, raw.len().min(6));
    };
    let second = raw.get(6..).and_then(code_unit);
    if let (0xD800..=0xDBFF, Some(second @ 0xDC00..=0xDFFF)) = (first, second) {
        let character = char::decode_utf16([first, second])
            .next()
            .and_then(Result::ok);
        return (character, 12);
    }
    (char::from_u32(u32::from(first)), 6)
}

/// The value of a `\uXXXX` at the start.
fn code_unit(raw: &[u8]) -> Option<u16> {
    let digits = raw.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok()
}
