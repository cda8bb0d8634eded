//! Keeps short strings for the next document that has them.
//!
//! The names of members come again and again, and so do many values. A string that is known costs
//! a look at its bytes, and Python has hashed it already. There is one place for each hash, so that
//! nothing is ever searched for and what is new takes the place of what was there.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyString;

/// How many strings are kept at most; a power of two.
const SLOTS: usize = 1024;

/// Longer names seldom come twice. With this a slot is as large as a line of the cache.
const LONGEST: usize = 39;

/// Longer values seldom come twice.
pub(crate) const LONGEST_KEPT_VALUE: usize = 16;

/// The strings that are kept, on loan to whoever reads a document.
///
/// Whoever comes while another one has them reads without: no lock is held while Python works.
pub(crate) struct Strings(Option<Vec<Slot>>);

struct Slot {
    text: Option<Py<PyString>>,
    ends: Ends,
    /// What is written, if the ends do not tell all of it.
    raw: [u8; LONGEST],
    len: u8,
}

static KEPT: Mutex<Option<Vec<Slot>>> = Mutex::new(Some(Vec::new()));

impl Strings {
    pub(crate) fn borrow() -> Self {
        Self(KEPT.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// The string that is written so, made if it is not known.
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
            && (raw.len() <= Ends::TELL || self.raw[..raw.len()] == *raw)
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

/// How a string begins and ends. With its length that is all of a short one.
#[derive(Clone, Copy, PartialEq)]
struct Ends(u64, u64);

impl Ends {
    /// Up to so many bytes are told.
    const TELL: usize = 16;

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

    /// The place of a string of this length.
    #[inline]
    fn slot(self, len: usize) -> usize {
        // The golden ratio spreads what differs in any bit over the highest ones.
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
