//! Delimits quoted text in a prompt, so that the model does not take it for instructions.

use std::fmt::{self, Display, Formatter};

use crate::marker::Marker;

/// A pair of lines around a text, such as `[[overlap-1f0c9a2e]]` and `[[/overlap-1f0c9a2e]]`.
///
/// No JSON contains such a line: it is invalid outside strings, and in strings line breaks are
/// escaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    name: &'static str,
}

/// The text that the answer should begin with.
pub(crate) const OVERLAP: Block = Block { name: "overlap" };

/// The end of the document, if the answer should not repeat it.
pub(crate) const WRITTEN: Block = Block { name: "written" };

/// The document from its root to the cut, shortened.
pub(super) const DOCUMENT: Block = Block { name: "document" };

/// The last complete element.
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

    /// The text in the block of this name at the end of a prompt, if there is one.
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

/// A block, that implements `Display`.
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
