//! Counts the tokens of texts.
//!
//! Every counter has a name, which results report. Token counts are not additive, and a longer text
//! may even have fewer tokens, so texts are counted in the form in which they are sent, and every
//! truncated text is counted again.

mod approximate;
mod cache;
mod encoding;
#[cfg(feature = "tokenizer-files")]
mod file;
mod stand_in;

// Parts of tokenizers.
mod byte_pair;
mod classes;
mod merge;
mod split;
mod truncate;

#[cfg(test)]
mod nasty;

pub use approximate::Approximate;
pub use cache::Cached;
pub use encoding::Encoding;
#[cfg(feature = "tokenizer-files")]
pub use file::{TokenizerFile, TokenizerFileError};
pub use stand_in::StandIn;

/// Counts the tokens of texts.
///
/// Text that looks like a control token, such as `<|endoftext|>`, counts as its characters.
pub trait CountTokens: Send + Sync {
    /// The name in results, such as `o200k_base`.
    fn name(&self) -> &str;

    /// Whether this is a tokenizer, not a rule of thumb.
    fn is_exact(&self) -> bool;

    /// The tokens of a text, unless there are more than `limit`.
    ///
    /// Stops soon after the limit, so a small limit is cheap for a large text.
    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64>;

    /// The tokens of a text.
    fn count(&self, text: &str) -> u64 {
        self.count_up_to(text, u64::MAX).unwrap_or(u64::MAX)
    }

    /// The longest start or end of a text with at most `tokens` tokens.
    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str;
}

/// Which end of a text stays when it is truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The beginning.
    Start,
    /// The end.
    End,
}

/// How exact a count is, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provenance {
    /// From the tokenizer and the message format of the model.
    Exact,
    /// From a formula that is known to be close, such as the one for tool schemas.
    Calibrated,
    /// From another tokenizer, or a rule of thumb.
    Estimate,
}

impl Provenance {
    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Calibrated => "calibrated",
            Self::Estimate => "estimate",
        }
    }

    /// How many tokens of a window stay free because the count of an input may be off: an estimate is
    /// off in proportion to its size.
    pub fn margin(self, input: u64) -> u64 {
        match self {
            Self::Exact => 50,
            Self::Calibrated => 200,
            Self::Estimate => (input / Self::ESTIMATE_SHARE).max(200),
        }
    }

    /// The largest input that fits with its margin.
    pub(crate) fn most_input(self, room: u64) -> u64 {
        let fixed = room.saturating_sub(self.margin(0));
        match self {
            Self::Exact | Self::Calibrated => fixed,
            Self::Estimate => {
                // The largest input with `input + input / share <= room`.
                let share = Self::ESTIMATE_SHARE;
                let most = room - room.div_ceil(share + 1);
                let whole = most.saturating_add(1) + most.saturating_add(1) / share <= room;
                fixed.min(most + u64::from(whole))
            }
        }
    }

    /// An estimate may be off by one token in this many.
    const ESTIMATE_SHARE: u64 = 20;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_input_fits_with_its_margin_and_one_more_does_not() {
        for provenance in [
            Provenance::Exact,
            Provenance::Calibrated,
            Provenance::Estimate,
        ] {
            for room in (0..9000).chain(199_000..200_000) {
                let most = provenance.most_input(room);
                let fits = |input: u64| input + provenance.margin(input) <= room;
                assert!(fits(most) || most == 0, "{provenance:?} {room}");
                assert!(!fits(most + 1), "{provenance:?} {room}");
            }
            assert!(provenance.most_input(u64::MAX) > 1 << 60);
        }
        assert_eq!(Provenance::Estimate.margin(190_000), 9500);
    }
}
