//! Which tokens does byte-pair encoding make of a piece?
//!
//! Of all neighbours that make a token together, the pair of the lowest rank is merged, the leftmost
//! of equals first, until no two do. The obvious way to do so takes quadratic time, so it is kept for
//! short pieces. Long ones go through a window, which is sound because of one fact: **tokens are
//! the encoding of their bytes exactly if every two neighbours are the encoding of theirs.** (The
//! first merge across a border in the whole would come first across it among the two as well.) So
//! the tokens of one window and those of the next may be joined wherever the two at the joint are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What merges with what.
pub(crate) trait Merges {
    /// When a merge happens and what it makes. The least is merged first.
    type Merge: Copy + Ord;

    /// No merge, above all others.
    const NONE: Self::Merge;

    /// The token that is this byte.
    fn byte(&self, byte: u8) -> u32;

    /// The merge of two tokens, if they merge.
    fn merge(&self, left: u32, right: u32) -> Self::Merge;

    /// The token that a merge makes.
    fn merged(merge: Self::Merge) -> u32;
}

/// A token and where it ends in its piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) id: u32,
    pub(crate) end: usize,
}

/// Up to this many bytes the obvious way is the fastest.
const SHORT: usize = 64;
/// How many bytes of a long piece are merged at once, at first.
const WINDOW: usize = 64;

/// The number of tokens of a piece, unless there are more than `limit`.
pub(crate) fn count_up_to<M: Merges>(merges: &M, piece: &[u8], limit: u64) -> Option<u64> {
    if piece.len() <= SHORT {
        let count = Scan::new(merges, piece).len as u64;
        return (count <= limit).then_some(count);
    }
    let mut tokens = Tokens::new(merges, piece);
    let mut count = 0;
    while tokens.next().is_some() {
        count += 1;
        if count > limit {
            return None;
        }
    }
    Some(count)
}

/// The tokens of a piece, appended with their ends counted from `start`.
pub(crate) fn encode_into<M: Merges>(
    merges: &M,
    piece: &[u8],
    start: usize,
    tokens: &mut Vec<Token>,
) {
    if piece.len() <= SHORT {
        let scan = Scan::new(merges, piece);
        let ends = scan.starts[..scan.len]
            .iter()
            .skip(1)
            .map(|start| usize::from(*start));
        let ends = ends.chain([piece.len()]).take(scan.len);
        tokens.extend(scan.ids.iter().zip(ends).map(|(id, end)| Token {
            id: *id,
            end: start + end,
        }));
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

/// The tokens of a piece of any length, one after the other, in little memory.
pub(crate) struct Tokens<'a, M> {
    merges: &'a M,
    piece: &'a [u8],
    /// Where the window begins.
    begun: usize,
    /// The tokens of the window. Those before `sure` are tokens of the piece, those before `at` were
    /// handed out.
    window: Vec<Token>,
    at: usize,
    sure: usize,
    /// The tokens of the next window, which begins where the sure ones end.
    next: Vec<Token>,
}

impl<'a, M: Merges> Tokens<'a, M> {
    pub(crate) fn new(merges: &'a M, piece: &'a [u8]) -> Self {
        let mut tokens = Self {
            merges,
            piece,
            begun: 0,
            window: Vec::with_capacity(WINDOW),
            at: 0,
            sure: 0,
            next: Vec::with_capacity(WINDOW),
        };
        tokens.next_from(0);
        tokens.step();
        tokens
    }

    /// Fills the next window, which begins at a place.
    fn next_from(&mut self, begin: usize) {
        let end = self.piece.len().min(begin + WINDOW);
        self.next.clear();
        encode_into(self.merges, &self.piece[begin..end], begin, &mut self.next);
    }

    /// Goes on to the next window, and finds out how many of its tokens are sure.
    fn step(&mut self) {
        self.begun = self
            .sure
            .checked_sub(1)
            .map_or(0, |last| self.window[last].end);
        std::mem::swap(&mut self.window, &mut self.next);
        self.at = 0;
        let mut len = WINDOW;
        loop {
            let end = self.piece.len().min(self.begun + len);
            if end == self.piece.len() {
                self.sure = self.window.len();
                return;
            }
            // Far from the end of the window its tokens are most likely those of the piece.
            for quarters in [3, 2, 1] {
                let border = self.begun + len * quarters / 4;
                self.sure = self.window.partition_point(|token| token.end <= border);
                if self.sure > 0 && self.joins() {
                    return;
                }
            }
            len *= 2;
            let end = self.piece.len().min(self.begun + len);
            self.window.clear();
            encode_into(
                self.merges,
                &self.piece[self.begun..end],
                self.begun,
                &mut self.window,
            );
        }
    }

    /// Whether the sure tokens may be followed by a window of their own.
    fn joins(&mut self) -> bool {
        let last = self.sure - 1;
        let border = self.window[last].end;
        self.next_from(border);
        let Some(follower) = self.next.first() else {
            return false;
        };
        if self.window.get(self.sure) == Some(follower) {
            return true;
        }
        let start = last
            .checked_sub(1)
            .map_or(self.begun, |before| self.window[before].end);
        may_meet(
            self.merges,
            &self.piece[start..border],
            &self.piece[border..follower.end],
        )
    }
}

impl<M: Merges> Iterator for Tokens<'_, M> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        if self.at == self.sure {
            if self
                .window
                .last()
                .is_none_or(|token| token.end == self.piece.len() && self.sure == self.window.len())
            {
                return None;
            }
            self.step();
        }
        self.at += 1;
        Some(self.window[self.at - 1])
    }
}

