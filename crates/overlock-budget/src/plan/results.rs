//! Shortens tool results.
//!
//! An old result becomes a mark: one line with its length. Results of the open turn, which the model
//! has not answered, are truncated in the middle, and only if a request would be rejected otherwise.
//! Lengths are in characters, because counting the tokens of a result that is not sent is expensive.

use std::collections::BTreeMap;

use super::line::Pieces;
use super::options::ResultOptions;
use crate::chat::{ChatCounter, Content, MessageKind, Request};
use crate::count::Keep;

/// The old tool results of a conversation and their marks.
#[derive(Default)]
pub(super) struct OldResults {
    marks: BTreeMap<usize, ShortResult>,
    /// The messages of each batch, the newest batch first.
    batches: Vec<Vec<usize>>,
}

/// A shortened result.
pub(super) struct ShortResult {
    pub(super) text: String,
    /// The tokens of its message.
    pub(super) tokens: u64,
}

impl OldResults {
    pub(super) fn of(
        request: &dyn Request,
        counter: &ChatCounter,
        options: &ResultOptions,
    ) -> Self {
        let exchanges = exchanges(&request.outline().messages);
        let old = &exchanges[..exchanges.len().saturating_sub(options.keep)];
        let mut results = Self::default();
        for exchanges in old.chunks(options.batch.max(1)) {
            let mut batch = Vec::new();
            for &place in exchanges.iter().flatten() {
                let Some(mark) = mark(request, counter, place) else {
                    continue;
                };
                // A short result is its own mark.
                let is_longer = counter.message_up_to(request, place, mark.tokens).is_none();
                if is_longer {
                    results.marks.insert(place, mark);
                    batch.push(place);
                }
            }
            if !batch.is_empty() {
                results.batches.push(batch);
            }
        }
        results.batches.reverse();
        results
    }

    /// What the results of each batch take beyond their marks.
    pub(super) fn unmarked(
        &self,
        request: &dyn Request,
        counter: &ChatCounter,
        limit: u64,
    ) -> Pieces {
        Pieces::gather(self.batches.len(), limit, |batch, limit| {
            let mut left = limit;
            for &place in &self.batches[batch] {
                let marked = self.mark(place).map_or(0, |mark| mark.tokens);
                let limit = left.saturating_add(marked);
                let tokens = counter.message_up_to(request, place, limit)?;
                left = left.checked_sub(tokens.saturating_sub(marked))?;
            }
            Some(limit - left)
        })
    }

    /// The messages with marks if this many batches stay without.
    pub(super) fn marked(&self, batches: usize) -> impl Iterator<Item = usize> {
        self.batches[batches..].iter().flatten().copied()
    }

    /// The mark of a message, if it may become one.
    pub(super) fn mark(&self, place: usize) -> Option<&ShortResult> {
        self.marks.get(&place)
    }
}

/// The results of each exchange: messages that follow each other.
fn exchanges(messages: &[MessageKind]) -> Vec<Vec<usize>> {
    let mut exchanges: Vec<Vec<usize>> = Vec::new();
    for (place, _) in messages.iter().enumerate().filter(|(_, it)| it.is_result()) {
        match exchanges.last_mut() {
            Some(last) if last.last() == place.checked_sub(1).as_ref() => last.push(place),
            _ => exchanges.push(vec![place]),
        }
    }
    exchanges
}

/// The mark of a result that is only text.
fn mark(request: &dyn Request, counter: &ChatCounter, place: usize) -> Option<ShortResult> {
    let mut characters = 0;
    let mut is_text = true;
    request.contents(place, &mut |content| match content {
        Content::Text(text) => characters += text.chars().count(),
        Content::Name(_) => {}
        _ => is_text = false,
    });
    let text = format!("[Old tool result of {characters} characters removed]");
    is_text.then(|| ShortResult {
        tokens: counter.message_with(request, place, &text),
        text,
    })
}

/// Truncates the largest of these results until all of them have `over` tokens less, or each has at
/// most `floor`.
pub(super) fn truncate(
    request: &dyn Request,
    counter: &ChatCounter,
    results: &[usize],
    over: u64,
    floor: u64,
) -> Vec<(usize, ShortResult)> {
    let sized = results.iter().filter_map(|&place| {
        let text = text_of(request, place)?;
        Some((place, counter.message(request, place), text))
    });
    let sized: Vec<(usize, u64, String)> = sized.filter(|(_, size, _)| *size > floor).collect();
    let limit = level(sized.iter().map(|(_, size, _)| *size), over, floor);
    let truncated = sized.into_iter().filter(|(_, size, _)| *size > limit);
    truncated
        .filter_map(|(place, _, text)| {
            Some((place, middle_out(request, counter, place, &text, limit)?))
        })
        .collect()
}

/// The largest limit, but at least `floor`, under which sizes have `over` tokens less in all.
fn level(sizes: impl Iterator<Item = u64>, over: u64, floor: u64) -> u64 {
    let mut sizes: Vec<u64> = sizes.collect();
    sizes.sort_unstable_by_key(|size| std::cmp::Reverse(*size));
    let (mut sum, mut count) = (0_u64, 0);
    for (place, &size) in sizes.iter().enumerate() {
        sum = sum.saturating_add(size);
        count += 1;
        let next = sizes.get(place + 1).copied().unwrap_or(floor).max(floor);
        // With this many results at the same limit, they have this many tokens less.
        if sum.saturating_sub(next.saturating_mul(count)) >= over {
            return (sum - over) / count;
        }
    }
    floor
}

/// All texts of a message, unless it has other contents.
fn text_of(request: &dyn Request, place: usize) -> Option<String> {
    let mut text = Some(String::new());
    request.contents(place, &mut |content| match content {
        Content::Text(part) => {
            if let Some(text) = &mut text {
                text.push_str(part);
            }
        }
        Content::Name(_) => {}
        _ => text = None,
    });
    text
}

/// The beginning and the end of a text, in a message of at most `limit` tokens.
fn middle_out(
    request: &dyn Request,
    counter: &ChatCounter,
    place: usize,
    text: &str,
    limit: u64,
) -> Option<ShortResult> {
    let mut budget = limit;
    loop {
        let head = counter
            .tokens()
            .truncate_to(text, budget.div_ceil(2), Keep::Start);
        let rest = &text[head.len()..];
        let tail = counter.tokens().truncate_to(rest, budget / 2, Keep::End);
        let removed = rest[..rest.len() - tail.len()].chars().count();
        let short = format!("{head}\n[{removed} characters removed]\n{tail}");
        let tokens = counter.message_with(request, place, &short);
        if tokens <= limit {
            return Some(ShortResult {
                text: short,
                tokens,
            });
        }
        if budget == 0 {
            return None;
        }
        let excess = counter.scale().most_counted(tokens - limit).max(1);
        budget = budget.saturating_sub(excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_level(sizes: &[u64], over: u64, floor: u64, expected: u64) {
        let found = level(sizes.iter().copied(), over, floor);
        assert_eq!(found, expected, "{sizes:?} less {over}");
    }

    #[test]
    fn the_largest_results_are_truncated_first() {
        check_level(&[500, 100, 300], 100, 10, 400);
        check_level(&[500, 100, 300], 200, 10, 300);
        check_level(&[500, 100, 300], 201, 10, 299);
        check_level(&[500, 100, 300], 600, 10, 100);
        check_level(&[500, 100, 300], 870, 10, 10);
        check_level(&[500, 100, 300], 900, 10, 10);
        check_level(&[], 5, 10, 10);
    }
}
