//! Stores numbers in as few bytes as possible, to be read back from the end.
//!
//! A text may open a billion containers, so each of them may take only a few bytes.

/// Appends `number` in groups of seven bits that can be read from the end: a set high bit means that
/// a more significant group precedes.
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

/// Removes a number from the end. Bytes that were damaged in storage give a wrong number, not a
/// panic.
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

/// An item of a [`PackedStack`].
pub(crate) trait Packed: Sized {
    /// Appends the item, which is directly below `above`.
    fn pack(&self, above: &Self, bytes: &mut Vec<u8>);

    /// Removes the item directly below `above` from the end of the bytes.
    fn unpack(above: &Self, bytes: &mut &[u8]) -> Self;
}

/// A stack whose items, except the last, are packed into a few bytes each.
pub(crate) struct PackedStack<T> {
    last: Option<T>,
    below: Vec<u8>,
}

impl<T> Default for PackedStack<T> {
    fn default() -> Self {
        Self {
            last: None,
            below: Vec::new(),
        }
    }
}

impl<T: Packed> PackedStack<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    #[inline]
    pub(crate) fn last(&self) -> Option<&T> {
        self.last.as_ref()
    }

    #[inline]
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.last.as_mut()
    }

    /// The bytes of the items below the last one.
    pub(crate) fn below(&self) -> &[u8] {
        &self.below
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        if let Some(last) = &self.last {
            last.pack(&item, &mut self.below);
        }
        self.last = Some(item);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let popped = self.last.take()?;
        if !self.below.is_empty() {
            let mut rest = &self.below[..];
            self.last = Some(T::unpack(&popped, &mut rest));
            let left = rest.len();
            self.below.truncate(left);
        }
        Some(popped)
    }
}

/// Removes a byte from the end.
#[inline]
pub(crate) fn read_byte(bytes: &mut &[u8]) -> u8 {
    let Some((&byte, before)) = bytes.split_last() else {
        return 0;
    };
    *bytes = before;
    byte
}
