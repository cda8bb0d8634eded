//! Reads a string whose quotes may be wrong, missing or in the middle.
//!
//! A quote ends a string where the grammar can go on after it; any other quote is
//! part of the text. If it turns out further on that the closing quote was left
//! out, the string is read once more and stopped where it should have ended, so
//! every byte is read at most twice.

use super::draft::Mark;
use super::fix::FixKind;
use super::look::{self, Quote};
use super::parser::{Ending, Expect, Parser};
use crate::extract::begins_value;
use crate::plain;

/// What a quote inside a string turns out to be.
enum Verdict {
    /// The end of the string.
    End,
    /// Part of the text.
    Inner,
    /// The start of the next string: this one should have ended at a byte before.
    EndedAt(usize),
}

/// One reading of a string.
struct Reading {
    quote: Quote,
    /// Where the text begins.
    content: usize,
    /// Where the string must stop, if that is known.
    stop: Option<usize>,
    inner_quotes: usize,
    /// The quotes are written twice: `""text""`.
    doubled: bool,
    /// The quotes are written three times, as in Python: only three end the string.
    tripled: bool,
    /// Up to where the text is a document of its own, whose quotes were not escaped.
    embedded: usize,
    /// The text is a Windows path, in which every backslash is meant.
    path: bool,
}

