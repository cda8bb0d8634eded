//! The open containers of a cut document, and the siblings of the path to the cut.
//!
//! Nothing is stored: the levels come from the scanner, and the items of a level are read again
//! whenever they are needed, so a document may have any number of both. How far back items are read
//! can be bounded, so that the cost does not grow with the document.

use std::ops::Range;

use super::token::{self, StringClose};
use crate::cut::CutPlace;
use crate::scan::Scanner;

/// The path from the root to the cut.
pub(super) struct Outline<'a> {
    /// The document without half characters and escapes at its end.
    pub(super) text: &'a str,
    scanner: &'a Scanner,
    /// The value at the cut.
    pub(super) cut_value: Option<ScalarSpan>,
    /// Where the last, unfinished item starts; the end of the text if there is none.
    pub(super) tail: usize,
    /// Where the white space at the cut begins.
    blanks: usize,
    /// In a complete document, the root, which is the whole path.
    whole: Option<Level>,
    /// How many bytes of siblings, and how many of the value at the cut, are read at most.
    pub(super) look_back: usize,
}

/// A container on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// The offset of its bracket.
    pub(super) open: usize,
    /// Where the items that are read begin: after the bracket, or at the comma after the last item
    /// that is too far back.
    pub(super) from: usize,
    /// Where the siblings of the path end: at the item that contains the next level.
    pub(super) end: usize,
    /// The offset of the next bracket on the path, or of the unfinished item or the white space at
    /// the cut.
    pub(super) next: usize,
}

impl Level {
    /// Whether there are items that are too far back to be read.
    pub(super) fn has_unread_items(&self) -> bool {
        self.from > self.open + 1
    }
}

/// An item of a container.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Its start: in an object, its key.
    pub(super) start: usize,
    pub(super) value: Range<usize>,
}

/// A string, number or literal.
pub(super) struct ScalarSpan {
    /// Its range, including quotes.
    pub(super) span: Range<usize>,
    /// The range that is measured: without the quotes.
    pub(super) content: Range<usize>,
}

impl ScalarSpan {
    /// The scalar at `span` of a document.
    pub(super) fn at_span(text: &str, span: Range<usize>) -> Self {
        let bytes = text.as_bytes();
        let content = if bytes[span.start] == b'"' {
            match token::string_end(bytes, span.start) {
                StringClose::Closed(end) => span.start + 1..end - 1,
                StringClose::Open(end) => span.start + 1..end,
            }
        } else {
            span.clone()
        };
        Self { span, content }
    }

    /// The string that begins at `start` and is cut.
    fn open_string(text: &str, start: usize) -> Self {
        Self {
            span: start..text.len(),
            content: start + 1..text.len(),
        }
    }
}

impl<'a> Outline<'a> {
    /// The outline of a valid JSON prefix that `scanner` has read.
    pub(super) fn new(text: &'a str, scanner: &'a Scanner, look_back: Option<usize>) -> Self {
        let text = &text[..settled_end(text, scanner)];
        let bytes = text.as_bytes();
        let place = scanner.place();
        let last_item = match place {
            None => Some(token::skip_space(bytes, 0)),
            Some(CutPlace::Root | CutPlace::ContainerStart | CutPlace::AfterComma) => None,
            Some(CutPlace::AfterValue) => scanner.elements().1.map(|(start, _)| start),
            Some(_) => scanner.elements().0,
        };
        let mut outline = Self {
            text,
            scanner,
            cut_value: None,
            tail: text.len(),
            blanks: if scanner.is_in_string() {
                text.len()
            } else {
                text.trim_ascii_end().len()
            },
            whole: None,
            look_back: look_back.unwrap_or(usize::MAX),
        };
        let Some(item) = last_item.filter(|item| *item < text.len()) else {
            return outline;
        };
        if let Some(CutPlace::Key | CutPlace::AfterKey | CutPlace::AfterColon) = place {
            outline.tail = item;
            return outline;
        }
        let innermost = outline.levels().next();
        let value = if innermost.is_some_and(|level| outline.is_object(&level)) {
            token::member_value(bytes, item)
        } else {
            item
        };
        match bytes.get(value) {
            Some(b'{' | b'[') if place.is_none() => {
                outline.whole = Some(Level {
                    open: value,
                    from: value + 1,
                    end: outline.blanks - 1,
                    next: outline.blanks,
                });
            }
            None | Some(b'{' | b'[') => {}
            Some(_) => {
                outline.cut_value = Some(if scanner.is_in_string() {
                    ScalarSpan::open_string(text, value)
                } else {
                    ScalarSpan::at_span(text, value..token::value_end(bytes, value))
                });
                outline.tail = item;
            }
        }
        outline
    }

