//! Classifies many bytes at once, with vector instructions if the machine has them.
//!
//! This is the only unsafe code of the crate: loads from arrays of known length, and calls of
//! functions that are compiled for instructions whose presence was checked.

/// The first quote, backslash or control character from a byte on, or the end.
#[inline]
pub(crate) fn string_stop(bytes: &[u8], at: usize) -> usize {
    string_stop_or(b'"', bytes, at)
}

/// The first byte from `at` on that stops a string or is `also`, or the end.
#[inline]
pub(crate) fn string_stop_or(also: u8, bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let stops = string_stops(block, also);
        if stops != 0 {
            return at + stops.trailing_zeros() as usize;
        }
        at += block.len();
    }
    while let Some(byte) = bytes.get(at)
        && !matches!(byte, b'"' | b'\\' | 0..0x20)
        && *byte != also
    {
        at += 1;
    }
    at
}

/// The first byte from `at` on that is not JSON white space, or the end.
#[inline]
pub(crate) fn white_space_stop(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let others = !white_space(block) & 0xFFFF;
        if others != 0 {
            return at + others.trailing_zeros() as usize;
        }
        at += block.len();
    }
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// The first byte from `at` on that is not a digit, or the end.
#[inline]
pub(crate) fn digits_end(bytes: &[u8], mut at: usize) -> usize {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        // Without the bits that all digits share, only digits are below ten.
        let rest = u64::from_le_bytes(*eight) ^ (EACH * 0x30);
        let above = (((rest & (EACH * 0x7F)) + EACH * 0x76) | rest) & (EACH * 0x80);
        if above != 0 {
            return at + (above.trailing_zeros() / u8::BITS) as usize;
        }
        at += eight.len();
    }
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    at
}

/// A bit for each byte that is JSON white space.
#[cfg(target_arch = "x86_64")]
#[inline]
fn white_space(block: &[u8; 16]) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    #[inline]
    #[target_feature(enable = "sse2")]
    fn compiled(block: &[u8; 16]) -> i32 {
        // SAFETY: the block has sixteen bytes, and the load asks for no alignment.
        let bytes = unsafe { _mm_loadu_si128(std::ptr::from_ref(block).cast()) };
        let equal = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()));
        let blanks = _mm_or_si128(equal(b' '), equal(b'\t'));
        let breaks = _mm_or_si128(equal(b'\n'), equal(b'\r'));
        _mm_movemask_epi8(_mm_or_si128(blanks, breaks))
    }
    // SAFETY: every x86-64 machine has SSE2.
    unsafe { compiled(block) }.cast_unsigned()
}

#[cfg(not(target_arch = "x86_64"))]
use portable::{string_stops, white_space};

/// A bit for each byte that is a quote, a backslash, a control character or `also`.
#[cfg(target_arch = "x86_64")]
#[inline]
fn string_stops(block: &[u8; 16], also: u8) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };
    #[inline]
    #[target_feature(enable = "sse2")]
    fn compiled(block: &[u8; 16], also: u8) -> i32 {
        // SAFETY: the block has sixteen bytes, and the load asks for no alignment.
        let bytes = unsafe { _mm_loadu_si128(std::ptr::from_ref(block).cast()) };
        let quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"'.cast_signed()));
        let others = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(also.cast_signed()));
        let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\'.cast_signed()));
        let controls = _mm_cmpeq_epi8(bytes, _mm_min_epu8(bytes, _mm_set1_epi8(0x1F)));
        _mm_movemask_epi8(_mm_or_si128(
            _mm_or_si128(quotes, others),
            _mm_or_si128(backslashes, controls),
        ))
    }
    // SAFETY: every x86-64 machine has SSE2.
    unsafe { compiled(block, also) }.cast_unsigned()
}

