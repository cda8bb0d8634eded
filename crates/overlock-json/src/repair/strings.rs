//! Reads a string with wrong, missing or unescaped quotes.
//!
//! A quote ends the string if valid JSON can follow; any other quote is part of the text. If the
//! parser finds later that the closing quote was missing, it reads the string again and stops where
//! it should have ended, so every byte is read at most twice.

use super::brackets::Bracket;
use super::draft::Mark;
use super::fix::FixKind;
use super::look::{self, Quote};
use super::parser::{Ending, Expect, Keys, Parser};
use super::verdict::Verdict;
use super::work;
use crate::vector;

/// How many quotes enclose a string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Once,
    /// `""text""`
    Twice,
    /// As in Python: only three quotes end the string.
    Thrice,
}

/// The state while reading a string.
pub(super) struct StringReading {
    pub(super) quote: Quote,
    /// Where the opening quote is.
    pub(super) opening: usize,
    /// Where the content begins.
    pub(super) content: usize,
    /// Where the string must stop, if known.
    pub(super) stop: Option<usize>,
    pub(super) inner_quotes: usize,
    /// An inner quotation is open: `the "word`.
    pub(super) inside_quotes: bool,
    /// The opening quote was escaped, so an escaped one can end the string.
    pub(super) escaped: bool,
    pub(super) written: Written,
    /// Where an embedded document with unescaped quotes ends.
    pub(super) embedded: usize,
    /// The content is a Windows path, in which every backslash is literal.
    pub(super) path: bool,
}

