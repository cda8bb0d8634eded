//! Knows the open containers of a cut document, and what stands beside the path to the cut.
//!
//! Nothing of it is kept: the levels come from the scanner, and the items of a
//! level are read again whenever they are needed. So a document may have any
//! number of both. How far back they are read can be bounded, so that the cost
//! does not grow with the document.

use std::ops::Range;

use super::token::{self, StringEnd};
use crate::cut::CutPlace;
use crate::scan::Scanner;

/// The path from the root to the cut.
pub(super) struct Outline<'a> {
    /// The document without what is held back at its end.
    pub(super) text: &'a str,
    scanner: &'a Scanner,
    /// The value at the cut.
    pub(super) cut_value: Option<Scalar>,
    /// Where the last, unfinished item starts: the end of the text if there is none.
    pub(super) tail: usize,
    /// Where the white space at the cut begins.
    blanks: usize,
    /// A whole document has its root as all of its path.
    whole: Option<Level>,
    /// How many bytes beside the path are read at most, and how many of the value at the cut.
    pub(super) look_back: usize,
}

/// A container on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// Where its bracket stands.
    pub(super) open: usize,
    /// Where reading the items begins: after the bracket, or at the comma after the last item
    /// that is too far back.
    pub(super) from: usize,
    /// Where the items beside the path end: at the item that the path goes on in.
    pub(super) end: usize,
    /// Where the next bracket on the path stands, or the unfinished item or the white space at
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
    /// Where it starts: in an object, at its key.
    pub(super) start: usize,
    pub(super) value: Range<usize>,
}

/// A string, number or literal.
pub(super) struct Scalar {
    /// All of it, as written.
    pub(super) span: Range<usize>,
    /// What is measured of it: the same without the quotes.
    pub(super) content: Range<usize>,
}

impl Scalar {
    /// The scalar at `span` of a document.
    pub(super) fn at(text: &str, span: Range<usize>) -> Self {
        let bytes = text.as_bytes();
        let content = if bytes[span.start] == b'"' {
            match token::string_end(bytes, span.start) {
                StringEnd::Closed(end) => span.start + 1..end - 1,
                StringEnd::Open(end) => span.start + 1..end,
            }
        } else {
            span.clone()
        };
        Self { span, content }
    }

    /// The string that begins at `start` and goes on beyond the end of a document.
    fn open_string(text: &str, start: usize) -> Self {
        Self {
            span: start..text.len(),
            content: start + 1..text.len(),
        }
    }
}

impl<'a> Outline<'a> {
    /// The outline of a valid JSON prefix, which `scanner` has read.
    pub(super) fn of(text: &'a str, scanner: &'a Scanner, look_back: Option<usize>) -> Self {
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
                    Scalar::open_string(text, value)
                } else {
                    Scalar::at(text, value..token::value_end(bytes, value))
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

    /// Whether a level is an object, so that its items are members.
    pub(super) fn is_object(&self, level: &Level) -> bool {
        self.text.as_bytes()[level.open] == b'{'
    }

    /// Whether there is anything beside the path at a level.
    pub(super) fn has_items(&self, level: &Level) -> bool {
        level.has_unread_items()
            || level.end > level.open + 1 && self.beside(level).next_start().is_some()
    }

    /// The items beside the path at a level.
    pub(super) fn beside(&self, level: &Level) -> Items<'a> {
        Items {
            bytes: self.text.as_bytes(),
            at: level.from,
            end: level.end,
            is_object: self.is_object(level),
        }
    }

    /// The same, the last first.
    pub(super) fn beside_backwards(&self, level: &Level) -> Backwards<'a> {
        Backwards::new(self.beside(level))
    }

    /// What stands before the root.
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

/// How long the text is without what is held back at its end.
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

/// How many items are read again at a time to go through them backwards.
const BLOCK: usize = 1024;

/// Reads the items of a level from the last to the first.
///
/// Items can only be found forwards, so they are read a second time in blocks, the last first.
pub(super) struct Backwards<'a> {
    items: Items<'a>,
    /// Where each block starts that has not been read again.
    blocks: Vec<usize>,
    /// What is left of the current block.
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
