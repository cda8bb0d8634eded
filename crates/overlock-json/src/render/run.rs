//! Names siblings that are told by their number only.

use super::outline::{Item, Level, Outline};

/// Siblings that become one `<987 more objects>`, or `<earlier items>` where not all were read.
pub(super) struct Run<'a> {
    outline: &'a Outline<'a>,
    is_object: bool,
    /// What stands for siblings that were not read, with or without others; empty if all were.
    unread: &'static str,
    count: usize,
    /// What all of them are.
    noun: &'static str,
}

/// What siblings of several kinds are.
const VALUE: &str = "value";

impl<'a> Run<'a> {
    /// A run at a level, with no sibling in it yet.
    pub(super) fn new(outline: &'a Outline<'a>, level: &Level) -> Self {
        Self {
            outline,
            is_object: outline.is_object(level),
            unread: unread_items(outline, level),
            count: 0,
            noun: VALUE,
        }
    }

    /// Takes in the next sibling.
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

    /// What stands in the place of them all.
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

    /// How many characters the name has; it is not written for every sibling that is counted.
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

/// What stands for the siblings at a level that are too far back to be read; empty if there are none.
pub(super) fn unread_items(outline: &Outline<'_>, level: &Level) -> &'static str {
    match (level.has_unread_items(), outline.is_object(level)) {
        (false, _) => "",
        (true, true) => "<earlier members>",
        (true, false) => "<earlier items>",
    }
}
