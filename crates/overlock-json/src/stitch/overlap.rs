//! Finds where a fragment begins with the last characters of the base.

use super::{Attempt, Candidate, Outcome};
use crate::borders::common_prefixes;

/// The overlap is looked for in this many bytes at the end of the base.
const WINDOW: usize = 32 * 1024;
/// So many overlaps are tried at most; text that offers more is too regular to decide.
const MOST_TRIED: usize = 64;

impl<'f> Attempt<'_, 'f> {
    /// The lengths of the ends of the base with which the fragment begins, longest first.
    fn overlap_lengths(&self) -> impl Iterator<Item = usize> + use<'f> {
        let (base, fragment) = (self.base.text().as_bytes(), self.fragment);
        let len = fragment.len().min(base.len()).min(WINDOW);
        let (head, tail) = (&fragment.as_bytes()[..len], &base[base.len() - len..]);
        self.count(2 * len);
        // The fragment's head, a mark that equals no byte, the base's tail.
        let sequence: Vec<u16> = head
            .iter()
            .map(|byte| u16::from(*byte))
            .chain([u16::MAX])
            .chain(tail.iter().map(|byte| u16::from(*byte)))
            .collect();
        let prefixes = common_prefixes(&sequence);
        let is_overlap = move |n: &usize| prefixes[sequence.len() - n] == *n;
        (1..=len)
            .rev()
            .filter(is_overlap)
            .filter(|n| fragment.is_char_boundary(*n))
    }

    /// How much of the base's end the fragment begins with, lawful or not.
    pub(super) fn longest_overlap(&self) -> usize {
        self.overlap_lengths().next().unwrap_or(0)
    }

    /// The two longest lawful overlaps, longest first: that is what a decision needs.
    pub(super) fn overlaps(&self) -> Vec<Candidate<'f>> {
        let (base, fragment) = (self.base.text().as_bytes(), self.fragment);
        let limit = self.scanned.get() + 8 * fragment.len();
        let mut overlaps: Vec<Candidate<'f>> = Vec::new();
        for len in self.overlap_lengths().take(MOST_TRIED) {
            if self.scanned.get() > limit {
                break;
            }
            let overlap = &fragment[..len];
            if !self.base.scanner().is_in_string() && overlap.trim().is_empty() {
                continue;
            }
            let characters = overlap.chars().count();
            let Ok(join) = self.join(Outcome::Overlap, base.len(), "", len, characters) else {
                continue;
            };
            overlaps.push(Candidate {
                bits: self.evidence.since(base.len() - len),
                from: len,
                join,
            });
            if overlaps.len() == 2 {
                break;
            }
        }
        overlaps
    }
}
