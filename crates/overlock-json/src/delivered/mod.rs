//! Counts the sections and records of a document while it arrives.
//!
//! [`Delivered`] is a visitor of a [`Scanner`](crate::Scanner). It stores only the open containers,
//! the number of lines, and the first and last ten lines, so a million sections cost no more than
//! twenty.
//!
//! Sections and arrays of records are both counted from the start, because the kind of the document
//! may become clear late; sections take precedence. The rules in detail:
//!
//! - A section is an object in any array under the key `sections` that has a complete string under
//!   `content_type`.
//! - `items`, `rows` and `code` count anywhere in the section, except within an item or row: a
//!   nested list is one item.
//! - An array counts as one of records as soon as an object opens in it, but only complete objects
//!   count. A root array is shown as `/`.
//! - Lines of code are counted as in an editor: a line break at the end begins no line.
//! - Nothing deeper than 100,000 levels is counted, because a text may open a billion brackets.
//! - Long names are cut, and the middle of deep pointers is elided.

mod code;
mod ledger;
mod section;
#[cfg(test)]
mod tests;

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::scan::{Container, Scalar, Visitor};
use crate::{NoJson, PartialDocument};
use ledger::Ledger;
use section::{Counted, Section, SectionString, shown_name, with_count};

/// Nothing deeper than this is counted.
const COUNTED_LEVELS: usize = 100_000;

/// The middle of pointers with more levels than this is elided.
const SHOWN_LEVELS: usize = 40;

/// The content of a document so far, counted while it arrives.
///
/// ```
/// use overlock_json::{Delivered, Scanner};
///
/// let (mut scanner, mut delivered) = (Scanner::new(), Delivered::default());
/// scanner.feed_with(br#"{"sections": [{"id": "costs", "content_type": "table", "#, &mut delivered);
/// scanner.feed_with(br#""elements": [{"rows": [["rent", 900], ["heat", 1"#, &mut delivered);
/// assert_eq!(delivered.to_string(), r#"- table "costs" with 1 row"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// The open containers, the root first.
    frames: Vec<CountedFrame>,
    /// How many containers are open beyond those.
    uncounted: usize,
    /// The open objects that are or may become sections, the outermost first.
    open_sections: Vec<Section>,
    /// How many containers have opened. The number of each determines the order of lines.
    opened: usize,
    reading: Option<SectionString>,
    sections: Ledger,
    records: Ledger,
}

/// An open container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CountedFrame {
    number: usize,
    position: Position,
}

/// An open container and the position of the current element in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Position {
    Object {
        key: String,
        is_section: bool,
    },
    Array {
        index: usize,
        /// How many complete objects it contains, once one has begun.
        records: Option<usize>,
        role: Role,
    },
}

/// What the items of an array count as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Role {
    Plain,
    Sections,
    Counted(Counted),
}

/// Counts the content of the document in a text, complete or cut.
///
/// ```
/// let text = r#"{"people": [{"name": "Ada"}, {"name": "Grace"}, {"na"#;
/// assert_eq!(overlock_json::delivered(text)?.lines(), ["- /people with 2 records"]);
/// # Ok::<(), overlock_json::NoJson>(())
/// ```
pub fn delivered<T: AsRef<[u8]> + ?Sized>(text: &T) -> Result<Delivered, NoJson> {
    Ok(PartialDocument::read(text)?.delivered())
}

impl Delivered {
    /// How many sections have a content type.
    pub fn section_count(&self) -> usize {
        self.sections.count()
    }

    /// One line for each section or, if there are none, for each array of records.
    ///
    /// Of more than twenty lines, the first and the last ten, with the number of the others between.
    pub fn lines(&self) -> Vec<String> {
        if self.sections.count() > 0 {
            self.sections.lines(|number| self.open_section_line(number))
        } else {
            self.records.lines(|number| self.open_records_line(number))
        }
    }

    fn open_section_line(&self, number: usize) -> Option<String> {
        let at = self
            .open_sections
            .binary_search_by_key(&number, |section| section.number)
            .ok()?;
        let is_innermost = at + 1 == self.open_sections.len();
        self.open_sections[at].line(self.reading.as_ref().filter(|_| is_innermost))
    }

    fn open_records_line(&self, number: usize) -> Option<String> {
        let depth = self
            .frames
            .binary_search_by_key(&number, |frame| frame.number)
            .ok()?;
        match self.frames[depth].position {
            Position::Array { records, .. } => Some(self.records_line(depth, records?)),
            Position::Object { .. } => None,
        }
    }

    fn records_line(&self, depth: usize, records: usize) -> String {
        let pointer = Pointer(&self.frames[..depth]);
        with_count(&format!("- {pointer}"), records, "record")
    }

    /// What the items of an array count as, by the key of the array.
    fn role(&self) -> Role {
        let Some(Position::Object { key, .. }) = self.frames.last().map(|frame| &frame.position)
        else {
            return Role::Plain;
        };
        let section = self.open_sections.last();
        match key.as_str() {
            "sections" => Role::Sections,
            "items" if section.is_some_and(|section| !section.is_counting) => {
                Role::Counted(Counted::Items)
            }
            "rows" if section.is_some_and(|section| !section.is_counting) => {
                Role::Counted(Counted::Rows)
            }
            _ => Role::Plain,
        }
    }

