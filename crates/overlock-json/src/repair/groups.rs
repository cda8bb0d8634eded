//! Brackets that are written as `[` until it is known whether they hold one value alone.

use crate::packed::{read_number, write_number};

/// Such a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Where it is in the draft.
    pub(super) position: usize,
    pub(super) values: Values,
    pub(super) comma: bool,
    pub(super) call: bool,
}

/// How many values a group holds.
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

/// The groups that are open, the innermost last.
///
/// All but that one wait in a few bytes each: a text may open a billion of them.
#[derive(Default)]
pub(super) struct Groups {
    innermost: Option<Group>,
    /// For each of the others the distance to the next one inwards, and its flags.
    outer: Vec<u8>,
}

const ONE: u8 = 1;
const SEVERAL: u8 = 2;
const COMMA: u8 = 4;
const CALL: u8 = 8;

impl Groups {
    pub(super) fn last_mut(&mut self) -> Option<&mut Group> {
        self.innermost.as_mut()
    }

    pub(super) fn push(&mut self, group: Group) {
        let Some(outer) = self.innermost.replace(group) else {
            return;
        };
        let mut flags = match outer.values {
            Values::None => 0,
            Values::One => ONE,
            Values::Several => SEVERAL,
        };
        if outer.comma {
            flags |= COMMA;
        }
        if outer.call {
            flags |= CALL;
        }
        write_number(&mut self.outer, group.position - outer.position);
        self.outer.push(flags);
    }

    pub(super) fn pop(&mut self) -> Option<Group> {
        let popped = self.innermost.take()?;
        let Some(flags) = self.outer.pop() else {
            return Some(popped);
        };
        let mut rest = &self.outer[..];
        let distance = read_number(&mut rest);
        let left = rest.len();
        self.outer.truncate(left);
        self.innermost = Some(Group {
            position: popped.position - distance,
            values: match flags & (ONE | SEVERAL) {
                0 => Values::None,
                ONE => Values::One,
                _ => Values::Several,
            },
            comma: flags & COMMA != 0,
            call: flags & CALL != 0,
        });
        Some(popped)
    }
}
