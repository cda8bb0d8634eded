//! Counts the content of one section.

use serde::{Deserialize, Serialize};

use super::code::CodeLines;
use crate::strings::decode;

/// How many raw bytes of a name are shown.
const LONGEST_NAME: usize = 100;

/// An open object that is a section, or becomes one when its content type arrives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Section {
    pub(super) number: usize,
    /// Whether an array of items or rows is open in it, inside of which nothing counts.
    pub(super) is_counting: bool,
    id: Option<String>,
    content_type: Option<String>,
    items: usize,
    rows: usize,
    code_lines: usize,
}

/// What the items of an array in a section are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Counted {
    Items,
    Rows,
}

/// A string that counts for the section, while it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SectionString {
    Id(Vec<u8>),
    ContentType(Vec<u8>),
    Code(CodeLines),
}

impl SectionString {
    pub(super) fn id() -> Self {
        Self::Id(Vec::new())
    }

    pub(super) fn content_type() -> Self {
        Self::ContentType(Vec::new())
    }

    pub(super) fn code() -> Self {
        Self::Code(CodeLines::default())
    }

    /// Reads the next piece of the string.
    pub(super) fn extend(&mut self, raw: &[u8]) {
        match self {
            Self::Id(name) | Self::ContentType(name) => {
                // One byte more than is shown, to know that the name is longer.
                let room = (LONGEST_NAME + 1).saturating_sub(name.len());
                name.extend_from_slice(&raw[..raw.len().min(room)]);
            }
            Self::Code(lines) => lines.extend(raw),
        }
    }
}

impl Section {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            is_counting: false,
            id: None,
            content_type: None,
            items: 0,
            rows: 0,
            code_lines: 0,
        }
    }

    /// Whether it has a content type.
    pub(super) fn is_known(&self) -> bool {
        self.content_type.is_some()
    }

    /// Counts a complete item or row.
    pub(super) fn count(&mut self, counted: Counted) {
        match counted {
            Counted::Items => self.items += 1,
            Counted::Rows => self.rows += 1,
        }
    }

    /// Adds a complete string.
    pub(super) fn add_string(&mut self, reading: SectionString) {
        match reading {
            SectionString::Id(raw) => self.id = Some(shown_name(&raw)),
            SectionString::ContentType(raw) => self.content_type = Some(shown_name(&raw)),
            SectionString::Code(lines) => self.code_lines += lines.count(),
        }
    }

    /// The line for the section, including the code that is being read.
    pub(super) fn line(&self, reading: Option<&SectionString>) -> Option<String> {
        let content_type = self.content_type.as_ref()?;
        let line = match &self.id {
            Some(id) => format!("- {content_type} \"{id}\""),
            None => format!("- {content_type}"),
        };
        let code_lines = match reading {
            Some(SectionString::Code(lines)) => self.code_lines + lines.count(),
            _ => self.code_lines,
        };
        let counts = [
            (self.items, "item"),
            (self.rows, "row"),
            (code_lines, "line"),
        ];
        let [items, rows, lines] = counts;
        let count = match content_type.as_str() {
            "heading" | "paragraph" | "image" => None,
            "bullet_list" => Some(items),
            "table" => Some(rows),
            "code_block" => Some(lines),
            // An unknown type shows the first count that is not zero.
            _ => counts.into_iter().find(|(count, _)| *count > 0),
        };
        Some(match count {
            Some((count, noun)) => with_count(&line, count, noun),
            None => line,
        })
    }
}

/// Ends a line with a count, in the singular or the plural.
pub(super) fn with_count(line: &str, count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{line} with {count} {noun}{plural}")
}

/// A name in a line: decoded, on one line, and not too long.
pub(super) fn shown_name(raw: &[u8]) -> String {
    let kept = &raw[..raw.len().min(LONGEST_NAME)];
    let mut name = decode(kept).replace(char::is_control, " ");
    if kept.len() < raw.len() {
        name.push('…');
    }
    name
}
