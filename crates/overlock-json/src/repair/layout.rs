//! Skips what is between the tokens: white space, comments, ellipses, stray words, and the gap
//! between two documents.

use super::Several;
use super::fix::FixKind;
use super::look;
use super::parser::{Expect, Parser};
use super::work;
use crate::extract::{begins_value, next_apart};
use crate::plain;

impl Parser<'_> {
    /// Skips white space and comments between tokens.
    #[inline]
    pub(super) fn skip_layout(&mut self) {
        let space = usize::from(self.text.get(self.at) == Some(&b' '));
        match self.text.get(self.at + space) {
            Some(&byte) if PLAIN[usize::from(byte)] => self.at += space,
            _ => self.skip_odd_layout(),
        }
    }

    #[inline(never)]
    fn skip_odd_layout(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                self.at = plain::skip_white_space(self.text, self.at);
                continue;
            }
            if PLAIN[usize::from(byte)] {
                break;
            }
            let code = plain::terminal_code_len(self.rest());
            if code > 0 {
                self.drop_bytes(code, FixKind::StrayText);
                continue;
            }
            let odd = look::odd_space_len(self.text, self.at);
            if odd > 0 {
                self.fix(FixKind::WhiteSpace);
                self.draft.replace(self.at, self.at + odd, b" ");
                self.at += odd;
                continue;
            }
            let comment = self.comment_len();
            if comment == 0 {
                break;
            }
            work::add(comment);
            self.drop_bytes(comment, FixKind::Comment);
        }
    }

    fn comment_len(&self) -> usize {
        let rest = self.rest();
        let line = || {
            rest.iter()
                .position(|&byte| byte == b'\n')
                .unwrap_or(rest.len())
        };
        let block = |open: usize, close: &[u8]| {
            let body = &rest[open..];
            let found = body.windows(close.len()).position(|window| window == close);
            found.map_or(rest.len(), |length| open + length + close.len())
        };
        // A colour such as `#fff` is a value, so `#` opens a comment only where no value is expected.
        let value_due = self.expect == Expect::Value && self.top_has_keys();
        match rest {
            [b'/', b'/', ..] => line(),
            [b'/', b'*', ..] => block(2, b"*/"),
            [b'<', b'!', b'-', b'-', ..] => block(4, b"-->"),
            [b'#', ..] if !value_due && self.expect != Expect::Done => line(),
            _ => 0,
        }
    }

    /// Skips a fence between tokens.
    pub(super) fn fence(&mut self) {
        let ticks = self.rest().iter().take_while(|&&byte| byte == b'`').count();
        let tag = look::word_len(self.text, self.at + ticks);
        self.drop_bytes(ticks + tag, FixKind::Fence);
    }

    pub(super) fn ellipsis(&mut self) {
        if self.expect == Expect::Value && self.top_has_keys() {
            let length = look::ellipsis_len(self.text, self.at);
            self.fix(FixKind::Ellipsis);
            self.draft.replace(self.at, self.at + length, b"null");
            self.at += length;
            self.complete_value(false);
            return;
        }
        // Words may follow the dots: `... (3 more)`.
        let dots = look::ellipsis_len(self.text, self.at);
        let words = self.rest()[dots..]
            .iter()
            .take_while(|byte| {
                !matches!(byte, b',' | b'}' | b']' | b'\n' | b'"' | b'{' | b'[' | b'/')
            })
            .count();
        self.drop_bytes(dots + words, FixKind::Ellipsis);
    }

    /// Skips words that are neither key nor value.
    pub(super) fn stray_words(&mut self) {
        let length = self
            .rest()
            .iter()
            .skip(1)
            .position(|byte| matches!(byte, b'"' | b',' | b'}' | b']' | b'\n' | b'{' | b'['))
            .map_or(self.rest().len(), |length| length + 1);
        self.drop_bytes(length, FixKind::StrayText);
    }

    /// Begins the next document after a complete one, or leaves out the rest.
    pub(super) fn next_document(&mut self) -> bool {
        let end = self.at;
        if let Some(next) = next_apart(self.text, self.start, end) {
            work::add(next - end);
            self.fix(FixKind::Several);
            return self.begin_document(end, next);
        }
        let mut next = end;
        let mut separated = self.text[..end].ends_with(b"\n");
        let mut kind = FixKind::Prose;
        while let Some(&byte) = self.text.get(next) {
            match byte {
                b',' | b';' => {
                    separated = true;
                    kind = FixKind::ExtraComma;
                    next += 1;
                }
                b'}' | b']' | b')' => {
                    kind = FixKind::ExtraBracket;
                    next += 1;
                }
                b' ' | b'\t' | b'\r' => next += 1,
                b'-' if self.text[next..].starts_with(b"---\n") => next += 3,
                b'\n' => {
                    separated = true;
                    next += 1;
                }
                b'`' if self.text[next..].starts_with(b"```") => {
                    kind = FixKind::Fence;
                    let ticks = self.text[next..]
                        .iter()
                        .take_while(|&&tick| tick == b'`')
                        .count();
                    next += ticks + look::word_len(self.text, next + ticks);
                }
                b'/' if matches!(self.text.get(next + 1), Some(b'/' | b'*')) => {
                    self.at = next;
                    next += self.comment_len();
                    kind = FixKind::Comment;
                }
                _ => break,
            }
        }
        work::add(next - end);
        self.at = end;
        let begins = match self.text.get(next) {
            None => false,
            Some(&byte @ (b'{' | b'[')) => begins_value(&self.text[next + 1..], byte),
            Some(_) => self.first_is_scalar && separated && self.scalar_begins(next),
        };
        if next < self.text.len() && !begins {
            kind = FixKind::Prose;
        }
        self.fix(if begins { FixKind::Several } else { kind });
        if begins {
            return self.begin_document(end, next);
        }
        self.leave_out_rest(end, next);
        false
    }

    fn leave_out_rest(&mut self, end: usize, next: usize) {
        self.draft.truncate(self.value_end, end);
        self.draft.skip(end, self.text.len());
        self.rest = next;
        self.at = self.text.len();
    }

    /// Begins the document at `next` after one that ends at `end`, unless only the first is kept.
    fn begin_document(&mut self, end: usize, next: usize) -> bool {
        if self.several == Several::First {
            self.leave_out_rest(end, next);
            return false;
        }
        self.draft.truncate(self.value_end, end);
        self.draft.replace(end, next, b",\n");
        self.at = next;
        self.documents += 1;
        self.expect = Expect::Value;
        true
    }

    fn scalar_begins(&self, at: usize) -> bool {
        look::quote_at(self.text, at).is_some() || look::plain_scalar_ahead(self.text, at)
    }
}

/// The bytes that begin neither odd white space nor a comment.
static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = b'!';
    while byte < 0x7F {
        table[byte as usize] = !matches!(byte, b'/' | b'#' | b'<' | b'\\');
        byte += 1;
    }
    table
};
