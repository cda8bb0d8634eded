//! The state machine of the scanner, byte by byte.

use super::state::{Digits, Literal, State};
use super::string::{Escape, StringEnd};
use super::{Container, Scalar, Scanner, SyntaxError, SyntaxErrorKind, Visitor};
use crate::plain;

/// One call of [`Scanner::feed_with`].
pub(super) struct Reader<'a, V> {
    pub(super) scanner: &'a mut Scanner,
    pub(super) piece: &'a [u8],
    pub(super) at: usize,
    /// The name of the current member, if it is completely in this piece.
    key_in_piece: Option<(usize, usize)>,
    pub(super) visitor: &'a mut V,
}

impl<'a, V: Visitor> Reader<'a, V> {
    pub(super) fn new(scanner: &'a mut Scanner, piece: &'a [u8], visitor: &'a mut V) -> Self {
        Self {
            scanner,
            piece,
            at: 0,
            key_in_piece: None,
            visitor,
        }
    }

    pub(super) fn run(mut self) {
        let mut state = self.scanner.state;
        while self.at < self.piece.len() {
            state = self.whole_elements(state);
            if self.at == self.piece.len() {
                break;
            }
            state = match state {
                State::Key(escape) => self.key(escape),
                State::String(escape) => self.string(escape),
                State::Number(digits) => self.number(digits),
                State::Literal(literal, matched) => self.literal(literal, matched),
                State::Offended => break,
                between => self.between(between),
            };
        }
        self.scanner.state = state;
        self.remember();
    }

    /// Reads white space and one byte of structure, or the first byte of a token.
    #[inline]
    fn between(&mut self, state: State) -> State {
        self.at = plain::skip_white_space(self.piece, self.at);
        let Some(&byte) = self.piece.get(self.at) else {
            return state;
        };
        match state {
            State::ArrayStart if byte == b']' => self.close(Container::Array),
            State::Root | State::ArrayStart | State::NextItem => {
                self.scanner.element = self.position();
                self.value(byte)
            }
            State::AfterColon => self.value(byte),
            State::ObjectStart if byte == b'}' => self.close(Container::Object),
            State::ObjectStart | State::NextKey => {
                if byte != b'"' {
                    return self.offend(SyntaxErrorKind::KeyExpected);
                }
                self.scanner.element = self.position();
                self.at += 1;
                self.scanner.key.clear();
                self.key_in_piece = Some((self.at, self.at));
                self.key(Escape::No)
            }
            State::AfterKey if byte == b':' => {
                self.at += 1;
                State::AfterColon
            }
            State::AfterKey => self.offend(SyntaxErrorKind::ColonExpected),
            State::AfterValue => self.after_value(byte),
            _ => self.offend(SyntaxErrorKind::TrailingText),
        }
    }

    #[inline]
    fn value(&mut self, byte: u8) -> State {
        match byte {
            b'"' => {
                self.at += 1;
                self.string(Escape::No)
            }
            b'{' => self.open(Container::Object),
            b'[' => self.open(Container::Array),
            b'-' => self.begin_number(Digits::Sign),
            b'0' => self.begin_number(Digits::Zero),
            b'1'..=b'9' => self.begin_number(Digits::Integer),
            b't' => self.literal(Literal::True, 0),
            b'f' => self.literal(Literal::False, 0),
            b'n' => self.literal(Literal::Null, 0),
            _ => self.offend(SyntaxErrorKind::ValueExpected),
        }
    }

    #[inline]
    fn after_value(&mut self, byte: u8) -> State {
        match byte {
            b',' => {
                let comma = self.position();
                self.at += 1;
                self.scanner.previous = Some((self.scanner.element, comma));
                self.scanner.rollback = comma;
                match self.scanner.frames.innermost() {
                    Container::Object => State::NextKey,
                    Container::Array => {
                        self.scanner.frames.next_index();
                        State::NextItem
                    }
                }
            }
            b'}' => self.close(Container::Object),
            b']' => self.close(Container::Array),
            _ => self.offend(SyntaxErrorKind::CommaExpected),
        }
    }

    fn open(&mut self, container: Container) -> State {
        let opener = self.position();
        let scanner = &mut *self.scanner;
        let key = self
            .key_in_piece
            .map_or(&scanner.key[..], |(from, to)| &self.piece[from..to]);
        scanner.frames.push(container, opener, scanner.element, key);
        scanner.rollback = opener + 1;
        scanner.previous = None;
        self.at += 1;
        self.visitor.open(container);
        match container {
            Container::Object => State::ObjectStart,
            Container::Array => State::ArrayStart,
        }
    }

    fn close(&mut self, container: Container) -> State {
        if self.scanner.frames.innermost() != container {
            return self.offend(SyntaxErrorKind::WrongCloser);
        }
        self.at += 1;
        self.visitor.close(container);
        self.scanner.element = self.scanner.frames.pop();
        self.scanner.previous = None;
        self.value_ended()
    }

