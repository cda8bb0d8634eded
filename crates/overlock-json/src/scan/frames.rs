//! The stack of open containers, and the path to the innermost one.
//!
//! A level costs one bit for its kind and a few bytes for its position in its parent, as
//! variable-length numbers that are read back from the end, so a text of a billion `[` fits.

use serde::{Deserialize, Serialize};

use crate::packed::{read_number, write_number};

/// A kind of container.
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
    /// Where its element in the parent begins: at its key, if it has one.
    pub element: usize,
    /// Its key or index in its parent; none for the root.
    pub coordinate: Option<Coordinate<'a>>,
}

/// The key or index of a value in its container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coordinate<'a> {
    /// The raw name of the member.
    Key(&'a [u8]),
    Index(usize),
}

/// How many levels a pointer shows; the middle of a deeper one is elided.
const SHOWN_LEVELS: usize = 1_000;
/// The depth up to which a pointer shows the outer levels.
const OUTER_DEPTH: usize = SHOWN_LEVELS / 2 + 1;

/// The step from a container to one of its elements.
struct Step<'a> {
    /// The distance between their openers.
    distance: usize,
    /// The distance from the start of the element to its opener.
    lead: usize,
    coordinate: Coordinate<'a>,
}

/// The closers for 64 arrays, one word of kinds.
const SQUARE_CLOSERS: &str = "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Frames {
    depth: usize,
    /// A bit for each level, set for an object.
    kinds: Vec<u64>,
    /// For each level but the outermost, its position in its parent: the key with its length and
    /// distance, or the index; then the distance between the two openers.
    places: Vec<u8>,
    /// The length of `places` at [`OUTER_DEPTH`], so that the outer levels of a deep document can be
    /// shown without reading all; 0 if it is not that deep.
    outer_places: usize,
    /// In the innermost array, the index of the current item.
    index: usize,
    /// The opener of the innermost container.
    opener: usize,
}

impl Frames {
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether a text of that length can have so many open containers.
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

    /// The kind of the innermost container. Called only while one is open.
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

    /// Opens a container whose element in the parent begins at `element`, under `key` in an object.
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
        if self.depth == OUTER_DEPTH {
            self.outer_places = self.places.len();
        }
        self.index = 0;
        self.opener = opener;
    }

    /// Opens `count` arrays, each the first item of the one before, the first as in [`Frames::push`].
    pub(super) fn push_nested_arrays(
        &mut self,
        count: usize,
        opener: usize,
        element: usize,
        key: &[u8],
    ) {
        /// The index and the distance that `push` would write for each of the others.
        const PLACE: [u8; 2] = [0, 1];
        let Some(inner) = count.checked_sub(1) else {
            return;
        };
        self.push(Container::Array, opener, element, key);
        let len = self.places.len();
        self.places.resize(len + inner * PLACE.len(), 0);
        for place in self.places[len..].chunks_exact_mut(PLACE.len()) {
            place.copy_from_slice(&PLACE);
        }
        // Bits beyond the innermost level are never set, so new levels are arrays.
        if (self.depth + 1..=self.depth + inner).contains(&OUTER_DEPTH) {
            self.outer_places = len + (OUTER_DEPTH - self.depth) * PLACE.len();
        }
        self.depth += inner;
        self.kinds.resize(self.depth.div_ceil(64), 0);
        self.opener += inner;
    }

    /// Closes the innermost container; returns where its element began in its parent.
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
        // Equal texts must lead to equal states.
        if self.depth < OUTER_DEPTH {
            self.outer_places = 0;
        }
        if self.depth.is_multiple_of(64) {
            self.kinds.truncate(self.depth / 64);
        } else {
            self.kinds[self.depth / 64] &= !(1 << (self.depth % 64));
        }
        element
    }

    /// Only the innermost `levels`, as if the outermost of those were the root.
    pub(super) fn of_innermost(&self, levels: usize) -> Self {
        if levels >= self.depth {
            return self.clone();
        }
        let mut outer = &self.places[..];
        for level in (1..self.depth).rev().take(levels.saturating_sub(1)) {
            self.read_step(level, &mut outer);
        }
        let mut kinds = vec![0; levels.div_ceil(64)];
        for level in 0..levels {
            if self.kind_at(self.depth - levels + level) == Container::Object {
                kinds[level / 64] |= 1 << (level % 64);
            }
        }
        Self {
            depth: levels,
            kinds,
            places: self.places[outer.len()..].to_vec(),
            // The path to the root is unknown and not needed.
            outer_places: 0,
            ..*self
        }
    }

    pub(super) fn innermost_first(&self) -> impl Iterator<Item = Frame<'_>> {
        let mut steps = self.steps(self.depth, &self.places);
        let mut opener = self.opener;
        (0..self.depth).rev().map(move |level| {
            let step = steps.next();
            let frame = Frame {
                container: self.kind_at(level),
                opener,
                element: opener.saturating_sub(step.as_ref().map_or(0, |step| step.lead)),
                coordinate: step.as_ref().map(|step| step.coordinate),
            };
            opener = opener.saturating_sub(step.map_or(0, |step| step.distance));
            frame
        })
    }

    /// The steps between the outermost `depth` levels, innermost first. `places` ends with theirs.
    fn steps<'a>(&'a self, depth: usize, mut places: &'a [u8]) -> impl Iterator<Item = Step<'a>> {
        (1..depth)
            .rev()
            .map(move |level| self.read_step(level, &mut places))
    }

    /// Removes the step to a level from the end of `places`.
    #[inline]
    fn read_step<'a>(&self, level: usize, places: &mut &'a [u8]) -> Step<'a> {
        let distance = read_number(places);
        match self.kind_at(level - 1) {
            Container::Object => Step {
                distance,
                lead: read_number(places),
                coordinate: Coordinate::Key(read_key(places)),
            },
            Container::Array => Step {
                distance,
                lead: 0,
                coordinate: Coordinate::Index(read_number(places)),
            },
        }
    }

    /// The JSON Pointer of the innermost container, or of its current element if `key` is given (the
    /// key counts only in an object).
    pub(super) fn pointer(&self, key: Option<&[u8]>) -> String {
        if self.depth == 0 {
            return String::new();
        }
        let last = key.map(|key| match self.innermost() {
            Container::Object => Coordinate::Key(key),
            Container::Array => Coordinate::Index(self.index),
        });
        let levels = self.depth - 1 + last.iter().len();
        let steps = self.steps(self.depth, &self.places);
        let inner = last.into_iter().chain(steps.map(|step| step.coordinate));
        let mut segments: Vec<String>;
        if levels <= SHOWN_LEVELS {
            segments = inner.map(segment).collect();
        } else {
            segments = inner.take(SHOWN_LEVELS / 2).map(segment).collect();
            segments.push(format!("/… {} levels …", levels - SHOWN_LEVELS));
            let outer = self.places.get(..self.outer_places).unwrap_or_default();
            let outer = self.steps(OUTER_DEPTH, outer);
            segments.extend(outer.map(|step| segment(step.coordinate)));
        }
        segments.iter().rev().map(String::as_str).collect()
    }

    pub(super) fn write_closers(&self, closers: &mut String) {
        closers.reserve_exact(self.depth);
        // One word of kinds per step, because single closers take seconds for a billion levels.
        for (word, kinds) in self.kinds.iter().enumerate().rev() {
            let levels = self.depth.saturating_sub(word * 64).min(64);
            if *kinds == 0 {
                closers.push_str(&SQUARE_CLOSERS[..levels]);
            } else {
                closers.extend(
                    (0..levels)
                        .rev()
                        .map(|level| if kinds >> level & 1 == 1 { '}' } else { ']' }),
                );
            }
        }
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

/// Removes a key and its length from the end.
#[inline]
fn read_key<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let len = read_number(bytes);
    let (before, key) = bytes.split_at(bytes.len().saturating_sub(len));
    *bytes = before;
    key
}

