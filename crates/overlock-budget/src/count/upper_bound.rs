//! Counts for models whose tokenizer is not public.

use super::{CountTokens, Keep};

/// Adds a half to the count of another tokenizer.
///
/// Another tokenizer may count fewer tokens than the model, so a budget could be exceeded. Adding a
/// half is a safe guess, not a measurement, and the results are estimates.
///
/// ```
/// use overlock_budget::{CountTokens, Encoding, UpperBound};
///
/// let counter = UpperBound::of(Encoding::O200kBase);
/// assert_eq!(Encoding::O200kBase.count("Where is the nearest river?"), 6);
/// assert_eq!(counter.count("Where is the nearest river?"), 9);
/// assert!(!counter.is_exact());
/// ```
#[derive(Clone, Debug)]
pub struct UpperBound<C> {
    counter: C,
    name: String,
}

impl<C: CountTokens> UpperBound<C> {
    /// The bound on the counts of a counter.
    pub fn of(counter: C) -> Self {
        let name = format!("{} × 1.5, an upper bound", counter.name());
        Self { counter, name }
    }
}

impl<C: CountTokens> CountTokens for UpperBound<C> {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        let count = self.counter.count_up_to(text, within(limit))?;
        Some(count.saturating_add(count.div_ceil(2)))
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        self.counter.truncate_to(text, within(tokens), keep)
    }
}

/// The largest number that is within a limit with a half added.
fn within(limit: u64) -> u64 {
    // Split to avoid overflow.
    limit / 3 * 2 + limit % 3 / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Approximate;

    #[test]
    fn a_count_is_within_a_limit_exactly_if_the_bound_is() {
        let counter = UpperBound::of(Approximate);
        for length in 0..200 {
            let text = "a".repeat(length);
            let count = counter.count(&text);
            assert_eq!(counter.count_up_to(&text, count), Some(count), "{length}");
            if let Some(less) = count.checked_sub(1) {
                assert_eq!(counter.count_up_to(&text, less), None, "{length}");
            }
        }
        assert_eq!(counter.count_up_to("abcd", u64::MAX), Some(2));
    }
}
