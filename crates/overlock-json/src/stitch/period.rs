//! Tells whether two joins differ by repetitions of one and the same piece.
//!
//! Where a text repeats itself, a fragment that begins with the piece may mean the last
//! repetition again or the next one, and nothing in the two texts says which.

use super::Attempt;
use crate::tokens::{Token, Tokens};

/// Fewer characters come again all the time.
const SHORTEST_REFRAIN: usize = 8;

/// The end of a period may differ: the last item of an array has no comma after it.
const RAGGED_END: usize = 2;

/// The last repetition may end early only if the piece has no more tokens than this.
const SHORT_PIECE: usize = 8;

/// How much of the base before the overlap is searched for the same once more.
const WINDOW: usize = 32 * 1024;

impl Attempt<'_, '_> {
    /// Whether the fragment's text between two places where it might join comes once more, right
    /// after it in the fragment or right before what it repeats in the base.
    pub(super) fn is_period(&self, shorter: usize, longer: usize) -> bool {
        let (shorter, longer) = (shorter.min(longer), shorter.max(longer));
        self.is_period_of_text(shorter, longer)
            || self.is_period_of_tokens(shorter, longer)
            || self.repeats_itself(shorter, longer)
    }

    /// Whether the shorter overlap comes again in the longer one, with the same text after it
    /// each time: then it is a refrain, and tells nothing of where one is.
    fn repeats_itself(&self, shorter: usize, longer: usize) -> bool {
        let fragment = self.fragment.as_bytes();
        let overlap = &self.fragment[..shorter];
        let mut at = 0;
        while shorter >= SHORTEST_REFRAIN && at < longer {
            let next = self.fragment.ceil_char_boundary(at + 1);
            let Some(found) = self.fragment[next..].find(overlap) else {
                return false;
            };
            let again = next + found;
            let len = again - at;
            self.count(len);
            if fragment.get(again..again + len) == Some(&fragment[at..again]) {
                return true;
            }
            at = again;
        }
        false
    }

    /// Counts how far the text goes on repeating itself at this distance, ahead in the fragment
    /// and behind in the base: another whole piece is one too many.
    fn is_period_of_text(&self, shorter: usize, longer: usize) -> bool {
        let fragment = self.fragment.as_bytes();
        let piece = &fragment[shorter..longer];
        let ahead = common(piece.iter(), fragment[longer..].iter());
        let base = self.base.text().as_bytes();
        let before = base.strip_suffix(&fragment[..longer]).unwrap_or_default();
        let behind = common(fragment[..piece.len()].iter().rev(), before.iter().rev());
        self.count(ahead + behind);
        let again = shorter + ahead + behind;
        again > 0 && again + RAGGED_END >= piece.len() || self.stands_before(piece.len(), longer)
    }

    /// Whether the first bytes of the fragment stand in the base before the place where it
    /// begins: then they may well come a third time.
    fn stands_before(&self, len: usize, repeated: usize) -> bool {
        let (base, fragment) = (self.base.text(), self.fragment);
        let Some(before) = base.strip_suffix(&fragment[..repeated]) else {
            return false;
        };
        let start = before.ceil_char_boundary(before.len().saturating_sub(WINDOW));
        self.count(before.len() - start);
        fragment
            .get(..len)
            .is_some_and(|first| before[start..].contains(first))
    }

    fn is_period_of_tokens(&self, shorter: usize, longer: usize) -> bool {
        let in_string = self.base.scanner().is_in_string();
        let piece: Vec<Token<'_>> =
            Tokens::new(&self.fragment[..longer], shorter, in_string).collect();
        let mut ahead = Tokens::new(self.fragment, longer, in_string);
        let mut same = 0;
        for token in &piece {
            match ahead.next() {
                Some(next) if next == *token => same += 1,
                // The last repetition is followed by the end of its container.
                Some(next) if !next.is_mark("}]") => break,
                _ => return same > 0 && (2 * same >= piece.len() || piece.len() <= SHORT_PIECE),
            }
        }
        same > 0 && same + 1 >= piece.len()
    }
}

fn common<'a>(one: impl Iterator<Item = &'a u8>, another: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(another).take_while(|(a, b)| a == b).count()
}
