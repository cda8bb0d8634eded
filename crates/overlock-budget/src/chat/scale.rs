//! The factor from counted tokens to those of the model.

use std::fmt::{self, Display, Formatter};

/// A factor from counted tokens to those of the model, if another tokenizer is used in its place. It
/// is never below 1, so counts that are too large stay on the safe side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scale {
    /// At least [`Scale::UNIT`].
    thousandths: u32,
}

/// Precedes the factor in the name of a scaled counter.
pub(super) const SCALED_BY: &str = ", times ";

impl Default for Scale {
    fn default() -> Self {
        Self {
            thousandths: Self::UNIT,
        }
    }
}

impl Scale {
    const UNIT: u32 = 1000;

    /// No text of a prompt has a larger factor.
    const LARGEST: u32 = 64 * Self::UNIT;

    /// The factor from the counted tokens to those that the server counted for the same request.
    ///
    /// ```
    /// use overlock_budget::Scale;
    ///
    /// assert_eq!(Scale::of(4841, 1748).apply(1748), 4841);
    /// assert_eq!(Scale::of(90, 100), Scale::default());
    /// ```
    pub fn of(real: u64, counted: u64) -> Self {
        let unit = u128::from(Self::UNIT);
        let thousandths = (u128::from(real) * unit).div_ceil(u128::from(counted.max(1)));
        let thousandths = u32::try_from(thousandths).unwrap_or(Self::LARGEST);
        Self {
            thousandths: thousandths.clamp(Self::UNIT, Self::LARGEST),
        }
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        f64::from(self.thousandths) / f64::from(Self::UNIT)
    }

    /// The name of a counter with this factor.
    pub(crate) fn named(self, counter: &str) -> String {
        if self == Self::default() {
            return counter.to_owned();
        }
        format!("{counter}{SCALED_BY}{self}")
    }

    /// The tokens of the model for counted ones.
    pub fn apply(self, counted: u64) -> u64 {
        if self == Self::default() {
            return counted;
        }
        // The factor is rounded up, too.
        let tokens = u128::from(counted) * u128::from(self.thousandths) / u128::from(Self::UNIT);
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }

    /// The largest number of counted tokens that are at most this many tokens of the model.
    pub(crate) fn most_counted(self, tokens: u64) -> u64 {
        if self == Self::default() || tokens == u64::MAX {
            return tokens;
        }
        let unit = u128::from(Self::UNIT);
        let most = (u128::from(tokens) * unit + unit - 1) / u128::from(self.thousandths);
        u64::try_from(most).unwrap_or(u64::MAX)
    }
}

impl Display for Scale {
    /// With one decimal place, rounded up.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let tenths = self.thousandths.div_ceil(100);
        write!(formatter, "{}.{}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_counted_tokens_are_within_the_limit_and_one_more_is_not() {
        for scale in [(1, 1), (1001, 1000), (4841, 1748), (5, 2), (63, 1)] {
            let scale = Scale::of(scale.0, scale.1);
            for limit in 0..500 {
                let most = scale.most_counted(limit);
                assert!(scale.apply(most) <= limit, "{scale} {limit}");
                assert!(scale.apply(most + 1) > limit, "{scale} {limit}");
            }
        }
    }
}
