//! Byte-pair encoding of a piece.
//!
//! Of all adjacent tokens that merge, the pair of the lowest rank is merged first, the leftmost of
//! equals, until none is left. The direct algorithm takes quadratic time, so it is used only for
//! short pieces. Long ones go through a window, which is correct because of one fact: **tokens are
//! the encoding of their bytes exactly if every two neighbours are the encoding of theirs.** (The
//! first merge across a border in the whole text would also be the first across it in the pair.) So
//! the tokens of two windows may be joined wherever the two tokens at the joint are such neighbours.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The merges of a tokenizer.
pub(crate) trait Merges {
    /// The token that is this byte.
    fn byte(&self, byte: u8) -> u32;

    /// The rank of the merge of two tokens; [`NO_MERGE`] if they do not merge.
    fn rank(&self, left: u32, right: u32) -> u32;

    /// The rank of the merge of two bytes, which may be known more directly.
    #[inline]
    fn rank_of_bytes(&self, left: u8, right: u8) -> u32 {
        self.rank(self.byte(left), self.byte(right))
    }

    /// The token that the merge of a rank makes.
    fn merged(&self, rank: u32) -> u32;

    /// The token that is this character, if it is one. Its id is the rank of its last merge.
    #[inline]
    fn character(&self, _character: char) -> Option<u32> {
        None
    }

    /// The lowest rank of a merge across the border of two characters, one of which ends with a
    /// byte and the other begins with one, that takes only a part of the first.
    #[inline]
    fn tears_before(&self, _last: u8, _first: u8) -> u32 {
        0
    }

    /// The same for a merge that takes only a part of the second.
    #[inline]
    fn tears_after(&self, _last: u8, _first: u8) -> u32 {
        0
    }
}

/// The rank of two tokens that do not merge.
pub(crate) const NO_MERGE: u32 = u32::MAX;

/// A token and where it ends in its piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) id: u32,
    pub(crate) end: usize,
}

/// Up to this many bytes, the direct algorithm is the fastest.
const SHORT: usize = 64;
/// Most pieces that are not a token have at most this many bytes.
const WORD: usize = 16;
/// How many bytes of a long piece are merged at once, at first.
pub(crate) const WINDOW: usize = 64;

/// The number of tokens of a piece, found from its characters on, which is faster than from its
/// bytes; nothing if it is too long.
///
/// Merges come in the order of their ranks, and a token has a higher rank than its parts. So a
/// character that is a token of a lower rank than any merge that would tear it is whole before
/// anything else can happen to its bytes. Every other one begins as its bytes.
pub(crate) fn count_from_characters<M: Merges>(merges: &M, piece: &str) -> Option<u64> {
    let bytes = piece.as_bytes();
    let mut ids = [0; SHORT];
    let mut len = 0;
    for (start, character) in piece.char_indices() {
        let end = start + character.len_utf8();
        let before = start.checked_sub(1).map(|last| bytes[last]);
        let after = bytes.get(end).copied();
        let is_whole = |id: &u32| {
            before.is_none_or(|before| merges.tears_after(before, bytes[start]) > *id)
                && after.is_none_or(|after| merges.tears_before(bytes[end - 1], after) > *id)
        };
        if let Some(id) = merges.character(character).filter(is_whole) {
            *ids.get_mut(len)? = id;
            len += 1;
        } else {
            for byte in &bytes[start..end] {
                *ids.get_mut(len)? = merges.byte(*byte);
                len += 1;
            }
        }
    }
    let rank = |left: usize| merges.rank(ids[left], ids[left + 1]);
    let scan = Scan::new(merges, ids, len, rank);
    Some(u64::from(scan.starts.count_ones()))
}

/// The number of tokens of a piece.
pub(crate) fn count<M: Merges>(merges: &M, piece: &[u8]) -> u64 {
    if piece.len() <= WORD {
        u64::from(Scan::<WORD>::of_bytes(merges, piece).starts.count_ones())
    } else if piece.len() <= SHORT {
        u64::from(Scan::<SHORT>::of_bytes(merges, piece).starts.count_ones())
    } else {
        fold(merges, piece, 0, |count, _| count + 1)
    }
}

/// Goes through the tokens of a piece of any length, in little memory.
pub(crate) fn fold<M: Merges, R: Clone>(
    merges: &M,
    piece: &[u8],
    start: R,
    mut step: impl FnMut(R, Token) -> R,
) -> R {
    let mut window = WINDOW;
    loop {
        let mut tokens = Tokens::new(merges, piece, window);
        let result = tokens.by_ref().fold(start.clone(), &mut step);
        if !tokens.has_failed() {
            return result;
        }
        window *= 16;
    }
}

