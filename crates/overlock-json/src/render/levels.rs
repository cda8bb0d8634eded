//! Reverses the levels of a path, which are found from the cut and written from the root.

use super::outline::Level;
use crate::packed::{read_number, write_number};

/// Levels that are pushed from the cut outwards and returned from the root inwards.
///
/// Each takes a few bytes, because there may be a billion.
#[derive(Default)]
pub(super) struct Levels {
    /// For each level, the distances between its ends, and to the one pushed before it.
    distances: Vec<u8>,
    /// The bracket of the outermost.
    open: usize,
    count: usize,
}

impl Levels {
    /// Adds the next level outwards.
    pub(super) fn push(&mut self, level: &Level) {
        let inwards = if self.count == 0 {
            0
        } else {
            self.open - level.open
        };
        write_number(&mut self.distances, inwards);
        write_number(&mut self.distances, level.from - level.open);
        write_number(&mut self.distances, level.next - level.end);
        write_number(&mut self.distances, level.end - level.open);
        self.open = level.open;
        self.count += 1;
    }
}

impl Iterator for Levels {
    type Item = Level;

    /// Removes the outermost level.
    fn next(&mut self) -> Option<Level> {
        self.count = self.count.checked_sub(1)?;
        let mut rest = &self.distances[..];
        let end = self.open + read_number(&mut rest);
        let next = end + read_number(&mut rest);
        let level = Level {
            open: self.open,
            from: self.open + read_number(&mut rest),
            end,
            next,
        };
        self.open += read_number(&mut rest);
        let left = rest.len();
        self.distances.truncate(left);
        Some(level)
    }
}
