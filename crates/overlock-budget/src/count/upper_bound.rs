//! Counts for models whose tokenizer nobody has published.

use super::{CountTokens, Keep};

/// Half as much again as another tokenizer counts.
///
/// A tokenizer that is not the model's own may count less than the model does, and a budget that
/// must not be exceeded would be. How much less nobody can say of a tokenizer that is not public:
/// half is a guess on the safe side, not a measurement, and figures that rest on it are estimates.
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
    /// The bound over what somebody counts.
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

/// The most of which half as much again is within a limit.
fn within(limit: u64) -> u64 {
    // In parts, or the largest limit would wrap.
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
