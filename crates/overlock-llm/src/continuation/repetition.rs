//! Detects a model that only repeats itself.
//!
//! A run ends as `repeating` after three answers in a row that consist of repeats of one cycle of
//! items or members, byte for byte. Equal rows are often data, so a loop also needs 24 repeats and
//! 1,024 bytes, and the cycle needs an object or 16 characters of strings: rows of numbers, rows of
//! short strings and anything that counts up are never a loop. An unreached KPI target or a schema
//! that requires more items keeps the run going.
//!
//! Only the new text and a bounded tail before it are read.

use std::collections::VecDeque;

use crate::wire::WireRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The longest cycle that is looked for.
const LONGEST_CYCLE: usize = 4 << 10;

/// How far before an answer the search for the start of a loop goes.
const LOOK_BACK: usize = 64 << 10;

const LEAST_ANSWERS: u32 = 3;
const LEAST_REPEATS: usize = 24;
const LEAST_BYTES: usize = 1024;

/// The minimum of characters in the strings of a cycle without objects.
const LEAST_CHARACTERS: usize = 16;

/// How many cycle lengths are tried for one answer.
const TRIES: usize = 8;

/// Answers in a row that only repeat one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Repetition {
    /// Where the first cycle begins in the document.
    start: usize,
    /// How many bytes a cycle has, with the comma after it.
    cycle: usize,
    answers: u32,
}

impl Repetition {
    /// The repetition after an answer that wrote the document from an offset on.
    pub(super) fn after(before: Option<Self>, text: &str, offset: usize) -> Option<Self> {
        let found = find_cycle(text.as_bytes(), offset)?;
        match before {
            Some(before) if before.cycle == found.cycle => Some(Self {
                start: before.start.min(found.start),
                answers: before.answers + 1,
                ..found
            }),
            _ => Some(found),
        }
    }

    /// Whether this is long enough to be a loop instead of data. `required_items` is the largest
    /// `minItems` of the request's schemas.
    pub(super) fn is_loop(&self, document_len: usize, required_items: usize) -> bool {
        let len = document_len.saturating_sub(self.start);
        self.answers >= LEAST_ANSWERS
            && len >= LEAST_BYTES
            && len / self.cycle.max(1) >= LEAST_REPEATS.max(required_items)
    }

    /// Where the first cycle ends, without its comma.
    pub(super) fn first_end(&self) -> usize {
        self.start + self.cycle - 1
    }
}

/// The most items that a schema of a request requires of an array.
pub(super) fn required_by_schemas(request: &dyn WireRequest) -> usize {
    let document = request.document_schema().map(|(schema, _)| schema);
    let tools = request.tool_parameters();
    let schemas = document
        .into_iter()
        .chain(tools.iter().map(|tool| tool.schema));
    let items = schemas.map(required_items);
    items.max().unwrap_or(0)
}

fn required_items(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(required_items).max().unwrap_or(0),
        Value::Object(members) => {
            let own = members.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let own = usize::try_from(own).unwrap_or(usize::MAX);
            members.values().map(required_items).fold(own, usize::max)
        }
        _ => 0,
    }
}

/// The cycle that makes up the text from an offset on, and that occurs twice before it.
fn find_cycle(text: &[u8], offset: usize) -> Option<Repetition> {
    let added = text.len().checked_sub(offset).filter(|added| *added > 0)?;
    let tail = &text[offset.saturating_sub(2 * LONGEST_CYCLE)..];
    let lengths = backward_matches(tail);
    let is_period = |period: &usize| {
        let matched = lengths.get(*period);
        matched.is_some_and(|matched| *matched >= added + period)
    };
    let mut periods = (1..=LONGEST_CYCLE).filter(is_period).take(TRIES);
    let (cycle, boundary, items) = periods.find_map(|cycle| {
        let last = text.len() - 2 * cycle;
        let mut starts = (last.max(1)..last + cycle).filter(|at| text[*at - 1] == b',');
        starts.find_map(|at| Some((cycle, at, items(&text[at..at + cycle - 1])?)))
    })?;
    // Only the shortest cycle is checked: several equal rows together would always pass.
    if !is_substantial(&items) {
        return None;
    }
    let first = offset.saturating_sub(LOOK_BACK);
    let mut region = boundary;
    while region > first && text[region - 1] == text[region - 1 + cycle] {
        region -= 1;
    }
    Some(Repetition {
        start: boundary - (boundary - region) / cycle * cycle,
        cycle,
        answers: 1,
    })
}