impl Parser<'_> {
    /// Reads the string that is quoted at `at`; without its opening quote if `continued`.
    pub(super) fn string(&mut self, continued: bool) {
        if !continued && self.plain_string() {
            return;
        }
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
            let reading = StringReading {
                quote,
                opening: start,
                content: self.at,
                stop,
                inner_quotes: 0,
                inside_quotes: false,
                escaped: start > 0 && self.text[start - 1] == b'\\',
                written: if tripled {
                    Written::Thrice
                } else {
                    Written::Once
                },
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

    /// Reads a string that is well-formed and clearly ends, as most do.
    fn plain_string(&mut self) -> bool {
        let (start, quote) = (self.at, self.byte());
        if !matches!(quote, b'"' | b'\'') {
            return false;
        }
        let end = vector::string_stop_or(quote, self.text, start + 1);
        let Some(&[close, follower]) = self.text.get(end..end + 2) else {
            return false;
        };
        if close != quote || !self.plainly_ends(follower, end + 2) {
            return false;
        }
        if quote == b'\'' {
            self.fix(FixKind::Quotes);
            // Copied at once, for speed.
            let position = self.draft.position(start);
            self.draft.patch(position, b'"', end);
            self.draft.replace(end, end + 1, b"\"");
        }
        self.at = end + 1;
        true
    }

    /// Whether a string certainly ends before `follower`, with more of the document at `beyond`.
    fn plainly_ends(&self, follower: u8, beyond: usize) -> bool {
        if self.expect == Expect::Key {
            return follower == b':';
        }
        let next = look::skip_space(self.text, beyond);
        let quoted = matches!(self.text.get(next), Some(b'"' | b'\''));
        match (follower, self.top()) {
            (b',', Some(Bracket::Object)) => quoted && look::quoted_key_ahead(self.text, next),
            (b',', Some(Bracket::Array)) => quoted,
            (b'}', Some(Bracket::Object)) | (b']', Some(Bracket::Array)) => {
                self.stack.len() > 1 && self.plainly_follows(next)
            }
            _ => false,
        }
    }

    /// Whether a string in triple quotes begins here.
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

    /// Where a document ends that begins directly after the quote and that a quote follows:
    /// `"{"a": 1}"`. 0 if there is none.
    fn embedded_end(&mut self) -> usize {
        let start = self.at;
        let key = look::skip_space(self.text, start + 1);
        if self.text.get(start) != Some(&b'{') || !look::quoted_key_ahead(self.text, key) {
            return 0;
        }
        // Failed searches share a budget, so that all of them together are linear.
        let limit = self.text.len().min(start + self.search_budget);
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
        work::add(at - start);
        let quote = look::skip_space(self.text, at + 1);
        let next = look::skip_space(self.text, quote + 1);
        let closed = depth == 0 && self.text.get(quote) == Some(&b'"');
        if closed && matches!(self.text.get(next), None | Some(b',' | b'}' | b']')) {
            return quote;
        }
        self.search_budget = self.search_budget.saturating_sub(at - start);
        0
    }

    /// Reads to the end of the string, or returns where it must stop when it is read again.
    fn read_string(&mut self, mut reading: StringReading) -> Option<usize> {
        loop {
            let from = self.at;
            self.at = self.next_special(&reading);
            work::add(1 + self.at.saturating_sub(from));
            if reading.stop.is_some_and(|stop| self.at >= stop) {
                self.stop_string();
                return None;
            }
            let Some(&byte) = self.text.get(self.at) else {
                return self.end_of_text(&reading);
            };
            match byte {
                b'\\' => {
                    if self.escape(&mut reading) {
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
    fn next_special(&self, reading: &StringReading) -> usize {
        let limit = reading.stop.unwrap_or(self.text.len());
        let (text, at) = (&self.text[..limit], self.at.min(limit));
        match reading.quote {
            Quote::Double => return vector::string_stop(text, at),
            Quote::Single => return vector::string_stop_or(b'\'', text, at),
            Quote::TypographicDouble => return vector::string_stop_or(0xE2, text, at),
            _ => {}
        }
        let rest = &text[at..];
        let special = rest.iter().position(|&byte| SPECIAL[usize::from(byte)]);
        special.map_or(limit, |length| at + length)
    }

    fn end_string(&mut self, quote: Quote, width: usize, reading: &StringReading) {
        if quote == Quote::Double {
            self.at += 1;
        } else {
            self.draft.replace(self.at, self.at + width, b"\"");
            self.at += width;
        }
        if reading.written == Written::Thrice {
            return self.drop_bytes(2, FixKind::ExtraQuote);
        }
        if reading.written == Written::Twice
            && look::quote_at(self.text, self.at).is_some_and(|(other, _)| other == quote)
        {
            self.drop_bytes(width, FixKind::ExtraQuote);
        }
    }

    /// Ends a string without its closing quote; white space before the end does not belong to it.
    fn stop_string(&mut self) {
        if self.text.get(self.at) == Some(&b'"') {
            self.at += 1;
            return;
        }
        self.fix(FixKind::MissingQuote);
        self.draft.replace(self.at, self.at, b"\"");
    }

    fn inner_quote(&mut self, quote: Quote, width: usize, reading: &mut StringReading) {
        let first = self.at == reading.content && quote == reading.quote;
        if first && reading.written == Written::Once && self.is_doubled(width) {
            reading.written = Written::Twice;
            self.drop_bytes(width, FixKind::ExtraQuote);
            reading.content = self.at;
            return;
        }
        reading.inner_quotes += 1;
        // An apostrophe or an inch mark, after a letter or a digit, opens no quotation.
        let opens = self.at == reading.content || !self.text[self.at - 1].is_ascii_alphanumeric();
        reading.inside_quotes = !reading.inside_quotes && opens;
        if quote == Quote::Double {
            self.fix(FixKind::InnerQuote);
            self.draft.replace(self.at, self.at, b"\\");
        }
        self.at += width;
    }

    /// Whether the second of two quotes at the start of a string is a duplicate, rather than text.
    fn is_doubled(&mut self, width: usize) -> bool {
        let Some((end, beyond)) = look::string_ahead(self.text, self.at) else {
            return false;
        };
        if look::quote_at(self.text, end + width).is_some() {
            // If the quotes of keys are doubled, all quotes are; otherwise they are text.
            if self.expect == Expect::Key {
                self.keys = Keys::Doubled;
            }
            return self.keys == Keys::Doubled;
        }
        match self.text.get(beyond) {
            None | Some(b'}' | b']' | b':') => true,
            Some(b',') => {
                let next = look::skip_space(self.text, beyond + 1);
                look::quote_at(self.text, next).is_some() || look::key_ahead(self.text, next)
            }
            _ => false,
        }
    }

    /// Handles the end of the text inside a string.
    fn end_of_text(&mut self, reading: &StringReading) -> Option<usize> {
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
