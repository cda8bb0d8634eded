//! Counts the lines of code in a string that comes in pieces, as written.

use serde::{Deserialize, Serialize};

/// The lines of a string so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CodeLines {
    /// How many lines have ended.
    ended: usize,
    /// Whether another has begun.
    begun: bool,
    escape: Escape,
}

/// How far an escape sequence has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Escape {
    #[default]
    No,
    Backslash,
    Unicode {
        digits: u8,
        value: u32,
    },
}

impl CodeLines {
    /// How many lines there are; what an unfinished escape stands for is not there yet.
    pub(super) fn count(&self) -> usize {
        self.ended + usize::from(self.begun)
    }

    /// Reads the next piece.
    pub(super) fn extend(&mut self, raw: &[u8]) {
        for &byte in raw {
            self.read(byte);
        }
    }

    fn read(&mut self, byte: u8) {
        self.escape = match self.escape {
            Escape::No if byte == b'\\' => Escape::Backslash,
            Escape::Backslash if byte == b'u' => Escape::Unicode {
                digits: 0,
                value: 0,
            },
            Escape::No => self.character(false),
            Escape::Backslash => self.character(byte == b'n'),
            Escape::Unicode { digits, value } => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                let value = value << 4 | digit;
                if digits >= 3 {
                    self.character(value == u32::from('\n'))
                } else {
                    Escape::Unicode {
                        digits: digits + 1,
                        value,
                    }
                }
            }
        };
    }

    /// Counts a whole character, after which no escape is open.
    fn character(&mut self, is_line_break: bool) -> Escape {
        self.begun = !is_line_break;
        self.ended += usize::from(is_line_break);
        Escape::No
    }
}
