//! Reads values and keys without quotes: numbers, literals, calls and bare words.

use super::fix::FixKind;
use super::look;
use super::numbers::{number, number_len, number_prefix};
use super::parser::{Ending, Keys, Parser};
use super::work;
use crate::extract::begins_value;
use crate::plain;
use crate::vector;
use std::fmt::Write;

impl Parser<'_> {
    /// Reads a value that does not begin with a quote or a bracket.
    pub(super) fn scalar(&mut self) {
        self.value_start = self.draft.position(self.at);
        if let Some(length) = plain_literal_len(self.rest()) {
            self.at += length;
            return self.complete_value(false);
        }
        let number = number_len(self.rest());
        if number > 0 && self.number_ends(self.at + number) {
            return self.take_number(number);
        }
        if let Some(name) = self.call_len() {
            return self.open_group(name, true);
        }
        if let Some(length) = self.prefix_len() {
            return self.drop_bytes(length, FixKind::Literal);
        }
        let length = self.bare_len();
        if length == 0 {
            let width = super::parser::character_len(self.byte());
            return self.drop_bytes(width, FixKind::StrayText);
        }
        self.bare_value(length);
    }

    fn number_ends(&self, end: usize) -> bool {
        if matches!(self.text.get(end), Some(b'}' | b']')) {
            return true;
        }
        match self.text.get(end) {
            None | Some(b',' | b'\n' | b'\r' | b')') => {
                !(self.text.get(end) == Some(&b',') && self.thousands_len(end) > 0)
            }
            Some(b' ' | b'\t') => {
                let next = end
                    + self.text[end..]
                        .iter()
                        .take_while(|byte| matches!(byte, b' ' | b'\t'))
                        .count();
                let is_unit = self.text.get(next).is_some_and(|byte| {
                    let foreign = *byte >= 0x80 && look::odd_space_len(self.text, next) == 0;
                    byte.is_ascii_alphabetic() || matches!(byte, b'%' | b'*') || foreign
                });
                !is_unit
                    || look::bare_key_ahead(self.text, next)
                    || look::plain_scalar_ahead(self.text, next)
            }
            Some(b'/') => matches!(self.text.get(end + 1), Some(b'/' | b'*')),
            Some(b'"' | b';' | b'{' | b'[' | b'#') => true,
            Some(b'\\') => look::odd_space_len(self.text, end) > 0,
            _ => look::full_width(self.text, end).is_some(),
        }
    }

    /// The length of `,000` groups after a number in an object, where a key must follow a comma.
    fn thousands_len(&self, end: usize) -> usize {
        if !self.top_has_keys() {
            return 0;
        }
        let mut length = 0;
        while let Some([b',', a, b, c]) = self.text.get(end + length..end + length + 4)
            && [a, b, c].iter().all(|digit| digit.is_ascii_digit())
        {
            length += 4;
        }
        let next = self.text.get(end + length);
        if matches!(next, Some(b',' | b'}' | b'\n' | b'\r' | b'.' | b' ')) {
            length
        } else {
            0
        }
    }

    fn take_number(&mut self, length: usize) {
        let end = self.at + length;
        if self.may_be_shortened(end) {
            // It may be incomplete.
            return self.leave_out(end);
        }
        self.end_scalar(end);
    }

    /// Whether the quote at `at` begins a string, rather than ending one without an opening quote.
    fn opens_string(&self, at: usize) -> bool {
        let next = look::skip_space(self.text, at + 1);
        !matches!(self.text.get(next), None | Some(b',' | b'}' | b']'))
    }

    /// The length of a Python string prefix: `b'…'`, `rb"…"`.
    fn prefix_len(&self) -> Option<usize> {
        let letters = self
            .rest()
            .iter()
            .take(3)
            .take_while(|byte| {
                matches!(byte, b'b' | b'B' | b'r' | b'R' | b'u' | b'U' | b'f' | b'F')
            })
            .count();
        let quote = self.rest().get(letters)?;
        let quoted = quote == &b'\'' || quote == &b'"' && self.opens_string(self.at + letters);
        (quoted && (1..=2).contains(&letters)).then_some(letters)
    }

    /// The length of the name of a call such as `ObjectId("1")` or `new Date(0)`.
    fn call_len(&self) -> Option<usize> {
        let rest = self.rest();
        let mut length = if rest.starts_with(b"new ") { 4 } else { 0 };
        if !rest
            .get(length)
            .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        {
            return None;
        }
        length += rest[length..]
            .iter()
            .take(100)
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.'))
            .count();
        if self.stack.is_empty() {
            length = look::skip_space(rest, length);
        }
        (rest.get(length) == Some(&b'(')).then_some(length)
    }

    /// The length of a bare value, up to the next separator that is not part of it.
    fn bare_len(&self) -> usize {
        let text = self.text;
        let mut at = self.at;
        let mut depth = 0_usize;
        if text[at] == b'/'
            && let Some(length) = regex_len(&text[at..])
        {
            at += length;
        }
        while let Some(&byte) = text.get(at) {
            match byte {
                b'\n' | b'\r' | b'"' => break,
                0x1B if plain::terminal_code_len(&text[at..]) > 0 => break,
                b',' | b';' if depth == 0 && self.separates(at) => break,
                b'{' | b'['
                    if depth == 0 && begins_value(&text[at + 1..], byte) && at > self.at =>
                {
                    break;
                }
                b'{' | b'[' | b'(' => depth += 1,
                b'}' | b']' => {
                    if depth == 0 {
                        break;
                    }
                    depth -= 1;
                }
                b')' if depth == 0 && self.open_count(b')') > 0 => break,
                b')' => depth = depth.saturating_sub(1),
                b'/' if matches!(text.get(at + 1), Some(b'/' | b'*')) => {
                    if at == self.at || text[at - 1] != b':' {
                        break;
                    }
                    at += 1;
                }
                b'`' if text[at..].starts_with(b"```") => break,
                b'#' if at > self.at && text[at - 1] == b' ' && text.get(at + 1) == Some(&b' ') => {
                    break;
                }
                b'\\' if self.is_escaped_break(at) => break,
                b' ' if self.is_literal_in_row(at) => break,
                0xE3 | 0xEF if look::full_width(text, at).is_some() => break,
                _ => {}
            }
            at += 1;
        }
        work::add(at - self.at);
        look::trim_end(&text[self.at..at]).len()
    }

    /// Whether a line break that was escaped with the document ends a bare value.
    fn is_escaped_break(&self, at: usize) -> bool {
        let length = look::odd_space_len(self.text, at);
        let next = self.text.get(at + length);
        length > 0 && next.is_none_or(|byte| matches!(byte, b' ' | b'}' | b']' | b'"' | b'\\'))
    }

    /// `[true false]`: whether a literal of an array ends here and another value follows.
    fn is_literal_in_row(&self, at: usize) -> bool {
        let next = look::skip_space(self.text, at);
        let word = look::word_len(self.text, next);
        !self.top_has_keys()
            && look::literal(&self.text[self.at..at]).is_some()
            && (look::literal(&self.text[next..next + word]).is_some()
                || look::plain_scalar_ahead(self.text, next))
    }

    /// Whether the comma at `at` ends a bare value.
    fn separates(&self, at: usize) -> bool {
        if !self.top_has_keys() || look::literal(self.text[self.at..at].trim_ascii_end()).is_some()
        {
            return true;
        }
        let next = look::skip_space(self.text, at + 1);
        match self.text.get(next) {
            None | Some(b'"' | b'\'' | b'}' | b']' | b'{' | b'/' | b'#' | b'.') => true,
            _ => self.text[at..next].contains(&b'\n') || look::key_ahead(self.text, next),
        }
    }

    fn bare_value(&mut self, length: usize) {
        let end = self.at + length;
        let token = &self.text[self.at..end];
        if let Some(json) = look::literal(token) {
            return self.write_scalar(end, json.as_bytes(), FixKind::Literal);
        }
        if let Some(number) = number(token) {
            return self.odd_number(end, number.as_bytes());
        }
        let is_last = self.text[end..].trim_ascii().is_empty();
        if let Some(json) = half_literal(token).filter(|_| is_last) {
            let open = self.ending == Ending::StayOpen && end == self.text.len();
            let written = if open { &json[..length] } else { json };
            return self.write_scalar(end, written.as_bytes(), FixKind::Truncated);
        }
        if matches!(token, [b'-' | b'+' | b'.']) {
            return self.sign_alone(end);
        }
        self.quote(length, FixKind::UnquotedValue);
        if end == self.text.len() && self.ending == Ending::StayOpen {
            self.reopen_string();
        }
        self.complete_value(true);
    }

    /// Writes a value in place of the input up to `end`.
    fn write_scalar(&mut self, end: usize, json: &[u8], kind: FixKind) {
        if json != &self.text[self.at..end] {
            self.fix(kind);
            self.draft.replace(self.at, end, json);
        }
        self.end_scalar(end);
    }

    fn end_scalar(&mut self, end: usize) {
        self.at = end;
        self.complete_value(false);
        if self.text.get(end) == Some(&b'"') && !self.opens_string(end) {
            self.drop_bytes(1, FixKind::ExtraQuote);
        }
    }

    fn odd_number(&mut self, end: usize, json: &[u8]) {
        let token = &self.text[self.at..end];
        let open = self.ending == Ending::StayOpen && end == self.text.len();
        if self.may_be_shortened(end) {
            self.leave_out(end);
        } else if open && number_prefix(token) {
            self.end_scalar(end);
        } else {
            self.write_scalar(end, json, FixKind::Number);
        }
    }

    /// Handles a sign or a point without digits.
    fn sign_alone(&mut self, end: usize) {
        let next = look::skip_space(self.text, end);
        let at_end = end == self.text.len();
        let inside = !self.stack.is_empty();
        if at_end && self.ending == Ending::StayOpen && self.byte() == b'-' {
            self.at = end;
        } else if look::quote_at(self.text, next).is_some()
            || matches!(self.text.get(next), Some(b'{' | b'['))
        {
            // A list marker.
            self.drop_bytes(1, FixKind::StrayText);
        } else if at_end && inside || !inside && self.documents == 1 {
            // Half a number has no value.
            self.leave_out(end);
        } else {
            self.write_scalar(end, b"null", FixKind::Number);
        }
    }

    fn leave_out(&mut self, end: usize) {
        self.draft.skip(self.at, end);
        self.at = end;
    }

    /// Writes the next `length` bytes as a string.
    fn quote(&mut self, length: usize, kind: FixKind) {
        let end = self.at + length;
        let closes = self.text.get(end) == Some(&b'"') && !self.opens_other(end, kind);
        self.fix(if closes { FixKind::MissingQuote } else { kind });
        self.draft.replace(self.at, self.at, b"\"");
        loop {
            self.at = vector::string_stop(&self.text[..end], self.at);
            let Some(&byte) = self.text[..end].get(self.at) else {
                break;
            };
            let mut escaped = String::new();
            escape_into(&mut escaped, char::from(byte).encode_utf8(&mut [0; 4]));
            self.draft.replace(self.at, self.at + 1, escaped.as_bytes());
            self.at += 1;
        }
        self.at += usize::from(closes);
        self.draft.replace(end, self.at, b"\"");
    }

    /// Whether the quote after bare words begins the next string.
    fn opens_other(&self, quote: usize, kind: FixKind) -> bool {
        let next = self.text.get(look::skip_space(self.text, quote + 1));
        if kind == FixKind::UnquotedKey {
            next != Some(&b':')
        } else {
            self.opens_string(quote)
        }
    }

    fn reopen_string(&mut self) {
        let end = self.draft.position(self.at);
        self.draft.truncate(end - 1, self.at);
    }

    /// Reads a key that does not begin with a quote.
    pub(super) fn bare_key(&mut self) {
        let text = self.text;
        let end = text[self.at..]
            .iter()
            .position(|byte| {
                matches!(
                    byte,
                    b':' | b'='
                        | b','
                        | b'}'
                        | b']'
                        | b'{'
                        | b'['
                        | b'\n'
                        | b'\r'
                        | b'"'
                        | b'\''
                        | b'`'
                        | b'('
                        | b')'
                        | b';'
                        | b'*'
                ) || *byte == 0xE2
            })
            .map_or(text.len(), |length| self.at + length);
        let length = look::trim_end(&text[self.at..end]).len();
        if length == 0 {
            let width = super::parser::character_len(self.byte());
            return self.drop_bytes(width, FixKind::StrayText);
        }
        let next = look::skip_space(text, end);
        let stray = look::quoted_key_ahead(text, next)
            || end > self.at && text.get(end) == Some(&b'\n') && look::key_ahead(text, next);
        if stray && !matches!(text.get(end), Some(b':')) {
            return self.drop_bytes(length, FixKind::StrayText);
        }
        self.begin_member();
        self.keys = Keys::Bare;
        self.quote(length, FixKind::UnquotedKey);
        self.end_key();
        if self.at == text.len() && self.ending == Ending::StayOpen {
            self.reopen_string();
        }
    }
}

