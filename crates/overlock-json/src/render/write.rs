//! Writes a document from its root to its cut, by the decisions of a [`Spending`].

use std::ops::Range;

use super::levels::Levels;
use super::outline::{Item, Level, Outline};
use super::run::unread_items;
use super::spend::{Shown, Spending};
use super::token::{self, Stop};
use super::{SummaryMode, characters};

/// Replaces the part of a value that was left out.
pub(super) const MARK: &str = "…";

/// Collects the written text, or only its length.
pub(super) trait Sink {
    fn push_str(&mut self, text: &str);
}

impl Sink for String {
    fn push_str(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// The number of written characters.
#[derive(Default)]
pub(super) struct Length(pub(super) usize);

impl Sink for Length {
    fn push_str(&mut self, text: &str) {
        self.0 += characters(text);
    }
}

/// Writes the parts of one document.
pub(super) struct Writer<'a> {
    pub(super) outline: &'a Outline<'a>,
    pub(super) spending: &'a Spending,
}

/// How a sibling of the path is written.
pub(super) enum Treatment {
    /// In full, with oversized values as hints.
    Full,
    /// In full up to an offset, then as hints.
    FullUntil(usize),
    /// As a hint.
    Hint,
    /// Only its structure, without hints for scalars.
    Structure,
    /// Like its structure, with the keys of its objects.
    Keys,
}

impl<'a> Writer<'a> {
    /// A writer for a document and the decisions about it.
    pub(super) fn new(outline: &'a Outline<'a>, spending: &'a Spending) -> Self {
        Self { outline, spending }
    }

    /// Writes the whole document.
    pub(super) fn write(&self) -> String {
        let text = self.outline.text;
        if self.spending.is_all() && !self.outline.levels().any(|level| level.has_unread_items()) {
            return text.to_owned();
        }
        let mut out = String::new();
        let mut at = 0;
        for level in self.levels_with_items() {
            if level.has_unread_items() {
                out.push_str(&text[at..=level.open]);
                out.push_str(unread_items(self.outline, &level));
                at = level.from;
            }
            for item in self.outline.siblings(&level) {
                out.push_str(&text[at..item.start]);
                self.write_item(&level, &item, &mut out);
                at = item.value.end;
            }
        }
        out.push_str(&text[at..self.outline.tail]);
        self.write_tail(&mut out);
        out
    }

    /// The levels with siblings of the path, the root first.
    fn levels_with_items(&self) -> Levels {
        let mut levels = Levels::default();
        for level in self.outline.levels() {
            if self.outline.has_items(&level) {
                levels.push(&level);
            }
        }
        levels
    }

    /// Writes a sibling of the path.
    pub(super) fn write_item(&self, level: &Level, item: &Item, out: &mut impl Sink) {
        self.write_item_as(&self.treatment(level, item), item, out);
    }

    /// Writes a sibling of the path with another treatment.
    pub(super) fn write_item_as(&self, treatment: &Treatment, item: &Item, out: &mut impl Sink) {
        let text = self.outline.text;
        let value = item.value.clone();
        out.push_str(&text[item.start..value.start]);
        match *treatment {
            Treatment::Full => self.write_full(value, out),
            Treatment::FullUntil(middle) => {
                self.write_full(value.start..middle, out);
                self.write_values_as(hint, middle..value.end, Stop::Value, out);
            }
            Treatment::Hint => out.push_str(hint(self.first_byte(&value))),
            Treatment::Structure => out.push_str(structure(self.first_byte(&value))),
            Treatment::Keys => self.write_values_as(structure, value, Stop::Array, out),
        }
    }

    fn treatment(&self, level: &Level, item: &Item) -> Treatment {
        let Some(summary) = &self.spending.summary else {
            return Treatment::Full;
        };
        if level.open < summary.level {
            match self.spending.summary_mode {
                SummaryMode::Types => Treatment::Structure,
                SummaryMode::Keys => Treatment::Keys,
            }
        } else if level.open > summary.level || item.start > summary.item {
            Treatment::Full
        } else if item.start < summary.item {
            Treatment::Hint
        } else {
            Treatment::FullUntil(summary.at)
        }
    }

    /// Writes a span with hints in place of its oversized values.
    fn write_full(&self, span: Range<usize>, out: &mut impl Sink) {
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

    /// Writes a span with a word in place of each of its values, by the first byte of the value.
    fn write_values_as(
        &self,
        word: fn(u8) -> &'static str,
        span: Range<usize>,
        stop: Stop,
        out: &mut impl Sink,
    ) {
        let text = self.outline.text;
        let mut rest = span;
        while let Some(value) = token::next_value(text.as_bytes(), rest.clone(), stop) {
            out.push_str(&text[rest.start..value.start]);
            out.push_str(word(self.first_byte(&value)));
            rest.start = value.end;
        }
        out.push_str(&text[rest]);
    }

    /// Writes the unfinished item at the cut.
    fn write_tail(&self, out: &mut String) {
        let text = self.outline.text;
        let Some(value) = &self.outline.cut_value else {
            return out.push_str(&text[self.outline.tail..]);
        };
        out.push_str(&text[self.outline.tail..value.span.start]);
        self.write_cut_value(&self.spending.cut_value, out);
        out.push_str(&text[value.span.end..]);
    }

    /// Writes the shown part of the value at the cut.
    pub(super) fn write_cut_value(&self, shown: &Shown, out: &mut impl Sink) {
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

/// The word for a value of which only the structure is shown, by its first byte.
fn structure(first: u8) -> &'static str {
    match first {
        b'{' | b'[' => hint(first),
        _ => "\"...\"",
    }
}

/// The hint for the type of a value, by its first byte.
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
