//! Truncates a text to a number of tokens.
//!
//! A longer part may have fewer tokens, so a binary search is wrong, and trying every length takes
//! too long. But the effect of a cut is local:
//!
//! - No pattern looks back, and looks ahead only into white space. So the beginning of a text is
//!   split like the text itself, except for the piece that was cut and white space before the cut;
//!   and an ending is split like the text from the first common border on.
//! - Within a piece, the tokens up to the end of any of them are the encoding of the bytes up to
//!   there, and so are those from the beginning of one of them on. So if at every place of a stretch
//!   as long as the longest token there are too many already, there are too many beyond it.
//!
//! So only the surroundings of the cut are tried, offset by offset, and each is counted.

use std::collections::HashMap;

use super::Keep;
use super::byte_pair::{BytePair, count_piece, count_up_to};
use super::classes::{SPACE, run};
use super::merge::{Merges, Token, Tokens, WINDOW, encode_into, fold, may_meet};

/// The longest part of a text, from one end of it, that counts at most `tokens`.
pub(crate) fn truncate_to<'text>(
    tokenizer: &impl BytePair,
    text: &'text str,
    tokens: u64,
    keep: Keep,
) -> &'text str {
    match keep {
        Keep::Start => &text[..Beginning { tokenizer, text }.longest(tokens)],
        Keep::End => &text[Ending { tokenizer, text }.longest(tokens)..],
    }
}

/// How many characters of a stretch are tried one by one before anything else is thought of.
const FEW: usize = 48;
/// How many tokens next to a cut inside a piece are looked at again, at first.
const NEAR: usize = 8;

/// The beginnings of a text.
struct Beginning<'a, T> {
    tokenizer: &'a T,
    text: &'a str,
}

impl<T: BytePair> Beginning<'_, T> {
    /// Where the longest beginning ends that counts at most `limit`.
    fn longest(&self, limit: u64) -> usize {
        let text = self.text;
        let pattern = self.tokenizer.pattern();
        // The white space before a piece is split anew when the cut is in it, so it is kept in mind:
        // where it begins, and the tokens before it.
        let (mut blank, mut before_blank) = (0, 0);
        let (mut start, mut count) = (0, 0);
        while start < text.len() {
            let end = pattern.end(text, start);
            let is_blank = run(text.as_bytes(), start, SPACE) >= end;
            let Some(tokens) = count_piece(self.tokenizer, text, start, end, limit - count) else {
                let body = run(text.as_bytes(), start, SPACE);
                return (!is_blank)
                    .then(|| self.last_within(start, body, end - 1, limit - count))
                    .flatten()
                    .or_else(|| self.last_within(blank, blank, body, limit - before_blank))
                    .unwrap_or(blank);
            };
            count += tokens;
            if !is_blank {
                (blank, before_blank) = (end, count);
            }
            start = end;
        }
        text.len()
    }

    /// The last place above `low` and up to `high` such that the text from a border of pieces up to
    /// it counts at most `limit`.
    ///
    /// All of the text from the border on is one piece, if it is not cut, or white space.
    fn last_within(&self, border: usize, low: usize, high: usize, limit: u64) -> Option<usize> {
        let text = self.text;
        let is_place = |place: &usize| text.is_char_boundary(*place);
        if high.saturating_sub(low) <= FEW && high - border <= 4 * FEW {
            let fits =
                |place: &usize| count_up_to(self.tokenizer, &text[border..*place], limit).is_some();
            return (low + 1..=high).rev().filter(is_place).find(fits);
        }
        let tokenizer = self.tokenizer;
        // Further on there are too many tokens for certain.
        let longest = u64::try_from(tokenizer.longest()).unwrap_or(u64::MAX);
        let most = limit.saturating_add(1).saturating_mul(longest);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let high = high.min(border.saturating_add(most)).max(low + 1).min(high);
        let mut heads = Heads {
            tokenizer,
            text,
            end: high,
            by_start: HashMap::new(),
        };
        let middle = heads
            .head(border)
            .place_of(limit)
            .clamp(low + 1, high.max(low + 1));
        let (mut best, mut failures) = (None, 0);
        for place in middle..=high {
            let whole = heads.head(border).count(place);
            let split = heads.count_split(border, place);
            if split <= limit && is_place(&place) {
                best = Some(place);
            }
            failures = if whole.min(split) > limit {
                failures + 1
            } else {
                0
            };
            // A character more, because a piece may begin within it.
            if failures > self.tokenizer.longest() + char::MAX.len_utf8() {
                break;
            }
        }
        best.or_else(|| {
            let mut places = (low + 1..middle).rev().filter(is_place);
            places.find(|place| heads.count_split(border, *place) <= limit)
        })
    }
}