    #[inline]
    fn value_ended(&self) -> State {
        if self.scanner.frames.is_empty() {
            State::End
        } else {
            State::AfterValue
        }
    }

    #[inline]
    fn scalar_ended(&mut self, kind: Scalar) -> State {
        self.visitor.scalar(kind);
        self.value_ended()
    }

    fn key(&mut self, escape: Escape) -> State {
        let from = self.at;
        let end = self.string_bytes(escape);
        match self.key_in_piece {
            Some((start, _)) => self.key_in_piece = Some((start, self.at)),
            None => self
                .scanner
                .key
                .extend_from_slice(&self.piece[from..self.at]),
        }
        match end {
            StringEnd::Quote => {
                let key = self
                    .key_in_piece
                    .map_or(&self.scanner.key[..], |(from, to)| &self.piece[from..to]);
                self.visitor.key(key);
                self.at += 1;
                State::AfterKey
            }
            StringEnd::Piece(escape) => State::Key(escape),
            StringEnd::SyntaxError(kind) => self.offend(kind),
        }
    }

    #[inline]
    fn string(&mut self, escape: Escape) -> State {
        let from = self.at;
        let end = self.string_bytes(escape);
        if self.at > from {
            self.visitor.text(&self.piece[from..self.at]);
        }
        match end {
            StringEnd::Quote => {
                self.at += 1;
                self.scalar_ended(Scalar::String)
            }
            StringEnd::Piece(escape) => State::String(escape),
            StringEnd::SyntaxError(kind) => self.offend(kind),
        }
    }

    /// Reads a number, whose first byte has been read.
    #[inline]
    fn begin_number(&mut self, digits: Digits) -> State {
        let from = self.at;
        self.at += 1;
        self.number_from(from, digits)
    }

    #[inline]
    fn number(&mut self, digits: Digits) -> State {
        self.number_from(self.at, digits)
    }

    #[inline]
    fn number_from(&mut self, from: usize, digits: Digits) -> State {
        let state = self.digits(digits);
        if self.at > from {
            self.visitor.bare(&self.piece[from..self.at]);
        }
        match state {
            State::AfterValue => self.scalar_ended(Scalar::Number),
            other => other,
        }
    }

    /// Reads digits; returns the state after a value if the number has ended.
    #[inline]
    fn digits(&mut self, mut digits: Digits) -> State {
        while let Some(&byte) = self.piece.get(self.at) {
            if matches!(
                digits,
                Digits::Integer | Digits::Fraction | Digits::Exponent
            ) && byte.is_ascii_digit()
            {
                self.at += 1;
                continue;
            }
            let Some(after) = digits.after(byte) else {
                return if digits.is_whole() {
                    State::AfterValue
                } else {
                    self.offend(SyntaxErrorKind::InvalidNumber)
                };
            };
            digits = after;
            self.at += 1;
        }
        State::Number(digits)
    }

    #[inline]
    fn literal(&mut self, literal: Literal, matched: u8) -> State {
        let rest = &literal.spelling().as_bytes()[usize::from(matched)..];
        let piece = &self.piece[self.at..];
        let same = rest
            .iter()
            .zip(piece)
            .take_while(|(want, have)| want == have)
            .count();
        self.visitor.bare(&piece[..same]);
        self.at += same;
        if same == rest.len() {
            self.scalar_ended(literal.scalar())
        } else if same == piece.len() {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "literals are five bytes at most"
            )]
            State::Literal(literal, matched + same as u8)
        } else {
            self.offend(SyntaxErrorKind::InvalidLiteral)
        }
    }

    fn offend(&mut self, kind: SyntaxErrorKind) -> State {
        self.scanner.syntax_error = Some(SyntaxError {
            offset: self.position(),
            kind,
        });
        State::Offended
    }

    #[inline]
    pub(super) fn position(&self) -> usize {
        self.scanner.offset + self.at
    }

    /// Stores the state for the next piece; it does not depend on how the text was split.
    fn remember(self) {
        let Self {
            scanner,
            piece,
            at,
            key_in_piece,
            ..
        } = self;
        let read = &piece[..at];
        for &byte in &read[read.len().saturating_sub(3)..] {
            scanner.tail = [scanner.tail[1], scanner.tail[2], byte];
        }
        scanner.offset += at;
        let member_is_open = match scanner.state {
            State::Key(_) | State::AfterKey | State::AfterColon => true,
            State::String(_) | State::Number(_) | State::Literal(..) => {
                !scanner.frames.is_empty() && scanner.frames.innermost() == Container::Object
            }
            _ => false,
        };
        if !member_is_open {
            scanner.key.clear();
        } else if let Some((from, to)) = key_in_piece {
            scanner.key.clear();
            scanner.key.extend_from_slice(&piece[from..to]);
        }
    }
}
