//! Writes numbers one after the other in as few bytes as they need, to be read back from the end.
//!
//! What is kept for each open container must be a few bytes: a text may open a billion of them.

/// Appends `number` in groups of seven bits, so that it can be read from the end: a set high bit
/// says that a more significant group stands before.
#[inline]
pub(crate) fn write_number(bytes: &mut Vec<u8>, number: usize) {
    if number < 0x80 {
        bytes.push(low_bits(number));
        return;
    }
    let groups = (usize::BITS - number.leading_zeros()).div_ceil(7);
    for group in (0..groups).rev() {
        let more = if group + 1 == groups { 0 } else { 0x80 };
        bytes.push(low_bits(number >> (7 * group)) | more);
    }
}

/// Takes a number off the end. Bytes that were damaged in storage give nonsense, not a panic.
#[inline]
pub(crate) fn read_number(bytes: &mut &[u8]) -> usize {
    let mut number = 0_usize;
    let mut shift = 0;
    while let Some((byte, before)) = bytes.split_last() {
        *bytes = before;
        number |= usize::from(byte & 0x7F).unbounded_shl(shift);
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits are kept")]
fn low_bits(number: usize) -> u8 {
    (number & 0x7F) as u8
}
