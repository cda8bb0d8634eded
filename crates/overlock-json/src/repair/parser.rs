//! Reads a malformed document and drafts the valid one.
//!
//! One loop over the tokens with an explicit stack, so that depth costs memory
//! and not the call stack. At every token the parser knows what the grammar wants;
//! what comes instead is read as the likeliest slip. Input is skipped, replaced or
//! completed, never reordered, so every step moves forward and the whole is linear.

use super::draft::Draft;
use super::fix::{Fix, FixKind};
use super::look;
use crate::extract::begins_value;

/// What becomes of a document that is still open where the text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It is closed, and what is only half there is left out.
    Close,
    /// It stays open, as a prefix of a valid document.
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

/// The brackets the parser is inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    /// `{1, 2}`: an array in curly brackets.
    Set,
    /// `(1, 2)` or `name(1, 2)`: an array, or just the value if there is but one.
    Round,
    /// `{{…}}`: likewise, in curly brackets.
    Double,
    /// `{"a": 1, {"b": 2}}`: an object whose members belong to the one around it.
    Merged,
}

impl Kind {
    pub(super) fn has_keys(self) -> bool {
        matches!(self, Self::Object | Self::Merged)
    }

    /// The bracket that ends it in the input.
    pub(super) fn closer(self) -> u8 {
        match self {
            Self::Object | Self::Set | Self::Double | Self::Merged => b'}',
            Self::Array => b']',
            Self::Round => b')',
        }
    }
}

/// A bracket that is written as `[` until it is known to hold one value alone.
struct Group {
    position: usize,
    values: usize,
    comma: bool,
    call: bool,
}

/// What came of reading a text.
pub(super) struct Outcome {
    pub(super) json: String,
    pub(super) fixes: Vec<Fix>,
    /// Where the text begins that was left out after the document.
    pub(super) rest: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Key,
    Colon,
    Value,
    /// A comma or a closing bracket.
    After,
    /// The document is whole.
    Done,
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
    pub(super) draft: Draft<'t>,
    pub(super) stack: Vec<Kind>,
    pub(super) expect: Expect,
    pub(super) ending: Ending,
    groups: Vec<Group>,
    /// How many brackets of each kind are open: curly, square, round.
    open: [usize; 3],
    /// The comma after which nothing has come yet.
    comma: Option<usize>,
    /// Where that comma is in the text.
    comma_offset: usize,
    /// Where the last value, or the bracket that opens the container, ends in the draft.
    value_end: usize,
    pub(super) value_start: usize,
    value_is_string: bool,
    /// Where the last bracket was opened in the draft.
    opened: usize,
    /// The last container that was closed is an array that can go on; whether it is empty.
    reopenable: Option<bool>,
    /// Where the current member, with the comma before it, begins in the draft.
    member: usize,
    /// Where the current key ends in the draft.
    key_end: usize,
    several_allowed: bool,
    documents: usize,
    first_is_scalar: bool,
    /// Where the last double quote of the text is.
    pub(super) last_quote: usize,
    /// How many more bytes may be looked at in vain.
    pub(super) patience: usize,
    /// Where the last three quotes in a row are, once that has been asked.
    pub(super) last_triple: Option<usize>,
    /// Where the text begins that was left out after the document.
    rest: usize,
    /// The bracket around everything was missing, so that its end says nothing of a cut.
    implied: bool,
}

