//! Knows the open containers of a cut document, and what stands beside the path to the cut.
//!
//! Only the start of each item beside the path is kept. What is closed is
//! forgotten and scanned again when it is needed, so that the outline stays
//! small beside the text.

use std::ops::Range;

use super::token::{self, StringEnd};

/// The path from the root to the cut.
pub(super) struct Outline<'a> {
    /// The document without what is held back at its end.
    pub(super) text: &'a str,
    /// The containers on the path, the root first.
    levels: Vec<Level>,
    /// Where each item of those containers starts (in an object, its key), in document order.
    /// The item that a level opened in is the last one before that level's own.
    items: Vec<usize>,
    /// The value at the cut.
    pub(super) cut_value: Option<Scalar>,
    /// Where the last, unfinished item starts: the end of the text if there is none.
    pub(super) tail: usize,
}

/// A container on the path.
struct Level {
    /// Where its bracket stands.
    open: usize,
    /// The index of its first item.
    first_item: usize,
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
}

impl<'a> Outline<'a> {
    /// The outline of a valid JSON prefix.
    pub(super) fn of(text: &'a str) -> Self {
        let mut survey = Survey::default();
        let end = survey.run(text);
        let text = &text[..end];
        let (cut_value, tail) = match survey.last {
            Last::Scalar { item, span } => (Some(Scalar::at(text, span)), item),
            Last::Member { item } => (None, item),
            Last::Nothing => (None, text.len()),
        };
        if tail < text.len() && !survey.levels.is_empty() {
            survey.items.pop();
        }
        Self {
            text,
            levels: survey.levels,
            items: survey.items,
            cut_value,
            tail,
        }
    }

    /// How many containers are on the path.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Where the bracket of a level stands.
    pub(super) fn open(&self, level: usize) -> usize {
        self.levels[level].open
    }

    /// Whether a level is an object, so that its items are members.
    pub(super) fn is_object(&self, level: usize) -> bool {
        self.text.as_bytes()[self.open(level)] == b'{'
    }

    /// The items beside the path at a level, for [`Outline::item`].
    pub(super) fn beside(&self, level: usize) -> Range<usize> {
        let end = match self.levels.get(level + 1) {
            Some(inner) => inner.first_item - 1,
            None => self.items.len(),
        };
        self.levels[level].first_item..end
    }

    /// Where an item of a level starts, and the value of it.
    pub(super) fn item(&self, level: usize, item: usize) -> (usize, Range<usize>) {
        let bytes = self.text.as_bytes();
        let start = self.items[item];
        let value = self.item_value(level, item);
        (start, value..token::value_end(bytes, value))
    }

    /// Where the value of an item starts.
    pub(super) fn item_value(&self, level: usize, item: usize) -> usize {
        let start = self.items[item];
        if self.is_object(level) {
            token::member_value(self.text.as_bytes(), start)
        } else {
            start
        }
    }
}

/// One pass over the text.
#[derive(Default)]
struct Survey {
    levels: Vec<Level>,
    items: Vec<usize>,
    last: Last,
    /// Whether the key of the current member has come.
    has_key: bool,
}

/// What the text ends with.
#[derive(Default)]
enum Last {
    /// Structure: a bracket or a comma.
    #[default]
    Nothing,
    /// A key, with or without its colon.
    Member { item: usize },
    /// A scalar.
    Scalar { item: usize, span: Range<usize> },
}

impl Survey {
    /// Surveys a text and returns its length without what is held back at the end.
    fn run(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            match bytes[at] {
                b'{' | b'[' => {
                    self.begin_value(start);
                    self.last = Last::Nothing;
                    self.has_key = false;
                    self.levels.push(Level {
                        open: start,
                        first_item: self.items.len(),
                    });
                    at += 1;
                }
                b'}' | b']' => {
                    self.close();
                    at += 1;
                }
                b',' => {
                    self.has_key = false;
                    self.last = Last::Nothing;
                    at += 1;
                }
                b' ' | b'\t' | b'\n' | b'\r' | b':' => at += 1,
                b'"' => {
                    let end = token::string_end(bytes, start);
                    at = end.offset();
                    if let StringEnd::Open(_) = end {
                        at = start + 1 + token::settled_len(&text[start + 1..]);
                    }
                    if self.expects_key(bytes) {
                        self.has_key = true;
                        self.items.push(start);
                        self.last = Last::Member { item: start };
                    } else {
                        self.scalar(start..at);
                    }
                    if let StringEnd::Open(_) = end {
                        return at;
                    }
                }
                _ => {
                    at = token::word_end(bytes, start);
                    self.scalar(start..at);
                }
            }
        }
        bytes.len()
    }

    fn expects_key(&self, bytes: &[u8]) -> bool {
        let inner = self.levels.last();
        inner.is_some_and(|level| bytes[level.open] == b'{') && !self.has_key
    }

    fn scalar(&mut self, span: Range<usize>) {
        let item = self.begin_value(span.start);
        self.last = Last::Scalar { item, span };
    }

    /// Notes the item that a value belongs to and returns its start.
    fn begin_value(&mut self, start: usize) -> usize {
        if self.levels.is_empty() {
            return start;
        }
        match self.items.last() {
            Some(&member) if self.has_key => member,
            _ => {
                self.items.push(start);
                start
            }
        }
    }

    fn close(&mut self) {
        self.last = Last::Nothing;
        self.has_key = false;
        // A root that closed stays, with its items: it is all the path a complete document has.
        if self.levels.len() > 1
            && let Some(level) = self.levels.pop()
        {
            self.items.truncate(level.first_item);
        }
    }
}
