//! Tells whether a model wrote twice what it repeats, or the document says the same again.

use super::evidence::{ASKED, ENOUGH};
use super::{Attempt, Outcome};
use crate::borders::common_prefixes;

/// After so many equal bytes, two places may be the same one in two records.
const SAME_PLACE: usize = 2;

impl Attempt<'_, '_> {
    /// Where the fragment goes on if it may write what it repeats twice, up to `from` once. Either
    /// the model did, or the document says the same again, for which there are as many bits against.
    pub(super) fn after_doubling(
        &self,
        from: usize,
        said: &str,
        bits: u32,
    ) -> Result<usize, Outcome> {
        let rest = &self.fragment[from..];
        let (text, again) = (said.trim(), rest.trim_start());
        let blank = &said[..said.len() - said.trim_start().len()];
        let is_doubled = !text.is_empty()
            && again.starts_with(said.trim_start())
            && rest[..rest.len() - again.len()].ends_with(blank);
        // What repeats itself again and again goes on to.
        let prefixes = common_prefixes(text.as_bytes());
        let mut periods = prefixes.iter().enumerate().skip(1).take(text.len() / 3);
        if !is_doubled || periods.any(|(at, same)| at + same == text.len()) {
            return Ok(from);
        }
        let base_len = self.base.text().len();
        let twice = &again[said.trim_start().len()..];
        let after_twice = self.fragment.len() - twice.len();
        let is_lawful = |from| self.join(Outcome::Exact, base_len, "", from, 0).is_ok();
        let is_again_and_again = self.base.text().trim_end().ends_with(&text.repeat(3));
        if is_again_and_again || bits < ASKED && !is_lawful(after_twice) {
            return Ok(from);
        }
        let base = self.base.text().trim_end();
        let is_aligned = self.is_like_the_end(base.len() - text.len().min(base.len()));
        let is_clear = bits >= ENOUGH + ASKED && !is_aligned || !is_lawful(from);
        if is_clear && !twice.trim_start().starts_with(text) {
            return Ok(after_twice);
        }
        let shorter = said.chars().count();
        Err(Outcome::Ambiguous {
            shorter,
            longer: 2 * shorter,
        })
    }

    /// Whether a place in the base is as the cut is: then the records between may be equal to those
    /// that follow.
    pub(super) fn is_like_the_end(&self, place: usize) -> bool {
        let base = self.base.text();
        let before = base.get(..place).unwrap_or_default().trim_end();
        let same = before.bytes().rev().zip(base.trim_end().bytes().rev());
        same.take_while(|(a, b)| a == b).count() >= SAME_PLACE
    }
}