/// How far down the stack a bracket of the right kind is looked for.
const REACH: usize = 64;

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t [u8], start: usize, ending: Ending, several_allowed: bool) -> Self {
        Self {
            text,
            at: start,
            draft: Draft::new(text, start),
            stack: Vec::new(),
            expect: Expect::Value,
            ending,
            groups: Vec::new(),
            open: [0; 3],
            comma: None,
            comma_offset: 0,
            value_end: 0,
            value_start: 0,
            value_is_string: false,
            opened: 0,
            reopenable: None,
            member: 0,
            key_end: 0,
            several_allowed,
            documents: 1,
            first_is_scalar: false,
            last_quote: text.iter().rposition(|&byte| byte == b'"').unwrap_or(0),
            patience: text.len(),
            last_triple: None,
            rest: text.len(),
            implied: false,
        }
    }

    /// Reads to the end. Says nothing if there was no value.
    pub(super) fn run(mut self, beginning: Beginning) -> Option<Outcome> {
        if beginning == Beginning::Members {
            self.draft.replace(self.at, self.at, b"{");
            self.fix(FixKind::MissingBracket);
            self.push(Kind::Object);
            self.implied = true;
        }
        loop {
            self.skip_layout();
            if self.at >= self.text.len() {
                break;
            }
            match self.expect {
                Expect::Key => self.key(),
                Expect::Colon => self.colon(),
                Expect::Value => self.value(),
                Expect::After => self.after(),
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

    pub(super) fn byte(&self) -> u8 {
        self.text[self.at]
    }

    pub(super) fn rest(&self) -> &'t [u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    pub(super) fn fix(&mut self, kind: FixKind) {
        self.draft.fix(kind, self.at);
    }

    pub(super) fn top(&self) -> Option<Kind> {
        self.stack.last().copied()
    }

    pub(super) fn top_has_keys(&self) -> bool {
        self.top().is_some_and(Kind::has_keys)
    }

    /// How many brackets that `closer` would close are open.
    pub(super) fn open_count(&self, closer: u8) -> usize {
        self.open[bracket_index(closer)]
    }

    /// Whether a number at the end of the text may have lost its last digits.
    pub(super) fn may_be_shortened(&self, end: usize) -> bool {
        let inside = if self.implied { 1 } else { 0 };
        end == self.text.len() && self.ending == Ending::Close && self.stack.len() > inside
    }

    /// Leaves out `length` bytes.
    pub(super) fn drop_bytes(&mut self, length: usize, kind: FixKind) {
        self.fix(kind);
        self.draft.skip(self.at, self.at + length);
        self.at += length;
    }

    fn push(&mut self, kind: Kind) {
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

    /// White space and comments between tokens.
    fn skip_layout(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                self.at += 1;
                continue;
            }
            if PLAIN[usize::from(byte)] {
                break;
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
        // A colour is a value, so `#` opens a comment only where none is due.
        let value_due = self.expect == Expect::Value && self.top_has_keys();
        match rest {
            [b'/', b'/', ..] => line(),
            [b'/', b'*', ..] => block(2, b"*/"),
            [b'<', b'!', b'-', b'-', ..] => block(4, b"-->"),
            [b'#', ..] if !value_due && self.expect != Expect::Done => line(),
            _ => 0,
        }
    }

    fn key(&mut self) {
        let byte = self.byte();
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
            b'0'..=b'9' | b'-' if self.is_first() && self.is_set_ahead() => {
                self.fix(FixKind::Brackets);
                self.become_set();
                self.expect = Expect::Value;
            }
            _ if look::quote_at(self.text, self.at).is_some() => {
                self.begin_member();
                self.string(false);
                self.end_key();
            }
            _ if look::ellipsis_len(self.text, self.at) > 0 => self.ellipsis(),
            _ => self.bare_key(),
        }
    }

    pub(super) fn begin_member(&mut self) {
        self.separate();
        self.member = self.comma.unwrap_or(self.value_end);
    }

    pub(super) fn end_key(&mut self) {
        self.key_end = self.draft.position(self.at);
        self.expect = Expect::Colon;
    }

    /// Whether nothing has come yet in the innermost container.
    fn is_first(&self) -> bool {
        self.comma.is_none() && self.value_end == self.opened + 1
    }

    fn is_set_ahead(&self) -> bool {
        let token = self
            .rest()
            .iter()
            .take(40)
            .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
            .count();
        let next = look::skip_space(self.text, self.at + token);
        matches!(self.text.get(next), Some(b',' | b'}'))
    }

    fn become_set(&mut self) {
        if let Some(top) = self.stack.last_mut()
            && *top == Kind::Object
        {
            *top = Kind::Set;
            self.draft.patch(self.opened, b'[', self.at);
        }
    }

    /// A `{` where a key should be.
    fn object_for_key(&mut self) {
        let parent = self
            .stack
            .len()
            .checked_sub(2)
            .map(|index| self.stack[index]);
        if self.is_first() && self.top() == Some(Kind::Object) {
            self.fix(FixKind::Brackets);
            self.draft.patch(self.opened, b'[', self.at);
            if let Some(top) = self.stack.last_mut() {
                *top = Kind::Double;
            }
            self.groups.push(Group {
                position: self.opened,
                values: 0,
                comma: false,
                call: false,
            });
            self.expect = Expect::Value;
        } else if self.top() == Some(Kind::Object) && parent.is_some_and(|kind| !kind.has_keys()) {
            self.remove_comma(FixKind::ExtraComma);
            self.fix(FixKind::MissingBracket);
            self.close_missing();
        } else {
            self.separate();
            let comma = self.comma;
            let (opened, value_end) = (self.opened, self.value_end);
            self.drop_bytes(1, FixKind::ExtraBracket);
            self.push(Kind::Merged);
            self.comma = comma;
            self.opened = opened;
            self.value_end = value_end;
        }
    }

    /// A `[` where a key should be: it goes on with the array before it, if there is one.
    fn array_for_key(&mut self) {
        let end = self.value_end;
        let goes_on = !self.is_first() && self.draft.byte(end - 1, self.at) == b']';
        let Some(empty) = self.reopenable.filter(|_| goes_on) else {
            return self.drop_bytes(1, FixKind::StrayText);
        };
        if let Some(comma) = self.comma.take() {
            self.draft.remove(comma, self.at);
        }
        self.drop_bytes(1, FixKind::ExtraBracket);
        self.draft
            .patch(end - 1, if empty { b' ' } else { b',' }, self.at);
        self.stack.push(Kind::Array);
        self.open[bracket_index(b']')] += 1;
        self.value_end = end - 1;
        if empty {
            self.opened = end - 2;
        }
        self.comma = (!empty).then_some(end - 1);
        self.expect = Expect::Value;
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
                self.fix(FixKind::Separator);
                self.draft.replace(self.at, self.at + length, b":");
                self.at += length;
                self.expect = Expect::Value;
            }
            b',' | b'}' | b']' | b')' | b';' => self.key_without_value(byte),
            b'.' | b'|' | b'>' | b'+' | b'\\' => self.drop_bytes(1, FixKind::StrayText),
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
        let quoted = self
            .draft
            .fixes
            .last()
            .is_none_or(|fix| fix.kind != FixKind::UnquotedKey);
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
        match byte {
            b'"' => self.string_value(),
            b'{' => self.open_value(Kind::Object),
            b'[' => self.open_value(Kind::Array),
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
            b':' | b'>' | b')' | b'}' | b']' => self.drop_bytes(1, FixKind::StrayText),
            b'`' if self.rest().starts_with(b"```") => self.fence(),
            _ if look::quote_at(self.text, self.at).is_some() => self.string_value(),
            _ if look::ellipsis_len(self.text, self.at) > 0 => self.ellipsis(),
            _ => self.scalar(),
        }
    }

    fn string_value(&mut self) {
        self.value_start = self.draft.position(self.at);
        self.string(false);
        self.complete_value(true);
    }

    /// Fences between tokens are decoration.
    fn fence(&mut self) {
        let ticks = self.rest().iter().take_while(|&&byte| byte == b'`').count();
        let tag = look::word_len(self.text, self.at + ticks);
        self.drop_bytes(ticks + tag, FixKind::Fence);
    }

    fn open_value(&mut self, kind: Kind) {
        self.count_value();
        self.at += 1;
        self.push(kind);
    }

    /// A round bracket, with the name of a call of `name_len` bytes before it.
    pub(super) fn open_group(&mut self, name_len: usize, call: bool) {
        self.count_value();
        let kind = if call {
            FixKind::Call
        } else {
            FixKind::Brackets
        };
        self.fix(kind);
        self.draft.replace(self.at, self.at + name_len + 1, b"[");
        self.at += name_len + 1;
        self.push(Kind::Round);
        self.groups.push(Group {
            position: self.opened,
            values: 0,
            comma: false,
            call,
        });
    }

    fn in_group(&self) -> bool {
        matches!(self.top(), Some(Kind::Round | Kind::Double))
    }

    fn count_value(&mut self) {
        if self.in_group()
            && let Some(group) = self.groups.last_mut()
        {
            group.values += 1;
        }
        if self.stack.is_empty() && self.documents == 1 {
            self.first_is_scalar = false;
        }
    }

    /// A scalar has ended at `at`.
    pub(super) fn complete_value(&mut self, is_string: bool) {
        self.count_value();
        if self.stack.is_empty() && self.documents == 1 {
            self.first_is_scalar = true;
        }
        self.end_value();
        self.value_is_string = is_string;
    }

    fn end_value(&mut self) {
        self.comma = None;
        self.value_end = self.draft.position(self.at);
        self.value_is_string = false;
        self.expect = if self.stack.is_empty() {
            Expect::Done
        } else {
            Expect::After
        };
    }

    fn after(&mut self) {
        let byte = self.byte();
        match byte {
            b',' => self.take_comma(),
            b';' => {
                self.fix(FixKind::Separator);
                let position = self.draft.position(self.at);
                self.draft.replace(self.at, self.at + 1, b",");
                self.at += 1;
                self.after_comma(position);
            }
            b'}' | b']' | b')' => self.closer(byte),
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

    /// Puts the comma that is missing before what comes next.
    fn separate(&mut self) {
        if self.comma.is_some() || self.is_first() {
            return;
        }
        self.fix(FixKind::MissingComma);
        self.draft.insert(self.value_end, b",", self.at);
        self.after_comma(self.value_end);
    }

    /// Whether what comes after a value with no comma can be a key.
    fn key_follows(&self) -> bool {
        look::quote_at(self.text, self.at).is_some()
            || look::bare_key_ahead(self.text, self.at)
            || self.byte() == b'\\'
    }

    /// Words that are neither key nor value.
    fn stray_words(&mut self) {
        let length = self
            .rest()
            .iter()
            .skip(1)
            .position(|byte| matches!(byte, b'"' | b',' | b'}' | b']' | b'\n' | b'{' | b'['))
            .map_or(self.rest().len(), |length| length + 1);
        self.drop_bytes(length, FixKind::StrayText);
    }

    fn ellipsis(&mut self) {
        if self.expect == Expect::Value && self.top_has_keys() {
            let length = look::ellipsis_len(self.text, self.at);
            self.fix(FixKind::Ellipsis);
            self.draft.replace(self.at, self.at + length, b"null");
            self.at += length;
            self.complete_value(false);
            return;
        }
        // Words may say what was left out: `... (3 more)`.
        let dots = look::ellipsis_len(self.text, self.at);
        let words = self.rest()[dots..]
            .iter()
            .take_while(|byte| {
                !matches!(byte, b',' | b'}' | b']' | b'\n' | b'"' | b'{' | b'[' | b'/')
            })
            .count();
        self.drop_bytes(dots + words, FixKind::Ellipsis);
    }

    /// `["key": value]` and `["key" => value]`: the object around the pair is missing.
    fn pair_in_array(&mut self) {
        self.fix(FixKind::MissingBracket);
        self.draft.insert(self.value_start, b"{", self.at);
        self.stack.push(Kind::Object);
        self.open[bracket_index(b'}')] += 1;
        self.opened = self.value_start;
        self.member = self.opened + 1;
        self.key_end = self.value_end + 1;
        self.value_end = self.opened + 1;
        self.expect = Expect::Colon;
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

    fn remove_comma(&mut self, kind: FixKind) {
        if let Some(comma) = self.comma.take() {
            self.draft.fix(kind, self.comma_offset);
            self.draft.remove(comma, self.at);
        }
    }

    fn closer(&mut self, byte: u8) {
        self.remove_comma(FixKind::TrailingComma);
        let Some(top) = self.top() else {
            return self.drop_bytes(1, FixKind::ExtraBracket);
        };
        if top.closer() == byte {
            if top == Kind::Object && self.closes_too_early() {
                self.drop_bytes(1, FixKind::ExtraBracket);
                self.expect = if self.is_first() {
                    Expect::Key
                } else {
                    Expect::After
                };
                return;
            }
            return self.close_top(byte);
        }
        let next = look::skip_space(self.text, self.at + 1);
        match self.nearest(byte) {
            Some(depth) if self.may_stand_after(depth, next) => {
                self.fix(FixKind::MissingBracket);
                for _ in 1..depth {
                    self.close_missing();
                }
                self.close_top(byte);
            }
            _ if byte == b')' || self.is_extra(next) => {
                self.drop_bytes(1, FixKind::ExtraBracket);
                self.expect = Expect::After;
                if self.is_first() {
                    self.expect = if top.has_keys() {
                        Expect::Key
                    } else {
                        Expect::Value
                    };
                }
            }
            _ => {
                self.fix(FixKind::MismatchedBracket);
                self.close_top(byte);
            }
        }
    }

    /// `{"a": 1}, "b": 2}`: a key cannot follow the object, so it is not over yet.
    fn closes_too_early(&self) -> bool {
        let next = look::skip_space(self.text, self.at + 1);
        let parent = self
            .stack
            .len()
            .checked_sub(2)
            .map(|index| self.stack[index]);
        self.text.get(next) == Some(&b',')
            && !parent.is_some_and(Kind::has_keys)
            && look::quoted_key_ahead(self.text, look::skip_space(self.text, next + 1))
    }

    /// How many levels up the nearest bracket is that `byte` closes.
    fn nearest(&self, byte: u8) -> Option<usize> {
        if self.open_count(byte) == 0 {
            return None;
        }
        let found = self
            .stack
            .iter()
            .rev()
            .take(REACH)
            .position(|kind| kind.closer() == byte);
        found.map(|index| index + 1)
    }

    /// Whether what comes at `next` may stand where the container `depth` levels up has closed.
    fn may_stand_after(&self, depth: usize, next: usize) -> bool {
        let outer = self
            .stack
            .len()
            .checked_sub(depth + 1)
            .map(|index| self.stack[index]);
        match self.text.get(next) {
            Some(b',') => {
                let token = look::skip_space(self.text, next + 1);
                let key = look::quoted_key_ahead(self.text, token);
                match outer {
                    Some(kind) if kind.has_keys() => true,
                    Some(_) => !key,
                    None => !key && !matches!(self.text.get(token), Some(b'{' | b'[')),
                }
            }
            // The bracket that is really open closes next, so this one is too many.
            Some(&closer @ (b'}' | b']')) => {
                self.top().is_none_or(|top| top.closer() != closer)
                    || outer.is_some_and(|kind| kind.closer() == closer)
            }
            _ => true,
        }
    }

    /// Whether a bracket that fits nothing is one too many, rather than the wrong one.
    fn is_extra(&self, next: usize) -> bool {
        let Some(&follower) = self.text.get(next) else {
            return false;
        };
        let Some(top) = self.top() else { return true };
        if follower == top.closer() {
            return true;
        }
        if follower != b',' {
            return false;
        }
        let parent = self
            .stack
            .len()
            .checked_sub(2)
            .map(|index| self.stack[index]);
        let token = look::skip_space(self.text, next + 1);
        let key = look::quoted_key_ahead(self.text, token);
        if top.has_keys() {
            key && !parent.is_some_and(Kind::has_keys)
        } else {
            !key && (parent.is_none() || parent.is_some_and(Kind::has_keys))
        }
    }

    /// Closes the innermost container with the bracket at `at`, whichever it is.
    fn close_top(&mut self, byte: u8) {
        let empty = self.is_first();
        let Some(kind) = self.pop() else { return };
        self.reopenable = (kind == Kind::Array).then_some(empty);
        let closing = self.closing(kind);
        if closing == Some(byte) {
            self.at += 1;
        } else {
            let bytes = closing.as_ref().map_or(&[][..], std::slice::from_ref);
            self.draft.replace(self.at, self.at + 1, bytes);
            self.at += 1;
        }
        let keep_end = closing.is_none().then_some(self.value_end);
        self.end_value();
        if let (Kind::Merged, Some(end)) = (kind, keep_end) {
            self.value_end = end;
        }
    }

    /// Closes the innermost container although no bracket does.
    fn close_missing(&mut self) {
        let empty = self.is_first();
        let Some(kind) = self.pop() else { return };
        self.reopenable = (kind == Kind::Array).then_some(empty);
        if let Some(byte) = self.closing(kind) {
            self.draft.insert(self.value_end, &[byte], self.at);
            self.value_end += 1;
        }
        let value_end = self.value_end;
        self.end_value();
        self.value_end = value_end;
    }

    fn pop(&mut self) -> Option<Kind> {
        let kind = self.stack.pop()?;
        self.open[bracket_index(kind.closer())] -= 1;
        Some(kind)
    }

    /// The bracket that ends a container in the draft, if any does.
    fn closing(&mut self, kind: Kind) -> Option<u8> {
        match kind {
            Kind::Object => Some(b'}'),
            Kind::Array | Kind::Set => Some(b']'),
            Kind::Merged => None,
            Kind::Round | Kind::Double => {
                let group = self.groups.pop()?;
                if group.values == 1 && !group.comma {
                    self.draft.patch(group.position, b' ', self.at);
                    return None;
                }
                if group.values == 0 && group.call {
                    self.draft.truncate(group.position, self.at);
                    self.draft.replace(self.at, self.at, b"null");
                    self.value_end = self.draft.position(self.at);
                    return None;
                }
                Some(b']')
            }
        }
    }

    /// After a whole document: goes on with the next one, or leaves the rest out.
    fn next_document(&mut self) -> bool {
        let end = self.at;
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
        if !begins || !self.several_allowed {
            self.draft.truncate(self.value_end, end);
            self.draft.skip(end, self.text.len());
            self.rest = next;
            self.at = self.text.len();
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

    fn finish(mut self) -> Option<Outcome> {
        let empty = self.expect == Expect::Value && self.stack.is_empty();
        if empty && self.documents == 1 {
            return None;
        }
        if self.ending == Ending::StayOpen {
            self.draft.copy_to(self.text.len());
            return Some(self.outcome());
        }
        if !self.stack.is_empty() {
            if self
                .draft
                .fixes
                .last()
                .is_none_or(|fix| fix.kind != FixKind::Truncated)
            {
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

    fn outcome(self) -> Outcome {
        let (json, fixes) = self.draft.finish();
        Outcome {
            json,
            fixes,
            rest: self.rest,
        }
    }
}

/// The bytes that begin neither odd white space nor a comment.
static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7F {
        table[byte] = !matches!(byte as u8, b'/' | b'#' | b'<');
        byte += 1;
    }
    table
};

fn bracket_index(closer: u8) -> usize {
    match closer {
        b'}' => 0,
        b']' => 1,
        _ => 2,
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
