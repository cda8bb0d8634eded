//! The built-in encodings of GPT models.

mod hash;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

pub(crate) use self::hash::words;

use self::table::{CL100K, O200K, P50K, R50K, Ranks};
use super::byte_pair::{self, BytePair};
use super::split::Pattern;
use super::{CountTokens, Keep, truncate};

/// A built-in encoding, which gives the same counts as `tiktoken` for ordinary text.
///
/// ```
/// use overlock_budget::{CountTokens, Encoding, Keep};
///
/// let encoding = Encoding::O200kBase;
/// assert_eq!(encoding.count("Hello, world!"), 4);
/// assert_eq!(encoding.count_up_to("Hello, world!", 3), None);
/// assert_eq!(encoding.truncate_to("Hello, world!", 3, Keep::Start), "Hello, world");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `o200k_base`: GPT-4o, GPT-4.1, GPT-5 and the o-series.
    O200kBase,
    /// `o200k_harmony`: gpt-oss. It has other control tokens than `o200k_base`, and the same text.
    O200kHarmony,
    /// `cl100k_base`: GPT-4 and GPT-3.5.
    Cl100kBase,
    /// `p50k_base`: Codex and the last of GPT-3.
    P50kBase,
    /// `r50k_base`: GPT-3, and GPT-2 under the name `gpt2`.
    R50kBase,
}

impl Encoding {
    /// All encodings, the newest first.
    pub const ALL: [Self; 5] = [
        Self::O200kBase,
        Self::O200kHarmony,
        Self::Cl100kBase,
        Self::P50kBase,
        Self::R50kBase,
    ];

    /// The encoding of a name, such as `cl100k_base`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|encoding| encoding.name() == name)
    }

    /// The name that `tiktoken` has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::O200kHarmony => "o200k_harmony",
            Self::Cl100kBase => "cl100k_base",
            Self::P50kBase => "p50k_base",
            Self::R50kBase => "r50k_base",
        }
    }

    fn ranks(self) -> &'static Ranks {
        match self {
            Self::O200kBase | Self::O200kHarmony => &O200K,
            Self::Cl100kBase => &CL100K,
            Self::P50kBase => &P50K,
            Self::R50kBase => &R50K,
        }
    }
}

impl CountTokens for Encoding {
    fn name(&self) -> &str {
        Self::name(*self)
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        byte_pair::count_up_to(self, text, limit)
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        truncate::truncate_to(self, text, tokens, keep)
    }
}

impl BytePair for Encoding {
    type Merges = Ranks;

    #[inline]
    fn merges(&self) -> &Ranks {
        self.ranks()
    }

    #[inline]
    fn pattern(&self) -> Pattern {
        match self {
            Self::O200kBase | Self::O200kHarmony => Pattern::Cased,
            Self::Cl100kBase => Pattern::Words {
                digits: 3,
                whole_ending: true,
            },
            Self::P50kBase | Self::R50kBase => Pattern::Plain,
        }
    }

    #[inline]
    fn is_token(&self, text: &[u8], start: usize, end: usize) -> bool {
        // Spaces in a row are all that the larger of the two vocabularies has and the smaller has not.
        if *self == Self::R50kBase && text[start..end].starts_with(b"  ") {
            return false;
        }
        self.ranks().table.contains(text, start, end)
    }

    fn longest(&self) -> usize {
        self.ranks().table.longest
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(Self::name(*self))
    }
}