/// The same functions without vector instructions, also for comparison in tests.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    #[inline]
    pub(super) fn string_stops(block: &[u8; 16], also: u8) -> u32 {
        bits(block, |byte| {
            byte == also || matches!(byte, b'"' | b'\\' | 0..0x20)
        })
    }

    #[inline]
    pub(super) fn white_space(block: &[u8; 16]) -> u32 {
        bits(block, |byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'))
    }

    #[inline]
    fn bits(block: &[u8; 16], is_set: impl Fn(u8) -> bool) -> u32 {
        let bit = |(at, byte): (usize, &u8)| u32::from(is_set(*byte)) << at;
        block.iter().enumerate().map(bit).sum()
    }
}

/// For each of sixty-four bytes a bit, lowest first.
pub(crate) struct Masks {
    pub(crate) quote: u64,
    pub(crate) backslash: u64,
    /// `{` and `[`.
    pub(crate) open: u64,
    /// `}` and `]`.
    pub(crate) close: u64,
}

/// An implementation of the classification. All implementations give the same masks.
pub(crate) trait Blocks {
    fn masks(bytes: &[u8; 64]) -> Masks;

    /// Bit `i` of the result is the exclusive or of bits `0..=i`.
    fn prefix_xor(bits: u64) -> u64;
}

/// Works on any machine, eight bytes at a time.
pub(crate) struct Portable;

impl Blocks for Portable {
    #[inline]
    fn masks(bytes: &[u8; 64]) -> Masks {
        let mut masks = Masks {
            quote: 0,
            backslash: 0,
            open: 0,
            close: 0,
        };
        let (words, _) = bytes.as_chunks::<8>();
        for (number, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let shift = number * 8;
            // Brackets and braces differ in one bit.
            let folded = word | (ONES * 0x20);
            masks.quote |= equal_bytes(word, b'"') << shift;
            masks.backslash |= equal_bytes(word, b'\\') << shift;
            masks.open |= equal_bytes(folded, b'{') << shift;
            masks.close |= equal_bytes(folded, b'}') << shift;
        }
        masks
    }

    #[inline]
    fn prefix_xor(mut bits: u64) -> u64 {
        for distance in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << distance;
        }
        bits
    }
}

const ONES: u64 = u64::MAX / 255;