/// For each distance, how many bytes at the end of a text equal the bytes at that distance before
/// them: the Z function of the reversed text.
fn backward_matches(text: &[u8]) -> Vec<usize> {
    let len = text.len();
    let byte = |at: usize| text[len - 1 - at];
    let mut lengths = vec![0; len];
    let (mut left, mut right) = (0, 0);
    for at in 1..len {
        let mut matched = if at < right {
            lengths[at - left].min(right - at)
        } else {
            0
        };
        while at + matched < len && byte(matched) == byte(at + matched) {
            matched += 1;
        }
        if at + matched > right {
            (left, right) = (at, at + matched);
        }
        lengths[at] = matched;
    }
    lengths
}

/// Parses the items of an array, or the members of an object.
fn items(text: &[u8]) -> Option<Value> {
    let parse = |open: u8, close: u8| {
        let whole = [&[open], text, &[close]].concat();
        serde_json::from_slice::<Value>(&whole).ok()
    };
    let items = parse(b'[', b']').or_else(|| parse(b'{', b'}'));
    items.filter(|items| *items != json!([]) && *items != json!({}))
}

/// Whether items have an object or enough text to distinguish a loop from equal data.
fn is_substantial(items: &Value) -> bool {
    let mut characters = 0;
    let mut queue = VecDeque::from([items]);
    while let Some(value) = queue.pop_front() {
        match value {
            Value::Object(members) if !members.is_empty() => return true,
            Value::Array(items) => queue.extend(items),
            Value::String(text) => characters += text.chars().count(),
            _ => {}
        }
    }
    characters >= LEAST_CHARACTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, added: &str, first_end: Option<usize>) {
        let found = find_cycle(format!("{before}{added}").as_bytes(), before.len());
        assert_eq!(found.map(|found| found.first_end()), first_end);
    }

    #[test]
    fn finds_a_cycle_of_items_wherever_the_answer_is_cut() {
        let item = r#" {"name": "Nile", "tags": ["a", "b"]},"#;
        let head = r#"{"rows": [{"name": "Rhine"},"#;
        let text = format!("{head}{}", item.repeat(6));
        for at in head.len() + 3 * item.len()..text.len() {
            check(&text[..at], &text[at..], Some(head.len() + item.len() - 1));
        }
    }

    #[test]
    fn finds_a_cycle_of_several_items_and_of_members() {
        let cycle = r#""the first sentence", "the second sentence","#;
        let text = format!("[{}", cycle.repeat(5));
        check(&text, cycle, Some(cycle.len()));
        let member = r#" "name": 1,"#;
        let text = format!("{{{}", member.repeat(5));
        check(&text, member, Some(member.len()));
    }

    #[test]
    fn rows_that_differ_anywhere_are_no_cycle() {
        let row = |id: usize| format!(r#"{{"id": {id}, "name": "same", "value": 0}},"#);
        let rows: String = (100..130).map(row).collect();
        check(&format!("[{rows}"), &row(130), None);
    }

    #[test]
    fn rows_of_numbers_and_short_strings_are_no_cycle() {
        check(&format!("[{}", "0, ".repeat(500)), "0, 0, 0, ", None);
        for row in [r#"["-", 0, null],"#, r#"[0, 0, "none"], "#] {
            check(&format!("[{}", row.repeat(50)), row, None);
        }
    }

    #[test]
    fn a_text_that_repeats_itself_within_a_string_is_no_cycle() {
        let text = format!(r#"["{}"#, "and so on, ".repeat(50));
        check(&text, "and so on, and so on, ", None);
    }
}
