//! Tokens of valid JSON, to compare documents and to write them in other styles.
//!
//! Independent of the library, because it checks the library's results.

use std::fmt::Write;

/// One token of JSON; commas and colons are implied.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Where it begins in its text.
    pub(crate) start: usize,
    /// Where it ends in its text.
    pub(crate) end: usize,
}

/// The value of a token, in a canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Open(u8),
    Close(u8),
    /// A name, as UTF-16 to represent lone surrogates.
    Key(Vec<u16>),
    String(Vec<u16>),
    /// Sign, digits and exponent of ten, without zeros around the digits.
    Number(bool, String, i64),
    Literal(String),
}

/// Whether a text is a whole, valid document.
pub(crate) fn is_valid(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Whether two valid documents have the same tokens.
pub(crate) fn same(one: &[Token], other: &[Token]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| one.kind == other.kind)
}

/// The tokens of a valid document.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += 1;
        let kind = match bytes[start] {
            open @ (b'{' | b'[') => Kind::Open(open),
            close @ (b'}' | b']') => Kind::Close(close),
            b'"' => {
                while bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                let decoded = decoded(&text[start + 1..at - 1]);
                if text[at..].trim_start().starts_with(':') {
                    Kind::Key(decoded)
                } else {
                    Kind::String(decoded)
                }
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                while bytes
                    .get(at)
                    .is_some_and(|byte| !b",]} \t\r\n".contains(byte))
                {
                    at += 1;
                }
                let word = &text[start..at];
                if word.starts_with(['t', 'f', 'n']) {
                    Kind::Literal(word.to_owned())
                } else {
                    number(word)
                }
            }
            _ => continue,
        };
        tokens.push(Token {
            kind,
            start,
            end: at,
        });
    }
    tokens
}

fn number(word: &str) -> Kind {
    let (mantissa, exponent) = word.split_once(['e', 'E']).unwrap_or((word, "0"));
    let negative = mantissa.starts_with('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let exponent: i64 = exponent
        .trim_start_matches('+')
        .parse()
        .unwrap_or(i64::MAX / 2);
    let kept = digits.trim_end_matches('0');
    let dropped = digits.len() - kept.len();
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return Kind::Number(negative, String::new(), 0);
    }
    let scale = i64::try_from(dropped).unwrap_or(0) - i64::try_from(fraction.len()).unwrap_or(0);
    Kind::Number(negative, kept.to_owned(), exponent + scale)
}

fn decoded(raw: &str) -> Vec<u16> {
    let mut units = Vec::with_capacity(raw.len());
    let mut characters = raw.chars();
    let mut buffer = [0; 2];
    while let Some(character) = characters.next() {
        if character != '\\' {
            units.extend_from_slice(character.encode_utf16(&mut buffer));
            continue;
        }
        match characters.next() {
            Some('u') => {
                let digits: String = characters.by_ref().take(4).collect();
                units.push(u16::from_str_radix(&digits, 16).unwrap_or(0xFFFD));
            }
            Some(escaped) => units.push(match escaped {
                'n' => 10,
                't' => 9,
                'r' => 13,
                'b' => 8,
                'f' => 12,
                plain => u16::try_from(u32::from(plain)).unwrap_or(0xFFFD),
            }),
            None => {}
        }
    }
    units
}

/// A style for writing tokens.
#[derive(Clone, Copy, Default)]
pub(crate) struct Style {
    /// Spaces per level; none for a single line.
    pub(crate) indent: Option<usize>,
    /// A space after commas and colons on one line.
    pub(crate) spaces: bool,
    /// Everything beyond ASCII as `\u…`, and `/` as `\/`.
    pub(crate) escapes: bool,
}

/// Writes the tokens from one on in another style.
pub(crate) fn written(text: &str, tokens: &[Token], from: usize, style: Style) -> String {
    let mut out = String::new();
    let mut depth = tokens[..from]
        .iter()
        .fold(0_usize, |depth, token| match token.kind {
            Kind::Open(_) => depth + 1,
            Kind::Close(_) => depth.saturating_sub(1),
            _ => depth,
        });
    for (index, token) in tokens.iter().enumerate().skip(from) {
        let before = if index > from {
            tokens.get(index - 1).map(|token| &token.kind)
        } else {
            None
        };
        let closes = matches!(token.kind, Kind::Close(_));
        if closes {
            depth = depth.saturating_sub(1);
        }
        match before {
            None => {}
            Some(Kind::Key(_)) => out.push_str(if style.spaces || style.indent.is_some() {
                ": "
            } else {
                ":"
            }),
            Some(Kind::Open(_)) if closes => {}
            Some(before) => {
                if !closes && !matches!(before, Kind::Open(_)) {
                    out.push(',');
                    if style.spaces && style.indent.is_none() {
                        out.push(' ');
                    }
                }
                if let Some(indent) = style.indent {
                    let _ = write!(out, "\n{:1$}", "", depth * indent);
                }
            }
        }
        let raw = &text[token.start..token.end];
        if style.escapes {
            escape(&mut out, raw);
        } else {
            out.push_str(raw);
        }
        if matches!(token.kind, Kind::Open(_)) {
            depth += 1;
        }
    }
    out
}

fn escape(out: &mut String, raw: &str) {
    let mut buffer = [0; 2];
    let mut after_backslash = false;
    for character in raw.chars() {
        match character {
            '/' if !after_backslash => out.push_str("\\/"),
            character if character.is_ascii() => out.push(character),
            character => {
                for unit in character.encode_utf16(&mut buffer) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
        after_backslash = character == '\\' && !after_backslash;
    }
}
