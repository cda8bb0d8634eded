//! The tokens of an encoding, and the two tokens that merge into each of them.

use std::collections::HashMap;
use std::fmt::Debug;

use tiktoken_rs::CoreBPE;

use crate::hash;
use crate::perfect::{self, Perfect};

/// The tokens of an encoding with their ranks, in order.
pub(crate) struct Vocabulary {
    pub(crate) tokens: Vec<(Vec<u8>, u32)>,
}

/// Tokens up to this length fit into one word, with a byte for the length.
const SHORT: usize = 7;
/// Tokens up to this length fit into two words, with a byte for the length.
const MEDIUM: usize = 15;
/// A rank takes this many bits.
const RANK_BITS: u32 = 21;

impl Vocabulary {
    pub(crate) fn read<E: Debug>(
        encoding: Result<CoreBPE, E>,
        ranks: impl Iterator<Item = u32>,
    ) -> Self {
        let encoding = encoding.expect("the vocabulary can be read");
        let bytes = |rank| encoding.decode_bytes(&[rank]).expect("the rank is in use");
        Self {
            tokens: ranks.map(|rank| (bytes(rank), rank)).collect(),
        }
    }

    /// The tables by name, as `count/encoding/table.rs` reads them.
    pub(crate) fn tables(&self) -> Vec<(&'static str, Vec<u8>)> {
        let bytes = self.tokens.iter().map(|(bytes, _)| bytes.as_slice());
        let longest = bytes.clone().map(<[u8]>::len).max().unwrap_or(0);
        let longest = u8::try_from(longest).expect("no token is so long");

        let short: Vec<u64> = bytes
            .clone()
            .filter(|bytes| bytes.len() <= SHORT)
            .map(word)
            .collect();
        let short_layout =
            perfect::lay_out(&short.iter().map(|key| hash::mix(*key)).collect::<Vec<_>>());

        let medium: Vec<[u64; 2]> = bytes
            .clone()
            .filter(|bytes| (SHORT + 1..=MEDIUM).contains(&bytes.len()))
            .map(two_words)
            .collect();
        let medium_layout = perfect::lay_out(
            &medium
                .iter()
                .map(|key| hash::mix_two(key[0], key[1]))
                .collect::<Vec<_>>(),
        );

        let long: Vec<&[u8]> = bytes.filter(|bytes| bytes.len() > MEDIUM).collect();
        let long_layout = perfect::lay_out(
            &long
                .iter()
                .map(|bytes| hash::mix_bytes(bytes))
                .collect::<Vec<_>>(),
        );
        let mut text = Vec::new();
        let places: Vec<u32> = long
            .iter()
            .map(|bytes| {
                let place = u32::try_from(text.len()).expect("long tokens are few");
                text.extend_from_slice(bytes);
                place << 8 | u32::try_from(bytes.len()).expect("no token is so long")
            })
            .collect();

        let merges = self.merges();
        let pairs: Vec<u64> = merges.iter().map(|merge| merge >> RANK_BITS).collect();
        let merges_layout =
            perfect::lay_out(&pairs.iter().map(|key| hash::mix(*key)).collect::<Vec<_>>());

        let mut single = vec![0; 1 << 8];
        let mut double = vec![u32::MAX; 1 << 16];
        let mut characters = vec![u32::MAX; 1 << 16];
        for (bytes, rank) in &self.tokens {
            match bytes[..] {
                [byte] => single[usize::from(byte)] = *rank,
                [left, right] => double[place_of(left, right)] = *rank,
                _ => {}
            }
            if let Some(place) = only_character(bytes).and_then(|one| characters.get_mut(one)) {
                *place = *rank;
            }
        }

        let [tears_before, tears_after] = self.tears(&merges);
        let four_bytes = |numbers: &[u32]| {
            let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
            bytes.collect::<Vec<u8>>()
        };
        vec![
            ("short.seeds", seeds(&short_layout)),
            (
                "short",
                slots(&short_layout, |key| short[key].to_le_bytes(), [0; 8]),
            ),
            ("medium.seeds", seeds(&medium_layout)),
            (
                "medium",
                slots(&medium_layout, |key| both(medium[key]), [0; 16]),
            ),
            ("long.seeds", seeds(&long_layout)),
            (
                "long",
                slots(&long_layout, |key| places[key].to_le_bytes(), [0; 4]),
            ),
            ("long.text", text),
            ("merges.seeds", seeds(&merges_layout)),
            (
                "merges",
                slots(&merges_layout, |key| merges[key].to_le_bytes(), [0xFF; 8]),
            ),
            ("bytes", four_bytes(&single)),
            ("two_bytes", four_bytes(&double)),
            ("characters", four_bytes(&characters)),
            ("tears_before", four_bytes(&tears_before)),
            ("tears_after", four_bytes(&tears_after)),
            ("longest", vec![longest]),
        ]
    }

