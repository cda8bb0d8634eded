//! How many tokens is a text to an OpenAI model?

mod hash;
mod table;

use std::fmt;

use self::table::{CL100K, O200K, P50K, Ranks};
use super::merge;
use super::split::Pattern;
use super::{CountTokens, Keep};

/// An encoding of OpenAI, built in: it counts exactly what `tiktoken` counts for ordinary text.
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

    fn pattern(self) -> Pattern {
        match self {
            Self::O200kBase | Self::O200kHarmony => Pattern::Cased,
            Self::Cl100kBase => Pattern::Words {
                digits: 3,
                whole_ending: true,
            },
            Self::P50kBase | Self::R50kBase => Pattern::Plain,
        }
    }

    fn ranks(self) -> Ranks {
        match self {
            Self::O200kBase | Self::O200kHarmony => Ranks {
                table: &O200K,
                end: u32::MAX,
            },
            Self::Cl100kBase => Ranks {
                table: &CL100K,
                end: u32::MAX,
            },
            Self::P50kBase => Ranks {
                table: &P50K,
                end: u32::MAX,
            },
            Self::R50kBase => Ranks {
                table: &P50K,
                end: 50_256,
            },
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
        let (pattern, ranks) = (self.pattern(), self.ranks());
        let bytes = text.as_bytes();
        let (mut start, mut count) = (0, 0);
        while start < text.len() {
            let end = pattern.end(text, start);
            if end - start == 1 || self.is_token(bytes, start, end) {
                count += 1;
            } else {
                count += merge::count_up_to(&ranks, &bytes[start..end], limit - count)?;
            }
            if count > limit {
                return None;
            }
            start = end;
        }
        Some(count)
    }

    fn truncate_to<'text>(&self, text: &'text str, tokens: u64, keep: Keep) -> &'text str {
        todo!()
    }
}

impl Encoding {
    #[inline]
    fn is_token(self, text: &[u8], start: usize, end: usize) -> bool {
        // Spaces in a row are all that the larger of the two vocabularies has and the smaller has not.
        if self == Self::R50kBase && text[start..end].starts_with(b"  ") {
            return false;
        }
        self.ranks().table.contains(text, start, end)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(Self::name(*self))
    }
}
