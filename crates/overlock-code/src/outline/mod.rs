//! Leaves out pieces of a text and marks how much was left out.

pub(crate) mod csharp;
pub(crate) mod declarations;
pub(crate) mod sql;

use std::fmt::Write;
use std::ops::Range;

/// A piece of a text to leave out, and the mark that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elision {
    pub(crate) range: Range<usize>,
    pub(crate) mark: String,
}

/// The text without the pieces, which are in order and do not overlap.
pub(crate) fn without<'a>(text: &str, elisions: impl IntoIterator<Item = &'a Elision>) -> String {
    let mut out = String::with_capacity(text.len() / 2);
    let mut at = 0;
    for elision in elisions {
        out.push_str(&text[at..elision.range.start]);
        out.push_str(&elision.mark);
        at = elision.range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The mark for a piece: `… 42 lines`.
pub(crate) fn lines_mark(piece: &str) -> String {
    let lines = piece
        .split(['\n', '\r'])
        .filter(|line| !line.trim().is_empty())
        .count()
        .max(1);
    let mut mark = String::from("… ");
    let _ = write!(mark, "{lines} line{}", if lines == 1 { "" } else { "s" });
    mark
}
