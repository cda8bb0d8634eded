//! Counts the lines of code in a raw string that arrives in pieces.

use serde::{Deserialize, Serialize};

/// The lines of a string so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CodeLines {
    /// How many lines have ended.
    ended: usize,
    /// Whether another has begun.
    begun: bool,
    escape: CodeEscape,
}

/// The progress in an escape sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum CodeEscape {
    #[default]
    No,
    Backslash,
    Unicode {
        digits: u8,
        value: u32,
    },
}

impl CodeLines {
    /// The number of lines, without an unfinished escape.
    pub(super) fn count(&self) -> usize {
        self.ended + usize::from(self.begun)
    }

    /// Reads the next piece.
    pub(super) fn extend(&mut self, raw: &[u8]) {
        for &byte in raw {
            self.add_byte(byte);
        }
    }

    fn add_byte(&mut self, byte: u8) {
        self.escape = match self.escape {
            CodeEscape::No if byte == b'\\' => CodeEscape::Backslash,
            CodeEscape::Backslash if byte == b'u' => CodeEscape::Unicode {
                digits: 0,
                value: 0,
            },
            CodeEscape::No => self.character(false),
            CodeEscape::Backslash => self.character(byte == b'n'),
            CodeEscape::Unicode { digits, value } => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                let value = value << 4 | digit;
                if digits >= 3 {
                    self.character(value == u32::from('\n'))
                } else {
                    CodeEscape::Unicode {
                        digits: digits + 1,
                        value,
                    }
                }
            }
        };
    }

    /// Counts a complete character, after which no escape is open.
    fn character(&mut self, is_line_break: bool) -> CodeEscape {
        self.begun = !is_line_break;
        self.ended += usize::from(is_line_break);
        CodeEscape::No
    }
}
