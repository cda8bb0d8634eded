//! Brackets that are written as `[` until it is known whether they contain only one value.

use crate::packed::{Packed, PackedStack, read_byte, read_number, write_number};

/// An open bracket of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Its position in the draft.
    pub(super) position: usize,
    pub(super) values: Values,
    pub(super) comma: bool,
    pub(super) call: bool,
}

/// How many values a group contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    None,
    One,
    Several,
}

impl Values {
    pub(super) fn and_one(self) -> Self {
        match self {
            Self::None => Self::One,
            Self::One | Self::Several => Self::Several,
        }
    }
}

/// The open groups, the innermost last.
pub(super) type Groups = PackedStack<Group>;

const ONE: u8 = 1;
const SEVERAL: u8 = 2;
const COMMA: u8 = 4;
const CALL: u8 = 8;

impl Packed for Group {
    fn pack(&self, above: &Self, bytes: &mut Vec<u8>) {
        let mut flags = match self.values {
            Values::None => 0,
            Values::One => ONE,
            Values::Several => SEVERAL,
        };
        if self.comma {
            flags |= COMMA;
        }
        if self.call {
            flags |= CALL;
        }
        write_number(bytes, above.position - self.position);
        bytes.push(flags);
    }

    fn unpack(above: &Self, bytes: &mut &[u8]) -> Self {
        let flags = read_byte(bytes);
        Self {
            position: above.position - read_number(bytes),
            values: match flags & (ONE | SEVERAL) {
                0 => Values::None,
                ONE => Values::One,
                _ => Values::Several,
            },
            comma: flags & COMMA != 0,
            call: flags & CALL != 0,
        }
    }
}
