//! A resumable JSON scanner.
//!
//! One state machine over bytes, without recursion. Its state does not depend on how the text was
//! split, and the cost of a piece is linear in its length. It validates the whole grammar but not
//! UTF-8, which is checked where bytes become text.

mod frames;
mod reader;
mod state;
mod stored;
mod string;
mod syntax_error;
mod whole;

use serde::{Deserialize, Serialize};

use crate::close::{Closing, Losses};
use crate::cut::{Cut, CutPlace};
pub use frames::Container;
use frames::Frames;
pub(crate) use frames::{Coordinate, Frame};
use reader::Reader;
use state::State;
use string::Escape;
pub use syntax_error::{SyntaxError, SyntaxErrorKind};

/// A resumable, validating JSON scanner.
///
/// Feed it bytes in pieces of any size; its state is the same as after one piece with all of them. It
/// stops at the first [`SyntaxError`].
///
/// ```
/// use overlock_json::{CutPlace, Scanner};
///
/// let mut scanner = Scanner::new();
/// scanner.feed(br#"{"rows": [1, 2, {"na"#);
/// scanner.feed(br#"me": "Ad"#);
///
/// let cut = scanner.cut().expect("the text is still open");
/// assert_eq!(cut.path, "/rows/2/name");
/// assert_eq!(cut.place, CutPlace::String);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Scanner {
    offset: usize,
    state: State,
    frames: Frames,
    /// The raw name of the current member; empty if there is none.
    key: Vec<u8>,
    /// Where the text must end to drop the current element: before the last comma, or after the last
    /// opener.
    rollback: usize,
    /// Where the current element of the innermost container, or the current token, begins.
    element: usize,
    /// The element before it in the same container, if it is known.
    previous: Option<(usize, usize)>,
    /// Where the escape sequence or surrogate pair begins that may be incomplete.
    held_from: Option<usize>,
    /// The last three bytes, which show whether the text ends inside a character.
    tail: [u8; 3],
    syntax_error: Option<SyntaxError>,
}

/// Receives the tokens of a document while it is scanned. The default methods do nothing.
pub trait Visitor {
    /// An object or array opens.
    fn open(&mut self, container: Container) {
        let _ = container;
    }
    /// An object or array closes.
    fn close(&mut self, container: Container) {
        let _ = container;
    }
    /// A complete raw name of a member, without its quotes.
    fn key(&mut self, raw: &[u8]) {
        let _ = raw;
    }
    /// A raw piece of a string value, without its quotes. It may end inside an escape.
    fn text(&mut self, raw: &[u8]) {
        let _ = raw;
    }
    /// A raw piece of a number, or of `true`, `false` or `null`.
    fn bare(&mut self, raw: &[u8]) {
        let _ = raw;
    }
    /// A scalar value has ended.
    fn scalar(&mut self, kind: Scalar) {
        let _ = kind;
    }
    /// A raw scalar value that is completely in one piece, a string without its quotes. By default
    /// it is passed to the methods for values in several pieces.
    #[inline]
    fn whole_scalar(&mut self, kind: Scalar, raw: &[u8]) {
        match kind {
            Scalar::String if raw.is_empty() => {}
            Scalar::String => self.text(raw),
            Scalar::Number | Scalar::Bool | Scalar::Null => self.bare(raw),
        }
        self.scalar(kind);
    }
}

impl Visitor for () {}

/// A kind of scalar value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scalar {
    /// A string.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`.
    Null,
}