    /// Counts an object that begins; returns whether it may be a section.
    fn begin_object(&mut self) -> bool {
        let Some(CountedFrame { number, position }) = self.frames.last_mut() else {
            return false;
        };
        let Position::Array { records, role, .. } = position else {
            return false;
        };
        if records.is_none() {
            *records = Some(0);
            self.records.insert(*number);
        }
        *role == Role::Sections
    }

    /// Counts a complete value in the innermost open container.
    fn end_value(&mut self, container: Option<Container>) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let Position::Array {
            index,
            records,
            role,
        } = &mut frame.position
        else {
            return;
        };
        *index += 1;
        if let (Some(records), Some(Container::Object)) = (records, container) {
            *records += 1;
        }
        if let (Role::Counted(counted), Some(section)) = (*role, self.open_sections.last_mut()) {
            section.count(counted);
        }
    }

    /// What to read the string for that begins now, if it counts.
    fn begin_string(&self) -> Option<SectionString> {
        let section = self.open_sections.last()?;
        let Position::Object { key, is_section } = &self.frames.last()?.position else {
            return None;
        };
        match key.as_str() {
            "id" if *is_section => Some(SectionString::id()),
            "content_type" if *is_section => Some(SectionString::content_type()),
            "code" if !section.is_counting => Some(SectionString::code()),
            _ => None,
        }
    }
}

impl Visitor for Delivered {
    fn open(&mut self, container: Container) {
        if self.frames.len() == COUNTED_LEVELS {
            self.uncounted += 1;
            return;
        }
        let number = self.opened;
        self.opened += 1;
        let position = match container {
            Container::Object => {
                let is_section = self.begin_object();
                if is_section {
                    self.open_sections.push(Section::new(number));
                }
                Position::Object {
                    key: String::new(),
                    is_section,
                }
            }
            Container::Array => {
                let role = self.role();
                if let (Role::Counted(_), Some(section)) = (role, self.open_sections.last_mut()) {
                    section.is_counting = true;
                }
                Position::Array {
                    index: 0,
                    records: None,
                    role,
                }
            }
        };
        self.frames.push(CountedFrame { number, position });
    }

    fn close(&mut self, container: Container) {
        if self.uncounted > 0 {
            self.uncounted -= 1;
            if self.uncounted == 0 {
                self.end_value(Some(container));
            }
            return;
        }
        let Some(depth) = self.frames.len().checked_sub(1) else {
            return;
        };
        let CountedFrame {
            number,
            ref position,
        } = self.frames[depth];
        match *position {
            Position::Object {
                is_section: true, ..
            } => {
                let section = self.open_sections.pop();
                if self.sections.shows(number)
                    && let Some(line) = section.and_then(|section| section.line(None))
                {
                    self.sections.settle(number, &line);
                }
            }
            Position::Object { .. } => {}
            Position::Array { records, role, .. } => {
                if let Some(records) = records
                    && self.records.shows(number)
                {
                    let line = self.records_line(depth, records);
                    self.records.settle(number, &line);
                }
                if let (Role::Counted(_), Some(section)) = (role, self.open_sections.last_mut()) {
                    section.is_counting = false;
                }
            }
        }
        self.frames.pop();
        self.end_value(Some(container));
    }

    fn key(&mut self, raw: &[u8]) {
        if self.uncounted > 0 {
            return;
        }
        if let Some(Position::Object { key, .. }) =
            self.frames.last_mut().map(|frame| &mut frame.position)
        {
            *key = shown_name(raw);
        }
    }

    fn text(&mut self, raw: &[u8]) {
        if self.uncounted > 0 {
            return;
        }
        if self.reading.is_none() {
            self.reading = self.begin_string();
        }
        if let Some(reading) = &mut self.reading {
            reading.extend(raw);
        }
    }

    fn scalar(&mut self, _: Scalar) {
        if self.uncounted > 0 {
            return;
        }
        if let (Some(reading), Some(section)) = (self.reading.take(), self.open_sections.last_mut())
        {
            let was_known = section.is_known();
            section.add_string(reading);
            if section.is_known() && !was_known {
                self.sections.insert(section.number);
            }
        }
        self.end_value(None);
    }
}

impl Display for Delivered {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines().join(
            "
",
        ))
    }
}

/// The JSON Pointer of the current element of the innermost container.
struct Pointer<'a>(&'a [CountedFrame]);

impl Display for Pointer<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self(frames) = self;
        if frames.is_empty() {
            return formatter.write_str("/");
        }
        let elided = frames.len().saturating_sub(SHOWN_LEVELS);
        let outer = if elided == 0 {
            frames.len()
        } else {
            SHOWN_LEVELS / 2
        };
        frames[..outer]
            .iter()
            .try_for_each(|frame| frame.fmt(formatter))?;
        if elided > 0 {
            write!(formatter, "/… {elided} levels …")?;
        }
        let inner = &frames[outer + elided..];
        inner.iter().try_for_each(|frame| frame.fmt(formatter))
    }
}

/// The current element of a container, as a segment of a JSON Pointer.
impl Display for CountedFrame {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match &self.position {
            Position::Object { key, .. } if key.contains(['~', '/']) => {
                write!(formatter, "/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Position::Object { key, .. } => write!(formatter, "/{key}"),
            Position::Array { index, .. } => write!(formatter, "/{index}"),
        }
    }
}