/// The pieces that begin somewhere and end anywhere up to a place.
struct Heads<'a, T: BytePair> {
    tokenizer: &'a T,
    text: &'a str,
    end: usize,
    by_start: HashMap<usize, Head<'a, T::Merges>>,
}

impl<'a, T: BytePair> Heads<'a, T> {
    /// The piece that begins at a place.
    fn head(&mut self, start: usize) -> &Head<'a, T::Merges> {
        let bytes = &self.text.as_bytes()[..self.end];
        self.by_start
            .entry(start)
            .or_insert_with(|| Head::new(self.tokenizer.merges(), bytes, start))
    }

    /// The tokens of the text from a border up to a place, split as if it ended there.
    fn count_split(&mut self, border: usize, place: usize) -> u64 {
        // Within a character, the last piece extends to the offset.
        let whole = self.text.floor_char_boundary(place);
        let (mut start, mut count) = (border, 0);
        while start < whole {
            let end = self.tokenizer.pattern().end(&self.text[..whole], start);
            if end == whole {
                break;
            }
            count += self.head(start).count(end);
            start = end;
        }
        count + self.head(start).count(place)
    }
}

/// A piece whose end is open.
struct Head<'a, M> {
    merges: &'a M,
    text: &'a [u8],
    start: usize,
    /// The ends of its tokens if it extends to the end of the text.
    ends: Vec<usize>,
}

impl<'a, M: Merges> Head<'a, M> {
    fn new(merges: &'a M, text: &'a [u8], start: usize) -> Self {
        let ends = ends(merges, text, start);
        Self {
            merges,
            text,
            start,
            ends,
        }
    }

    /// Where so many tokens end.
    fn place_of(&self, tokens: u64) -> usize {
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        self.border(self.ends.len().min(tokens))
    }

    /// The tokens of the piece if it ends at a place.
    fn count(&self, place: usize) -> u64 {
        let before = self.ends.partition_point(|end| *end <= place);
        if before
            .checked_sub(1)
            .is_some_and(|last| self.ends[last] == place)
        {
            return before as u64;
        }
        let mut near = NEAR;
        let mut rest = Vec::new();
        loop {
            let kept = before.saturating_sub(near);
            let joint = self.border(kept);
            rest.clear();
            encode_into(self.merges, &self.text[joint..place], joint, &mut rest);
            if kept == 0 || self.joins(kept, &rest) {
                return (kept + rest.len()) as u64;
            }
            near *= 2;
        }
    }

    /// Whether other tokens may follow the first so many.
    fn joins(&self, kept: usize, rest: &[Token]) -> bool {
        let Some(first) = rest.first() else {
            return true;
        };
        let joint = self.border(kept);
        self.ends.get(kept) == Some(&first.end)
            || may_meet(
                self.merges,
                &self.text[self.border(kept - 1)..joint],
                &self.text[joint..first.end],
            )
    }

    /// Where the first so many tokens end.
    fn border(&self, tokens: usize) -> usize {
        tokens
            .checked_sub(1)
            .map_or(self.start, |last| self.ends[last])
    }
}

/// The endings of a text.
struct Ending<'a, T> {
    tokenizer: &'a T,
    text: &'a str,
}

impl<T: BytePair> Ending<'_, T> {
    /// Where the longest ending begins that counts at most `limit`.
    fn longest(&self, limit: u64) -> usize {
        let pattern = self.tokenizer.pattern();
        let (mut end, mut count) = (self.text.len(), 0);
        while end > 0 {
            let borders = (1..end).rev();
            let start = borders
                .into_iter()
                .find(|at| pattern.is_border(self.text, *at))
                .unwrap_or(0);
            let Some(tokens) = count_up_to(self.tokenizer, &self.text[start..end], limit - count)
            else {
                return self.first_within(start, end, limit - count);
            };
            count += tokens;
            end = start;
        }
        0
    }

    /// The first place above `low` such that the text from it up to a border of pieces counts at
    /// most `limit`, which the text from `low` on does not.
    fn first_within(&self, low: usize, border: usize, limit: u64) -> usize {
        let text = &self.text[..border];
        let is_place = |place: &usize| text.is_char_boundary(*place);
        if border - low <= FEW {
            let fits =
                |place: &usize| count_up_to(self.tokenizer, &text[*place..], limit).is_some();
            return (low + 1..border)
                .filter(is_place)
                .find(fits)
                .unwrap_or(border);
        }
        let mut tails = Tails::new(self.tokenizer, text, low);
        let middle = tails.place_of(limit).clamp(low + 1, border);
        let (mut best, mut failures) = (None, 0);
        for place in (low + 1..=middle).rev() {
            let whole = tails.count_whole(place);
            let split = tails.count_split(place);
            if split <= limit && is_place(&place) {
                best = Some(place);
            }
            failures = if whole.min(split) > limit {
                failures + 1
            } else {
                0
            };
            if failures > self.tokenizer.longest() + char::MAX.len_utf8() {
                break;
            }
        }
        best.or_else(|| {
            let mut places = (middle + 1..border).filter(is_place);
            places.find(|place| tails.count_split(*place) <= limit)
        })
        .unwrap_or(border)
    }
}

