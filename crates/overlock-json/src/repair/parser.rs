//! Parses a malformed document and writes the valid one.
//!
//! One loop over the tokens with an explicit stack, so that depth does not use the call stack. An
//! unexpected token is interpreted as the most likely error. Input is skipped, replaced or completed,
//! never reordered, so every step moves forward and the parser is linear.

use super::Several;
use super::brackets::{Bracket, bracket_index};
use super::checkpoint::Checkpoint;
use super::draft::Draft;
use super::fix::{Fix, FixKind};
use super::groups::Groups;
use super::look;
use super::work;
use std::cell::OnceCell;

/// What to do with a document that is open at the end of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Close it, and leave out an incomplete value.
    Close,
    /// Leave it open, as a prefix of a valid document.
    StayOpen,
}

/// How a document begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// With a value.
    Value,
    /// With the first key of an object whose bracket is missing.
    Members,
}

/// A repaired document.
pub(super) struct RepairedDocument {
    pub(super) json: String,
    pub(super) fixes: Vec<Fix>,
    /// Where the text after the document begins, which was left out.
    pub(super) rest: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Key,
    Colon,
    Value,
    /// A comma or a closing bracket.
    After,
    /// The document is complete.
    Done,
}

/// How keys are quoted. A text is expected to do so consistently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    Plain,
    /// Without quotes.
    Bare,
    /// In two pairs of quotes.
    Doubled,
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t [u8],
    pub(super) start: usize,
    pub(super) at: usize,
    pub(super) draft: Draft<'t>,
    pub(super) stack: Vec<Bracket>,
    pub(super) expect: Expect,
    pub(super) ending: Ending,
    pub(super) groups: Groups,
    /// How many brackets of each kind are open: curly, square, round.
    pub(super) open: [usize; 3],
    /// The position in the draft of the last comma, if nothing follows it yet.
    pub(super) comma: Option<usize>,
    /// The offset of that comma in the text.
    pub(super) comma_offset: usize,
    /// Where the last value, or the opening bracket of the container, ends in the draft.
    pub(super) value_end: usize,
    pub(super) value_start: usize,
    pub(super) value_is_string: bool,
    /// The comma before the last value, if that is a string in an array.
    pub(super) value_comma: Option<usize>,
    /// Where the last bracket was opened in the draft.
    pub(super) opened: usize,
    /// If the last closed container is an array, which may be reopened: whether it is empty.
    pub(super) reopenable: Option<bool>,
    /// Where the current member begins in the draft, including the comma before it.
    pub(super) member: usize,
    /// Where the current key ends in the draft.
    pub(super) key_end: usize,
    pub(super) several: Several,
    pub(super) documents: usize,
    pub(super) first_is_scalar: bool,
    /// The last double quote of the text, searched when first needed.
    pub(super) last_quote: OnceCell<usize>,
    /// How many more bytes failed searches may read.
    pub(super) search_budget: usize,
    /// The last triple quote of the text, searched when first needed.
    pub(super) last_triple: Option<usize>,
    pub(super) keys: Keys,
    /// Where the text after the document begins, which was left out.
    pub(super) rest: usize,
    /// If the outermost bracket was missing, a missing closing bracket is no sign of a cut.
    pub(super) beginning: Beginning,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t [u8], start: usize, ending: Ending, several: Several) -> Self {
        Self {
            text,
            start,
            at: start,
            draft: Draft::new(text, start),
            stack: Vec::new(),
            expect: Expect::Value,
            ending,
            groups: Groups::default(),
            open: [0; 3],
            comma: None,
            comma_offset: 0,
            value_end: 0,
            value_start: 0,
            value_is_string: false,
            value_comma: None,
            opened: 0,
            reopenable: None,
            member: 0,
            key_end: 0,
            several,
            documents: 1,
            first_is_scalar: false,
            last_quote: OnceCell::new(),
            search_budget: text.len(),
            last_triple: None,
            keys: Keys::Plain,
            rest: text.len(),
            beginning: Beginning::Value,
        }
    }

    /// Begins at a checkpoint, whose offsets are relative to `origin`. The text before it is valid.
    pub(super) fn resume(&mut self, origin: usize, checkpoint: Checkpoint) {
        let start = self.at;
        for &kind in &checkpoint.stack {
            self.open[bracket_index(kind.closer())] += 1;
        }
        self.stack = checkpoint.stack;
        self.at = origin + checkpoint.at;
        self.opened = self.draft.position(origin + checkpoint.opener);
        self.expect = checkpoint.expect;
        let before = self.text[start..self.at].trim_ascii_end();
        self.value_end = before.len();
        if let Some(before) = before.strip_suffix(b",") {
            self.comma = Some(before.len());
            self.comma_offset = start + before.len();
            self.value_end = before.trim_ascii_end().len();
        }
    }

    /// Parses to the end; none if there was no value.
    pub(super) fn run(mut self, beginning: Beginning) -> Option<RepairedDocument> {
        if beginning == Beginning::Members {
            self.draft.replace(self.at, self.at, b"{");
            self.fix(FixKind::MissingBracket);
            self.push(Bracket::Object);
            self.beginning = Beginning::Members;
        }
        loop {
            work::add(1);
            self.skip_layout();
            if self.at >= self.text.len() {
                break;
            }
            match self.expect {
                Expect::Key => self.member(),
                Expect::Colon => self.colon(),
                Expect::Value => {
                    self.value();
                    self.plain_comma();
                }
                Expect::After => {
                    self.after();
                    self.plain_comma();
                }
                Expect::Done if self.value_is_string && self.byte() == b'+' => self.concatenation(),
                Expect::Done => {
                    if !self.next_document() {
                        break;
                    }
                }
            }
        }
        self.finish()
    }

    /// Reads a key, and also its colon and value if they follow directly, as in nearly all cases.
    fn member(&mut self) {
        self.key();
        if self.expect == Expect::Colon && self.text.get(self.at) == Some(&b':') {
            self.colon();
            self.skip_layout();
            if self.at < self.text.len() {
                self.value();
                self.plain_comma();
            }
        }
    }

    /// Reads the comma directly after a value, if there is one, as in nearly all cases.
    fn plain_comma(&mut self) {
        if self.expect == Expect::After && self.text.get(self.at) == Some(&b',') {
            self.take_comma();
        }
    }

    pub(super) fn byte(&self) -> u8 {
        self.text[self.at]
    }

    pub(super) fn rest(&self) -> &'t [u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    pub(super) fn fix(&mut self, kind: FixKind) {
        self.draft.fix(kind, self.at);
    }

    pub(super) fn top(&self) -> Option<Bracket> {
        self.stack.last().copied()
    }

    /// The container `levels` levels outside of the innermost one.
    pub(super) fn outer(&self, levels: usize) -> Option<Bracket> {
        self.stack.iter().nth_back(levels).copied()
    }

    pub(super) fn top_has_keys(&self) -> bool {
        self.top().is_some_and(Bracket::has_keys)
    }

    pub(super) fn last_quote(&self) -> usize {
        let find = || self.text.iter().rposition(|&byte| byte == b'"');
        *self.last_quote.get_or_init(|| find().unwrap_or(0))
    }

    /// How many open brackets `closer` could close.
    pub(super) fn open_count(&self, closer: u8) -> usize {
        self.open[bracket_index(closer)]
    }

    /// Whether a number at the end of the text may be incomplete.
    pub(super) fn may_be_shortened(&self, end: usize) -> bool {
        let inside = usize::from(self.beginning == Beginning::Members);
        end == self.text.len() && self.ending == Ending::Close && self.stack.len() > inside
    }

    /// Leaves out `length` bytes.
    pub(super) fn drop_bytes(&mut self, length: usize, kind: FixKind) {
        self.fix(kind);
        self.draft.skip(self.at, self.at + length);
        self.at += length;
    }

    pub(super) fn push(&mut self, kind: Bracket) {
        self.stack.push(kind);
        self.open[bracket_index(kind.closer())] += 1;
        self.opened = self.draft.position(self.at) - 1;
        self.value_end = self.opened + 1;
        self.comma = None;
        self.expect = if kind.has_keys() {
            Expect::Key
        } else {
            Expect::Value
        };
    }

    fn key(&mut self) {
        let byte = self.byte();
        if byte == b'"' {
            return self.string_key();
        }
        match byte {
            b'}' | b']' | b')' => self.closer(byte),
            b',' | b';' => self.drop_bytes(1, FixKind::ExtraComma),
            b'{' => self.object_for_key(),
            b'[' => self.array_for_key(),
            b':' => {
                self.begin_member();
                self.fix(FixKind::UnquotedKey);
                self.draft.replace(self.at, self.at, b"\"\"");
                self.end_key();
            }
            b'\\' if self.text.get(self.at + 1) == Some(&b'"') => {
                self.drop_bytes(1, FixKind::Escape);
            }
            b'*' => self.drop_bytes(1, FixKind::StrayText),
            b'0'..=b'9' | b'-' if self.is_first() && self.is_set_ahead() => {
                self.fix(FixKind::Brackets);
                self.become_set();
                self.expect = Expect::Value;
            }
            _ if look::quote_at(self.text, self.at).is_some() => self.string_key(),
            _ if look::ellipsis_len(self.text, self.at) > 0 => self.ellipsis(),
            _ => self.bare_key(),
        }
    }

    fn string_key(&mut self) {
        self.begin_member();
        self.string(false);
        self.end_key();
    }

    pub(super) fn begin_member(&mut self) {
        self.separate();
        self.member = self.comma.unwrap_or(self.value_end);
    }

    pub(super) fn end_key(&mut self) {
        self.key_end = self.draft.position(self.at);
        self.expect = Expect::Colon;
    }

    /// Whether the innermost container is empty so far.
    pub(super) fn is_first(&self) -> bool {
        self.comma.is_none() && self.value_end == self.opened + 1
    }

    fn colon(&mut self) {
        let byte = self.byte();
        match byte {
            b':' => {
                self.at += 1;
                self.expect = Expect::Value;
                if self.text.get(self.at) == Some(&b'=') {
                    self.drop_bytes(1, FixKind::Separator);
                }
            }
            b'=' | b'-' if byte == b'=' || self.rest().starts_with(b"->") => {
                let length = if self.rest().get(1) == Some(&b'>') {
                    2
                } else {
                    1
                };
                self.replace_separator(length, b":");
                self.expect = Expect::Value;
            }
            b',' | b'}' | b']' | b')' | b';' => self.key_without_value(byte),
            b'.' | b'|' | b'>' | b'+' | b'*' | b'\\' => self.drop_bytes(1, FixKind::StrayText),
            _ if look::full_width(self.text, self.at) == Some(b':') => {
                self.replace_separator(3, b":");
                self.expect = Expect::Value;
            }
            _ => {
                self.fix(FixKind::MissingColon);
                self.draft.insert(self.key_end, b":", self.at);
                self.expect = Expect::Value;
            }
        }
    }

    fn key_without_value(&mut self, byte: u8) {
        let is_only = self.member == self.opened + 1;
        let next = look::skip_space(self.text, self.at + 1);
        let more_keys = byte == b',' && look::key_ahead(self.text, next);
        let quoted = self.draft.last_fix() != Some(FixKind::UnquotedKey);
        if is_only && quoted && !more_keys && matches!(byte, b',' | b'}') {
            self.fix(FixKind::Brackets);
            self.become_set();
            self.value_start = self.member;
            self.value_is_string = true;
            self.value_end = self.key_end;
            self.comma = None;
            self.expect = Expect::After;
            return;
        }
        self.fix(FixKind::MissingValue);
        self.draft.insert(self.key_end, b": null", self.at);
        self.complete_value(false);
        self.value_end = self.key_end + 6;
    }

    fn value(&mut self) {
        let byte = self.byte();
        if byte == b'"' {
            return self.string_value();
        }
        if byte.is_ascii_alphanumeric() {
            return self.scalar();
        }
        match byte {
            b'{' => self.open_value(Bracket::Object),
            b'[' => self.open_value(Bracket::Array),
            b'(' => self.open_group(0, false),
            b'}' | b']' | b')' | b',' | b';' if self.top_has_keys() => {
                self.fix(FixKind::MissingValue);
                self.draft.replace(self.at, self.at, b"null");
                self.complete_value(false);
            }
            b'}' | b']' | b')' if !self.stack.is_empty() => self.closer(byte),
            b',' | b';' => self.drop_bytes(1, FixKind::ExtraComma),
            b'\\' if self.text.get(self.at + 1) == Some(&b'"') => {
                self.drop_bytes(1, FixKind::Escape);
            }
            b':' | b')' | b'}' | b']' => self.drop_bytes(1, FixKind::StrayText),
            b'`' if self.rest().starts_with(b"```") => self.fence(),
            _ if look::quote_at(self.text, self.at).is_some() => self.string_value(),
            _ if look::ellipsis_len(self.text, self.at) > 0 => self.ellipsis(),
            _ => self.scalar(),
        }
    }

    fn string_value(&mut self) {
        self.value_start = self.draft.position(self.at);
        let comma = self.comma.filter(|_| self.top() == Some(Bracket::Array));
        self.string(false);
        self.complete_value(true);
        self.value_comma = comma;
    }

    /// Ends a scalar at `at`.
    pub(super) fn complete_value(&mut self, is_string: bool) {
        self.count_value();
        if self.stack.is_empty() && self.documents == 1 {
            self.first_is_scalar = true;
        }
        self.end_value();
        self.value_is_string = is_string;
    }

    pub(super) fn end_value(&mut self) {
        self.comma = None;
        self.value_end = self.draft.position(self.at);
        self.value_is_string = false;
        self.value_comma = None;
        self.expect = if self.stack.is_empty() {
            Expect::Done
        } else {
            Expect::After
        };
    }

    fn after(&mut self) {
        let byte = self.byte();
        if matches!(byte, b'}' | b']') {
            return self.closer(byte);
        }
        match byte {
            b',' => self.take_comma(),
            b';' => {
                let position = self.draft.position(self.at);
                self.replace_separator(1, b",");
                self.after_comma(position);
            }
            0xE3 | 0xEF if look::full_width(self.text, self.at) == Some(b',') => {
                let position = self.draft.position(self.at);
                self.replace_separator(3, b",");
                self.after_comma(position);
            }
            b')' => self.closer(byte),
            b'+' if self.value_is_string => self.concatenation(),
            b':' | b'=' if self.value_is_string && !self.top_has_keys() => self.pair_in_array(),
            b':' | b'=' | b'+' | b'>' | b'|' | b'\\' => self.drop_bytes(1, FixKind::StrayText),
            b'`' if self.rest().starts_with(b"```") => self.fence(),
            _ if look::ellipsis_len(self.text, self.at) > 0 => self.ellipsis(),
            b'{' | b'[' if self.top_has_keys() => self.expect = Expect::Key,
            _ if self.top_has_keys() && !self.key_follows() => self.stray_words(),
            _ => {
                self.separate();
                self.expect = if self.top_has_keys() {
                    Expect::Key
                } else {
                    Expect::Value
                };
            }
        }
    }

    fn replace_separator(&mut self, length: usize, separator: &[u8]) {
        self.fix(FixKind::Separator);
        self.draft.replace(self.at, self.at + length, separator);
        self.at += length;
    }

    fn take_comma(&mut self) {
        let position = self.draft.position(self.at);
        self.at += 1;
        self.after_comma(position);
    }

    fn after_comma(&mut self, position: usize) {
        self.comma = Some(position);
        self.comma_offset = self.at.saturating_sub(1);
        if self.in_group()
            && let Some(group) = self.groups.last_mut()
        {
            group.comma = true;
        }
        self.expect = if self.top_has_keys() {
            Expect::Key
        } else {
            Expect::Value
        };
    }

    /// Inserts a comma before the next element if it is missing.
    pub(super) fn separate(&mut self) {
        if self.comma.is_some() || self.is_first() {
            return;
        }
        self.fix(FixKind::MissingComma);
        self.draft.insert(self.value_end, b",", self.at);
        self.after_comma(self.value_end);
    }

    /// Whether a key may follow after a value without a comma.
    fn key_follows(&self) -> bool {
        look::quote_at(self.text, self.at).is_some()
            || look::bare_key_ahead(self.text, self.at)
            || self.byte() == b'\\'
    }

    fn concatenation(&mut self) {
        let end = self.value_end;
        self.drop_bytes(1, FixKind::Concatenation);
        self.skip_layout();
        if look::quote_at(self.text, self.at).is_none() {
            self.draft.truncate(end, self.at);
            return;
        }
        self.draft.truncate(end - 1, self.at);
        self.string(true);
        self.end_value();
        self.value_is_string = true;
    }

    pub(super) fn remove_comma(&mut self, kind: FixKind) {
        if let Some(comma) = self.comma.take() {
            self.draft.fix(kind, self.comma_offset);
            self.draft.remove(comma, self.at);
        }
    }

    fn finish(mut self) -> Option<RepairedDocument> {
        let empty = self.expect == Expect::Value && self.stack.is_empty();
        if empty && self.documents == 1 {
            return None;
        }
        if self.ending == Ending::StayOpen {
            self.draft.copy_to(self.text.len());
            return Some(self.outcome());
        }
        if !self.stack.is_empty() {
            if self.draft.last_fix() != Some(FixKind::Truncated) {
                self.fix(FixKind::Truncated);
            }
            let unfinished =
                self.expect == Expect::Colon || self.expect == Expect::Value && self.top_has_keys();
            if unfinished {
                self.draft.truncate(self.member, self.at);
            } else if let Some(comma) = self.comma.take() {
                self.draft.remove(comma, self.at);
            }
            while let Some(kind) = self.pop() {
                if let Some(byte) = self.closing(kind) {
                    self.draft.replace(self.at, self.at, &[byte]);
                }
            }
        }
        self.draft.copy_to(self.text.len());
        if self.documents > 1 {
            self.draft.insert(0, b"[", self.at);
            self.draft.replace(self.at, self.at, b"]");
        }
        Some(self.outcome())
    }

    fn outcome(self) -> RepairedDocument {
        let (json, fixes) = self.draft.finish();
        RepairedDocument {
            json,
            fixes,
            rest: self.rest,
        }
    }
}

/// The length of the character that begins with this byte.
pub(super) fn character_len(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}
