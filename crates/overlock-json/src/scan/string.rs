//! Reads the content of a string, with its escapes, across pieces.

use serde::{Deserialize, Serialize};

use super::reader::Reader;
use super::{SyntaxErrorKind, Visitor};
use crate::vector;

/// The progress in an escape sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Escape {
    /// Outside of one.
    No,
    /// After the backslash.
    Backslash,
    /// After `\u` and some of its four digits, with their value.
    Unicode { digits: u8, value: u16 },
}

/// Why reading the content of a string stopped.
pub(super) enum StringEnd {
    /// At the closing quote.
    Quote,
    /// At the end of the piece.
    Piece(Escape),
    SyntaxError(SyntaxErrorKind),
}

impl<V: Visitor> Reader<'_, V> {
    /// Reads up to the closing quote, the end of the piece or a syntax error.
    #[inline]
    pub(super) fn string_bytes(&mut self, escape: Escape) -> StringEnd {
        if escape != Escape::No {
            match self.escape(escape) {
                Ok(Escape::No) => {}
                Ok(unfinished) => return StringEnd::Piece(unfinished),
                Err(kind) => return StringEnd::SyntaxError(kind),
            }
        }
        loop {
            let stop = vector::string_stop(self.piece, self.at);
            let run = stop - self.at;
            self.at = stop;
            let next = self.piece.get(self.at).copied();
            // Half a surrogate pair is held only until other text follows.
            if self.scanner.held_from.is_some() && (run > 0 || next.is_some_and(|b| b != b'\\')) {
                self.scanner.held_from = None;
            }
            match next {
                None => return StringEnd::Piece(Escape::No),
                Some(b'"') => return StringEnd::Quote,
                Some(b'\\') => {
                    let start = self.position();
                    self.scanner.held_from.get_or_insert(start);
                    self.at += 1;
                    match self.escape(Escape::Backslash) {
                        Ok(Escape::No) => {}
                        Ok(unfinished) => return StringEnd::Piece(unfinished),
                        Err(kind) => return StringEnd::SyntaxError(kind),
                    }
                }
                Some(_) => return StringEnd::SyntaxError(SyntaxErrorKind::ControlCharacter),
            }
        }
    }

    /// Reads the rest of an escape sequence, as far as the piece contains it.
    fn escape(&mut self, mut escape: Escape) -> Result<Escape, SyntaxErrorKind> {
        while let Some(&byte) = self.piece.get(self.at) {
            escape = match escape {
                Escape::No => break,
                Escape::Backslash => match byte {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                        self.scanner.held_from = None;
                        Escape::No
                    }
                    b'u' => Escape::Unicode {
                        digits: 0,
                        value: 0,
                    },
                    _ => return Err(SyntaxErrorKind::InvalidEscape),
                },
                Escape::Unicode { digits, value } => {
                    let Some(digit) = hex_value(byte) else {
                        return Err(SyntaxErrorKind::InvalidEscape);
                    };
                    let value = value << 4 | digit;
                    if digits == 3 {
                        self.unicode_escape_ended(value);
                        Escape::No
                    } else {
                        Escape::Unicode {
                            digits: digits + 1,
                            value,
                        }
                    }
                }
            };
            self.at += 1;
        }
        Ok(escape)
    }

    /// Holds back the first half of a surrogate pair until its second half arrives.
    ///
    /// Called with the position at the last of the six bytes.
    fn unicode_escape_ended(&mut self, value: u16) {
        let start = self.position() + 1 - "\\u0000".len();
        self.scanner.held_from = match value {
            // After another first half, the one before stays unpaired.
            0xD800..=0xDBFF => Some(start),
            _ => None,
        };
    }
}

#[inline]
fn hex_value(byte: u8) -> Option<u16> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u16::try_from(digit).ok())
}
