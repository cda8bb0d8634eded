//! Counts what a document has brought so far.
//!
//! [`Delivered`] listens to a [`Scanner`](crate::Scanner) and grows with the document. It keeps
//! only what is open, the lines it may have to show (the first ten and the last
//! ten) and how many there are, so a million sections cost no more than twenty.
//!
//! Sections and arrays of records are both counted from the start, because what
//! kind of document it is may show late; sections win. Where the shape leaves
//! room, it is read as follows:
//!
//! - A section is an object in any array under the key `sections` that has a
//!   whole string under `content_type`. Until that has come it is none.
//! - `items`, `rows` and `code` count wherever they stand in the section, except
//!   within an item or row: a list in a list is one item.
//! - An array is one of records from the moment an object opens in it, but only
//!   whole objects count. A root array is shown as `/`.
//! - Lines of code are counted as an editor does: a line break at the end begins no line.
//! - What lies deeper than 100,000 levels is not counted: no section or record that somebody
//!   wants to hear of does, and a text may open a billion brackets.
//! - Long names are cut and deep pointers lose their middle: a line is there to be shown.

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
use section::{Counted, Reading, Section, shown, with_count};

/// Deeper than this nothing is counted.
const COUNTED_LEVELS: usize = 100_000;

/// Pointers with more levels than this lose their middle.
const SHOWN_LEVELS: usize = 40;

/// What a document has brought so far, kept up as it grows.
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
    frames: Vec<Frame>,
    /// How many containers are open beyond those.
    uncounted: usize,
    /// The open objects that are sections or may turn out to be, the outermost first.
    open_sections: Vec<Section>,
    /// How many containers have opened; the number of each is its place in the order of lines.
    opened: usize,
    reading: Option<Reading>,
    sections: Ledger,
    records: Ledger,
}

/// An open container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Frame {
    number: usize,
    position: Position,
}

/// An open container and the place of the current element in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Position {
    Object {
        key: String,
        is_section: bool,
    },
    Array {
        index: usize,
        /// How many whole objects it holds, once one has begun.
        records: Option<usize>,
        role: Role,
    },
}

/// What the items of an array are to the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Role {
    Plain,
    Sections,
    Counted(Counted),
}

/// Counts what the document in a text holds, whole or cut.
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
    /// How many sections have begun and said what they are.
    pub fn section_count(&self) -> usize {
        self.sections.count()
    }

    /// One line for each section or, where there are none, for each array of records.
    ///
    /// Of more than twenty the first ten and the last ten, with their number between.
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

    /// What an array is to the count, told by the key it stands under.
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

    /// Notes that an object has begun, and says whether it may be a section.
    fn object_begins(&mut self) -> bool {
        let Some(Frame { number, position }) = self.frames.last_mut() else {
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

    /// Notes that a value in the innermost open container is whole.
    fn value_ended(&mut self, container: Option<Container>) {
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

    /// What the string that begins now is to the count.
    fn reading_begins(&self) -> Option<Reading> {
        let section = self.open_sections.last()?;
        let Position::Object { key, is_section } = &self.frames.last()?.position else {
            return None;
        };
        match key.as_str() {
            "id" if *is_section => Some(Reading::id()),
            "content_type" if *is_section => Some(Reading::content_type()),
            "code" if !section.is_counting => Some(Reading::code()),
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
                let is_section = self.object_begins();
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
        self.frames.push(Frame { number, position });
    }

    fn close(&mut self, container: Container) {
        if self.uncounted > 0 {
            self.uncounted -= 1;
            if self.uncounted == 0 {
                self.value_ended(Some(container));
            }
            return;
        }
        let Some(depth) = self.frames.len().checked_sub(1) else {
            return;
        };
        let Frame {
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
        self.value_ended(Some(container));
    }

    fn key(&mut self, raw: &[u8]) {
        if self.uncounted > 0 {
            return;
        }
        if let Some(Position::Object { key, .. }) =
            self.frames.last_mut().map(|frame| &mut frame.position)
        {
            *key = shown(raw);
        }
    }

    fn text(&mut self, raw: &[u8]) {
        if self.uncounted > 0 {
            return;
        }
        if self.reading.is_none() {
            self.reading = self.reading_begins();
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
            section.take(reading);
            if section.is_known() && !was_known {
                self.sections.insert(section.number);
            }
        }
        self.value_ended(None);
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

/// The JSON Pointer of what stands in the innermost of some open containers.
struct Pointer<'a>(&'a [Frame]);

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

/// The current element of a container as a part of a JSON Pointer.
impl Display for Frame {
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