#[cfg(test)]
mod tests {
    use crate::scan::Scanner;

    fn scanned(text: &str) -> Scanner {
        let mut scanner = Scanner::new();
        scanner.feed(text.as_bytes());
        scanner
    }

    #[test]
    fn nested_brackets_are_the_same_in_one_piece_and_in_many() {
        for levels in [
            1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 500, 501, 502, 1500,
        ] {
            for before in ["", "{\"a\":", "[1,", "[[{\"a\":1,\"b\":"] {
                for after in ["", "1", "]", "]]]],[", "{\"k\":[", "\"text"] {
                    let text = format!("{before}{}{after}", "[".repeat(levels));
                    let mut bytewise = Scanner::new();
                    text.bytes().for_each(|byte| bytewise.feed(&[byte]));
                    let whole = scanned(&text);
                    assert_eq!(whole, bytewise, "{text}");
                    assert_eq!(whole.cut(), bytewise.cut(), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_deep_pointer_shows_both_ends() {
        let path = |text: &str| scanned(text).path();
        let deep = format!("{{\"outer\":{}{{\"inner\":", "[".repeat(5_000));
        let shown = format!(
            "/outer{}/… 4002 levels …{}/inner",
            "/0".repeat(499),
            "/0".repeat(499)
        );
        assert_eq!(path(&deep), shown);
        // Closed levels leave no trace.
        let back = format!("{deep}1}}{}", "]".repeat(4_990));
        assert_eq!(path(&back), format!("/outer{}", "/0".repeat(9)));
        assert_eq!(
            path(&format!("{back},2,3")),
            format!("/outer{}/2", "/0".repeat(9))
        );
    }

    #[test]
    fn the_innermost_levels_suffice_to_close_fewer() {
        let levels = 150;
        let texts = [
            "[".repeat(levels),
            "{\"k\":[7,".repeat(levels / 2) + "\"half",
        ];
        for text in &texts {
            let whole = scanned(text);
            for known in [1, 2, 3, 64, 65, 100, levels - 1, levels, levels + 1] {
                for rest in ["", "\"]", "]", "}", "[1,{\"a\":2}", "\"", "\",8]}", "]]]"] {
                    let closes = rest
                        .bytes()
                        .filter(|byte| matches!(byte, b'}' | b']'))
                        .count();
                    if closes >= known {
                        continue;
                    }
                    let (mut all, mut some) = (whole.clone(), whole.of_innermost(known));
                    all.feed(rest.as_bytes());
                    some.feed(rest.as_bytes());
                    assert_eq!(
                        some.syntax_error(),
                        all.syntax_error(),
                        "{rest} with {known}"
                    );
                    assert_eq!(some.offset(), all.offset(), "{rest} with {known}");
                    assert_eq!(some.elements(), all.elements(), "{rest} with {known}");
                    let lost = all.depth() - some.depth();
                    assert_eq!(lost, levels.saturating_sub(known), "{rest} with {known}");
                }
            }
        }
    }
}
