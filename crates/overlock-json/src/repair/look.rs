//! Bounded look-ahead in the text.
//!
//! Every look-ahead beyond the next token has a limit, so calling it at every byte is still linear.

use super::work;
use crate::plain::terminal_code_len;
use crate::vector;

/// How far the end of a key or a word is searched.
const MAX_LOOK_AHEAD: usize = 200;

pub(super) fn skip_space(text: &[u8], at: usize) -> usize {
    let mut next = at.min(text.len());
    while let Some(&byte) = text.get(next) {
        next += match byte {
            byte if byte.is_ascii_whitespace() => 1,
            b'!'..=b'~' => break,
            _ => match foreign_space_len(text, next) {
                0 => break,
                length => length,
            },
        };
    }
    work::add(next.saturating_sub(at));
    next
}

/// The text without the white space, of JSON or not, at its end.
pub(super) fn trim_end(text: &[u8]) -> &[u8] {
    let mut text = text.trim_ascii_end();
    while let Some(end) = (1..=text.len().min(3))
        .map(|length| text.len() - length)
        .find(|&start| start + foreign_space_len(text, start) == text.len())
    {
        text = text[..end].trim_ascii_end();
    }
    text
}

/// A kind of quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quote {
    Double,
    Single,
    TypographicDouble,
    TypographicSingle,
    Guillemet,
    Backtick,
}

pub(super) fn quote_at(text: &[u8], at: usize) -> Option<(Quote, usize)> {
    match *text.get(at)? {
        b'"' => Some((Quote::Double, 1)),
        b'\'' => Some((Quote::Single, 1)),
        b'`' if !text[at..].starts_with(b"```") => Some((Quote::Backtick, 1)),
        0xC2 => match text.get(at + 1)? {
            0xB4 => Some((Quote::Backtick, 2)),
            0xAB | 0xBB => Some((Quote::Guillemet, 2)),
            _ => None,
        },
        0xE2 if text.get(at + 1) == Some(&0x80) => match text.get(at + 2)? {
            0x98..=0x9B => Some((Quote::TypographicSingle, 3)),
            0x9C..=0x9F => Some((Quote::TypographicDouble, 3)),
            _ => None,
        },
        _ => None,
    }
}

impl Quote {
    /// Whether a quote of the kind `other` may end a string that this one began.
    pub(super) fn ends_with(self, other: Self) -> bool {
        match self {
            Self::Double => other == Self::Double,
            Self::Single => other == Self::Single,
            Self::Guillemet => other == Self::Guillemet,
            Self::TypographicDouble => matches!(other, Self::TypographicDouble | Self::Double),
            Self::TypographicSingle => matches!(other, Self::TypographicSingle | Self::Single),
            Self::Backtick => matches!(other, Self::Backtick | Self::Single),
        }
    }
}

/// For the string quoted at `at`, if it ends within the limit: the offset of its closing quote, and
/// of the next byte that is not white space.
pub(super) fn string_ahead(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let (quote, width) = quote_at(text, at)?;
    let mut end = at + width;
    let limit = text.len().min(end + MAX_LOOK_AHEAD);
    if matches!(quote, Quote::Double | Quote::Single) {
        // The usual case: plain text up to the closing quote.
        let close = vector::string_stop_or(text[at], &text[..limit], end);
        if close < limit && text[close] == text[at] {
            return Some((close, skip_space(text, close + 1)));
        }
    }
    while end < limit {
        if text[end] == b'\\' {
            end += 2;
            continue;
        }
        if let Some((other, other_width)) = quote_at(text, end)
            && quote.ends_with(other)
        {
            return Some((end, skip_space(text, end + other_width)));
        }
        end += 1;
    }
    None
}

/// Whether a quoted key with its colon begins at `at`.
pub(super) fn quoted_key_ahead(text: &[u8], at: usize) -> bool {
    string_ahead(text, at).is_some_and(|(_, next)| {
        matches!(text.get(next), Some(b':')) || text[next.min(text.len())..].starts_with(b"=>")
    })
}

/// Whether a bare key with its colon begins at `at`.
pub(super) fn bare_key_ahead(text: &[u8], at: usize) -> bool {
    colon_after(text, at, name_byte)
}

/// Whether a bare key of one or more words, with its colon, begins at `at`.
pub(super) fn bare_words_key_ahead(text: &[u8], at: usize) -> bool {
    colon_after(text, at, |byte| name_byte(byte) || byte == b' ')
}

fn name_byte(byte: u8) -> bool {
    word_byte(byte) || matches!(byte, b'.' | b'@' | b'*')
}