/// One bit for each byte of the word, set where the byte is `byte`.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    const LOW_SEVEN: u64 = ONES * 0x7F;
    let difference = word ^ (ONES * u64::from(byte));
    // The high bit of each byte that is zero, exactly.
    let zeros = !((difference & LOW_SEVEN).wrapping_add(LOW_SEVEN) | difference | LOW_SEVEN);
    // Gathers the eight high bits into the lowest byte.
    (zeros >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Something that is computed from a text block by block.
pub(crate) trait Work {
    type Result;

    /// Must be inlined, so that it is compiled for the instructions of its caller.
    fn run<B: Blocks>(text: &[u8]) -> Self::Result;
}

/// Does the work with vector instructions; none if the machine does not have them.
#[cfg(target_arch = "x86_64")]
pub(crate) fn with_avx2<W: Work>(text: &[u8]) -> Option<W::Result> {
    #[target_feature(enable = "avx2,pclmulqdq")]
    fn compiled<W: Work>(text: &[u8]) -> W::Result {
        W::run::<Avx2>(text)
    }
    if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("pclmulqdq") {
        return None;
    }
    // SAFETY: the machine has both features that the function was compiled for.
    Some(unsafe { compiled::<W>(text) })
}

/// Thirty-two bytes at a time. Used only by [`with_avx2`].
#[cfg(target_arch = "x86_64")]
struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Blocks for Avx2 {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the instructions exist only in the caller"
    )]
    fn masks(bytes: &[u8; 64]) -> Masks {
        // SAFETY: `with_avx2`, the only user, has checked for AVX2.
        unsafe { avx2_masks(bytes) }
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "the instructions exist only in the caller"
    )]
    fn prefix_xor(bits: u64) -> u64 {
        // SAFETY: `with_avx2`, the only user, has checked for PCLMULQDQ.
        unsafe { carryless_prefix_xor(bits) }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn avx2_masks(bytes: &[u8; 64]) -> Masks {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8,
    };
    let (low, high) = bytes.split_at(32);
    // SAFETY: each half has thirty-two bytes, and the load asks for no alignment.
    let (low, high) = unsafe {
        (
            _mm256_loadu_si256(low.as_ptr().cast()),
            _mm256_loadu_si256(high.as_ptr().cast()),
        )
    };
    let equal = |low: __m256i, high: __m256i, byte: u8| {
        let wanted = _mm256_set1_epi8(byte.cast_signed());
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)).cast_unsigned();
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)).cast_unsigned();
        u64::from(low) | u64::from(high) << 32
    };
    // Brackets and braces differ in one bit.
    let bit = _mm256_set1_epi8(0x20);
    let (folded_low, folded_high) = (_mm256_or_si256(low, bit), _mm256_or_si256(high, bit));
    Masks {
        quote: equal(low, high, b'"'),
        backslash: equal(low, high, b'\\'),
        open: equal(folded_low, folded_high, b'{'),
        close: equal(folded_low, folded_high, b'}'),
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn carryless_prefix_xor(bits: u64) -> u64 {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8,
    };
    // A carry-less multiplication by all ones sums all lower bits.
    let product =
        _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits.cast_signed()), _mm_set1_epi8(-1));
    _mm_cvtsi128_si64(product).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The masks of one block, and the prefix sums of its quotes.
    struct Classifying;

    impl Work for Classifying {
        type Result = [u64; 5];

        fn run<B: Blocks>(text: &[u8]) -> [u64; 5] {
            let block = text.first_chunk().expect("the tests give whole blocks");
            let masks = B::masks(block);
            let inside = B::prefix_xor(masks.quote);
            [
                masks.quote,
                masks.backslash,
                masks.open,
                masks.close,
                inside,
            ]
        }
    }

    proptest! {
        #[test]
        fn digits_end_at_the_first_other_byte(
            digits in "[0-9]{0,20}",
            bytes in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let text = [digits.as_bytes(), &bytes].concat();
            for from in 0..=text.len() {
                let end = text[from..].iter().position(|byte| !byte.is_ascii_digit());
                let end = end.map_or(text.len(), |end| from + end);
                prop_assert_eq!(digits_end(&text, from), end);
            }
        }

        #[test]
        fn vector_instructions_agree_with_plain_code(block in any::<[u8; 16]>(), at in 0..16_usize, byte in prop::sample::select(&b"\"\\ \n\r\t{}[]\x1f\x20\x7f\x80\xff"[..])) {
            let mut block = block;
            block[at] = byte;
            for also in *b"\"'\xE2" {
                prop_assert_eq!(string_stops(&block, also), portable::string_stops(&block, also));
            }
            prop_assert_eq!(white_space(&block), portable::white_space(&block));
        }

        #[test]
        fn all_implementations_give_the_same_masks(bytes in prop::collection::vec(prop::sample::select(&b"\"\\{}[] a\x80\xff\x00;]|"[..]), 64)) {
            let bytes: [u8; 64] = bytes.try_into().expect("sixty-four were drawn");
            let plain = |wanted: &[u8]| (0..64).filter(|at| wanted.contains(&bytes[*at])).map(|at| 1_u64 << at).sum::<u64>();
            let masks = Portable::masks(&bytes);
            prop_assert_eq!(masks.quote, plain(b"\""));
            prop_assert_eq!(masks.backslash, plain(b"\\"));
            prop_assert_eq!(masks.open, plain(b"{["));
            prop_assert_eq!(masks.close, plain(b"}]"));
            let carried = (0..64).scan(0, |sum, at| { *sum ^= masks.quote >> at & 1; Some(*sum << at) }).sum::<u64>();
            prop_assert_eq!(Portable::prefix_xor(masks.quote), carried);
            #[cfg(target_arch = "x86_64")]
            if let Some(vectors) = with_avx2::<Classifying>(&bytes) {
                prop_assert_eq!(vectors, Classifying::run::<Portable>(&bytes));
            }
        }
    }
}
