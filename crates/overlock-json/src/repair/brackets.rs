//! Opens and closes brackets, including missing, mismatched and extra ones.
//!
//! The token after an unexpected bracket decides whether it is of the wrong kind, an extra one, or
//! right but with others missing before it.

use super::fix::FixKind;
use super::groups::{Group, Values};
use super::look;
use super::parser::{Expect, Parser};

/// A kind of open bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bracket {
    Object,
    Array,
    /// `{1, 2}`: an array in curly brackets.
    Set,
    /// `(1, 2)` or `name(1, 2)`: an array, or just the value if there is only one.
    Round,
    /// `{{…}}`: the same in curly brackets.
    Double,
    /// `{"a": 1, {"b": 2}}`: an object whose members belong to the one around it.
    Merged,
}

impl Bracket {
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

/// How far down the stack a matching bracket is searched.
const REACH: usize = 64;

impl Parser<'_> {
    pub(super) fn open_value(&mut self, kind: Bracket) {
        self.count_value();
        self.at += 1;
        self.push(kind);
    }

    /// Opens a round bracket, after the name of a call of `name_len` bytes.
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
        self.push(Bracket::Round);
        self.groups.push(Group {
            position: self.opened,
            values: Values::None,
            comma: false,
            call,
        });
    }

    pub(super) fn in_group(&self) -> bool {
        matches!(self.top(), Some(Bracket::Round | Bracket::Double))
    }

    pub(super) fn count_value(&mut self) {
        if self.in_group()
            && let Some(group) = self.groups.last_mut()
        {
            group.values = group.values.and_one();
        }
        if self.stack.is_empty() && self.documents == 1 {
            self.first_is_scalar = false;
        }
    }

    /// Reads a `{` in place of a key.
    pub(super) fn object_for_key(&mut self) {
        let parent = self.outer(1);
        if self.is_first() && self.top() == Some(Bracket::Object) {
            self.fix(FixKind::Brackets);
            self.draft.patch(self.opened, b'[', self.at);
            if let Some(top) = self.stack.last_mut() {
                *top = Bracket::Double;
            }
            self.groups.push(Group {
                position: self.opened,
                values: Values::None,
                comma: false,
                call: false,
            });
            self.expect = Expect::Value;
        } else if self.top() == Some(Bracket::Object) && parent.is_some_and(|kind| !kind.has_keys())
        {
            self.remove_comma(FixKind::ExtraComma);
            self.fix(FixKind::MissingBracket);
            self.close_missing();
        } else {
            self.separate();
            let comma = self.comma;
            let (opened, value_end) = (self.opened, self.value_end);
            self.drop_bytes(1, FixKind::ExtraBracket);
            self.push(Bracket::Merged);
            self.comma = comma;
            self.opened = opened;
            self.value_end = value_end;
        }
    }

    /// Reads a `[` in place of a key: it continues the array before it, if there is one.
    pub(super) fn array_for_key(&mut self) {
        let end = self.value_end;
        let continues = !self.is_first() && self.draft.byte(end - 1, self.at) == b']';
        let Some(empty) = self.reopenable.filter(|_| continues) else {
            return self.drop_bytes(1, FixKind::StrayText);
        };
        if let Some(comma) = self.comma.take() {
            self.draft.remove(comma, self.at);
        }
        self.drop_bytes(1, FixKind::ExtraBracket);
        self.draft
            .patch(end - 1, if empty { b' ' } else { b',' }, self.at);
        self.stack.push(Bracket::Array);
        self.open[bracket_index(b']')] += 1;
        self.value_end = end - 1;
        if empty {
            self.opened = end - 2;
        }
        self.comma = (!empty).then_some(end - 1);
        self.expect = Expect::Value;
    }

    /// `{"a": [1, 2, "b": 3}`: the last string is a key of the object around the arrays, which
    /// ended before the comma.
    fn end_arrays_before_key(&mut self, arrays: usize, comma: usize) {
        for _ in 0..arrays {
            self.pop();
        }
        self.draft.insert(comma, &vec![b']'; arrays], self.at);
        self.member = comma + arrays;
        self.key_end = self.value_end + arrays;
        self.value_end = comma + arrays;
        self.expect = Expect::Colon;
    }

    /// `["key": value]` and `["key" => value]`: the object around the pair is missing.
    pub(super) fn pair_in_array(&mut self) {
        self.fix(FixKind::MissingBracket);
        let open = self.stack.iter().rev().take(REACH);
        let arrays = open.take_while(|&&kind| kind == Bracket::Array).count();
        let in_object = self.outer(arrays).is_some_and(Bracket::has_keys);
        if let Some(comma) = self.value_comma.filter(|_| in_object) {
            return self.end_arrays_before_key(arrays, comma);
        }
        self.draft.insert(self.value_start, b"{", self.at);
        self.stack.push(Bracket::Object);
        self.open[bracket_index(b'}')] += 1;
        self.opened = self.value_start;
        self.member = self.opened + 1;
        self.key_end = self.value_end + 1;
        self.value_end = self.opened + 1;
        self.expect = Expect::Colon;
    }

    pub(super) fn is_set_ahead(&self) -> bool {
        let token = self
            .rest()
            .iter()
            .take(40)
            .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
            .count();
        let next = look::skip_space(self.text, self.at + token);
        matches!(self.text.get(next), Some(b',' | b'}'))
    }

    pub(super) fn become_set(&mut self) {
        if let Some(top) = self.stack.last_mut()
            && *top == Bracket::Object
        {
            *top = Bracket::Set;
            self.draft.patch(self.opened, b'[', self.at);
        }
    }

    pub(super) fn closer(&mut self, byte: u8) {
        self.remove_comma(FixKind::TrailingComma);
        let Some(top) = self.top() else {
            return self.drop_bytes(1, FixKind::ExtraBracket);
        };
        if top.closer() == byte {
            if top == Bracket::Object && self.closes_too_early() {
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

    /// `{"a": 1}, "b": 2}`: a key cannot follow the object, so the object continues.
    fn closes_too_early(&self) -> bool {
        let next = look::skip_space(self.text, self.at + 1);
        let parent = self.outer(1);
        self.text.get(next) == Some(&b',')
            && !parent.is_some_and(Bracket::has_keys)
            && !(parent == Some(Bracket::Array) && self.outer(2).is_some_and(Bracket::has_keys))
            && look::quoted_key_ahead(self.text, look::skip_space(self.text, next + 1))
    }

    /// The distance on the stack to the nearest bracket that `byte` closes.
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

    /// Whether the token at `next` may follow the end of the container `depth` levels up.
    fn may_stand_after(&self, depth: usize, next: usize) -> bool {
        let outer = self.outer(depth);
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
            // The innermost bracket is closed next, so this one is extra.
            Some(&closer @ (b'}' | b']')) => {
                self.top().is_none_or(|top| top.closer() != closer)
                    || outer.is_some_and(|kind| kind.closer() == closer)
            }
            _ => true,
        }
    }

    /// Whether a mismatched bracket is an extra one, rather than one of the wrong kind.
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
        let parent = self.outer(1);
        let token = look::skip_space(self.text, next + 1);
        let key = look::quoted_key_ahead(self.text, token);
        if top.has_keys() {
            key && !parent.is_some_and(Bracket::has_keys)
        } else {
            !key && parent.is_none_or(Bracket::has_keys)
        }
    }

    /// Closes the innermost container with the bracket at `at`, of any kind.
    fn close_top(&mut self, byte: u8) {
        let empty = self.is_first();
        let Some(kind) = self.pop() else { return };
        self.reopenable = (kind == Bracket::Array).then_some(empty);
        let closing = self.closing(kind);
        if closing == Some(byte) {
            self.at += 1;
        } else {
            self.draft.replace(self.at, self.at + 1, closing.as_slice());
            self.at += 1;
        }
        let keep_end = closing.is_none().then_some(self.value_end);
        self.end_value();
        if let (Bracket::Merged, Some(end)) = (kind, keep_end) {
            self.value_end = end;
        }
    }

    /// Closes the innermost container without a bracket in the input.
    fn close_missing(&mut self) {
        let empty = self.is_first();
        let Some(kind) = self.pop() else { return };
        self.reopenable = (kind == Bracket::Array).then_some(empty);
        if let Some(byte) = self.closing(kind) {
            self.draft.insert(self.value_end, &[byte], self.at);
            self.value_end += 1;
        }
        let value_end = self.value_end;
        self.end_value();
        self.value_end = value_end;
    }

    pub(super) fn pop(&mut self) -> Option<Bracket> {
        let kind = self.stack.pop()?;
        self.open[bracket_index(kind.closer())] -= 1;
        Some(kind)
    }

    /// The closing bracket of a container in the draft, if it gets one.
    pub(super) fn closing(&mut self, kind: Bracket) -> Option<u8> {
        match kind {
            Bracket::Object => Some(b'}'),
            Bracket::Array | Bracket::Set => Some(b']'),
            Bracket::Merged => None,
            Bracket::Round | Bracket::Double => {
                let group = self.groups.pop()?;
                if group.values == Values::One && !group.comma {
                    self.draft.patch(group.position, b' ', self.at);
                    return None;
                }
                if group.values == Values::None && group.call {
                    self.draft.truncate(group.position, self.at);
                    self.draft.replace(self.at, self.at, b"null");
                    self.value_end = self.draft.position(self.at);
                    return None;
                }
                Some(b']')
            }
        }
    }
}

pub(super) fn bracket_index(closer: u8) -> usize {
    match closer {
        b'}' => 0,
        b']' => 1,
        _ => 2,
    }
}