/// The pieces that end where a piece of the text ends and begin anywhere.
struct Tails<'a, T> {
    tokenizer: &'a T,
    text: &'a str,
    low: usize,
    /// Where the pieces begin if the text is split from `low` on.
    starts: Vec<usize>,
    /// One more than the tokens from a place on; nothing is known where there is a zero.
    counts: Vec<u64>,
    /// Long pieces, by where they end.
    by_end: HashMap<usize, Tail>,
}

impl<'a, T: BytePair> Tails<'a, T> {
    fn new(tokenizer: &'a T, text: &'a str, low: usize) -> Self {
        let mut starts = Vec::new();
        let mut start = low;
        while start < text.len() {
            starts.push(start);
            start = tokenizer.pattern().end(text, start);
        }
        let mut counts = vec![0; text.len() - low + 1];
        counts[text.len() - low] = 1;
        Self {
            tokenizer,
            text,
            low,
            starts,
            counts,
            by_end: HashMap::new(),
        }
    }

    /// Where so many tokens begin, if the text is split from `low` on.
    fn place_of(&mut self, tokens: u64) -> usize {
        let mut end = self.text.len();
        for piece in (0..self.starts.len()).rev() {
            let start = self.starts[piece];
            let rest = tokens - self.count_from(end);
            if self.count_from(start) > tokens {
                return self.tail(start, end).place_of(rest);
            }
            end = start;
        }
        end
    }

    /// The tokens from a place on, if the piece around it is that of the text.
    fn count_whole(&mut self, place: usize) -> u64 {
        let next = self.starts.partition_point(|start| *start <= place);
        let end = self.starts.get(next).copied().unwrap_or(self.text.len());
        self.count_piece(place, end) + self.count_from(end)
    }

    /// The tokens from a place on, split as if the text began there.
    fn count_split(&mut self, place: usize) -> u64 {
        // Within a character, the first piece begins at the place.
        let whole = self.text.ceil_char_boundary(place);
        if whole == place {
            return self.count_from(place);
        }
        if whole == self.text.len() {
            return self.count_piece(place, whole);
        }
        let end = self.tokenizer.pattern().end(self.text, whole);
        self.count_piece(place, end) + self.count_from(end)
    }

    /// The tokens from a place between two characters on.
    fn count_from(&mut self, place: usize) -> u64 {
        let mut pieces = Vec::new();
        let mut at = place;
        while self.counts[at - self.low] == 0 {
            let end = self.tokenizer.pattern().end(self.text, at);
            pieces.push((at, end));
            at = end;
        }
        for (start, end) in pieces.into_iter().rev() {
            self.counts[start - self.low] =
                self.counts[end - self.low] + self.count_piece(start, end);
        }
        self.counts[place - self.low] - 1
    }

    fn count_piece(&mut self, start: usize, end: usize) -> u64 {
        if start == end {
            return 0;
        }
        if end - start <= FEW {
            let tokens = count_piece(self.tokenizer, self.text, start, end, u64::MAX);
            return tokens.unwrap_or(u64::MAX);
        }
        let (merges, text) = (self.tokenizer.merges(), self.text.as_bytes());
        self.tail(start, end).count(merges, &text[..end], start)
    }

    /// The long piece that ends at a place and may begin at another.
    fn tail(&mut self, start: usize, end: usize) -> &mut Tail {
        let (merges, text) = (self.tokenizer.merges(), self.text.as_bytes());
        self.by_end
            .entry(end)
            .or_insert_with(|| Tail::new(merges, text, start, end))
    }
}

/// A piece whose beginning is open.
struct Tail {
    /// The borders of its tokens if it begins where it was first seen to, both ends included.
    borders: Vec<usize>,
    /// From other places on: the end of the first token, and the number of tokens.
    others: HashMap<usize, (usize, u64)>,
}

/// From this many bytes on, it is worth while to use what was found out about the same bytes.
const REPEATED: usize = 2048;