impl Parser<'_> {
    /// Reads the string that is quoted at `at`; `continued` if its opening quote is not to be written.
    pub(super) fn string(&mut self, continued: bool) {
        let Some((quote, width)) = look::quote_at(self.text, self.at) else {
            return;
        };
        let start = self.at;
        let mark: Mark = self.draft.mark();
        let mut stop = None;
        let tripled = self.is_tripled(start);
        loop {
            if continued {
                self.draft.skip(start, start + width);
            } else if quote != Quote::Double {
                self.fix(FixKind::Quotes);
                self.draft.replace(start, start + width, b"\"");
            }
            self.at = start + width;
            if tripled {
                self.drop_bytes(2, FixKind::ExtraQuote);
            }
            let reading = Reading {
                quote,
                content: self.at,
                stop,
                inner_quotes: 0,
                doubled: false,
                tripled,
                embedded: self.embedded_end(),
                path: is_windows_path(self.rest()),
            };
            match self.read_string(reading) {
                None => return,
                Some(restart) => {
                    stop = Some(restart);
                    self.at = start;
                    self.draft.reset(mark);
                }
            }
        }
    }

    /// Whether three quotes begin a string here and three others can end it.
    fn is_tripled(&mut self, at: usize) -> bool {
        let rest = &self.text[at..];
        if !rest.starts_with(b"\"\"\"") && !rest.starts_with(b"\'\'\'") {
            return false;
        }
        let text = self.text;
        let last = *self.last_triple.get_or_insert_with(|| {
            let triple = |quotes: &[u8]| quotes == b"\"\"\"" || quotes == b"\'\'\'";
            text.windows(3).rposition(triple).unwrap_or(0)
        });
        last >= at + 3
    }

    /// Where a document ends that begins right after the quote and is followed by another quote:
    /// `"{"a": 1}"`. 0 if there is none.
    fn embedded_end(&mut self) -> usize {
        let start = self.at;
        let key = look::skip_space(self.text, start + 1);
        if self.text.get(start) != Some(&b'{') || !look::quoted_key_ahead(self.text, key) {
            return 0;
        }
        // Every search that fails is paid for, so that all of them together stay linear.
        let limit = self.text.len().min(start + self.patience);
        let mut depth = 0_usize;
        let mut in_string = false;
        let mut at = start;
        while at < limit {
            match self.text[at] {
                b'\\' => at += 1,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        let quote = look::skip_space(self.text, at + 1);
        let next = look::skip_space(self.text, quote + 1);
        let closed = depth == 0 && self.text.get(quote) == Some(&b'"');
        if closed && matches!(self.text.get(next), None | Some(b',' | b'}' | b']')) {
            return quote;
        }
        self.patience = self.patience.saturating_sub(at - start);
        0
    }

    /// Reads to the end of the string, or says where it has to stop if it is read again.
    fn read_string(&mut self, mut reading: Reading) -> Option<usize> {
        loop {
            self.at = self.next_special(&reading);
            if reading.stop.is_some_and(|stop| self.at >= stop) {
                self.stop_string();
                return None;
            }
            let Some(&byte) = self.text.get(self.at) else {
                return self.end_of_text(&reading);
            };
            match byte {
                b'\\' => {
                    if self.escape(&reading) {
                        return None;
                    }
                }
                0..0x20 => self.control_character(byte),
                _ => {
                    let Some((quote, width)) = look::quote_at(self.text, self.at) else {
                        self.at += super::parser::character_len(byte);
                        continue;
                    };
                    match self.judge(quote, width, &reading) {
                        Verdict::End => {
                            self.end_string(quote, width, &reading);
                            return None;
                        }
                        Verdict::EndedAt(stop) => return Some(stop),
                        Verdict::Inner => self.inner_quote(quote, width, &mut reading),
                    }
                }
            }
        }
    }

    /// The next byte that needs a decision.
    fn next_special(&self, reading: &Reading) -> usize {
        let limit = reading.stop.unwrap_or(self.text.len());
        let rest = &self.text[self.at.min(limit)..limit];
        if reading.quote == Quote::Double {
            return self.at.min(limit) + plain::string_run(rest);
        }
        let special = rest.iter().position(|&byte| SPECIAL[usize::from(byte)]);
        special.map_or(limit, |length| self.at + length)
    }

    fn end_string(&mut self, quote: Quote, width: usize, reading: &Reading) {
        if quote == Quote::Double {
            self.at += 1;
        } else {
            self.draft.replace(self.at, self.at + width, b"\"");
            self.at += width;
        }
        if reading.tripled {
            return self.drop_bytes(2, FixKind::ExtraQuote);
        }
        if reading.doubled
            && look::quote_at(self.text, self.at).is_some_and(|(other, _)| other == quote)
        {
            self.drop_bytes(width, FixKind::ExtraQuote);
        }
    }

    /// Ends a string whose quote was left out; white space before it does not belong to it.
    fn stop_string(&mut self) {
        if self.text.get(self.at) == Some(&b'"') {
            self.at += 1;
            return;
        }
        self.fix(FixKind::MissingQuote);
        self.draft.replace(self.at, self.at, b"\"");
    }

    fn inner_quote(&mut self, quote: Quote, width: usize, reading: &mut Reading) {
        let first = self.at == reading.content && quote == reading.quote;
        if first && !reading.doubled && !reading.tripled && self.is_doubled(width) {
            reading.doubled = true;
            self.drop_bytes(width, FixKind::ExtraQuote);
            reading.content = self.at;
            return;
        }
        reading.inner_quotes += 1;
        if quote == Quote::Double {
            self.fix(FixKind::InnerQuote);
            self.draft.replace(self.at, self.at, b"\\");
        }
        self.at += width;
    }

    /// Whether the second of two quotes that begin a string is one too many, rather than text.
    fn is_doubled(&self, width: usize) -> bool {
        let Some((end, beyond)) = look::string_ahead(self.text, self.at) else {
            return false;
        };
        look::quote_at(self.text, end + width).is_some()
            || matches!(
                self.text.get(beyond),
                None | Some(b',' | b'}' | b']' | b':')
            )
    }

    fn control_character(&mut self, byte: u8) {
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

    /// Reads an escape sequence. Says whether it ended the string.
    fn escape(&mut self, reading: &Reading) -> bool {
        let at = self.at;
        let Some(&letter) = self.text.get(at + 1) else {
            return self.half_escape();
        };
        if reading.stop == Some(at + 1) {
            // A path that ends in a backslash: the quote after it was meant to end the string.
            self.rewrite(1, b"\\\\");
            return false;
        }
        match letter {
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
            b'\'' | b'`' => {
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
                self.at += super::parser::character_len(letter);
                false
            }
            // Regular expressions, formulas and Windows paths are full of these.
            _ => {
                self.rewrite(1, b"\\\\");
                false
            }
        }
    }

    fn rewrite(&mut self, length: usize, bytes: &[u8]) {
        self.fix(FixKind::Escape);
        self.draft.replace(self.at, self.at + length, bytes);
        self.at += length;
    }

    /// How many of the next `most` bytes from `skip` on are hexadecimal digits.
    fn hex_len(&self, skip: usize, most: usize) -> usize {
        let from = (self.at + skip).min(self.text.len());
        let digits = self.text[from..].iter().take(most);
        digits.take_while(|byte| byte.is_ascii_hexdigit()).count()
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
                super::scalars::escape_into(&mut bytes, character.encode_utf8(&mut [0; 4]));
                self.rewrite(digits + 4, bytes.as_bytes());
                return false;
            }
        }
        self.rewrite(1, b"\\\\");
        false
    }

    /// The text ends inside an escape sequence.
    fn half_escape(&mut self) -> bool {
        if self.ending == Ending::Close {
            self.fix(FixKind::Truncated);
            self.draft.replace(self.at, self.text.len(), b"\"");
        }
        self.at = self.text.len();
        true
    }

    /// Whether a backslash before a quote is text, because the next key follows the quote.
    fn backslash_is_text(&self, quote: usize, reading: &Reading) -> bool {
        let next = look::skip_space(self.text, quote + 1);
        reading.quote == Quote::Double
            && self.expect == Expect::Value
            && self.top_has_keys()
            && self.text.get(next) == Some(&b',')
            && look::quoted_key_ahead(self.text, look::skip_space(self.text, next + 1))
    }

    /// The text ends and no quote has ended the string.
    fn end_of_text(&mut self, reading: &Reading) -> Option<usize> {
        if self.ending == Ending::StayOpen {
            return None;
        }
        if let Some(stop) = self.missing_quote_at_end(reading) {
            return Some(stop);
        }
        self.fix(FixKind::Truncated);
        self.draft.replace(self.at, self.at, b"\"");
        None
    }

    /// Where the string should have ended, if the text ends with the brackets that close everything.
    fn missing_quote_at_end(&self, reading: &Reading) -> Option<usize> {
        let mut text = self.text[reading.content..].trim_ascii_end();
        for kind in &self.stack {
            text = text.strip_suffix(&[kind.closer()])?.trim_ascii_end();
        }
        // Brackets that the text itself opened are text: a program cut at its last brace.
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

    /// Takes off what is JSON by itself after a comma: `first, 2` or `first, b: 2`.
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

    fn judge(&self, quote: Quote, width: usize, reading: &Reading) -> Verdict {
        if reading.stop.is_some() || self.at < reading.embedded {
            return Verdict::Inner;
        }
        if reading.tripled {
            let quotes = &self.text[self.at..];
            let same = |byte: &&u8| **byte == quotes[0];
            let ends =
                quote == reading.quote && quotes.iter().take(4).take_while(same).count() == 3;
            return if ends { Verdict::End } else { Verdict::Inner };
        }
        let is_key = self.expect == Expect::Key;
        if !reading.quote.ends_with(quote) {
            // `'name": 1` mixes its quotes.
            let next = look::skip_space(self.text, self.at + width);
            let mixed = quote == Quote::Double && is_key && self.text.get(next) == Some(&b':');
            return if mixed { Verdict::End } else { Verdict::Inner };
        }
        let twice = look::quote_at(self.text, self.at + width).map(|(other, _)| other);
        if reading.doubled && twice == Some(quote) {
            return Verdict::End;
        }
        let ends = if is_key {
            self.key_may_end(self.at + width, reading)
        } else {
            self.value_may_end(self.at + width, reading)
        };
        if ends {
            return Verdict::End;
        }
        match self.ended_before(reading) {
            Some(stop) => Verdict::EndedAt(stop),
            None => Verdict::Inner,
        }
    }

    fn key_may_end(&self, after: usize, reading: &Reading) -> bool {
        let next = look::skip_space(self.text, after);
        let Some(&byte) = self.text.get(next) else {
            return true;
        };
        match byte {
            b':' | b'=' => true,
            b',' | b'}' | b']' => reading.inner_quotes == 0,
            b'{' | b'[' | b'/' | b'#' => true,
            b'0'..=b'9' | b'-' => look::plain_scalar_ahead(self.text, next),
            _ if self.at == reading.content && next == after => false,
            _ if look::quote_at(self.text, next).is_some() => {
                // `{"a" "b"}` lacks a colon; `{""a"": 1}` and `{"a"": 1}` have a quote too many.
                let beyond = look::skip_space(self.text, next + 1);
                next > after || !matches!(self.text.get(beyond), Some(b':'))
            }
            _ => {
                let before = self.text[..self.at].trim_ascii_end().last();
                before != Some(&b':')
                    && (look::plain_scalar_ahead(self.text, next)
                        || next > after && self.line_break(after, next))
            }
        }
    }

    fn line_break(&self, from: usize, to: usize) -> bool {
        self.text[from..to].contains(&b'\n')
    }

    fn value_may_end(&self, after: usize, reading: &Reading) -> bool {
        let next = look::skip_space(self.text, after);
        let Some(&byte) = self.text.get(next) else {
            return true;
        };
        let in_object = self.top_has_keys();
        match byte {
            b',' | b';' => self.comma_may_follow(next, reading),
            b'}' | b']' | b')' => self.closer_may_follow(next, reading),
            b':' | b'=' => !in_object && reading.inner_quotes == 0,
            b'+' => {
                let operand = look::skip_space(self.text, next + 1);
                look::quote_at(self.text, operand).is_some()
                    || self.text.get(operand) == Some(&b'/')
            }
            b'/' => matches!(self.text.get(next + 1), Some(b'/' | b'*')),
            b'#' => next > after && !self.stack.is_empty(),
            b'`' if self.text[next..].starts_with(b"```") => true,
            b'<' => self.text[next..].starts_with(b"<!--"),
            b'{' | b'[' => {
                (!in_object || self.line_break(after, next))
                    && begins_value(&self.text[next + 1..], byte)
            }
            b'.' => look::ellipsis_len(self.text, next) > 0,
            b'0'..=b'9' | b'-' => !in_object && look::plain_scalar_ahead(self.text, next),
            _ if look::quote_at(self.text, next).is_some() => self.string_may_follow(after, next),
            _ => {
                let broken = self.line_break(after, next);
                let lonely = reading.inner_quotes == 0;
                if in_object {
                    broken && look::bare_key_ahead(self.text, next)
                        || look::plain_scalar_ahead(self.text, next)
                        || self.is_stray_before_key(next)
                        || lonely && next > after && self.words_then_end(next)
                } else {
                    look::plain_scalar_ahead(self.text, next)
                        || lonely && next > after && self.words_then_end(next)
                        || broken && reading.inner_quotes == 0 && self.bare_line_ahead(next)
                }
            }
        }
    }

    /// One bare word and then a whole key: the word is stray, not part of the string.
    fn is_stray_before_key(&self, at: usize) -> bool {
        let word = look::word_len(self.text, at);
        word > 0 && look::quoted_key_ahead(self.text, look::skip_space(self.text, at + word))
    }

    /// Bare words and then structure, with no quote between: the string is over and the words are stray.
    fn words_then_end(&self, at: usize) -> bool {
        let rest = &self.text[at..];
        let words = rest.iter().take(100).position(|byte| {
            matches!(byte, b',' | b'}' | b']' | b'\n' | b'"' | b':' | b'{' | b'[')
        });
        let Some(words) = words else { return false };
        let next = look::skip_space(self.text, at + words + 1);
        match rest[words] {
            b'}' => self.top_has_keys(),
            b']' => !self.top_has_keys(),
            b',' if self.top_has_keys() => look::quoted_key_ahead(self.text, next),
            b',' => look::quote_at(self.text, next).is_some(),
            _ => false,
        }
    }

    /// Whether the bare text up to the next separator has no quote in it.
    fn bare_line_ahead(&self, at: usize) -> bool {
        let end = self.text[at..]
            .iter()
            .take(200)
            .find(|byte| matches!(byte, b',' | b']' | b'\n' | b'"'));
        end.is_none_or(|&byte| byte != b'"')
    }

    fn comma_may_follow(&self, comma: usize, reading: &Reading) -> bool {
        let next = look::skip_space(self.text, comma + 1);
        let Some(&byte) = self.text.get(next) else {
            return true;
        };
        let strict = reading.inner_quotes > 0;
        if strict && self.text[comma] == b';' {
            return false;
        }
        match byte {
            b'}' | b']' | b')' | b',' | b'/' | b'#' => return true,
            b'.' => return look::ellipsis_len(self.text, next) > 0,
            _ => {}
        }
        if self.top_has_keys() {
            return match byte {
                b'{' | b'[' => begins_value(&self.text[next + 1..], byte),
                b'\\' => true,
                _ if look::quote_at(self.text, next).is_some() => {
                    match look::string_ahead(self.text, next) {
                        Some((_, beyond)) => {
                            matches!(
                                self.text.get(beyond),
                                None | Some(b':' | b'=' | b'{' | b'[')
                            ) || !strict && self.key_looks_odd(next, beyond)
                        }
                        None => true,
                    }
                }
                _ => {
                    look::bare_key_ahead(self.text, next)
                        || self.missing_opening_quote(next)
                        || self.is_stray_before_key(next)
                }
            };
        }
        // Quotes inside a string come in pairs.
        let strict = reading.inner_quotes % 2 == 1;
        match byte {
            b'{' | b'[' => begins_value(&self.text[next + 1..], byte),
            b'(' => true,
            b'0'..=b'9' | b'-' => !strict || look::plain_scalar_ahead(self.text, next),
            b'\\' => true,
            _ if look::quote_at(self.text, next).is_some() => {
                !strict
                    || look::string_ahead(self.text, next).is_none_or(|(_, beyond)| {
                        let byte = self.text.get(beyond);
                        matches!(byte, None | Some(b',' | b']' | b'}' | b')' | b':'))
                    })
            }
            _ if look::plain_scalar_ahead(self.text, next) => true,
            _ => !strict && (self.stack.is_empty() || self.bare_line_ahead(next)),
        }
    }

    /// A key with no colon after it can still be a key, if a value follows it.
    fn key_looks_odd(&self, key: usize, beyond: usize) -> bool {
        look::quote_at(self.text, beyond).is_some() && self.text[key..beyond].ends_with(b" ")
            || look::plain_scalar_ahead(self.text, beyond)
    }

    /// `name": value`: a key that lacks its opening quote.
    fn missing_opening_quote(&self, at: usize) -> bool {
        let word = look::word_len(self.text, at);
        word > 0
            && self.text.get(at + word) == Some(&b'"')
            && self.text.get(look::skip_space(self.text, at + word + 1)) == Some(&b':')
    }

    /// Follows the closing brackets after a quote through the open containers.
    fn closer_may_follow(&self, first: usize, reading: &Reading) -> bool {
        let mut depth = self.stack.len();
        let mut at = first;
        let mut broken = false;
        let mut fits = true;
        while let Some(&byte @ (b'}' | b']' | b')')) = self.text.get(at) {
            match depth.checked_sub(1).map(|index| self.stack[index]) {
                // Brackets too many after everything is closed.
                None if at > first => return true,
                Some(kind) if kind.closer() == byte => depth -= 1,
                _ if self.open_count(byte) == 0 && byte == b')' => return false,
                _ => fits = false,
            }
            let next = look::skip_space(self.text, at + 1);
            broken = self.line_break(at + 1, next);
            at = next;
        }
        let Some(&byte) = self.text.get(at) else {
            return fits || !self.stack.is_empty();
        };
        if fits && depth > 0 && reading.inner_quotes == 0 && self.plainly_follows(byte, at) {
            return true;
        }
        let is_last = self.at == self.last_quote && !self.stack.is_empty();
        let strict = reading.inner_quotes > 0 && !is_last || self.leaves_bracket_open(reading);
        if !fits {
            return !strict && (broken || matches!(byte, b',' | b'"' | b'/' | b'#'));
        }
        if depth == 0 {
            return !strict
                || broken
                || byte == b'`'
                || byte == b','
                    && matches!(
                        self.text.get(look::skip_space(self.text, at + 1)),
                        None | Some(b'{' | b'[' | b'"')
                    );
        }
        match byte {
            b',' if strict && self.stack[depth - 1].has_keys() => {
                let next = look::skip_space(self.text, at + 1);
                look::key_ahead(self.text, next)
                    || matches!(self.text.get(next), None | Some(b'}' | b']' | b'{' | b'['))
            }
            b',' if strict => {
                let next = look::skip_space(self.text, at + 1);
                self.text
                    .get(next)
                    .is_none_or(|byte| !byte.is_ascii_alphabetic())
            }
            b',' | b'/' | b'#' | b';' | b'{' | b'[' | b'"' | b'\'' | b'.' => true,
            b'`' => true,
            _ => !strict || broken,
        }
    }

    /// Whether a comma and the start of a value or key come at `at`, as they should.
    fn plainly_follows(&self, byte: u8, at: usize) -> bool {
        let next = look::skip_space(self.text, at + 1);
        byte == b',' && matches!(self.text.get(next), Some(b'"' | b'{' | b'['))
    }

    /// Whether the string so far opens a bracket that it does not close: `"list [1, 2"] more"`.
    fn leaves_bracket_open(&self, reading: &Reading) -> bool {
        let text = &self.text[reading.content..self.at];
        let text = &text[text.len().saturating_sub(200)..];
        bracket_balance(text) > 0
    }

    /// Another quote comes right after the quote: is it the start of the next string?
    fn string_may_follow(&self, after: usize, next: usize) -> bool {
        let beyond = look::skip_space(self.text, next + 1);
        let delimited = matches!(self.text.get(beyond), None | Some(b',' | b'}' | b']'));
        if next == after && delimited {
            return false;
        }
        let ahead = look::string_ahead(self.text, next);
        if self.top_has_keys() {
            return ahead
                .is_some_and(|(_, beyond)| matches!(self.text.get(beyond), Some(b':' | b'=')));
        }
        if self.stack.is_empty() {
            return self.line_break(after, next);
        }
        ahead.is_none_or(|(_, beyond)| {
            matches!(
                self.text.get(beyond),
                None | Some(b',' | b']' | b'}' | b')' | b'"')
            ) || look::plain_scalar_ahead(self.text, beyond)
        })
    }

    /// Where the string ended, if the quote at `at` already begins the next one.
    fn ended_before(&self, reading: &Reading) -> Option<usize> {
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

    /// Follows structure after a value; says whether a key may come after it, if anything may.
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

/// Whether a text begins with a drive and a single backslash: `C:\Users`.
fn is_windows_path(text: &[u8]) -> bool {
    match text {
        [drive, b':', b'\\', next, ..] => {
            drive.is_ascii_alphabetic() && !matches!(next, b'\\' | b'"')
        }
        _ => false,
    }
}

/// How many more brackets a text opens than it closes.
fn bracket_balance(text: &[u8]) -> i64 {
    text.iter().fold(0, |balance, byte| match byte {
        b'{' | b'[' | b'(' => balance + 1,
        b'}' | b']' | b')' => balance - 1,
        _ => balance,
    })
}

/// Where a key ends that lacks its closing quote: before its colon.
fn key_end(text: &[u8]) -> Option<usize> {
    let colon = text.iter().position(|&byte| byte == b':')?;
    let key = text[..colon].trim_ascii_end();
    let key = key.strip_suffix(b"'").unwrap_or(key);
    Some(key.len())
}

/// Splits off the white space, brackets, commas and comments that a text ends with.
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

/// Where a text ends that goes on with a comma, a bare key and its colon.
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

/// Whether what is left could be the start of the second half of a surrogate pair.
fn is_escape_start(rest: &[u8]) -> bool {
    let digits = rest.strip_prefix(b"\\u");
    rest.is_empty()
        || rest == b"\\"
        || digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// The bytes that need a decision in a string that does not begin with a double quote.
static SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[b'\'' as usize] = true;
    table[b'`' as usize] = true;
    table[0xC2] = true;
    table[0xE2] = true;
    table
};