    /// The two tokens that make a token, and the token, in one word.
    ///
    /// Merging is deterministic, and nothing outside a token takes part in making it, so the last
    /// merge in making a token is the same in every text. Other halves that would give the same
    /// bytes never meet.
    fn merges(&self) -> Vec<u64> {
        let ranks: HashMap<&[u8], u32> = self
            .tokens
            .iter()
            .map(|(bytes, rank)| (bytes.as_slice(), *rank))
            .collect();
        let last = self
            .tokens
            .iter()
            .filter(|(bytes, _)| bytes.len() > 1)
            .filter_map(|(bytes, rank)| {
                let middle = last_merge(bytes, &ranks)?;
                let (left, right) = (ranks[&bytes[..middle]], ranks[&bytes[middle..]]);
                Some(
                    (u64::from(left) << RANK_BITS | u64::from(right)) << RANK_BITS
                        | u64::from(*rank),
                )
            });
        last.collect()
    }

    /// The lowest rank of a merge across a border of characters that takes only a part of the one
    /// before it, and of the one after it, by the bytes on both sides of the border.
    fn tears(&self, merges: &[u64]) -> [Vec<u32>; 2] {
        let bytes: HashMap<u64, &[u8]> = self
            .tokens
            .iter()
            .map(|(bytes, rank)| (u64::from(*rank), bytes.as_slice()))
            .collect();
        // What counts from characters on relies on both.
        assert_eq!(merges.len() + (1 << 8), self.tokens.len());
        let mut tears_before = vec![u32::MAX; 1 << 14];
        let mut tears_after = vec![u32::MAX; 1 << 14];
        for merge in merges {
            let part = |place: u32| merge >> (place * RANK_BITS) & ((1 << RANK_BITS) - 1);
            let [rank, right, left] = [0, 1, 2].map(part);
            assert!(rank > left && rank > right, "a token comes after its parts");
            let (left, right) = (bytes[&left], bytes[&right]);
            let (Some(last), Some(first)) = (left.last(), right.first()) else {
                continue;
            };
            let rank = u32::try_from(rank).expect("a rank takes fewer bits");
            let goes_on = |byte: u8| byte & 0xC0 == 0x80;
            if goes_on(*last) && str::from_utf8(left).is_err() {
                let lowest = &mut tears_before[place_of(last & 0x3F, *first)];
                *lowest = rank.min(*lowest);
            }
            if *first >= 0xC0 && str::from_utf8(right).is_err() {
                let lowest = &mut tears_after[usize::from(*last) << 6 | usize::from(first & 0x3F)];
                *lowest = rank.min(*lowest);
            }
        }
        [tears_before, tears_after]
    }
}

/// Where two bytes have their place in a table of all.
fn place_of(left: u8, right: u8) -> usize {
    usize::from(left) << 8 | usize::from(right)
}

/// The character that bytes are, if they are one.
fn only_character(bytes: &[u8]) -> Option<usize> {
    let mut characters = str::from_utf8(bytes).ok()?.chars();
    let character = characters.next()?;
    characters.next().is_none().then_some(character as usize)
}

/// Where the two parts meet that are merged last, if merging makes one token of the bytes at all.
fn last_merge(bytes: &[u8], ranks: &HashMap<&[u8], u32>) -> Option<usize> {
    let mut borders: Vec<usize> = (0..=bytes.len()).collect();
    while borders.len() > 3 {
        let (middle, _) = (1..borders.len() - 1)
            .filter_map(|middle| {
                let merged = &bytes[borders[middle - 1]..borders[middle + 1]];
                ranks.get(merged).map(|rank| (middle, *rank))
            })
            .min_by_key(|(_, rank)| *rank)?;
        borders.remove(middle);
    }
    Some(borders[1])
}

/// Up to seven bytes and their number.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    word[7] = u8::try_from(bytes.len()).expect("the token is short");
    u64::from_le_bytes(word)
}

/// Up to fifteen bytes and their number.
fn two_words(bytes: &[u8]) -> [u64; 2] {
    let mut words = [0; 16];
    words[..bytes.len()].copy_from_slice(bytes);
    words[15] = u8::try_from(bytes.len()).expect("the token is of medium length");
    hash::words(&words)
}

fn both(words: [u64; 2]) -> [u8; 16] {
    (u128::from(words[1]) << 64 | u128::from(words[0])).to_le_bytes()
}

fn seeds(layout: &Perfect) -> Vec<u8> {
    layout
        .seeds
        .iter()
        .flat_map(|seed| seed.to_le_bytes())
        .collect()
}

fn slots<const N: usize>(
    layout: &Perfect,
    key: impl Fn(usize) -> [u8; N],
    empty: [u8; N],
) -> Vec<u8> {
    layout
        .slots
        .iter()
        .flat_map(|slot| slot.map_or(empty, &key))
        .collect()
}
