//! Stores the first and the last lines of a list of any length.

use serde::{Deserialize, Serialize};

/// How many lines are stored at either end.
const KEPT: usize = 10;

/// A list of lines, ordered by number, of which only both ends are stored.
///
/// A line is inserted when its container begins and settled when it is final. Both may happen out of
/// order, because outer containers end after inner ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ledger {
    count: usize,
    /// The entries with the smallest numbers, in order.
    first: Vec<Entry>,
    /// The entries with the greatest numbers, in order.
    last: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    number: usize,
    /// The line, once settled.
    line: Option<String>,
}

impl Ledger {
    /// The number of lines.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Inserts a line that will be settled later.
    pub(super) fn insert(&mut self, number: usize) {
        self.count += 1;
        insert_in_order(&mut self.first, number);
        self.first.truncate(KEPT);
        insert_in_order(&mut self.last, number);
        if self.last.len() > KEPT {
            self.last.remove(0);
        }
    }

    /// Whether a line is stored.
    pub(super) fn shows(&self, number: usize) -> bool {
        [&self.first, &self.last]
            .into_iter()
            .flatten()
            .any(|entry| entry.number == number)
    }

    /// Settles a line, if it is stored.
    pub(super) fn settle(&mut self, number: usize, line: &str) {
        for entry in self.first.iter_mut().chain(&mut self.last) {
            if entry.number == number {
                entry.line = Some(line.to_owned());
            }
        }
    }

    /// The lines to show; `open` returns those that are not settled yet.
    pub(super) fn lines(&self, open: impl Fn(usize) -> Option<String>) -> Vec<String> {
        let show = |entry: &Entry| entry.line.clone().or_else(|| open(entry.number));
        let mut lines: Vec<String> = self.first.iter().filter_map(show).collect();
        let between = self.count.saturating_sub(2 * KEPT);
        if between > 0 {
            lines.push(format!("… ({between} more) …"));
        }
        let shown = self.first.last().map(|entry| entry.number);
        let rest = self.last.iter().filter(|entry| Some(entry.number) > shown);
        lines.extend(rest.filter_map(show));
        lines
    }
}

fn insert_in_order(entries: &mut Vec<Entry>, number: usize) {
    let at = entries.partition_point(|entry| entry.number < number);
    entries.insert(at, Entry { number, line: None });
}