fn colon_after(text: &[u8], at: usize, belongs: impl Fn(u8) -> bool) -> bool {
    let rest = &text[at.min(text.len())..];
    let length = rest
        .iter()
        .take(MAX_LOOK_AHEAD)
        .take_while(|&&byte| belongs(byte))
        .count();
    let next = skip_space(text, at + length);
    length > 0 && matches!(text.get(next), Some(b':' | b'=')) && !text[next..].starts_with(b"://")
}

/// Whether any key with its colon begins at `at`.
pub(super) fn key_ahead(text: &[u8], at: usize) -> bool {
    quoted_key_ahead(text, at) || bare_key_ahead(text, at)
}

/// The length of the word at `at`: letters, digits, `_`, `$`, `-`.
pub(super) fn word_len(text: &[u8], at: usize) -> usize {
    text[at.min(text.len())..]
        .iter()
        .take(MAX_LOOK_AHEAD)
        .take_while(|&&byte| word_byte(byte))
        .count()
}

fn word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-') || byte >= 0x80
}

/// Whether a complete unquoted value begins at `at`.
pub(super) fn plain_scalar_ahead(text: &[u8], at: usize) -> bool {
    let rest = &text[at..];
    let length = rest
        .iter()
        .take(64)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-'))
        .count();
    let token = &rest[..length];
    let fits = literal(token).is_some()
        || token
            .first()
            .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-')
            && token.iter().all(|byte| {
                byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-' | b'e' | b'E')
            });
    let next = skip_space(text, at + length);
    let follower = text.get(next);
    let apart = next > at + length;
    fits && (matches!(follower, None | Some(b',' | b'}' | b']' | b'/' | b')'))
        || follower == Some(&b'"') && apart
        || text[at + length..next].contains(&b'\n'))
}

/// The JSON literal for a literal of any language.
pub(super) fn literal(word: &[u8]) -> Option<&'static str> {
    const NAMES: [(&str, &str); 11] = [
        ("true", "true"),
        ("false", "false"),
        ("null", "null"),
        ("none", "null"),
        ("nil", "null"),
        ("undefined", "null"),
        ("nan", "null"),
        ("infinity", "null"),
        ("-infinity", "null"),
        ("inf", "null"),
        ("-inf", "null"),
    ];
    if word.len() < 3 || word.len() > 9 {
        return None;
    }
    let found = NAMES
        .iter()
        .find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word));
    found.map(|&(_, json)| json)
}

/// The length of an ellipsis at `at`: three or more dots, or the character.
pub(super) fn ellipsis_len(text: &[u8], at: usize) -> usize {
    if text[at..].starts_with("…".as_bytes()) {
        return 3;
    }
    let dots = text[at..].iter().take_while(|&&byte| byte == b'.').count();
    if dots >= 3 { dots } else { 0 }
}

/// The ASCII equivalent of a full-width separator, which has three bytes.
pub(super) fn full_width(text: &[u8], at: usize) -> Option<u8> {
    match text[at.min(text.len())..] {
        [0xEF, 0xBC, 0x9A, ..] => Some(b':'),
        [0xEF, 0xBC, 0x8C, ..] | [0xE3, 0x80, 0x81, ..] => Some(b','),
        _ => None,
    }
}

/// The length of white space that is invalid in JSON, which may be a line break that was escaped
/// together with the document.
pub(super) fn odd_space_len(text: &[u8], at: usize) -> usize {
    match text[at..] {
        [b'\\', b'n' | b'r' | b't', ..] => 2,
        _ => foreign_space_len(text, at),
    }
}

/// The length of a character or terminal code that is white space only outside of JSON.
fn foreign_space_len(text: &[u8], at: usize) -> usize {
    match text[at..] {
        [0x1B, b'[', ..] => terminal_code_len(&text[at..]).max(1),
        [0x00..=0x08 | 0x0B | 0x0C | 0x0E..=0x1F | 0x7F, ..] => 1,
        [0xC2, 0xA0 | 0x85 | 0xAD, ..] => 2,
        [0xE1, 0x9A, 0x80, ..]
        | [0xE1, 0xA0, 0x8E, ..]
        | [0xE2, 0x80, 0x80..=0x8F | 0xA8..=0xAF, ..]
        | [0xE2, 0x81, 0x9F..=0xAF, ..]
        | [0xE3, 0x80, 0x80, ..]
        | [0xEF, 0xBB, 0xBF, ..] => 3,
        _ => 0,
    }
}
