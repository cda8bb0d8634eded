//! Text that stands apart in a prompt, so that nobody takes it for a part of the instructions.

use std::fmt::{self, Display, Formatter};

use crate::marker::Marker;

/// A pair of lines around a text, such as `[[overlap-1f0c9a2e]]` and `[[/overlap-1f0c9a2e]]`.
///
/// No JSON has such a line: outside of strings it would be malformed, and in a string a line break
/// is written as an escape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    name: &'static str,
}

/// What the answer is to begin with.
pub(crate) const OVERLAP: Block = Block { name: "overlap" };

/// The end of what is there, where nothing of it is to be repeated.
pub(crate) const WRITTEN: Block = Block { name: "written" };

/// The way from the root to the cut.
pub(super) const DOCUMENT: Block = Block { name: "document" };

/// The last whole element.
pub(super) const COMPLETE: Block = Block { name: "complete" };

/// The element that was cut.
pub(super) const CUT_OFF: Block = Block { name: "cut-off" };

impl Block {
    /// The block around a text.
    pub(super) fn around<'a>(self, text: &'a str, marker: &'a Marker) -> Around<'a> {
        Around {
            name: self.name,
            text,
            marker,
        }
    }

    /// The text in the last block of this kind, if a prompt ends with one.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn find(self, prompt: &str) -> Option<&str> {
        let (inside, close) = prompt.trim_end().rsplit_once('\n')?;
        let name = close.strip_prefix("[[/")?.strip_suffix("]]")?;
        name.strip_prefix(self.name)?.strip_prefix('-')?;
        let open = format!("[[{name}]]\n");
        let start = inside.rfind(&open)? + open.len();
        Some(&inside[start..])
    }
}

/// A block, ready to be written.
pub(super) struct Around<'a> {
    name: &'static str,
    text: &'a str,
    marker: &'a Marker,
}

impl Display for Around<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, text, marker } = self;
        let (open, close) = (marker.open(name), marker.close(name));
        write!(formatter, "{open}\n{text}\n{close}")
    }
}
