//! Hash functions of the perfect hash tables.
//!
//! A key selects a bucket, the bucket contains a seed, and key and seed select the slot, which no
//! other key has. One lookup decides whether a key exists. The build script compiles this file, too,
//! so both sides agree.

/// Spreads a key over all bits.
#[inline]
pub(crate) fn mix(key: u64) -> u64 {
    let (low, high) = (key ^ 0x9E37_79B9_7F4A_7C15).carrying_mul(0xD6E8_FEB8_6659_FD93, 0);
    low ^ high
}

/// Spreads a key of two words.
#[inline]
pub(crate) fn mix_two(low: u64, high: u64) -> u64 {
    mix(mix(low) ^ high)
}

/// Sixteen bytes as two words.
#[inline]
pub(crate) fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let (words, _) = bytes.as_chunks();
    [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
}

/// Spreads a text of any length.
#[inline]
pub(crate) fn mix_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| {
        mix_two(hash, u64::from_le_bytes(*word))
    });
    rest.iter()
        .fold(hash, |hash, byte| mix_two(hash, u64::from(*byte)))
}

/// The bucket of a spread key, of so many buckets.
#[inline]
pub(crate) fn bucket(hash: u64, buckets: usize) -> usize {
    scaled(hash >> 32, buckets)
}

/// The slot of a spread key with the seed of its bucket, of so many slots.
#[inline]
pub(crate) fn slot(hash: u64, seed: u16, slots: usize) -> usize {
    let mixed = (hash ^ u64::from(seed).wrapping_mul(0xA24B_AED4_963E_E407))
        .wrapping_mul(0x9FB2_1C65_1E98_DF25);
    scaled(mixed >> 32, slots)
}

/// A number of 32 bits brought into a range.
#[inline]
fn scaled(number: u64, range: usize) -> usize {
    ((number * range as u64) >> 32) as usize
}
