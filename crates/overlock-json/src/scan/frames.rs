//! Remembers the containers that are open and the way to the innermost one.
//!
//! A level costs one bit for its kind and a few bytes for its place in its parent, written as
//! variable-length numbers that are read back from the end. A text of a billion `[` must fit.

use serde::{Deserialize, Serialize};

/// A kind of value that holds others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Container {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
}

/// One open container.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub container: Container,
    /// The byte of its `{` or `[`.
    pub opener: usize,
    /// Where it stands in its parent; nothing for the root.
    pub coordinate: Option<Coordinate<'a>>,
}

/// The place of a value in its container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coordinate<'a> {
    /// The member's name as written.
    Key(&'a [u8]),
    Index(usize),
}

/// How many levels a shown pointer has at most; of a deeper one the middle is left out.
const SHOWN_LEVELS: usize = 1_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Frames {
    depth: usize,
    /// A bit for each level, set for an object.
    kinds: Vec<u64>,
    /// For each level but the outermost, where it stands in its parent: the parent's key and
    /// its length and distance, or the index; then the distance between the two openers.
    places: Vec<u8>,
    /// In the innermost array, the index of the current item.
    index: usize,
    /// Where the innermost container opens.
    opener: usize,
}

impl Frames {
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether a text of that length can have these containers open.
    pub(super) fn is_possible(&self, offset: usize) -> bool {
        self.depth <= offset
            && self.kinds.len() == self.depth.div_ceil(64)
            && self.places.len() >= self.depth.saturating_sub(1)
            && self.opener <= offset
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0
    }

    /// The kind of the innermost container. Asked only while one is open.
    #[inline]
    pub(super) fn innermost(&self) -> Container {
        self.kind_at(self.depth.wrapping_sub(1))
    }

    #[inline]
    pub(super) fn next_index(&mut self) {
        self.index += 1;
    }

    #[inline]
    pub(super) fn set_index(&mut self, index: usize) {
        self.index = index;
    }

    /// Opens a container that stands at `element` in its parent, under `key` if that is an object.
    #[inline]
    pub(super) fn push(&mut self, container: Container, opener: usize, element: usize, key: &[u8]) {
        if self.depth > 0 {
            match self.innermost() {
                Container::Object => {
                    self.places.extend_from_slice(key);
                    write_number(&mut self.places, key.len());
                    write_number(&mut self.places, opener - element);
                }
                Container::Array => write_number(&mut self.places, self.index),
            }
            write_number(&mut self.places, opener - self.opener);
        }
        let (word, bit) = (self.depth / 64, 1 << (self.depth % 64));
        if word == self.kinds.len() {
            self.kinds.push(0);
        }
        match container {
            Container::Object => self.kinds[word] |= bit,
            Container::Array => self.kinds[word] &= !bit,
        }
        self.depth += 1;
        self.index = 0;
        self.opener = opener;
    }

    /// Closes the innermost container and says where its element began in its parent.
    #[inline]
    pub(super) fn pop(&mut self) -> usize {
        self.depth -= 1;
        let mut element = self.opener;
        self.index = 0;
        if self.depth == 0 {
            self.opener = 0;
        } else {
            let mut places = &self.places[..];
            self.opener = self.opener.saturating_sub(read_number(&mut places));
            match self.innermost() {
                Container::Object => {
                    element = element.saturating_sub(read_number(&mut places));
                    read_key(&mut places);
                }
                Container::Array => self.index = read_number(&mut places),
            }
            let left = places.len();
            self.places.truncate(left);
        }
        // Equal texts must leave equal states, whatever was open before.
        if self.depth.is_multiple_of(64) {
            self.kinds.truncate(self.depth / 64);
        } else {
            self.kinds[self.depth / 64] &= !(1 << (self.depth % 64));
        }
        element
    }