/// Appends text as the content of a JSON string.
pub(super) fn escape_into(json: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\0'..='\x1F' => {
                let _ = write!(json, "\\u{:04x}", u32::from(character));
            }
            _ => json.push(character),
        }
    }
}

/// The length of a well-formed literal that a delimiter follows, as most do.
fn plain_literal_len(text: &[u8]) -> Option<usize> {
    let length = match text {
        [b't', b'r', b'u', b'e', ..] | [b'n', b'u', b'l', b'l', ..] => 4,
        [b'f', b'a', b'l', b's', b'e', ..] => 5,
        _ => return None,
    };
    matches!(text.get(length)?, b',' | b'}' | b']').then_some(length)
}

/// The literal that was cut to `token`.
fn half_literal(token: &[u8]) -> Option<&'static str> {
    let json = ["true", "false", "null"]
        .into_iter()
        .find(|literal| literal.as_bytes().starts_with(token));
    // One or two letters may also begin a name.
    let python = [("True", "true"), ("False", "false"), ("None", "null")]
        .into_iter()
        .find(|(literal, _)| token.len() > 2 && literal.as_bytes().starts_with(token));
    json.or(python.map(|(_, json)| json))
}

/// The length of a regular expression between slashes on one line.
fn regex_len(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    while at < text.len().min(400) {
        match text[at] {
            b'\\' => at += 2,
            b'\n' => return None,
            b'/' => return (at > 1).then_some(at + 1),
            _ => at += 1,
        }
    }
    None
}
