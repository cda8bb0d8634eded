//! The open brackets around the current position of the finder.

use crate::packed::{Packed, PackedStack, read_byte, read_number, write_number};

/// An open bracket and its score so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opener {
    pub(super) start: usize,
    pub(super) bracket: u8,
    /// A valid token follows the bracket, so its bare words cannot outweigh its nested content.
    pub(super) confirmed: bool,
    pub(super) own: i64,
    pub(super) nested: i64,
}

impl Opener {
    /// Whether nothing has followed the bracket.
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
pub(super) type Openers = PackedStack<Opener>;

const CURLY: u8 = 1;
const CONFIRMED: u8 = 2;
const BARE: u8 = 4;

impl Packed for Opener {
    fn pack(&self, above: &Self, bytes: &mut Vec<u8>) {
        let mut flags = 0;
        if self.bracket == b'{' {
            flags |= CURLY;
        }
        if self.confirmed {
            flags |= CONFIRMED;
        }
        if self.is_bare() {
            flags |= BARE;
        } else {
            write_number(bytes, folded(self.nested));
            write_number(bytes, folded(self.own));
        }
        write_number(bytes, above.start - self.start);
        bytes.push(flags);
    }

    fn unpack(above: &Self, bytes: &mut &[u8]) -> Self {
        let flags = read_byte(bytes);
        let distance = read_number(bytes);
        let (own, nested) = if flags & BARE == 0 {
            let own = unfolded(read_number(bytes));
            (own, unfolded(read_number(bytes)))
        } else {
            (1, 0)
        };
        Self {
            start: above.start - distance,
            bracket: bracket(flags),
            confirmed: flags & CONFIRMED != 0,
            own,
            nested,
        }
    }
}

/// The bracket below the innermost one.
pub(super) fn bracket_below(openers: &Openers) -> Option<u8> {
    openers.below().last().map(|flags| bracket(*flags))
}

fn bracket(flags: u8) -> u8 {
    if flags & CURLY == 0 { b'[' } else { b'{' }
}

/// Encodes a score as a number that is small if the score is near zero.
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

    use super::{Opener, Openers, bracket_below};

    proptest! {
        #[test]
        fn packed_openers_are_unpacked_unchanged(
            parts in prop::collection::vec((1_usize..1 << 40, any::<bool>(), any::<bool>(), -70_i64..1 << 50, 0_i64..1 << 50), 0..40),
        ) {
            let mut start = 0;
            let mut plain = Vec::new();
            let mut openers = Openers::default();
            for (distance, curly, confirmed, own, nested) in parts {
                start += distance;
                let bracket = if curly { b'{' } else { b'[' };
                // Half of them are bare.
                let (own, nested) = if own % 2 == 0 { (1, 0) } else { (own, nested) };
                let opener = Opener { start, bracket, confirmed, own, nested };
                plain.push(opener);
                openers.push(opener);
            }
            while let Some(opener) = plain.pop() {
                prop_assert_eq!(bracket_below(&openers), plain.last().map(|below| below.bracket));
                prop_assert_eq!(openers.pop(), Some(opener));
            }
            prop_assert!(openers.is_empty());
        }
    }
}
