//! Names a run of siblings by their number.

use super::outline::{Item, Level, Outline};

/// Siblings that become one `<987 more objects>`, or `<earlier items>` if not all were read.
pub(super) struct Run<'a> {
    outline: &'a Outline<'a>,
    is_object: bool,
    /// The name if siblings were not read; empty if all were.
    unread: &'static str,
    count: usize,
    /// The noun for all of them.
    noun: &'static str,
}

/// The noun for siblings of several kinds.
const VALUE: &str = "value";

impl<'a> Run<'a> {
    /// An empty run at a level.
    pub(super) fn new(outline: &'a Outline<'a>, level: &Level) -> Self {
        Self {
            outline,
            is_object: outline.is_object(level),
            unread: unread_items(outline, level),
            count: 0,
            noun: VALUE,
        }
    }

    /// Adds the next sibling.
    pub(super) fn count(&mut self, item: &Item) {
        let noun = self.noun_of(item);
        self.noun = match self.count {
            0 => noun,
            _ if noun == self.noun => noun,
            _ => VALUE,
        };
        self.count += 1;
    }

    fn noun_of(&self, item: &Item) -> &'static str {
        if self.is_object {
            return "member";
        }
        match self.outline.text.as_bytes()[item.value.start] {
            b'{' => "object",
            b'[' => "array",
            b'"' => "string",
            b't' | b'f' | b'n' => VALUE,
            _ => "number",
        }
    }

    /// The text that replaces them.
    pub(super) fn name(&self) -> String {
        if !self.unread.is_empty() {
            return self.unread.to_owned();
        }
        if self.count == 0 {
            return String::new();
        }
        let plural = if self.count == 1 { "" } else { "s" };
        format!("<{} more {}{plural}>", self.count, self.noun)
    }

    /// The number of characters of the name, without writing it.
    pub(super) fn len(&self) -> usize {
        if !self.unread.is_empty() {
            return self.unread.len();
        }
        let Some(magnitude) = self.count.checked_ilog10() else {
            return 0;
        };
        let plural = usize::from(self.count != 1);
        "< more >".len() + magnitude as usize + 1 + self.noun.len() + plural
    }
}

/// The text in place of siblings that are too far back to be read; empty if there are none.
pub(super) fn unread_items(outline: &Outline<'_>, level: &Level) -> &'static str {
    match (level.has_unread_items(), outline.is_object(level)) {
        (false, _) => "",
        (true, true) => "<earlier members>",
        (true, false) => "<earlier items>",
    }
}