/// A short piece, merged by looking at all pairs for the least.
struct Scan {
    ids: [u32; SHORT],
    starts: [u8; SHORT],
    len: usize,
}

impl Scan {
    #[inline]
    fn new<M: Merges>(merges: &M, piece: &[u8]) -> Self {
        let mut ids = [0; SHORT];
        let mut starts = [0; SHORT];
        let mut ranks = [M::NONE; SHORT];
        let mut len = piece.len().min(SHORT);
        for (at, byte) in piece.iter().enumerate().take(len) {
            ids[at] = merges.byte(*byte);
            starts[at] = at as u8;
            if at > 0 {
                ranks[at - 1] = merges.merge(ids[at - 1], ids[at]);
            }
        }
        while len > 1 {
            let (mut at, mut least) = (0, ranks[0]);
            for (place, rank) in ranks[..len - 1].iter().enumerate().skip(1) {
                if *rank < least {
                    (at, least) = (place, *rank);
                }
            }
            if least == M::NONE {
                break;
            }
            ids[at] = M::merged(least);
            ids.copy_within(at + 2..len, at + 1);
            starts.copy_within(at + 2..len, at + 1);
            ranks.copy_within(at + 1..len - 1, at);
            len -= 1;
            ranks[at] = if at + 1 < len {
                merges.merge(ids[at], ids[at + 1])
            } else {
                M::NONE
            };
            if at > 0 {
                ranks[at - 1] = merges.merge(ids[at - 1], ids[at]);
            }
        }
        Self { ids, starts, len }
    }
}

/// A longer piece: the pairs wait in a heap, and the parts know their neighbours.
fn heap<M: Merges>(merges: &M, piece: &[u8], start: usize, tokens: &mut Vec<Token>) {
    const GONE: u32 = u32::MAX;
    let mut ids: Vec<u32> = piece.iter().map(|byte| merges.byte(*byte)).collect();
    // Where the part ends that begins at a place, and where the one before it begins.
    let mut ends: Vec<usize> = (1..=piece.len()).collect();
    let mut befores: Vec<usize> = (0..piece.len()).map(|at| at.wrapping_sub(1)).collect();
    let mut pairs = BinaryHeap::new();
    for at in 1..piece.len() {
        let merge = merges.merge(ids[at - 1], ids[at]);
        if merge != M::NONE {
            pairs.push(Reverse((merge, at - 1)));
        }
    }
    while let Some(Reverse((merge, left))) = pairs.pop() {
        let right = ends[left];
        // A pair that changed since it was put here is no longer there, or waits elsewhere.
        if ids[left] == GONE || right == piece.len() || merges.merge(ids[left], ids[right]) != merge
        {
            continue;
        }
        let end = ends[right];
        ids[left] = M::merged(merge);
        ids[right] = GONE;
        ends[left] = end;
        if let Some(before) = befores.get_mut(end) {
            *before = left;
            let merge = merges.merge(ids[left], ids[end]);
            if merge != M::NONE {
                pairs.push(Reverse((merge, left)));
            }
        }
        if let Some(before) = befores.get(left).copied().filter(|_| left > 0) {
            let merge = merges.merge(ids[before], ids[left]);
            if merge != M::NONE {
                pairs.push(Reverse((merge, before)));
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