/// The tokens of a piece, appended with their ends counted from `start`.
pub(crate) fn encode_into<M: Merges>(
    merges: &M,
    piece: &[u8],
    start: usize,
    tokens: &mut Vec<Token>,
) {
    if piece.len() <= SHORT {
        let Scan { ids, mut starts } = Scan::<SHORT>::of_bytes(merges, piece);
        while starts != 0 {
            let id = ids[starts.trailing_zeros() as usize % SHORT];
            starts &= starts - 1;
            let end = piece.len().min(starts.trailing_zeros() as usize);
            tokens.push(Token {
                id,
                end: start + end,
            });
        }
    } else {
        heap(merges, piece, start, tokens);
    }
}

/// Whether a token may stand before another in an encoding.
pub(crate) fn may_meet<M: Merges>(merges: &M, left: &[u8], right: &[u8]) -> bool {
    let both: Vec<u8> = [left, right].concat();
    let mut tokens = Vec::new();
    encode_into(merges, &both, 0, &mut tokens);
    matches!(tokens[..], [one, other] if one.end == left.len() && other.end == both.len())
}

/// Tokens that are the encoding of a piece as far as they go, one after the other.
///
/// Every two neighbours may meet, so they are the encoding of their bytes; and unless it
/// [failed](Self::has_failed), they are the encoding of the piece once they have reached its end.
pub(crate) struct Tokens<'a, M> {
    merges: &'a M,
    piece: &'a [u8],
    /// Where the token before the window begins, and the window.
    before: usize,
    begun: usize,
    /// How many bytes a window has: more once that was necessary.
    len: usize,
    /// The tokens of the window. Those before `sure` are handed out, those before `at` were.
    window: Vec<Token>,
    at: usize,
    sure: usize,
    /// The tokens of the next window, which begins where the sure ones end.
    next: Vec<Token>,
    failed: bool,
}

impl<'a, M: Merges> Tokens<'a, M> {
    /// Begins with a window of so many bytes.
    pub(crate) fn new(merges: &'a M, piece: &'a [u8], window: usize) -> Self {
        let mut tokens = Self {
            merges,
            piece,
            before: 0,
            begun: 0,
            len: window,
            window: Vec::new(),
            at: 0,
            sure: 0,
            next: Vec::new(),
            failed: false,
        };
        tokens.fill_next(0);
        tokens.step();
        tokens
    }

    /// Whether the returned tokens cannot be continued to the end, so a larger window is needed from
    /// the beginning.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Fills the next window, which begins at a place.
    fn fill_next(&mut self, begin: usize) {
        let end = self.piece.len().min(begin + self.len);
        self.next.clear();
        encode_into(self.merges, &self.piece[begin..end], begin, &mut self.next);
    }

    /// Moves to the next window, and finds how many of its tokens may be returned.
    fn step(&mut self) {
        if let Some(last) = self.sure.checked_sub(1) {
            self.before = self.start_of(last);
            self.begun = self.window[last].end;
        }
        std::mem::swap(&mut self.window, &mut self.next);
        self.at = 0;
        loop {
            if self.begun + self.len >= self.piece.len() {
                self.sure = self.window.len();
                return;
            }
            // Far from the end of the window its tokens are most likely those of the piece.
            for eighths in [7, 4, 2] {
                let border = self.begun + self.len * eighths / 8;
                self.sure = self.window.partition_point(|token| token.end <= border);
                if self.sure > 0 && self.joins() {
                    return;
                }
            }
            self.len *= 4;
            self.window.clear();
            let end = self.piece.len().min(self.begun + self.len);
            let window = &self.piece[self.begun..end];
            encode_into(self.merges, window, self.begun, &mut self.window);
            // The first token may be another now than the one that was joined.
            let first = self.window.first().map_or(end, |token| token.end);
            if self.begun > 0 && !self.may_meet(self.before, self.begun, first) {
                self.window.clear();
                self.sure = 0;
                self.failed = true;
                return;
            }
        }
    }

    /// Whether the sure tokens may be followed by a window of their own.
    fn joins(&mut self) -> bool {
        let last = self.sure - 1;
        let border = self.window[last].end;
        self.fill_next(border);
        let follower = self.next.first();
        self.window.get(self.sure) == follower
            || follower.is_some_and(|token| self.may_meet(self.start_of(last), border, token.end))
    }

