//! Finds where a string without its closing quote should have ended.

use super::look;
use super::parser::{Expect, Parser};
use super::strings::StringReading;
use super::work;

impl Parser<'_> {
    /// Where the string should have ended, if the text ends with all closing brackets.
    pub(super) fn missing_quote_at_end(&self, reading: &StringReading) -> Option<usize> {
        let mut text = self.text[reading.content..].trim_ascii_end();
        for kind in &self.stack {
            work::add(1);
            text = text.strip_suffix(&[kind.closer()])?.trim_ascii_end();
        }
        // Brackets that the string itself opens are text, as in a program.
        if self.stack.is_empty() || bracket_balance(text) > 0 {
            return None;
        }
        if self.expect == Expect::Key {
            return key_end(text).map(|length| reading.content + length);
        }
        if text.ends_with(b"\\\"") {
            return Some(reading.content + text.len() - 1);
        }
        let kept = self.without_elements(text);
        Some(reading.content + kept.trim_ascii_end().len())
    }

    /// The text without valid elements after a comma: `first, 2` or `first, b: 2`.
    fn without_elements<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let Some(comma) = text.iter().rposition(|&byte| byte == b',') else {
            return text;
        };
        let last = text[comma + 1..].trim_ascii();
        let in_object = self.top_has_keys();
        if last.is_empty() {
            let first = text
                .iter()
                .position(|&byte| byte == b',')
                .filter(|_| !in_object);
            return &text[..first.unwrap_or(comma)];
        }
        let value = if in_object {
            let name = look::word_len(last, 0);
            last[name..]
                .trim_ascii_start()
                .strip_prefix(b":")
                .filter(|_| name > 0)
        } else {
            Some(last)
        };
        let is_json = value.is_some_and(|value| {
            let value = value.trim_ascii_start();
            !value.is_empty() && (look::plain_scalar_ahead(value, 0) || value[0] == b'[')
        });
        if is_json { &text[..comma] } else { text }
    }

    /// Where the string ended, if the quote at `at` begins the next one.
    pub(super) fn ended_before(&self, reading: &StringReading) -> Option<usize> {
        let text = &self.text[reading.content..self.at];
        if self.expect == Expect::Key {
            let trimmed = text.trim_ascii_end();
            if trimmed.ends_with(b":") || look::quoted_key_ahead(self.text, self.at) {
                return key_end(text).map(|length| reading.content + length);
            }
            return None;
        }
        let (_, beyond) = look::string_ahead(self.text, self.at)?;
        let follower = self.text.get(beyond);
        if let Some(content) = before_bare_key(text).filter(|_| self.top_has_keys()) {
            return matches!(follower, Some(b',' | b'}')).then_some(reading.content + content);
        }
        let (content, run) = split_structure(text);
        if run.contains(&b'+') {
            let joined = matches!(follower, None | Some(b',' | b'}' | b']'));
            return joined.then_some(reading.content + content.len());
        }
        let expects_key = self.follow(run)?;
        let fits = match follower {
            Some(b':') => expects_key,
            Some(b']') => !expects_key,
            Some(b',') => {
                let next = look::skip_space(self.text, beyond + 1);
                !expects_key && look::quote_at(self.text, next).is_some()
            }
            _ => false,
        };
        fits.then_some(reading.content + content.len())
    }

    /// Checks structure after a value: whether a key may follow it; none if nothing may.
    fn follow(&self, run: &[u8]) -> Option<bool> {
        let mut depth = self.stack.len();
        let mut virtual_kinds: Option<bool> = None;
        let mut comma = false;
        let mut broken = false;
        for &byte in run {
            match byte {
                b'\n' => broken = true,
                b',' if !comma => comma = true,
                b'}' | b']' if virtual_kinds.is_none() && !comma => {
                    let top = *self.stack.get(depth.checked_sub(1)?)?;
                    if (byte == b'}') != top.has_keys() {
                        return None;
                    }
                    depth -= 1;
                    broken = false;
                }
                b'{' | b'[' if comma && virtual_kinds.is_none() => {
                    if self.stack.get(depth.checked_sub(1)?)?.has_keys() {
                        return None;
                    }
                    virtual_kinds = Some(byte == b'{');
                }
                _ if byte.is_ascii_whitespace() => {}
                b'/' => break,
                _ => return None,
            }
        }
        let has_keys = self.stack.get(depth.checked_sub(1)?)?.has_keys();
        match virtual_kinds {
            Some(keys) => Some(keys),
            None if comma || broken => Some(has_keys),
            None => None,
        }
    }
}

/// The number of opening brackets minus that of closing ones.
pub(super) fn bracket_balance(text: &[u8]) -> i64 {
    work::add(text.len());
    text.iter().fold(0, |balance, byte| match byte {
        b'{' | b'[' | b'(' => balance + 1,
        b'}' | b']' | b')' => balance - 1,
        _ => balance,
    })
}

/// Where a key without its closing quote ends: before its colon.
fn key_end(text: &[u8]) -> Option<usize> {
    let colon = text.iter().position(|&byte| byte == b':');
    work::add(colon.unwrap_or(text.len()));
    let colon = colon?;
    let key = text[..colon].trim_ascii_end();
    let key = key.strip_suffix(b"'").unwrap_or(key);
    Some(key.len())
}

/// Splits off white space, brackets, commas and comments at the end of a text.
fn split_structure(text: &[u8]) -> (&[u8], &[u8]) {
    let mut end = text.len();
    loop {
        let plain = text[..end]
            .iter()
            .rev()
            .take_while(|byte| {
                byte.is_ascii_whitespace()
                    || matches!(byte, b',' | b'{' | b'[' | b'}' | b']' | b'+')
            })
            .count();
        work::add(plain);
        end -= plain;
        let near = &text[end.saturating_sub(200)..end];
        let comment = near
            .strip_suffix(b"*/")
            .and_then(|near| near.windows(2).rposition(|pair| pair == b"/*"));
        match comment {
            Some(start) => end = end.saturating_sub(200) + start,
            None => return text.split_at(end),
        }
    }
}

/// Where the text before a final comma, bare key and colon ends.
fn before_bare_key(text: &[u8]) -> Option<usize> {
    let name = text.trim_ascii_end().strip_suffix(b":")?;
    let length = name
        .iter()
        .rev()
        .take(40)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let before = name[..name.len() - length].trim_ascii_end();
    let content = before.strip_suffix(b",").filter(|_| length > 0)?;
    Some(content.trim_ascii_end().len())
}
