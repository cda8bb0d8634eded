//! How many tokens is a text?
//!
//! Whoever counts says so by name, because a figure is worth what its counter is worth. Counts do
//! not add up (two halves are rarely the whole) and do not even grow with the text, so what is
//! sent is counted as it is sent, and nothing here cuts a text without counting the piece again.

mod approximate;
mod cache;
mod encoding;
#[cfg(feature = "tokenizer-files")]
mod file;
mod upper_bound;

// What tokenizers are made of.
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
pub use upper_bound::UpperBound;

/// Counts the tokens of texts.
///
/// A text is only ever text: what looks like a control token, such as `<|endoftext|>`, counts as
/// the characters it is made of.
pub trait CountTokens: Send + Sync {
    /// The name by which results tell who counted, such as `o200k_base`.
    fn name(&self) -> &str;

    /// Whether this is a tokenizer, and not a rule of thumb.
    fn is_exact(&self) -> bool;

    /// The tokens of a text, unless there are more than `limit`.
    ///
    /// Stops soon after the limit, so that a small limit makes a large text cheap.
    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64>;

    /// The tokens of a text.
    fn count(&self, text: &str) -> u64 {
        self.count_up_to(text, u64::MAX).unwrap_or(u64::MAX)
    }

    /// The longest part of a text, from one end of it, that counts at most `tokens`.
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

/// What a figure rests on, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provenance {
    /// The model's own tokenizer, and the way its provider writes messages.
    Exact,
    /// A formula known to be close, such as the one for tool schemas.
    Calibrated,
    /// Another tokenizer than the model's, or a rule of thumb.
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

    /// What is left free of a window because such a figure may be off.
    pub fn margin(self) -> u64 {
        match self {
            Self::Exact => 50,
            Self::Calibrated | Self::Estimate => 200,
        }
    }
}
