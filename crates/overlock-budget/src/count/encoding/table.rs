//! Lookups of tokens and merges in the built-in tables.
//!
//! The tables are static data, so nothing is read, built or allocated at the first count. Every
//! lookup compares complete keys, so no text is mistaken for another.

use super::hash;
use crate::count::merge::{Merges, NO_MERGE};

/// The tokens of one vocabulary, as the build script lays them out.
pub(super) struct Table {
    /// Tokens of up to 7 bytes, each in a word with its length.
    short: Perfect<8>,
    /// Tokens of 8 to 15 bytes, each in two words with its length.
    medium: Perfect<16>,
    /// Where the bytes of a longer token are in `long_text`, and their number.
    long: Perfect<4>,
    long_text: &'static [u8],
    /// Two tokens and what they make, in one word.
    merges: Perfect<8>,
    /// The tokens of one byte.
    bytes: &'static [[u8; 4]],
    /// The tokens of two bytes, or [`NO_MERGE`].
    two_bytes: &'static [[u8; 4]],
    /// The tokens of one character, up to the last of three bytes, or [`NO_MERGE`].
    characters: &'static [[u8; 4]],
    /// The lowest rank of a merge across a border that takes a part of the character before it, or
    /// [`NO_MERGE`]; by the six low bits of the byte before the border, and the byte after it.
    tears_before: &'static [[u8; 4]],
    /// The same for the character after it; by the byte before the border, and the six low bits of
    /// the byte after it.
    tears_after: &'static [[u8; 4]],
    /// The length of the longest token.
    pub(super) longest: usize,
}

/// Slots in which every key has its own, chosen by the seed of its bucket.
struct Perfect<const N: usize> {
    seeds: &'static [[u8; 2]],
    slots: &'static [[u8; N]],
}

macro_rules! table {
    ($name:literal) => {
        Table {
            short: perfect!($name, "short", 8),
            medium: perfect!($name, "medium", 16),
            long: perfect!($name, "long", 4),
            long_text: part!($name, "long.text"),
            merges: perfect!($name, "merges", 8),
            bytes: part!($name, "bytes").as_chunks().0,
            two_bytes: part!($name, "two_bytes").as_chunks().0,
            characters: part!($name, "characters").as_chunks().0,
            tears_before: part!($name, "tears_before").as_chunks().0,
            tears_after: part!($name, "tears_after").as_chunks().0,
            longest: part!($name, "longest")[0] as usize,
        }
    };
}

macro_rules! perfect {
    ($name:literal, $part:literal, $len:literal) => {
        Perfect {
            seeds: part!($name, concat!($part, ".seeds")).as_chunks().0,
            slots: part!($name, $part).as_chunks::<$len>().0,
        }
    };
}

macro_rules! part {
    ($name:literal, $part:expr) => {{
        // A slot that lies across two lines of the cache costs two of them.
        #[repr(align(64))]
        struct Aligned<const N: usize>([u8; N]);
        const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".", $part));
        static ALIGNED: Aligned<{ BYTES.len() }> = Aligned(*include_bytes!(concat!(
            env!("OUT_DIR"),
            "/",
            $name,
            ".",
            $part
        )));
        &ALIGNED.0
    }};
}

static P50K_TABLE: Table = table!("p50k");
static CL100K_TABLE: Table = table!("cl100k");
static O200K_TABLE: Table = table!("o200k");

/// The length from which on a token takes two words.
const MEDIUM: usize = 8;
/// The length from which on the bytes of a token are elsewhere.
const LONG: usize = 16;
/// A rank takes this many bits.
const RANK_BITS: u32 = 21;

