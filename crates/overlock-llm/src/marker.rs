//! Marks the parts of a prompt so that no marker can end up in a document.
//!
//! Models copy markers into their answers. A marker therefore contains a digest that no document
//! contains by chance. At the head of an answer markers are removed; an answer with one anywhere
//! else is rejected.

use std::fmt::Write;

use crate::wire::WireRequest;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The names of all blocks in prompts.
pub(crate) const BLOCK_NAMES: [&str; 5] = ["overlap", "written", "document", "complete", "cut-off"];

/// How many bytes of the digest a marker contains, in hexadecimal.
const DIGEST_BYTES: usize = 4;

/// The digest in the markers of one run, such as `[[overlap-1f0c9a2e]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Marker {
    digest: String,
}

impl Default for Marker {
    fn default() -> Self {
        Self::from_seed(b"")
    }
}

impl Marker {
    /// The marker for a run with this seed, such as its request.
    pub(crate) fn from_seed(seed: &[u8]) -> Self {
        let mut digest = String::with_capacity(2 * DIGEST_BYTES);
        for byte in &Sha256::digest(seed)[..DIGEST_BYTES] {
            let _ = write!(digest, "{byte:02x}"); // writing to a string cannot fail
        }
        Self { digest }
    }

    /// The marker for a request. A resumed run has the same one.
    pub(crate) fn of_request(request: &dyn WireRequest) -> Self {
        Self::from_seed(request.to_value().to_string().as_bytes())
    }

    /// The line that opens a block.
    pub fn open(&self, name: &str) -> String {
        format!("[[{name}-{}]]", self.digest)
    }

    /// The line that closes a block.
    pub fn close(&self, name: &str) -> String {
        format!("[[/{name}-{}]]", self.digest)
    }

    /// The answer without the markers that it begins with.
    pub(crate) fn strip_head<'a>(&self, answer: &'a [u8]) -> &'a [u8] {
        let mut rest = answer;
        loop {
            let head = rest.trim_ascii_start();
            let Some(after) = self.all().find_map(|it| head.strip_prefix(it.as_bytes())) else {
                return rest;
            };
            let line_end: &[u8] = if after.starts_with(b"\r\n") {
                b"\r\n"
            } else {
                b"\n"
            };
            rest = after.strip_prefix(line_end).unwrap_or(after);
        }
    }

    /// Whether an answer contains a marker or ends within one. The digest alone counts, because the
    /// start of the marker may already be at the end of the document.
    pub(crate) fn is_in(&self, answer: &[u8]) -> bool {
        self.find(answer).is_some() || self.cut_len(answer) > 0
    }

    /// Where the first marker begins in an answer.
    pub(crate) fn find(&self, answer: &[u8]) -> Option<usize> {
        let digest = self.digest.as_bytes();
        let at = answer.windows(digest.len()).position(|it| it == digest)?;
        let before = &answer[..at];
        let starts = self.all().filter_map(|marker| {
            let start = marker.as_bytes().strip_suffix(b"]]")?;
            let start = start.strip_suffix(digest)?;
            before.ends_with(start).then(|| at - start.len())
        });
        Some(starts.min().unwrap_or(at))
    }

    /// The length of a marker at the end of an answer that is cut off in its digest.
    pub(crate) fn cut_len(&self, answer: &[u8]) -> usize {
        let least = |marker: &str| marker.len() - self.digest.len() - "]]".len();
        self.longest_end(answer, least)
    }

    /// The length of the end of an answer that may be the start of a marker or of a bare digest.
    pub(crate) fn may_begin_len(&self, answer: &[u8]) -> usize {
        let digest = self.digest.as_bytes();
        let mut lengths = (1..digest.len()).rev();
        let of_digest = lengths.find(|len| answer.ends_with(&digest[..*len]));
        self.longest_end(answer, |_| 1).max(of_digest.unwrap_or(0))
    }

    fn longest_end(&self, answer: &[u8], least: impl Fn(&str) -> usize) -> usize {
        let ends = self.all().filter_map(|marker| {
            let mut lengths = (least(&marker)..marker.len()).rev();
            lengths.find(|len| answer.ends_with(&marker.as_bytes()[..*len]))
        });
        ends.max().unwrap_or(0)
    }

    fn all(&self) -> impl Iterator<Item = String> + '_ {
        let both = |name: &&'static str| [self.open(name), self.close(name)];
        BLOCK_NAMES.iter().flat_map(both)
    }
}

/// Keeps markers out of an answer that streams in.
#[derive(Debug)]
pub(crate) struct MarkerFilter {
    marker: Marker,
    /// Text that may still become a marker.
    held: String,
    is_head: bool,
    has_leaked: bool,
}

impl MarkerFilter {
    pub(crate) fn new(marker: Marker) -> Self {
        Self {
            marker,
            held: String::new(),
            is_head: true,
            has_leaked: false,
        }
    }

