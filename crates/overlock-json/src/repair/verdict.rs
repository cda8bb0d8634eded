//! Decides whether a quote ends a string.
//!
//! It does if valid JSON can follow. In a string that already contains quotes, more of the following
//! text must be valid.

use super::fix::FixKind;
use super::look::{self, Quote};
use super::parser::{Expect, Keys, Parser};
use super::strings::{StringReading, Written};
use super::unclosed::bracket_balance;
use super::work;
use crate::extract::begins_value;

/// What a quote inside a string means.
pub(super) enum Verdict {
    /// The end of the string.
    End,
    /// Part of the text.
    Inner,
    /// The start of the next string: this one should have ended at an earlier byte.
    EndedAt(usize),
}

impl Parser<'_> {
    pub(super) fn judge(&self, quote: Quote, width: usize, reading: &StringReading) -> Verdict {
        if reading.stop.is_some() || self.at < reading.embedded {
            return Verdict::Inner;
        }
        if reading.written == Written::Thrice {
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
            let mixed = quote == Quote::Double
                && match self.text.get(next) {
                    Some(b':') => is_key && !self.own_quote_ends_key(reading),
                    Some(b',') => {
                        let key = look::skip_space(self.text, next + 1);
                        reading.inner_quotes == 0
                            && self.top_has_keys()
                            && self.text.get(key) == Some(&b'"')
                            && look::quoted_key_ahead(self.text, key)
                    }
                    _ => false,
                };
            return if mixed { Verdict::End } else { Verdict::Inner };
        }
        let twice = look::quote_at(self.text, self.at + width).map(|(other, _)| other);
        if reading.written == Written::Twice && twice == Some(quote) {
            return Verdict::End;
        }
        if self.may_end(self.at + width, reading) {
            return Verdict::End;
        }
        match self.ended_before(reading) {
            Some(stop) => Verdict::EndedAt(stop),
            None => Verdict::Inner,
        }
    }

    /// Whether valid JSON can follow at `after` if the string ends before it.
    pub(super) fn may_end(&self, after: usize, reading: &StringReading) -> bool {
        if self.expect == Expect::Key {
            self.key_may_end(after, reading)
        } else {
            self.value_may_end(after, reading)
        }
    }

    fn own_quote_ends_key(&self, reading: &StringReading) -> bool {
        look::quoted_key_ahead(self.text, reading.opening)
    }

    fn key_may_end(&self, after: usize, reading: &StringReading) -> bool {
        let next = look::skip_space(self.text, after);
        let Some(&byte) = self.text.get(next) else {
            return true;
        };
        match byte {
            b':' | b'=' | b'{' | b'[' | b'/' | b'#' => true,
            b',' | b'}' | b']' => reading.inner_quotes == 0,
            b'-' if self.text[next..].starts_with(b"->") => true,
            b'0'..=b'9' | b'-' => look::plain_scalar_ahead(self.text, next),
            b'*' => self.text[next..].starts_with(b"**"),
            _ if look::full_width(self.text, next) == Some(b':') => true,
            _ if self.at == reading.content && next == after => false,
            _ if look::quote_at(self.text, next).is_some() => {
                // `{"a" "b"}` lacks a colon; `{""a"": 1}` and `{"a"": 1}` have an extra quote.
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

    fn value_may_end(&self, after: usize, reading: &StringReading) -> bool {
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
            b'.' => look::ellipsis_len(self.text, next) > 0 || self.is_stray_before_key(next),
            b'\\' => {
                look::odd_space_len(self.text, next) > 0 && self.escaped_break_then_token(next)
            }
            0xE3 | 0xEF if look::full_width(self.text, next) == Some(b',') => {
                let token = look::skip_space(self.text, next + 3);
                !in_object || look::key_ahead(self.text, token) || self.full_width_key_ahead(token)
            }
            b'0'..=b'9' | b'-' => !in_object && look::plain_scalar_ahead(self.text, next),
            _ if look::quote_at(self.text, next).is_some() => self.string_may_follow(after, next),
            _ => {
                let broken = self.line_break(after, next);
                let lonely = reading.inner_quotes == 0;
                if in_object {
                    (broken || lonely && self.keys == Keys::Bare)
                        && look::bare_key_ahead(self.text, next)
                        || look::plain_scalar_ahead(self.text, next)
                        || self.is_stray_before_key(next)
                        || lonely && next > after && self.words_then_end(next, reading.quote)
                } else {
                    look::plain_scalar_ahead(self.text, next)
                        || lonely && next > after && self.words_then_end(next, reading.quote)
                        || broken && reading.inner_quotes == 0 && self.bare_line_ahead(next)
                }
            }
        }
    }

    fn comma_may_follow(&self, comma: usize, reading: &StringReading) -> bool {
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
                    !reading.inside_quotes && look::bare_key_ahead(self.text, next)
                        || self.missing_opening_quote(next)
                        || self.is_stray_before_key(next)
                        || !strict && self.key_looks_bare(next)
                }
            };
        }
        let strict = reading.inside_quotes;
        match byte {
            b'{' | b'[' => begins_value(&self.text[next + 1..], byte),
            b'(' | b'\\' => true,
            b'0'..=b'9' | b'-' => !strict || look::plain_scalar_ahead(self.text, next),
            _ if look::quote_at(self.text, next).is_some() => {
                !strict
                    || look::string_ahead(self.text, next).is_none_or(|(_, beyond)| {
                        let byte = self.text.get(beyond);
                        matches!(byte, None | Some(b',' | b']' | b'}' | b')' | b':'))
                    })
            }
            _ if look::plain_scalar_ahead(self.text, next) => true,
            _ => {
                !strict
                    && (self.stack.is_empty()
                        || self.bare_line_ahead(next)
                        || self.unopened_element_ahead(next))
            }
        }
    }

    /// Follows the closing brackets after a quote through the open containers.
    fn closer_may_follow(&self, first: usize, reading: &StringReading) -> bool {
        let mut depth = self.stack.len();
        let mut at = first;
        let mut broken = false;
        let mut fits = true;
        while let Some(&byte @ (b'}' | b']' | b')')) = self.text.get(at) {
            work::add(1);
            match depth.checked_sub(1).map(|index| self.stack[index]) {
                // Extra brackets after everything is closed.
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
        if fits && depth > 0 && reading.inner_quotes == 0 && self.plainly_follows(at) {
            return true;
        }
        let is_last = self.at == self.last_quote() && !self.stack.is_empty();
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
                let word = self.text.get(next).is_some_and(u8::is_ascii_alphabetic);
                !word || look::plain_scalar_ahead(self.text, next)
            }
            b',' | b'/' | b'#' | b';' | b'{' | b'[' | b'"' | b'\'' | b'.' | b'`' => true,
            _ => !strict || broken,
        }
    }

    /// Whether a second quote after the quote is the start of the next string.
    fn string_may_follow(&self, after: usize, next: usize) -> bool {
        let beyond = look::skip_space(self.text, next + 1);
        let delimited = matches!(self.text.get(beyond), None | Some(b',' | b'}' | b']'));
        if next == after && delimited {
            return false;
        }
        let ahead = look::string_ahead(self.text, next);
        if self.top_has_keys() {
            return ahead.is_some_and(|(_, beyond)| match self.text.get(beyond) {
                Some(b':' | b'=') => true,
                Some(_) => next > after && self.lacks_colon() && self.value_begins(beyond),
                None => false,
            });
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

    /// Whether the colon before this value was missing, so the next one may be missing, too.
    fn lacks_colon(&self) -> bool {
        self.draft.last_fix() == Some(FixKind::MissingColon)
    }

    fn value_begins(&self, at: usize) -> bool {
        look::quote_at(self.text, at).is_some()
            || look::plain_scalar_ahead(self.text, at)
            || matches!(self.text.get(at), Some(b'{' | b'['))
    }

    /// Whether a comma and the start of a value or key follow at `at`.
    pub(super) fn plainly_follows(&self, at: usize) -> bool {
        let next = look::skip_space(self.text, at + 1);
        self.text.get(at) == Some(&b',')
            && match self.text.get(next) {
                Some(b'"' | b'{' | b'[') => true,
                Some(_) => look::plain_scalar_ahead(self.text, next),
                None => false,
            }
    }

    /// Whether the string so far opens a bracket that it does not close: `"list [1, 2"] more"`.
    fn leaves_bracket_open(&self, reading: &StringReading) -> bool {
        let text = &self.text[reading.content..self.at];
        let text = &text[text.len().saturating_sub(200)..];
        bracket_balance(text) > 0
    }

    /// Whether bare words and then structure follow, without a quote: the string has ended and the
    /// words are stray.
    fn words_then_end(&self, at: usize, own: Quote) -> bool {
        let rest = &self.text[at..];
        let words = rest.iter().take(100).position(|byte| {
            matches!(byte, b',' | b'}' | b']' | b'\n' | b'"' | b':' | b'{' | b'[')
        });
        let Some(words) = words else { return false };
        let quoted =
            |index| look::quote_at(self.text, at + index).is_some_and(|(quote, _)| quote == own);
        if (0..words).any(quoted) {
            return false;
        }
        let next = look::skip_space(self.text, at + words + 1);
        match rest[words] {
            b'}' => self.top_has_keys(),
            b']' => !self.top_has_keys(),
            b',' if self.top_has_keys() => look::quoted_key_ahead(self.text, next),
            b',' => look::quote_at(self.text, next).is_some(),
            _ => false,
        }
    }

    /// Whether one bare word or mark and then a complete key follow: the word is stray.
    fn is_stray_before_key(&self, at: usize) -> bool {
        let mark = matches!(self.text.get(at), Some(b'.' | b'|' | b';' | b'*'));
        let stray = look::word_len(self.text, at).max(usize::from(mark));
        stray > 0 && look::quoted_key_ahead(self.text, look::skip_space(self.text, at + stray))
    }

    /// Whether words with a colon, a key in bold type, or a last word of the text follow.
    fn key_looks_bare(&self, at: usize) -> bool {
        let rest = &self.text[at..];
        let bold = rest.strip_prefix(b"**").map_or(0, |_| 2);
        look::bare_words_key_ahead(self.text, at)
            || bold > 0 && look::quote_at(self.text, at + bold).is_some()
            || at + look::word_len(self.text, at) == self.text.len()
    }

    /// Whether a line break that was escaped with the document, and then structure, follow.
    fn escaped_break_then_token(&self, at: usize) -> bool {
        let next = look::skip_space(self.text, at + 2);
        matches!(self.text.get(next), Some(b'}' | b']' | b'"' | b'\\'))
    }

    fn full_width_key_ahead(&self, at: usize) -> bool {
        look::string_ahead(self.text, at)
            .is_some_and(|(_, beyond)| look::full_width(self.text, beyond) == Some(b':'))
    }

    /// Whether the bare text up to the next separator has no quote in it.
    fn bare_line_ahead(&self, at: usize) -> bool {
        let end = self.text[at..]
            .iter()
            .take(200)
            .find(|byte| matches!(byte, b',' | b']' | b'\n' | b'"'));
        end.is_none_or(|&byte| byte != b'"')
    }

    /// Whether a string without a colon after it can be a key, because a value follows.
    fn key_looks_odd(&self, key: usize, beyond: usize) -> bool {
        let key = &self.text[key..beyond];
        let content = key.trim_ascii_end().strip_suffix(b"\"").unwrap_or(key);
        look::quote_at(self.text, beyond).is_some() && key.ends_with(b" ")
            || content.trim_ascii_end().ends_with(b":")
            || look::plain_scalar_ahead(self.text, beyond)
    }

    /// `name": value`: a key without its opening quote.
    fn missing_opening_quote(&self, at: usize) -> bool {
        let word = look::word_len(self.text, at);
        word > 0
            && self.text.get(at + word) == Some(&b'"')
            && self.text.get(look::skip_space(self.text, at + word + 1)) == Some(&b':')
    }

    /// `element", …`: an element of an array without its opening quote.
    fn unopened_element_ahead(&self, at: usize) -> bool {
        let word = look::word_len(self.text, at);
        word > 0
            && self.text.get(at + word) == Some(&b'"')
            && matches!(
                self.text.get(look::skip_space(self.text, at + word + 1)),
                Some(b',' | b']')
            )
    }

    fn line_break(&self, from: usize, to: usize) -> bool {
        self.text[from..to].contains(&b'\n')
    }
}
