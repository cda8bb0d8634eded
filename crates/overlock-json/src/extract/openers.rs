//! The brackets that are open around the place the finder has come to.
//!
//! Only the innermost is at hand. The others wait in a few bytes each, since prose
//! may hold a million brackets as well as a document may.

use crate::packed::{read_number, write_number};

/// A bracket that is open, and how much JSON it has in it so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opener {
    pub(super) start: usize,
    pub(super) bracket: u8,
    /// A proper token follows the bracket, so its bare words cannot outweigh what is nested in it.
    pub(super) confirmed: bool,
    pub(super) own: i64,
    pub(super) nested: i64,
}

impl Opener {
    /// Whether nothing but the bracket itself has come.
    pub(super) fn is_bare(&self) -> bool {
        self.own == 1 && self.nested == 0
    }

    pub(super) fn score(&self) -> i64 {
        let own = if self.confirmed {
            self.own.max(1)
        } else {
            self.own
        };
        self.nested + own
    }
}

/// The open brackets, the innermost last.
#[derive(Default)]
pub(super) struct Openers {
    innermost: Option<Opener>,
    /// For each of the others: its scores unless it is bare, the distance to the next bracket
    /// inwards, and its flags.
    outer: Vec<u8>,
}

const CURLY: u8 = 1;
const CONFIRMED: u8 = 2;
const BARE: u8 = 4;

impl Openers {
    pub(super) fn is_empty(&self) -> bool {
        self.innermost.is_none()
    }

    pub(super) fn last(&self) -> Option<&Opener> {
        self.innermost.as_ref()
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Opener> {
        self.innermost.as_mut()
    }

    /// The bracket around the innermost one.
    pub(super) fn bracket_below(&self) -> Option<u8> {
        self.outer.last().map(|flags| bracket(*flags))
    }

    pub(super) fn push(&mut self, opener: Opener) {
        let Some(outer) = self.innermost.replace(opener) else {
            return;
        };
        let mut flags = 0;
        if outer.bracket == b'{' {
            flags |= CURLY;
        }
        if outer.confirmed {
            flags |= CONFIRMED;
        }
        if outer.is_bare() {
            flags |= BARE;
        } else {
            write_number(&mut self.outer, folded(outer.nested));
            write_number(&mut self.outer, folded(outer.own));
        }
        write_number(&mut self.outer, opener.start - outer.start);
        self.outer.push(flags);
    }

    pub(super) fn pop(&mut self) -> Option<Opener> {
        let popped = self.innermost.take()?;
        let Some(flags) = self.outer.pop() else {
            return Some(popped);
        };
        let mut rest = &self.outer[..];
        let distance = read_number(&mut rest);
        let (own, nested) = if flags & BARE == 0 {
            let own = unfolded(read_number(&mut rest));
            (own, unfolded(read_number(&mut rest)))
        } else {
            (1, 0)
        };
        let left = rest.len();
        self.outer.truncate(left);
        self.innermost = Some(Opener {
            start: popped.start - distance,
            bracket: bracket(flags),
            confirmed: flags & CONFIRMED != 0,
            own,
            nested,
        });
        Some(popped)
    }
}

fn bracket(flags: u8) -> u8 {
    if flags & CURLY == 0 { b'[' } else { b'{' }
}

/// A score as a number that is small if the score is near nothing.
fn folded(score: i64) -> usize {
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "scores are no larger than the text is long"
    )]
    let folded = (score << 1 ^ score >> 63) as usize;
    folded
}

fn unfolded(number: usize) -> i64 {
    let magnitude = i64::try_from(number >> 1).unwrap_or(i64::MAX);
    if number & 1 == 0 {
        magnitude
    } else {
        -magnitude - 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Opener, Openers};

    proptest! {
        #[test]
        fn what_was_put_away_comes_back_as_it_was(
            parts in prop::collection::vec((1_usize..1 << 40, any::<bool>(), any::<bool>(), -70_i64..1 << 50, 0_i64..1 << 50), 0..40),
        ) {
            let mut start = 0;
            let mut plain = Vec::new();
            let mut openers = Openers::default();
            for (distance, curly, confirmed, own, nested) in parts {
                start += distance;
                let bracket = if curly { b'{' } else { b'[' };
                // Half of them are as they begin.
                let (own, nested) = if own % 2 == 0 { (1, 0) } else { (own, nested) };
                let opener = Opener { start, bracket, confirmed, own, nested };
                plain.push(opener);
                openers.push(opener);
            }
            while let Some(opener) = plain.pop() {
                prop_assert_eq!(openers.bracket_below(), plain.last().map(|below| below.bracket));
                prop_assert_eq!(openers.pop(), Some(opener));
            }
            prop_assert!(openers.is_empty());
        }
    }
}
