//! Drops bytes that are not UTF-8.
//!
//! A stream that is cut inside a character leaves such bytes. They are not replaced, because a
//! replacement character would be data that the model never wrote.

use std::borrow::Cow;

/// A text without the bytes that were not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned<'a> {
    /// The text; borrowed if nothing had to be dropped.
    pub text: Cow<'a, str>,
    /// How many bytes were dropped.
    pub dropped: usize,
}

/// Drops the bytes that are not UTF-8 and counts them.
///
/// ```
/// let cleaned = overlock_json::clean_encoding(b"[\"caf\xC3\"]");
/// assert_eq!(cleaned.text, "[\"caf\"]");
/// assert_eq!(cleaned.dropped, 1);
/// ```
pub fn clean_encoding(bytes: &[u8]) -> Cleaned<'_> {
    let (text, shifts) = drop_bytes(bytes);
    Cleaned {
        text,
        dropped: shifts.total(),
    }
}

/// Where bytes were dropped from a text, to map offsets back to the given text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shifts {
    /// Offsets in the shorter text, ascending, each with the number of bytes missing before it.
    steps: Vec<(usize, usize)>,
}

impl Shifts {
    /// Adds `count` bytes that are missing before the byte `offset` of the shorter text.
    pub(crate) fn add(&mut self, offset: usize, count: usize) {
        let total = self.total() + count;
        match self.steps.last_mut() {
            Some(last) if last.0 == offset => last.1 = total,
            _ => self.steps.push((offset, total)),
        }
    }

    /// The total number of missing bytes.
    pub(crate) fn total(&self) -> usize {
        self.steps.last().map_or(0, |step| step.1)
    }

    /// Maps an offset in the shorter text to the given text.
    pub(crate) fn restore(&self, offset: usize) -> usize {
        let before = self.steps.partition_point(|step| step.0 <= offset);
        match before.checked_sub(1) {
            Some(index) => offset + self.steps[index].1,
            None => offset,
        }
    }

    /// The first offset of each missing run, in the given text.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = usize> {
        let mut missing = 0;
        self.steps.iter().map(move |&(offset, total)| {
            let given = offset + missing;
            missing = total;
            given
        })
    }
}

/// Drops the bytes that are not UTF-8 and returns where they were.
pub(crate) fn drop_bytes(bytes: &[u8]) -> (Cow<'_, str>, Shifts) {
    let mut shifts = Shifts::default();
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Cow::Borrowed(text), shifts);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            shifts.add(text.len(), chunk.invalid().len());
        }
    }
    (Cow::Owned(text), shifts)
}