/// How closing handles the end of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastToken {
    /// The text has no value yet, or is malformed.
    None,
    Whole,
    HalfString,
    /// The missing rest of a literal.
    HalfLiteral(&'static str),
    /// A value, or a key without one, that must be dropped.
    Dropped,
    /// A comma, or half a key, that must be dropped.
    Unnamed,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// A scanner before the first byte of a document.
    pub fn new() -> Self {
        Self {
            offset: 0,
            state: State::Root,
            frames: Frames::default(),
            key: Vec::new(),
            rollback: 0,
            element: 0,
            previous: None,
            held_from: None,
            tail: [0; 3],
            syntax_error: None,
        }
    }

    /// Reads the next piece of the text.
    pub fn feed(&mut self, piece: &[u8]) {
        self.feed_with(piece, &mut ());
    }

    /// Reads the next piece of the text and passes its tokens to `visitor`.
    pub fn feed_with<V: Visitor>(&mut self, piece: &[u8], visitor: &mut V) {
        Reader::new(self, piece, visitor).run();
    }

    /// How many bytes have been read; after a syntax error, its offset.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The first syntax error.
    pub fn syntax_error(&self) -> Option<&SyntaxError> {
        self.syntax_error.as_ref()
    }

    /// Whether the root value is complete. A root number counts as complete once it is valid, because
    /// only the end of the text ends it.
    pub fn is_complete(&self) -> bool {
        match self.state {
            State::End => true,
            State::Number(digits) => self.frames.is_empty() && digits.is_whole(),
            _ => false,
        }
    }

    /// Where the document is cut, if it is open; none for complete or malformed text.
    pub fn cut(&self) -> Option<Cut> {
        if self.is_complete() {
            return None;
        }
        let place = self.place()?;
        Some(Cut {
            offset: self.offset,
            path: self.path(),
            place,
        })
    }

    /// How many containers are open.
    pub fn depth(&self) -> usize {
        self.frames.depth()
    }

    /// The open containers, innermost first.
    pub(crate) fn open_frames(&self) -> impl Iterator<Item = Frame<'_>> {
        self.frames.innermost_first()
    }

    /// Where the current element of the innermost container begins, and the one before it.
    pub(crate) fn elements(&self) -> (Option<usize>, Option<(usize, usize)>) {
        match self.state {
            State::AfterValue => (None, Some((self.element, self.offset))),
            State::ArrayStart | State::ObjectStart | State::Root | State::End => (None, None),
            State::NextItem | State::NextKey => (None, self.previous),
            _ => (Some(self.element), self.previous),
        }
    }

    /// The pointer of the current value: see [`Cut::path`].
    pub fn path(&self) -> String {
        let last = match self.state {
            State::AfterKey | State::AfterColon => true,
            State::String(_) | State::Number(_) | State::Literal(..) => !self.frames.is_empty(),
            _ => false,
        };
        self.frames.pointer(last.then_some(self.key.as_slice()))
    }

    /// Whether the text ends inside a string or a key.
    pub(crate) fn is_in_string(&self) -> bool {
        matches!(self.state, State::String(_) | State::Key(_))
    }

    /// Whether the innermost open container is an array.
    pub(crate) fn is_in_array(&self) -> bool {
        !self.frames.is_empty() && self.frames.innermost() == Container::Array
    }

    /// The grammatical position; none if the text is complete or malformed. Unlike
    /// [`cut`](Self::cut), this takes constant time at any depth.
    pub fn place(&self) -> Option<CutPlace> {
        Some(match self.state {
            State::Root => CutPlace::Root,
            State::ArrayStart | State::ObjectStart => CutPlace::ContainerStart,
            State::NextItem | State::NextKey => CutPlace::AfterComma,
            State::AfterKey => CutPlace::AfterKey,
            State::AfterColon => CutPlace::AfterColon,
            State::AfterValue => CutPlace::AfterValue,
            State::Key(_) => CutPlace::Key,
            State::String(_) if self.held_from.is_some() => CutPlace::Escape,
            State::String(_) => CutPlace::String,
            State::Number(_) => CutPlace::Number,
            State::Literal(..) => CutPlace::Literal,
            State::End | State::Offended => return None,
        })
    }

    /// How to make the text valid JSON by keeping a prefix and appending closing brackets.
    ///
    /// None for malformed text, and while there is no value to keep. With `strict`, a cut string is
    /// dropped instead of closed.
    pub fn closing(&self, strict: bool) -> Option<Closing> {
        let mut closers = String::new();
        let kept_len = match self.last_token(strict) {
            LastToken::None => return None,
            LastToken::Whole => self.offset,
            LastToken::Dropped | LastToken::Unnamed if self.frames.is_empty() => return None,
            LastToken::Dropped | LastToken::Unnamed => self.rollback,
            LastToken::HalfString => {
                closers.push('"');
                self.whole_text_end()
            }
            LastToken::HalfLiteral(rest) => {
                closers.push_str(rest);
                self.offset
            }
        };
        self.frames.write_closers(&mut closers);
        Some(Closing { kept_len, closers })
    }

    /// What [`Scanner::closing`] truncates or drops.
    pub fn losses(&self, strict: bool) -> Losses {
        let last = self.last_token(strict);
        Losses {
            truncated: (last == LastToken::HalfString).then(|| self.path()),
            dropped: (last == LastToken::Dropped).then(|| self.path()),
        }
    }

    fn last_token(&self, strict: bool) -> LastToken {
        match self.state {
            State::Root | State::Offended => LastToken::None,
            State::End | State::AfterValue | State::ArrayStart | State::ObjectStart => {
                LastToken::Whole
            }
            State::NextItem | State::NextKey | State::Key(_) => LastToken::Unnamed,
            State::String(_) if !strict => LastToken::HalfString,
            State::Number(_) if self.is_complete() => LastToken::Whole,
            State::AfterKey | State::AfterColon | State::String(_) | State::Number(_) => {
                LastToken::Dropped
            }
            State::Literal(literal, matched) => {
                LastToken::HalfLiteral(&literal.spelling()[usize::from(matched)..])
            }
        }
    }

    /// Whether there is a value that [`Scanner::closing`] would keep.
    pub(crate) fn has_value(&self) -> bool {
        match self.state {
            State::Root | State::Offended => false,
            State::Number(digits) => !self.frames.is_empty() || digits.is_whole(),
            _ => true,
        }
    }

    /// Goes back to before the incomplete escape sequence or surrogate pair at the end of `text`.
    pub(crate) fn drop_half_escape(&mut self, text: &[u8]) {
        let Some(end) = self.held_from.take() else {
            return;
        };
        self.state = match self.state {
            State::Key(_) => {
                let written = self.key.len().saturating_sub(self.offset - end);
                self.key.truncate(written);
                State::Key(Escape::No)
            }
            State::String(_) => State::String(Escape::No),
            other => other,
        };
        self.offset = end;
        for (tail, byte) in self.tail.iter_mut().rev().zip(text[..end].iter().rev()) {
            *tail = *byte;
        }
    }

    /// A scanner in the same state with only the innermost `levels` containers: enough to read text
    /// that closes fewer of them, and cheap at any depth.
    pub(crate) fn of_innermost(&self, levels: usize) -> Self {
        Self {
            frames: self.frames.of_innermost(levels),
            key: self.key.clone(),
            ..*self
        }
    }

    /// Where the escape sequence or surrogate pair begins that may be incomplete.
    pub(crate) fn held_from(&self) -> Option<usize> {
        self.held_from
    }

    /// Where the text ends without half an escape or half a character.
    pub(crate) fn whole_text_end(&self) -> usize {
        self.held_from
            .unwrap_or(self.offset - half_character_len(self.tail))
    }
}

/// The length of an incomplete character at the end.
fn half_character_len(tail: [u8; 3]) -> usize {
    let continuations = tail
        .iter()
        .rev()
        .take_while(|byte| **byte & 0xC0 == 0x80)
        .count();
    let Some(lead) = tail.iter().rev().nth(continuations) else {
        return 0;
    };
    let wanted = match lead {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    if wanted > continuations + 1 {
        continuations + 1
    } else {
        0
    }
}