    pub(super) fn innermost_first(&self) -> impl Iterator<Item = Frame<'_>> {
        let mut places = &self.places[..];
        let mut opener = self.opener;
        (0..self.depth).rev().map(move |level| {
            let mut frame = Frame {
                container: self.kind_at(level),
                opener,
                coordinate: None,
            };
            if level > 0 {
                opener = opener.saturating_sub(read_number(&mut places));
                frame.coordinate = Some(match self.kind_at(level - 1) {
                    Container::Object => {
                        read_number(&mut places);
                        Coordinate::Key(read_key(&mut places))
                    }
                    Container::Array => Coordinate::Index(read_number(&mut places)),
                });
            }
            frame
        })
    }

    /// The JSON Pointer of the innermost container, or with `key` of the element being written
    /// in it (the key counts only if the container is an object).
    pub(super) fn pointer(&self, key: Option<&[u8]>) -> String {
        if self.depth == 0 {
            return String::new();
        }
        let last = key.map(|key| match self.innermost() {
            Container::Object => Coordinate::Key(key),
            Container::Array => Coordinate::Index(self.index),
        });
        let levels = self.depth - 1 + last.iter().len();
        let coordinates = last
            .into_iter()
            .chain(self.innermost_first().filter_map(|f| f.coordinate));
        let mut segments = Vec::with_capacity(levels.min(SHOWN_LEVELS));
        for (at, coordinate) in coordinates.enumerate() {
            let shown =
                levels <= SHOWN_LEVELS || at < SHOWN_LEVELS / 2 || at >= levels - SHOWN_LEVELS / 2;
            if shown {
                segments.push(segment(coordinate));
            } else if at == SHOWN_LEVELS / 2 {
                segments.push(format!("/… {} levels …", levels - SHOWN_LEVELS));
            }
        }
        segments.iter().rev().map(String::as_str).collect()
    }

    pub(super) fn write_closers(&self, closers: &mut String) {
        closers.reserve_exact(self.depth);
        closers.extend(
            (0..self.depth)
                .rev()
                .map(|level| match self.kind_at(level) {
                    Container::Object => '}',
                    Container::Array => ']',
                }),
        );
    }

    #[inline]
    fn kind_at(&self, level: usize) -> Container {
        match self.kinds.get(level / 64) {
            Some(word) if word >> (level % 64) & 1 == 1 => Container::Object,
            _ => Container::Array,
        }
    }
}

fn segment(coordinate: Coordinate<'_>) -> String {
    match coordinate {
        Coordinate::Index(index) => format!("/{index}"),
        Coordinate::Key(raw) => {
            let key = crate::strings::decode(raw);
            format!("/{}", key.replace('~', "~0").replace('/', "~1"))
        }
    }
}

/// Appends `number` in groups of seven bits, so that it can be read from the end: a set high bit
/// says that a more significant group stands before.
#[inline]
fn write_number(bytes: &mut Vec<u8>, number: usize) {
    if number < 0x80 {
        bytes.push(low_bits(number));
        return;
    }
    let groups = (usize::BITS - number.leading_zeros()).div_ceil(7);
    for group in (0..groups).rev() {
        let more = if group + 1 == groups { 0 } else { 0x80 };
        bytes.push(low_bits(number >> (7 * group)) | more);
    }
}

/// Takes a number off the end. A state that was damaged in storage gives nonsense, not a panic.
#[inline]
fn read_number(bytes: &mut &[u8]) -> usize {
    let mut number = 0_usize;
    let mut shift = 0;
    while let Some((byte, before)) = bytes.split_last() {
        *bytes = before;
        number |= usize::from(byte & 0x7F).unbounded_shl(shift);
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Takes a key and its length off the end.
#[inline]
fn read_key<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let len = read_number(bytes);
    let (before, key) = bytes.split_at(bytes.len().saturating_sub(len));
    *bytes = before;
    key
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits are kept")]
fn low_bits(number: usize) -> u8 {
    (number & 0x7F) as u8
}
