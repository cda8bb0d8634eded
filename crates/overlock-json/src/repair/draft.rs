//! The output of the parser.
//!
//! Most of a malformed document is well-formed, so the draft copies input only when something
//! changes, in one run from where the last copy ended. A *position* is an offset in the draft as if
//! all input up to the current byte were copied.

use super::fix::{Fix, FixKind};

pub(super) struct Draft<'t> {
    text: &'t [u8],
    out: Vec<u8>,
    copied: usize,
    fixes: Vec<Fix>,
    last_fix: Option<FixKind>,
}

/// How many fixes are reported: a text that needs more is noise, and the list must stay smaller.
const MOST_FIXES: usize = 1_000_000;

/// A state of the draft to return to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    out: usize,
    copied: usize,
    fixes: usize,
    last_fix: Option<FixKind>,
}

impl<'t> Draft<'t> {
    pub(super) fn new(text: &'t [u8], start: usize) -> Self {
        Self {
            text,
            out: Vec::with_capacity(text.len() - start + 16),
            copied: start,
            fixes: Vec::new(),
            last_fix: None,
        }
    }

    pub(super) fn fix(&mut self, kind: FixKind, offset: usize) {
        self.last_fix = Some(kind);
        if self.fixes.len() < MOST_FIXES {
            self.fixes.push(Fix { kind, offset });
        }
    }

    /// The kind of the last fix.
    pub(super) fn last_fix(&self) -> Option<FixKind> {
        self.last_fix
    }

    /// The position of the byte `at` of the input.
    pub(super) fn position(&self, at: usize) -> usize {
        self.out.len() + (at - self.copied)
    }

    /// Copies everything up to `at`.
    pub(super) fn copy_to(&mut self, at: usize) {
        self.out.extend_from_slice(&self.text[self.copied..at]);
        self.copied = at;
    }

    /// Leaves out the input from `from` to `to`.
    pub(super) fn skip(&mut self, from: usize, to: usize) {
        self.copy_to(from);
        self.copied = to;
    }

    /// Replaces the input from `from` to `to` by `bytes`.
    pub(super) fn replace(&mut self, from: usize, to: usize, bytes: &[u8]) {
        self.skip(from, to);
        self.out.extend_from_slice(bytes);
    }

    /// Inserts `bytes` at an earlier position. The cost is linear in the bytes after it.
    pub(super) fn insert(&mut self, position: usize, bytes: &[u8], at: usize) {
        self.copy_to(at);
        self.out.extend_from_slice(bytes);
        self.out[position..].rotate_right(bytes.len());
    }

    /// Removes a byte at an earlier position. The cost is linear in the bytes after it.
    pub(super) fn remove(&mut self, position: usize, at: usize) {
        self.copy_to(at);
        self.out.remove(position);
    }

    /// Changes one byte at an earlier position.
    pub(super) fn patch(&mut self, position: usize, byte: u8, at: usize) {
        self.copy_to(at);
        self.out[position] = byte;
    }

    /// The byte at an earlier position.
    pub(super) fn byte(&mut self, position: usize, at: usize) -> u8 {
        self.copy_to(at);
        self.out[position]
    }

    /// Drops everything from an earlier position on; the input before `at` counts as copied.
    pub(super) fn truncate(&mut self, position: usize, at: usize) {
        self.copy_to(at);
        self.out.truncate(position);
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            out: self.out.len(),
            copied: self.copied,
            fixes: self.fixes.len(),
            last_fix: self.last_fix,
        }
    }

    /// Returns to a state; the draft before it must not have changed since.
    pub(super) fn reset(&mut self, mark: Mark) {
        self.out.truncate(mark.out);
        self.copied = mark.copied;
        self.fixes.truncate(mark.fixes);
        self.last_fix = mark.last_fix;
    }

    pub(super) fn finish(self) -> (String, Vec<Fix>) {
        let json = String::from_utf8(self.out)
            .expect("runs of a text split at ASCII bytes and whole characters are a text");
        (json, self.fixes)
    }
}
