//! Rewrites escape sequences and raw characters that are invalid in JSON strings.

use super::fix::FixKind;
use super::look::{self, Quote};
use super::parser::{Ending, Expect, Parser, character_len};
use super::scalars::escape_into;
use super::strings::StringReading;
use super::verdict::Verdict;

impl Parser<'_> {
    /// Reads an escape sequence; returns whether it ended the string.
    pub(super) fn escape(&mut self, reading: &mut StringReading) -> bool {
        let at = self.at;
        let Some(&letter) = self.text.get(at + 1) else {
            return self.half_escape();
        };
        if reading.stop == Some(at + 1) {
            // In a path that ends in a backslash, the quote after it ends the string.
            self.rewrite(1, b"\\\\");
            return false;
        }
        match letter {
            b'"' if reading.escaped && self.may_end(at + 2, reading) => {
                self.rewrite(1, b"");
                self.at += 1;
                true
            }
            b'\\' if self.text.get(at + 2) == Some(&b'"') && self.is_escaped_twice(reading) => {
                reading.inner_quotes += 1;
                self.rewrite(1, b"");
                self.at += 2;
                false
            }
            b'"' if reading.stop.is_none() && self.backslash_is_text(at + 1, reading) => {
                self.rewrite(1, b"\\\\");
                self.at += 1;
                true
            }
            b'"' | b'\\' => {
                self.at += 2;
                false
            }
            _ if reading.path => {
                self.rewrite(1, b"\\\\");
                false
            }
            b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.at += 2;
                false
            }
            b'u' => self.unicode_escape(),
            // Markdown escapes underscores.
            b'\'' | b'`' | b'_' => {
                self.rewrite(1, b"");
                self.at += 1;
                false
            }
            b'\n' => {
                self.rewrite(2, b"\\n");
                false
            }
            b'x' if self.hex_len(2, 2) == 2 => {
                self.rewrite(2, b"\\u00");
                self.at += 2;
                false
            }
            b'0' if !self.text.get(at + 2).is_some_and(u8::is_ascii_digit) => {
                self.rewrite(2, b"\\u0000");
                false
            }
            b'v' => {
                self.rewrite(2, b"\\u000b");
                false
            }
            _ if letter >= 0x80 && look::quote_at(self.text, at + 1).is_some() => {
                self.rewrite(1, b"");
                self.at += character_len(letter);
                false
            }
            // Common in regular expressions, formulas and Windows paths.
            _ => {
                self.rewrite(1, b"\\\\");
                false
            }
        }
    }

    fn unicode_escape(&mut self) -> bool {
        let digits = self.hex_len(2, 4);
        if digits == 4 {
            let half_pair = matches!(self.text[self.at + 2], b'd' | b'D')
                && matches!(
                    self.text[self.at + 3],
                    b'8' | b'9' | b'a' | b'b' | b'A' | b'B'
                );
            let rest = &self.text[self.at + 6..];
            if half_pair && rest.len() < 6 && is_escape_start(rest) {
                return self.half_escape();
            }
            self.at += 6;
            return false;
        }
        if self.at + 2 + digits >= self.text.len() {
            return self.half_escape();
        }
        if self.text[self.at + 2] == b'{' {
            let digits = self.hex_len(3, 6);
            let code = std::str::from_utf8(&self.text[self.at + 3..self.at + 3 + digits])
                .ok()
                .and_then(|code| u32::from_str_radix(code, 16).ok())
                .and_then(char::from_u32);
            if let (Some(b'}'), Some(character)) = (self.text.get(self.at + 3 + digits), code) {
                let mut bytes = String::new();
                escape_into(&mut bytes, character.encode_utf8(&mut [0; 4]));
                self.rewrite(digits + 4, bytes.as_bytes());
                return false;
            }
        }
        self.rewrite(1, b"\\\\");
        false
    }

    pub(super) fn control_character(&mut self, byte: u8) {
        self.fix(FixKind::ControlCharacter);
        let escaped = match byte {
            b'\n' => "\\n".to_owned(),
            b'\r' => "\\r".to_owned(),
            b'\t' => "\\t".to_owned(),
            0x08 => "\\b".to_owned(),
            0x0C => "\\f".to_owned(),
            _ => format!("\\u{byte:04x}"),
        };
        self.draft.replace(self.at, self.at + 1, escaped.as_bytes());
        self.at += 1;
    }

    /// Handles the end of the text inside an escape sequence.
    fn half_escape(&mut self) -> bool {
        if self.ending == Ending::Close {
            self.fix(FixKind::Truncated);
            self.draft.replace(self.at, self.text.len(), b"\"");
        }
        self.at = self.text.len();
        true
    }

    /// Whether a backslash before a quote is text, because the next key follows the quote.
    fn backslash_is_text(&self, quote: usize, reading: &StringReading) -> bool {
        let next = look::skip_space(self.text, quote + 1);
        reading.quote == Quote::Double
            && self.expect == Expect::Value
            && self.top_has_keys()
            && self.text.get(next) == Some(&b',')
            && look::quoted_key_ahead(self.text, look::skip_space(self.text, next + 1))
    }

    /// `\\\\"`: whether the quote after an escaped backslash is text that was escaped twice.
    fn is_escaped_twice(&mut self, reading: &StringReading) -> bool {
        let at = self.at;
        self.at += 2;
        let verdict = self.judge(Quote::Double, 1, reading);
        self.at = at;
        reading.quote == Quote::Double && matches!(verdict, Verdict::Inner)
    }

    fn rewrite(&mut self, length: usize, bytes: &[u8]) {
        self.fix(FixKind::Escape);
        self.draft.replace(self.at, self.at + length, bytes);
        self.at += length;
    }

    /// The number of hexadecimal digits in the next `most` bytes from `skip` on.
    fn hex_len(&self, skip: usize, most: usize) -> usize {
        let from = (self.at + skip).min(self.text.len());
        let digits = self.text[from..].iter().take(most);
        digits.take_while(|byte| byte.is_ascii_hexdigit()).count()
    }
}

/// Whether the rest may be the start of the second half of a surrogate pair.
fn is_escape_start(rest: &[u8]) -> bool {
    let digits = rest.strip_prefix(b"\\u");
    rest.is_empty()
        || rest == b"\\"
        || digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}
