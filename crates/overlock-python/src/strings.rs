//! A cache of short strings.
//!
//! Member names and many values repeat. A cached string costs only a comparison, and Python has
//! already hashed it. Each hash has one slot, so lookups do not search and new strings replace old
//! ones.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyString;

/// The number of slots; a power of two.
const SLOTS: usize = 1024;

/// Longer strings rarely repeat. With this size a slot fills a cache line.
const LONGEST: usize = 39;

/// Longer values rarely repeat.
pub(crate) const LONGEST_KEPT_VALUE: usize = 16;

/// The cache, borrowed by one reader at a time.
///
/// Other readers work without it, so that no lock is held while Python runs.
pub(crate) struct Strings(Option<Vec<Slot>>);

struct Slot {
    text: Option<Py<PyString>>,
    ends: Ends,
    /// The raw string, compared if the ends do not contain all of it.
    raw: [u8; LONGEST],
    len: u8,
}

static KEPT: Mutex<Option<Vec<Slot>>> = Mutex::new(Some(Vec::new()));

impl Strings {
    pub(crate) fn borrow() -> Self {
        Self(KEPT.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// The string with this raw form, created with `make` if it is not cached.
    #[inline]
    pub(crate) fn get<'py>(
        &mut self,
        py: Python<'py>,
        raw: &[u8],
        make: impl FnOnce() -> PyResult<Bound<'py, PyString>>,
    ) -> PyResult<Bound<'py, PyString>> {
        let (Some(slots), 1..=LONGEST) = (&mut self.0, raw.len()) else {
            return make();
        };
        if slots.is_empty() {
            slots.resize_with(SLOTS, Slot::default);
        }
        let ends = Ends::of(raw);
        let slot = &mut slots[ends.slot(raw.len())];
        if let Some(text) = &slot.text
            && slot.is_of(ends, raw)
        {
            return Ok(text.bind(py).clone());
        }
        let text = make()?;
        *slot = Slot::new(ends, raw, text.clone().unbind());
        Ok(text)
    }
}

impl Drop for Strings {
    fn drop(&mut self) {
        *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = self.0.take();
    }
}

impl Slot {
    fn new(ends: Ends, raw: &[u8], text: Py<PyString>) -> Self {
        let mut kept = [0; LONGEST];
        kept[..raw.len()].copy_from_slice(raw);
        Self {
            text: Some(text),
            ends,
            raw: kept,
            len: u8::try_from(raw.len()).expect("it is no longer than a slot"),
        }
    }

    #[inline]
    fn is_of(&self, ends: Ends, raw: &[u8]) -> bool {
        self.ends == ends
            && usize::from(self.len) == raw.len()
            && (raw.len() <= Ends::COVERED || self.raw[..raw.len()] == *raw)
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            text: None,
            ends: Ends(0, 0),
            raw: [0; LONGEST],
            len: 0,
        }
    }
}

/// The first and last bytes of a string. A short one is determined by these and its length.
#[derive(Clone, Copy, PartialEq)]
struct Ends(u64, u64);

impl Ends {
    /// The maximum length of a string that its ends determine.
    const COVERED: usize = 16;

    #[inline]
    fn of(raw: &[u8]) -> Self {
        let len = raw.len();
        match len {
            8.. => Self(word(raw, 0), word(raw, len - 8)),
            4..8 => Self(half(raw, 0), half(raw, len - 4)),
            _ => {
                let at = |place: usize| raw.get(place).copied().map_or(0, u64::from);
                Self(at(0) | at(1) << 8 | at(2) << 16, 0)
            }
        }
    }

    /// The slot of a string of this length.
    #[inline]
    fn slot(self, len: usize) -> usize {
        // Multiplying by the golden ratio spreads all bits to the highest ones.
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let mixed = (self.0 ^ self.1.rotate_left(19) ^ len as u64).wrapping_mul(GOLDEN);
        usize::try_from(mixed >> (u64::BITS - SLOTS.trailing_zeros())).unwrap_or_default() % SLOTS
    }
}

#[inline]
fn word(raw: &[u8], at: usize) -> u64 {
    raw[at..]
        .first_chunk()
        .copied()
        .map_or(0, u64::from_le_bytes)
}

#[inline]
fn half(raw: &[u8], at: usize) -> u64 {
    let half = raw[at..].first_chunk().copied();
    u64::from(half.map_or(0, u32::from_le_bytes))
}
