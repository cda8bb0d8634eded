//! Counts the bytes at the front of a text that need no decision.
//!
//! Eight bytes are looked at in one step where the machine word allows it; the tails are read
//! byte by byte.

const ONES: u64 = u64::MAX / 255;
const HIGH_BITS: u64 = ONES << 7;

/// How many bytes stand before the next quote, backslash or control character.
#[inline]
pub(crate) fn string_run(bytes: &[u8]) -> usize {
    let mut words = bytes.chunks_exact(8);
    let mut run = 0;
    for word in &mut words {
        let word = read_word(word);
        let hits = zero_bytes(word ^ (ONES * u64::from(b'"')))
            | zero_bytes(word ^ (ONES * u64::from(b'\\')))
            | (word.wrapping_sub(ONES * 0x20) & !word & HIGH_BITS);
        if hits != 0 {
            return run + hits.trailing_zeros() as usize / 8;
        }
        run += 8;
    }
    let stops = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let tail = words.remainder();
    run + tail.iter().position(stops).unwrap_or(tail.len())
}

/// How many bytes of JSON white space stand at the front.
#[inline]
pub(crate) fn white_space_run(bytes: &[u8]) -> usize {
    let mut run = 0;
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(run) {
        run += 1;
        // Indentation is long runs of spaces.
        while let Some(word) = bytes.get(run..run + 8) {
            if read_word(word) != ONES * u64::from(b' ') {
                break;
            }
            run += 8;
        }
    }
    run
}

#[inline]
fn read_word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// The high bit of every byte that is zero. Bytes above the lowest zero byte may be wrong, which
/// does not matter to a caller who looks for the first.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH_BITS
}