    fn may_meet(&self, start: usize, border: usize, end: usize) -> bool {
        may_meet(
            self.merges,
            &self.piece[start..border],
            &self.piece[border..end],
        )
    }

    fn start_of(&self, token: usize) -> usize {
        token
            .checked_sub(1)
            .map_or(self.begun, |before| self.window[before].end)
    }
}

impl<M: Merges> Iterator for Tokens<'_, M> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        if self.at == self.sure {
            let end = self
                .sure
                .checked_sub(1)
                .map_or(self.begun, |last| self.window[last].end);
            if self.failed || end == self.piece.len() {
                return None;
            }
            self.step();
        }
        self.at += 1;
        self.window.get(self.at - 1).copied()
    }
}

/// A short piece, merged by looking at all pairs for the least.
///
/// A place in it is that of a byte, or of a character that is a token to begin with.
struct Scan<const N: usize> {
    /// The token that begins at a place.
    ids: [u32; N],
    /// A bit for every place where a token begins.
    starts: u64,
}

impl<const N: usize> Scan<N> {
    #[inline]
    fn of_bytes<M: Merges>(merges: &M, piece: &[u8]) -> Self {
        let mut ids = [0; N];
        for (id, byte) in ids.iter_mut().zip(piece) {
            *id = merges.byte(*byte);
        }
        let rank = |left: usize| merges.rank_of_bytes(piece[left], piece[left + 1]);
        Self::new(merges, ids, piece.len(), rank)
    }

    /// Merges so many tokens, of which each has a rank with the one after it.
    #[inline]
    fn new<M: Merges>(
        merges: &M,
        mut ids: [u32; N],
        len: usize,
        first_rank: impl Fn(usize) -> u32,
    ) -> Self {
        // The rank and the place of every pair in one number: the least is the one to merge.
        let mut pairs = [u64::MAX; N];
        let pair = |rank: u32, place: usize| u64::from(rank) << 32 | place as u64;
        for (place, slot) in pairs.iter_mut().enumerate().take(len.saturating_sub(1)) {
            *slot = pair(first_rank(place), place);
        }
        let mut starts = match len {
            0..64 => (1_u64 << len) - 1,
            _ => u64::MAX,
        };
        let looked_at = len.next_multiple_of(LANES);
        loop {
            let least = least(&pairs[..looked_at]);
            let rank = (least >> 32) as u32;
            if rank == NO_MERGE {
                break;
            }
            let left = (least & 0xFF) as usize % N;
            let after = starts & (u64::MAX << left << 1);
            let right = after.trailing_zeros() as usize % N;
            let after = after & (after - 1);
            starts &= !(1 << right);
            pairs[right] = u64::MAX;
            ids[left] = merges.merged(rank);
            pairs[left] = if after == 0 {
                u64::MAX
            } else {
                let next = after.trailing_zeros() as usize % N;
                pair(merges.rank(ids[left], ids[next]), left)
            };
            let before = starts & !(u64::MAX << left);
            if before != 0 {
                let previous = before.ilog2() as usize % N;
                pairs[previous] = pair(merges.rank(ids[previous], ids[left]), previous);
            }
        }
        Self { ids, starts }
    }
}

/// So many numbers are compared side by side.
const LANES: usize = 4;

#[inline]
fn least(pairs: &[u64]) -> u64 {
    let mut lanes = [u64::MAX; LANES];
    for pairs in pairs.as_chunks::<LANES>().0 {
        for (lane, pair) in lanes.iter_mut().zip(pairs) {
            *lane = (*lane).min(*pair);
        }
    }
    lanes[0].min(lanes[1]).min(lanes[2].min(lanes[3]))
}

