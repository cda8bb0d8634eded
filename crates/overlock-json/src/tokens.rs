//! Reads JSON text token by token, and compares tokens by meaning.
//!
//! White space, escapes (`é` and `\u00e9`) and the notation of numbers make no difference. Any text
//! can be read: text that is not JSON becomes words.

use crate::strings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// One of `{}[],:`.
    Mark,
    String,
    /// A number, a literal, or another word.
    Word,
}

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    /// As written; a string without its quotes.
    pub(crate) raw: &'a str,
    /// Its first byte, including the quote.
    pub(crate) start: usize,
    /// The byte after it, including the quote.
    pub(crate) end: usize,
    /// Whether the text begins inside of it.
    pub(crate) headless: bool,
    /// Whether the text seems to end inside of it.
    pub(crate) endless: bool,
}

impl Token<'_> {
    pub(crate) fn is_mark(&self, marks: &str) -> bool {
        self.kind == TokenKind::Mark && marks.contains(self.raw)
    }

    /// Its number of characters, including quotes.
    pub(crate) fn characters(&self) -> usize {
        let quotes = match self.kind {
            TokenKind::String => usize::from(!self.headless) + usize::from(!self.endless),
            _ => 0,
        };
        self.raw.chars().count() + quotes
    }

    /// Where the content begins: after the opening quote.
    pub(crate) fn content_start(&self) -> usize {
        let quoted = self.kind == TokenKind::String && !self.headless;
        self.start + usize::from(quoted)
    }
}

impl PartialEq for Token<'_> {
    /// Whether two complete tokens mean the same.
    fn eq(&self, other: &Self) -> bool {
        if self.kind != other.kind {
            return false;
        }
        if self.raw == other.raw {
            return true;
        }
        match self.kind {
            TokenKind::Mark => false,
            TokenKind::String => {
                let escaped = self.raw.contains('\\') || other.raw.contains('\\');
                escaped && same_text(self.raw, other.raw)
            }
            TokenKind::Word => match (Number::read(self.raw), Number::read(other.raw)) {
                (Some(one), Some(another)) => one == another,
                _ => false,
            },
        }
    }
}

/// Whether two raw strings decode to the same text.
pub(crate) fn same_text(one: &str, another: &str) -> bool {
    let text = |raw| strings::code_points(raw).map(|(code_point, _)| code_point);
    text(one).eq(text(another))
}

/// Reads the tokens of a text from a byte on.
#[derive(Clone)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    inside_string: bool,
}

impl<'a> Tokens<'a> {
    /// The tokens from `at` on, which is a character boundary, inside or outside of a string.
    pub(crate) fn new(text: &'a str, at: usize, inside_string: bool) -> Self {
        Self {
            text,
            at,
            inside_string,
        }
    }

    fn string(&mut self) -> Token<'a> {
        let start = self.at;
        let headless = std::mem::take(&mut self.inside_string);
        let content = start + usize::from(!headless);
        let (end, endless) = match string_end(self.text.as_bytes(), content) {
            Some(quote) => (quote, false),
            None => (self.text.len(), true),
        };
        self.at = end + usize::from(!endless);
        let raw = &self.text[content..end];
        Token {
            kind: TokenKind::String,
            raw,
            start,
            end: self.at,
            headless,
            endless,
        }
    }

    fn token(&mut self, kind: TokenKind, len: usize) -> Token<'a> {
        let start = self.at;
        self.at += len;
        let endless = kind == TokenKind::Word && self.at == self.text.len();
        let raw = &self.text[start..self.at];
        Token {
            kind,
            raw,
            start,
            end: self.at,
            headless: false,
            endless,
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if self.inside_string && self.at < self.text.len() {
            return Some(self.string());
        }
        let bytes = self.text.as_bytes();
        self.at = crate::plain::skip_white_space(bytes, self.at);
        match bytes.get(self.at)? {
            b'"' => Some(self.string()),
            byte if is_mark(*byte) => Some(self.token(TokenKind::Mark, 1)),
            _ => {
                let ends = |byte: &u8| {
                    is_mark(*byte) || matches!(byte, b'"' | b' ' | b'\n' | b'\r' | b'\t')
                };
                let rest = &bytes[self.at..];
                let len = rest.iter().position(ends).unwrap_or(rest.len());
                Some(self.token(TokenKind::Word, len))
            }
        }
    }
}

fn is_mark(byte: u8) -> bool {
    matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':')
}

/// The quote that ends the string whose content begins at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = crate::vector::string_stop(bytes, at);
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Whether the byte at `at` is inside of a string, given whether the end of the text is.
pub(crate) fn is_inside_string(text: &str, at: usize, end_is_inside: bool) -> bool {
    let bytes = text.as_bytes();
    let mut inside = end_is_inside;
    let mut end = bytes.len();
    while let Some(quote) = bytes[at..end]
        .iter()
        .rposition(|byte| *byte == b'"')
        .map(|q| at + q)
    {
        let backslashes = bytes[..quote]
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        // There are no backslashes outside of strings.
        if backslashes % 2 == 0 {
            inside = !inside;
        }
        end = quote;
    }
    inside
}

/// A longer number is compared as text: other notations of it are unlikely, and parsing it for every
/// comparison would not be linear.
const LONGEST_NUMBER: usize = 64;

/// A number by its value.
#[derive(PartialEq)]
struct Number {
    negative: bool,
    /// Without leading and trailing zeros.
    digits: String,
    exponent: i64,
}

impl Number {
    fn read(raw: &str) -> Option<Self> {
        if raw.len() > LONGEST_NUMBER {
            return None;
        }
        let (negative, rest) = match raw.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, raw),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if integer.is_empty()
            || !integer
                .bytes()
                .chain(fraction.bytes())
                .all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let digits = format!("{integer}{fraction}");
        let digits = digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        let shift = i64::try_from(digits.len() - significant.len()).ok()?
            - i64::try_from(fraction.len()).ok()?;
        let exponent = if significant.is_empty() {
            0
        } else {
            i64::from(exponent) + shift
        };
        Some(Self {
            negative,
            digits: significant.to_owned(),
            exponent,
        })
    }
}