impl Table {
    /// Whether a part of a text is a token.
    #[inline]
    pub(super) fn contains(&self, text: &[u8], start: usize, end: usize) -> bool {
        let len = end - start;
        if len >= LONG {
            return self.contains_long(&text[start..end]);
        }
        // Sixteen bytes are read at once where there are as many.
        let bytes = if let Some(bytes) = text[start..].first_chunk() {
            *bytes
        } else {
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(&text[start..end]);
            bytes
        };
        let [low, high] = hash::words(&bytes);
        let tag = (len as u64) << 56;
        if len < MEDIUM {
            let key = low & !(u64::MAX << (8 * len)) | tag;
            self.short.slot(hash::mix(key)) == key.to_le_bytes()
        } else {
            let high = high & !(u64::MAX << (8 * (len - 8))) | tag;
            let key = u128::from(high) << 64 | u128::from(low);
            self.medium.slot(hash::mix_two(low, high)) == key.to_le_bytes()
        }
    }

    fn contains_long(&self, piece: &[u8]) -> bool {
        if piece.len() > self.longest {
            return false;
        }
        let place = u32::from_le_bytes(self.long.slot(hash::mix_bytes(piece)));
        let (start, len) = ((place >> 8) as usize, (place & 0xFF) as usize);
        self.long_text.get(start..start + len) == Some(piece)
    }

    /// The token that two tokens make, if any.
    #[inline]
    fn merge(&self, left: u32, right: u32) -> Option<u32> {
        let pair = u64::from(left) << RANK_BITS | u64::from(right);
        let merge = u64::from_le_bytes(self.merges.slot(hash::mix(pair)));
        (merge >> RANK_BITS == pair).then_some((merge & ((1 << RANK_BITS) - 1)) as u32)
    }
}

impl<const N: usize> Perfect<N> {
    #[inline]
    fn slot(&self, hash: u64) -> [u8; N] {
        let seed = u16::from_le_bytes(self.seeds[hash::bucket(hash, self.seeds.len())]);
        self.slots[hash::slot(hash, seed, self.slots.len())]
    }
}

/// The ranks of a table up to one of them: a smaller vocabulary may be the beginning of a larger.
pub(crate) struct Ranks {
    pub(super) table: &'static Table,
    /// The rank from which on there are no tokens.
    end: u32,
}

pub(super) static O200K: Ranks = Ranks {
    table: &O200K_TABLE,
    end: NO_MERGE,
};
pub(super) static CL100K: Ranks = Ranks {
    table: &CL100K_TABLE,
    end: NO_MERGE,
};
pub(super) static P50K: Ranks = Ranks {
    table: &P50K_TABLE,
    end: NO_MERGE,
};
pub(super) static R50K: Ranks = Ranks {
    table: &P50K_TABLE,
    end: 50_256,
};

impl Merges for Ranks {
    #[inline]
    fn byte(&self, byte: u8) -> u32 {
        u32::from_le_bytes(self.table.bytes[usize::from(byte)])
    }

    #[inline]
    fn rank(&self, left: u32, right: u32) -> u32 {
        let token = self.table.merge(left, right);
        token.filter(|token| *token < self.end).unwrap_or(NO_MERGE)
    }

    #[inline]
    fn rank_of_bytes(&self, left: u8, right: u8) -> u32 {
        let token = self.table.two_bytes[usize::from(left) << 8 | usize::from(right)];
        let token = u32::from_le_bytes(token);
        if token < self.end { token } else { NO_MERGE }
    }

    #[inline]
    fn merged(&self, rank: u32) -> u32 {
        rank
    }

    #[inline]
    fn character(&self, character: char) -> Option<u32> {
        let token = u32::from_le_bytes(*self.table.characters.get(character as usize)?);
        (token < self.end).then_some(token)
    }

    #[inline]
    fn tears_before(&self, last: u8, first: u8) -> u32 {
        // Only a continuation byte ends a part of a character.
        if last.is_ascii() {
            return NO_MERGE;
        }
        let place = usize::from(last & 0x3F) << 8 | usize::from(first);
        u32::from_le_bytes(self.table.tears_before[place])
    }

    #[inline]
    fn tears_after(&self, last: u8, first: u8) -> u32 {
        // Only a byte that begins a longer character begins a part of one.
        if first.is_ascii() {
            return NO_MERGE;
        }
        let place = usize::from(last) << 6 | usize::from(first & 0x3F);
        u32::from_le_bytes(self.table.tears_after[place])
    }
}