impl Tail {
    fn new(merges: &impl Merges, text: &[u8], start: usize, end: usize) -> Self {
        let mut borders = vec![start];
        borders.extend(ends(merges, &text[..end], start));
        Self {
            borders,
            others: HashMap::new(),
        }
    }

    /// Where the last so many tokens begin.
    fn place_of(&self, tokens: u64) -> usize {
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        self.borders[(self.borders.len() - 1).saturating_sub(tokens)]
    }

    /// The tokens of the piece, which ends with the text, if it begins at a place.
    fn count(&mut self, merges: &impl Merges, text: &[u8], place: usize) -> u64 {
        if let Some((_, count)) = self.tokens_from(place) {
            return count;
        }
        let mut window = WINDOW;
        loop {
            if let Some(count) = self.try_count(merges, text, place, window) {
                return count;
            }
            window *= 16;
        }
    }

    /// The same with a window of so many bytes, if that is enough.
    ///
    /// Tokens from another place on often meet a border soon, and are the same from there on. In a
    /// long run of one character they never do; but there they are those of the beginning again.
    fn try_count(
        &mut self,
        merges: &impl Merges,
        text: &[u8],
        place: usize,
        window: usize,
    ) -> Option<u64> {
        let mut met = Vec::new();
        let (mut before, mut at, mut count) = (place, place, 0);
        let mut tokens = Tokens::new(merges, &text[place..], window);
        let mut begun = place;
        let rest = loop {
            if let Some((first, rest)) = self.tokens_from(at)
                && (rest == 0 || may_meet(merges, &text[before..at], &text[at..first]))
            {
                break rest;
            }
            if let Some(repeated) = self.repeated(merges, text, before, at, window) {
                met.push((at, repeated.first, count));
                count += repeated.tokens;
                (before, at, begun) = (repeated.last, repeated.end, repeated.end);
                tokens = Tokens::new(merges, &text[begun..], window);
            } else if let Some(token) = tokens.next() {
                met.push((at, begun + token.end, count));
                count += 1;
                (before, at) = (at, begun + token.end);
            } else {
                return None;
            }
        };
        let total = count + rest;
        let met = met
            .into_iter()
            .map(|(at, first, before)| (at, (first, total - before)));
        self.others.extend(met);
        Some(total)
    }

    /// The end of the first token from a place on, and the number of tokens.
    fn tokens_from(&self, place: usize) -> Option<(usize, u64)> {
        if let Ok(border) = self.borders.binary_search(&place) {
            let last = self.borders.len() - 1;
            return Some((self.borders[last.min(border + 1)], (last - border) as u64));
        }
        self.others.get(&place).copied()
    }

    /// The tokens from a place on that are those of the beginning again, if they are many and may
    /// follow the token before them.
    fn repeated(
        &self,
        merges: &impl Merges,
        text: &[u8],
        before: usize,
        place: usize,
        window: usize,
    ) -> Option<Repeated> {
        let start = self.borders[0];
        let same = same_bytes(&text[start..], &text[place..]);
        if same < REPEATED {
            return None;
        }
        let within = self
            .borders
            .partition_point(|border| *border <= start + same);
        let kept = within.checked_sub(1 + NEAR).filter(|kept| *kept > 0)?;
        let there = |border: usize| place + self.borders[border] - start;
        let (last, end) = (there(kept - 1), there(kept));
        let next = end + Tokens::new(merges, &text[end..], window).next()?.end;
        let may_follow =
            before == place || may_meet(merges, &text[before..place], &text[place..there(1)]);
        let may_go_on =
            next == there(kept + 1) || may_meet(merges, &text[last..end], &text[end..next]);
        (may_follow && may_go_on).then(|| Repeated {
            first: there(1),
            last,
            end,
            tokens: kept as u64,
        })
    }
}

/// Tokens that are those of the beginning of their piece again.
struct Repeated {
    /// Where the first of them ends.
    first: usize,
    /// Where the last of them begins.
    last: usize,
    /// Where the last of them ends.
    end: usize,
    tokens: u64,
}

/// Where the tokens end of the piece that goes from a place on to the end of a text.
fn ends(merges: &impl Merges, text: &[u8], start: usize) -> Vec<usize> {
    fold(merges, &text[start..], Vec::new(), |mut ends, token| {
        ends.push(start + token.end);
        ends
    })
}

/// How many bytes two texts begin with alike.
fn same_bytes(one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let blocks = one
        .as_chunks::<BLOCK>()
        .0
        .iter()
        .zip(other.as_chunks::<BLOCK>().0);
    let same = BLOCK * blocks.take_while(|(one, other)| one == other).count();
    let rest = one[same..].iter().zip(&other[same..]);
    same + rest.take_while(|(one, other)| one == other).count()
}
