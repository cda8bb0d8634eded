//! Counts with tokenizers that split a text and merge the bytes of each piece.

use super::merge::{self, Merges};
use super::split::Pattern;

/// A tokenizer by byte-pair encoding. Every token but the bytes is made by a merge.
pub(crate) trait BytePair {
    /// What merges within a piece.
    type Merges: Merges;

    /// The merges.
    fn merges(&self) -> &Self::Merges;

    /// How a text is split into pieces.
    fn pattern(&self) -> Pattern;

    /// Whether a part of a text is a single token.
    fn is_token(&self, text: &[u8], start: usize, end: usize) -> bool;

    /// The number of bytes in the longest token.
    fn longest(&self) -> usize;
}

/// The tokens of a text, unless there are more than `limit`.
#[inline]
pub(crate) fn count_up_to(tokenizer: &impl BytePair, text: &str, limit: u64) -> Option<u64> {
    let pattern = tokenizer.pattern();
    let (mut start, mut count) = (0, 0);
    while start < text.len() {
        let end = pattern.end(text, start);
        if is_one_token(tokenizer, text, start, end) {
            count += 1;
        } else {
            count += count_parts(tokenizer, text, start, end, limit - count)?;
        }
        if count > limit {
            return None;
        }
        start = end;
    }
    Some(count)
}

/// The tokens of one piece of a text, unless there are more than `limit`.
pub(crate) fn count_piece(
    tokenizer: &impl BytePair,
    text: &str,
    start: usize,
    end: usize,
    limit: u64,
) -> Option<u64> {
    if is_one_token(tokenizer, text, start, end) {
        return (limit > 0).then_some(1);
    }
    count_parts(tokenizer, text, start, end, limit)
}

/// The tokens of a piece that is not one of them, unless there are more than `limit`.
fn count_parts(
    tokenizer: &impl BytePair,
    text: &str,
    start: usize,
    end: usize,
    limit: u64,
) -> Option<u64> {
    let piece = &text.as_bytes()[start..end];
    // A huge piece certainly has too many tokens.
    if piece.len() as u64 / tokenizer.longest().max(1) as u64 > limit {
        return None;
    }
    let merges = tokenizer.merges();
    // A part of a text that is counted in order to cut it may begin within a character.
    let characters = text.get(start..end).filter(|piece| !piece.is_ascii());
    let count = characters
        .and_then(|piece| merge::count_from_characters(merges, piece))
        .unwrap_or_else(|| merge::count(merges, piece));
    (count <= limit).then_some(count)
}

#[inline]
fn is_one_token(tokenizer: &impl BytePair, text: &str, start: usize, end: usize) -> bool {
    end - start == 1 || tokenizer.is_token(text.as_bytes(), start, end)
}
