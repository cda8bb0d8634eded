//! Decodes the escapes of JSON strings.
//!
//! Python strings can hold lone surrogates, and its `json` module produces them. So the result is
//! UTF-8 in which surrogates are encoded like other characters.

/// Whether a raw string is complete.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Until {
    /// The string is complete.
    End,
    /// More may follow: incomplete characters, escapes and surrogate pairs are not decoded.
    Now,
}

/// The result of decoding.
pub(crate) struct Decoded {
    /// The number of raw bytes decoded.
    pub(crate) read: usize,
    /// Whether the result has lone surrogates.
    pub(crate) has_surrogates: bool,
}

/// Appends the decoded form of `raw` to `decoded`.
pub(crate) fn decode(raw: &[u8], until: Until, decoded: &mut Vec<u8>) -> Decoded {
    let mut at = 0;
    let mut has_surrogates = false;
    while let Some(plain) = memchr::memchr(b'\\', &raw[at..]) {
        decoded.extend_from_slice(&raw[at..at + plain]);
        at += plain;
        let Some((code_point, len)) = escape(&raw[at..], until) else {
            return Decoded {
                read: at,
                has_surrogates,
            };
        };
        has_surrogates |= (0xD800..0xE000).contains(&code_point);
        push(decoded, code_point);
        at += len;
    }
    let mut rest = &raw[at..];
    if until == Until::Now {
        rest = &rest[..rest.len() - half_character(rest)];
    }
    decoded.extend_from_slice(rest);
    Decoded {
        read: at + rest.len(),
        has_surrogates,
    }
}

/// The code point and length of the escape at the start; nothing if it is incomplete.
fn escape(raw: &[u8], until: Until) -> Option<(u32, usize)> {
    let byte = *raw.get(1)?;
    if byte != b'u' {
        let code_point = match byte {
            b'b' => 0x8,
            b'f' => 0xC,
            b'n' => 0xA,
            b'r' => 0xD,
            b't' => 0x9,
            other => u32::from(other),
        };
        return Some((code_point, 2));
    }
    let first = code_unit(raw)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((first, 6));
    }
    let rest = &raw[6..];
    match code_unit(rest) {
        Some(second @ 0xDC00..0xE000) => {
            let code_point = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            Some((code_point, 12))
        }
        // The second surrogate may follow.
        None if until == Until::Now
            && (rest.len() < 2 && b"\\u".starts_with(rest)
                || rest.starts_with(b"\\u") && rest.len() < 6) =>
        {
            None
        }
        _ => Some((first, 6)),
    }
}

fn code_unit(raw: &[u8]) -> Option<u32> {
    let digits: &[u8; 4] = raw.strip_prefix(b"\\u")?.first_chunk()?;
    let digits = digits.map(|digit| char::from(digit).to_digit(16));
    digits
        .into_iter()
        .try_fold(0, |value, digit| Some(value << 4 | digit?))
}

/// Encodes any code point below 0x110000 as UTF-8, including surrogates.
fn push(decoded: &mut Vec<u8>, code_point: u32) {
    if let Some(character) = char::from_u32(code_point) {
        decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        return;
    }
    // Surrogates take three bytes, like other code points of that size.
    let [_, _, high, low] = code_point.to_be_bytes();
    decoded.extend([
        0xE0 | high >> 4,
        0x80 | (high & 0xF) << 2 | low >> 6,
        0x80 | low & 0x3F,
    ]);
}

/// The number of bytes at the end that belong to an incomplete character.
fn half_character(bytes: &[u8]) -> usize {
    let mut last = bytes.iter().rev().take(3);
    let Some(back) = last.position(|byte| *byte >= 0xC0) else {
        return 0;
    };
    let tail = &bytes[bytes.len() - back - 1..];
    match std::str::from_utf8(tail) {
        Err(error) if error.error_len().is_none() => tail.len(),
        _ => 0,
    }
}