    /// How many containers are on the path.
    pub(super) fn depth(&self) -> usize {
        self.scanner.depth() + usize::from(self.whole.is_some())
    }

    /// The containers on the path, innermost first.
    pub(super) fn levels(&self) -> impl Iterator<Item = Level> {
        let cut = self.tail.min(self.blanks);
        let (mut end, mut next) = (cut, cut);
        let open = self.scanner.open_frames().map(move |frame| {
            let level = (frame.opener, end, next);
            (end, next) = (frame.element, frame.opener);
            level
        });
        let whole = self.whole.map(|level| (level.open, level.end, level.next));
        let mut allowance = self.look_back;
        let read = move |(open, end, next): (usize, usize, usize)| {
            let all = open + 1..end.max(open + 1);
            let from = if all.len() <= allowance {
                all.start
            } else {
                token::first_item_within(self.text.as_bytes(), all.clone(), allowance)
            };
            allowance -= (all.end - from).min(allowance);
            Level {
                open,
                from,
                end,
                next,
            }
        };
        whole.into_iter().chain(open).map(read)
    }

    /// Whether a level is an object, whose items are members.
    pub(super) fn is_object(&self, level: &Level) -> bool {
        self.text.as_bytes()[level.open] == b'{'
    }

    /// Whether the path has siblings at a level.
    pub(super) fn has_items(&self, level: &Level) -> bool {
        level.has_unread_items()
            || level.end > level.open + 1 && self.siblings(level).next_start().is_some()
    }

    /// The siblings of the path at a level.
    pub(super) fn siblings(&self, level: &Level) -> Items<'a> {
        Items {
            bytes: self.text.as_bytes(),
            at: level.from,
            end: level.end,
            is_object: self.is_object(level),
        }
    }

    /// The siblings, the last first.
    pub(super) fn siblings_backwards(&self, level: &Level) -> Backwards<'a> {
        Backwards::new(self.siblings(level))
    }

    /// The text before the root.
    pub(super) fn before_root(&self) -> &'a str {
        let root = token::skip_space(self.text.as_bytes(), 0);
        &self.text[..root.min(self.blanks)]
    }

    /// The unfinished item at the cut.
    pub(super) fn unfinished_item(&self) -> &'a str {
        &self.text[self.tail.min(self.blanks)..self.blanks]
    }

    /// The white space at the cut.
    pub(super) fn blanks(&self) -> &'a str {
        &self.text[self.blanks..]
    }
}

/// The length of the text without half characters and escapes at its end.
fn settled_end(text: &str, scanner: &Scanner) -> usize {
    match scanner.held_from() {
        Some(held) => held + token::settled_len(&text[held..]),
        None => text.len(),
    }
}

/// Reads the items of a level, one after the other.
#[derive(Clone)]
pub(super) struct Items<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    is_object: bool,
}

impl Items<'_> {
    /// Where the next item starts, if there is one.
    pub(super) fn next_start(&mut self) -> Option<usize> {
        while self.at < self.end
            && matches!(self.bytes[self.at], b' ' | b'\t' | b'\n' | b'\r' | b',')
        {
            self.at += 1;
        }
        (self.at < self.end).then_some(self.at)
    }
}

impl Iterator for Items<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let start = self.next_start()?;
        let value = if self.is_object {
            token::member_value(self.bytes, start)
        } else {
            start
        };
        self.at = token::value_end(self.bytes, value);
        Some(Item {
            start,
            value: value..self.at,
        })
    }
}

/// How many items are read again at a time.
const BLOCK: usize = 1024;

/// Reads the items of a level from the last to the first.
///
/// Items can only be found forwards, so they are read a second time in blocks, the last block first.
pub(super) struct Backwards<'a> {
    items: Items<'a>,
    /// Where each remaining block starts.
    blocks: Vec<usize>,
    /// The remaining items of the current block.
    block: Vec<Item>,
}

impl<'a> Backwards<'a> {
    fn new(items: Items<'a>) -> Self {
        let mut blocks = Vec::new();
        let mut block: Vec<Item> = Vec::new();
        for item in items.clone() {
            if block.len() == BLOCK {
                blocks.push(block[0].start);
                block.clear();
            }
            block.push(item);
        }
        Self {
            items,
            blocks,
            block,
        }
    }
}

impl Iterator for Backwards<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.block.is_empty() {
            self.items.at = self.blocks.pop()?;
            self.block.extend(self.items.clone());
        }
        let item = self.block.pop()?;
        self.items.end = item.start;
        Some(item)
    }
}
