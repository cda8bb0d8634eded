//! Writes a document from its root to its cut, as a [`Spending`] decided.

use std::ops::Range;

use super::outline::Outline;
use super::spend::{Shown, Spending};
use super::token::{self, Stop};

/// What stands for the part of a value that was left out.
pub(super) const MARK: &str = "…";

/// A rendered document, and where its parts are in it.
pub(super) struct Written {
    pub(super) text: String,
    /// One for each container on the path.
    pub(super) levels: Vec<WrittenLevel>,
    /// Where the unfinished item at the cut starts.
    pub(super) tail: usize,
    /// Where the value at the cut stands.
    pub(super) cut_value: Option<Range<usize>>,
}

/// A container on the path as it was written.
pub(super) struct WrittenLevel {
    /// Where its bracket stands.
    pub(super) open: usize,
    /// From the first item beside the path to the end of the last.
    pub(super) beside: Range<usize>,
}

/// Writes the parts of one document.
pub(super) struct Writer<'a> {
    pub(super) outline: &'a Outline<'a>,
    spending: &'a Spending,
}

/// How an item beside the path is written.
pub(super) enum Treatment {
    /// In full, oversized values as hints.
    Full,
    /// In full up to an offset, then as hints.
    FullUntil(usize),
    /// As a hint.
    Hint,
    /// Without a word about a scalar's type.
    Structure,
}

impl<'a> Writer<'a> {
    /// A writer for a document and what was decided about it.
    pub(super) fn new(outline: &'a Outline<'a>, spending: &'a Spending) -> Self {
        Self { outline, spending }
    }

    /// Writes the whole document.
    pub(super) fn write(&self) -> Written {
        let text = self.outline.text;
        let mut out = String::new();
        let mut levels = Vec::with_capacity(self.outline.depth());
        let mut at = 0;
        for level in 0..self.outline.depth() {
            let open = self.outline.open(level);
            out.push_str(&text[at..open]);
            at = open;
            let written_open = out.len();
            let mut beside = None;
            for item in self.outline.beside(level) {
                let (start, value) = self.outline.item(level, item);
                out.push_str(&text[at..start]);
                let first = beside.map_or(out.len(), |(first, _)| first);
                self.write_item(level, item, &mut out);
                beside = Some((first, out.len()));
                at = value.end;
            }
            let (first, end) = beside.unwrap_or((out.len(), out.len()));
            levels.push(WrittenLevel {
                open: written_open,
                beside: first..end,
            });
        }
        out.push_str(&text[at..self.outline.tail]);
        let tail = out.len();
        let cut_value = self.write_tail(&mut out);
        Written {
            text: out,
            levels,
            tail,
            cut_value,
        }
    }

    /// Writes an item beside the path.
    pub(super) fn write_item(&self, level: usize, item: usize, out: &mut String) {
        self.write_item_as(&self.treatment(level, item), level, item, out);
    }

    /// Writes an item beside the path in another way than was decided.
    pub(super) fn write_item_as(
        &self,
        treatment: &Treatment,
        level: usize,
        item: usize,
        out: &mut String,
    ) {
        let text = self.outline.text;
        let (start, value) = self.outline.item(level, item);
        out.push_str(&text[start..value.start]);
        match *treatment {
            Treatment::Full => self.write_full(value, out),
            Treatment::FullUntil(middle) => {
                self.write_full(value.start..middle, out);
                self.write_hints(middle..value.end, out);
            }
            Treatment::Hint => out.push_str(hint(self.first_byte(&value))),
            Treatment::Structure => out.push_str(match self.first_byte(&value) {
                container @ (b'{' | b'[') => hint(container),
                _ => "\"...\"",
            }),
        }
    }

    fn treatment(&self, level: usize, item: usize) -> Treatment {
        let Some(summary) = &self.spending.summary else {
            return Treatment::Full;
        };
        if level < summary.level {
            Treatment::Structure
        } else if level > summary.level || item > summary.item {
            Treatment::Full
        } else if item < summary.item {
            Treatment::Hint
        } else {
            Treatment::FullUntil(summary.at)
        }
    }

    /// Writes a span with hints in the place of its oversized values.
    fn write_full(&self, span: Range<usize>, out: &mut String) {
        let text = self.outline.text;
        let oversized = &self.spending.oversized;
        let first = oversized.partition_point(|&start| start < span.start);
        let mut at = span.start;
        for &start in oversized[first..]
            .iter()
            .take_while(|&&start| start < span.end)
        {
            out.push_str(&text[at..start]);
            out.push_str(hint(text.as_bytes()[start]));
            at = token::value_end(text.as_bytes(), start);
        }
        out.push_str(&text[at..span.end]);
    }

    /// Writes a span with hints in the place of all its values.
    fn write_hints(&self, span: Range<usize>, out: &mut String) {
        let text = self.outline.text;
        let mut rest = span;
        while let Some(value) = token::next_value(text.as_bytes(), rest.clone(), Stop::Value) {
            out.push_str(&text[rest.start..value.start]);
            out.push_str(hint(self.first_byte(&value)));
            rest.start = value.end;
        }
        out.push_str(&text[rest]);
    }

    /// Writes the unfinished item at the cut, and says where its value is.
    fn write_tail(&self, out: &mut String) -> Option<Range<usize>> {
        let text = self.outline.text;
        let Some(value) = &self.outline.cut_value else {
            out.push_str(&text[self.outline.tail..]);
            return None;
        };
        out.push_str(&text[self.outline.tail..value.span.start]);
        let start = out.len();
        self.write_cut_value(&self.spending.cut_value, out);
        let written = start..out.len();
        out.push_str(&text[value.span.end..]);
        Some(written)
    }

    /// Writes as much of the value at the cut as is to be shown.
    pub(super) fn write_cut_value(&self, shown: &Shown, out: &mut String) {
        let text = self.outline.text;
        let Some(value) = &self.outline.cut_value else {
            return;
        };
        match *shown {
            Shown::Whole => out.push_str(&text[value.span.clone()]),
            Shown::Hint => out.push_str(hint(self.first_byte(&value.span))),
            Shown::Tail(start) => {
                out.push_str(&text[value.span.start..value.content.start]);
                out.push_str(MARK);
                out.push_str(&text[start..value.span.end]);
            }
        }
    }

    fn first_byte(&self, value: &Range<usize>) -> u8 {
        self.outline.text.as_bytes()[value.start]
    }
}

/// The type of a value, told by its first byte.
fn hint(first: u8) -> &'static str {
    match first {
        b'{' => "<object>",
        b'[' => "<array>",
        b'"' => "<str>",
        b't' | b'f' => "<bool>",
        b'n' => "<null>",
        _ => "<number>",
    }
}