/// A longer piece: the pairs wait in a heap, and the parts know their neighbours.
fn heap<M: Merges>(merges: &M, piece: &[u8], start: usize, tokens: &mut Vec<Token>) {
    let mut ids: Vec<u32> = piece.iter().map(|byte| merges.byte(*byte)).collect();
    // Of the part that begins at a place: where it ends, where the one before it begins, and the
    // rank of its merge with the one after it.
    let mut ends: Vec<usize> = (1..=piece.len()).collect();
    let mut befores: Vec<usize> = (0..piece.len()).map(|at| at.saturating_sub(1)).collect();
    let mut ranks = vec![NO_MERGE; piece.len()];
    let mut pairs = BinaryHeap::with_capacity(piece.len());
    for (at, bytes) in piece.array_windows::<2>().enumerate() {
        ranks[at] = merges.rank_of_bytes(bytes[0], bytes[1]);
        if ranks[at] != NO_MERGE {
            pairs.push(Reverse((ranks[at], at)));
        }
    }
    while let Some(Reverse((rank, left))) = pairs.pop() {
        // A pair that changed since is stale; its new version, if any, is elsewhere in the heap.
        if ranks[left] != rank {
            continue;
        }
        let right = ends[left];
        let end = ends[right];
        ids[left] = merges.merged(rank);
        ranks[right] = NO_MERGE;
        ends[left] = end;
        ranks[left] = NO_MERGE;
        if end < piece.len() {
            befores[end] = left;
            ranks[left] = merges.rank(ids[left], ids[end]);
            if ranks[left] != NO_MERGE {
                pairs.push(Reverse((ranks[left], left)));
            }
        }
        if left > 0 {
            let before = befores[left];
            ranks[before] = merges.rank(ids[before], ids[left]);
            if ranks[before] != NO_MERGE {
                pairs.push(Reverse((ranks[before], before)));
            }
        }
    }
    let mut at = 0;
    while at < piece.len() {
        tokens.push(Token {
            id: ids[at],
            end: start + ends[at],
        });
        at = ends[at];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Random merges.
    #[derive(Debug)]
    struct Made {
        ranks: HashMap<(u32, u32), u32>,
    }

    impl Merges for Made {
        fn byte(&self, byte: u8) -> u32 {
            u32::from(byte)
        }

        fn rank(&self, left: u32, right: u32) -> u32 {
            self.ranks.get(&(left, right)).copied().unwrap_or(NO_MERGE)
        }

        fn merged(&self, rank: u32) -> u32 {
            256 + rank
        }
    }

    /// Every merge takes two of the bytes `0..3` and of the merges before it.
    fn made() -> impl Strategy<Value = Made> {
        vec((any::<u32>(), any::<u32>()), 1..60).prop_map(|pairs| {
            let token = |number: u32, rank: u32| match number % (rank + 3) {
                byte @ 0..3 => byte,
                merge => 256 + merge - 3,
            };
            let mut ranks = HashMap::new();
            for (rank, (left, right)) in (0..).zip(&pairs) {
                ranks
                    .entry((token(*left, rank), token(*right, rank)))
                    .or_insert(rank);
            }
            Made { ranks }
        })
    }

    /// The tokens found by merging as the definition says.
    fn merged_plainly(merges: &Made, piece: &[u8]) -> Vec<Token> {
        let mut tokens: Vec<Token> = (1..)
            .zip(piece)
            .map(|(end, byte)| Token {
                id: merges.byte(*byte),
                end,
            })
            .collect();
        loop {
            let ranks = tokens
                .array_windows::<2>()
                .map(|[left, right]| merges.rank(left.id, right.id));
            let Some((at, rank)) = ranks.enumerate().min_by_key(|(_, rank)| *rank) else {
                return tokens;
            };
            if rank == NO_MERGE {
                return tokens;
            }
            let right = tokens.remove(at + 1);
            tokens[at] = Token {
                id: merges.merged(rank),
                end: right.end,
            };
        }
    }

    proptest! {
        #![proptest_config(crate::count::nasty::cases(500, 2000))]

        #[test]
        fn every_way_of_merging_makes_the_same_tokens(
            merges in made(),
            piece in prop_oneof![vec(0..3_u8, 0..700), vec(0..2_u8, 0..300), vec(0..1_u8, 0..300)],
        ) {
            let expected = merged_plainly(&merges, &piece);
            prop_assert_eq!(count(&merges, &piece), expected.len() as u64);
            let all = fold(&merges, &piece, Vec::new(), |mut tokens, token| {
                tokens.push(token);
                tokens
            });
            prop_assert_eq!(&all[..], &expected[..]);
            let mut tokens = Vec::new();
            encode_into(&merges, &piece, 0, &mut tokens);
            prop_assert_eq!(&tokens[..], &expected[..]);
            tokens.clear();
            heap(&merges, &piece, 0, &mut tokens);
            prop_assert_eq!(&tokens[..], &expected[..]);
            // Small windows have many joints.
            for window in [4, 8, 16, 32] {
                let mut tokens = Tokens::new(&merges, &piece, window);
                let found: Vec<Token> = tokens.by_ref().collect();
                if !tokens.has_failed() {
                    prop_assert_eq!(&found[..], &expected[..]);
                }
            }
        }
    }
}