    /// Takes the next piece and returns the text that is not part of a marker. After a marker
    /// outside the head it returns nothing.
    pub(crate) fn feed(&mut self, piece: &str) -> String {
        if self.has_leaked {
            return String::new();
        }
        self.held.push_str(piece);
        if self.is_head {
            // The head is held until it ends: a line break belongs to the marker before it.
            let rest = self.marker.strip_head(self.held.as_bytes());
            let begun = rest.trim_ascii_start();
            if self.marker.may_begin_len(begun) == begun.len() {
                return String::new();
            }
            self.held.drain(..self.held.len() - rest.len());
            self.is_head = false;
        }
        let end = match self.marker.find(self.held.as_bytes()) {
            Some(at) => {
                self.has_leaked = true;
                at
            }
            None => self.held.len() - self.marker.may_begin_len(self.held.as_bytes()),
        };
        let rest = self.held.split_off(end);
        std::mem::replace(&mut self.held, rest)
    }

    /// Whether there was a marker outside the head.
    pub(crate) fn has_leaked(&self) -> bool {
        self.has_leaked
    }

    /// Whether an answer has a marker outside its head, or ends within one.
    pub(crate) fn is_marker_in(&self, answer: &str) -> bool {
        self.marker.is_in(self.marker.strip_head(answer.as_bytes()))
    }

    /// The answer without markers, cut at the first one outside its head.
    pub(crate) fn without_markers(&self, answer: &str) -> String {
        let head = self.marker.strip_head(answer.as_bytes()).len();
        let text = &answer[answer.len() - head..];
        let end = self.marker.find(text.as_bytes());
        let end = end.unwrap_or(text.len() - self.marker.cut_len(text.as_bytes()));
        text[..end].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marker() -> Marker {
        Marker::from_seed(b"a request")
    }

    #[test]
    fn different_runs_have_different_markers() {
        assert_ne!(marker(), Marker::from_seed(b"another request"));
        assert_eq!(marker().open("overlap").len(), "[[overlap-12345678]]".len());
    }

    #[test]
    fn removes_markers_at_the_head_of_an_answer_only() {
        let marker = marker();
        let (open, close) = (marker.open("overlap"), marker.close("cut-off"));
        let check = |answer: &str, rest: &str| {
            assert_eq!(marker.strip_head(answer.as_bytes()), rest.as_bytes());
        };
        check(&format!("{open}\n[1, 2"), "[1, 2");
        check(&format!("\n {open}\r\n{close}\n [1"), " [1");
        check(&format!("[1, \"{open}"), &format!("[1, \"{open}"));
        check("[[overlap]]\n[1", "[[overlap]]\n[1");
    }

    #[test]
    fn finds_a_marker_that_is_cut_off_in_its_digest() {
        let marker = marker();
        let open = marker.close("written");
        for len in "[[/written-".len()..=open.len() {
            assert!(marker.is_in(format!("[\"a {}", &open[..len]).as_bytes()));
        }
        assert!(!marker.is_in(b"[\"a [[/written"));
        assert!(!marker.is_in(b"[[[["));
    }

    /// Parts of an answer: markers, complete or cut, bare digests, white space and text.
    fn part() -> impl Strategy<Value = String> {
        let names = prop::sample::select(BLOCK_NAMES.to_vec());
        let markers = (names, any::<bool>()).prop_map(|(name, opens)| {
            let marker = marker();
            if opens {
                marker.open(name)
            } else {
                marker.close(name)
            }
        });
        let cut = (markers.clone(), 0_usize..30).prop_map(|(mut marker, len)| {
            marker.truncate(len);
            marker
        });
        let digest = marker().digest;
        let misspelt = ["", "[/overlap-", "</overlap-", "[[over-", "-"];
        let misspelt = prop::sample::select(misspelt.to_vec())
            .prop_map(move |before| format!("{before}{digest}"));
        prop_oneof![
            3 => markers,
            2 => cut,
            1 => misspelt,
            3 => "[ \\r\\n]{0,3}",
            2 => "[\\[a-f0-9\\]é-]{0,9}",
        ]
    }

    proptest! {
        #[test]
        fn a_filtered_stream_is_the_answer_without_markers(
            parts in prop::collection::vec(part(), 0..6),
            sizes in prop::collection::vec(1_usize..30, 1..9),
        ) {
            let marker = marker();
            let written = parts.concat();
            // After the dot nothing is held back any more.
            for answer in [format!("{written}."), written] {
                let mut filter = MarkerFilter::new(marker.clone());
                let mut passed = String::new();
                let mut characters = answer.chars().peekable();
                for size in sizes.iter().cycle() {
                    let piece: String = characters.by_ref().take(*size).collect();
                    passed += &filter.feed(&piece);
                    if characters.peek().is_none() {
                        break;
                    }
                }
                let without = filter.without_markers(&answer);
                prop_assert_eq!(marker.find(passed.as_bytes()), None);
                prop_assert!(without.starts_with(&passed), "{:?} {:?}", passed, without);
                if answer.ends_with('.') {
                    let text = marker.strip_head(answer.as_bytes());
                    prop_assert_eq!(filter.has_leaked(), marker.find(text).is_some());
                    prop_assert_eq!(passed, without);
                }
            }
        }
    }
}
