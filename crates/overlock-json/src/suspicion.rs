//! Does a complete document contradict itself?
//!
//! A model that goes on after a cut may leave something out or close early, and the text alone does
//! not show it. What the document says of itself does: a count of its items, or their numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::partial_document::PartialDocument;
use crate::repair::{Fix, FixKind};
use crate::strings::decode;
use crate::tokens::{Token, TokenKind, Tokens};

/// The names of members that count the items beside them.
const COUNTS: [&str; 8] = [
    "total",
    "count",
    "total_count",
    "totalCount",
    "item_count",
    "itemCount",
    "total_items",
    "totalItems",
];

/// So many items must be numbered one after the other before a gap means anything.
const FEWEST_NUMBERED: usize = 4;

/// Why a document that was joined may lack something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "suspicion", rename_all = "kebab-case")]
pub enum Suspicion {
    /// A member counts other items than there are.
    Count {
        /// The name of the member that counts.
        member: String,
        /// What it says.
        stated: u64,
        /// The name of the array beside it.
        array: String,
        /// How many items that has.
        items: u64,
    },
    /// The items of an array are numbered, and a number is missing.
    Numbering {
        /// The number before the gap.
        before: u64,
        /// The number after it.
        after: u64,
    },
    /// A closing bracket too many was left out. An earlier one may be the wrong one.
    Brackets,
    /// By the measure of the run, much less was delivered.
    Progress {
        /// The percentage that was reached.
        percent: u8,
    },
}

impl Suspicion {
    /// The name in headers and in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Count { .. } => "count",
            Self::Numbering { .. } => "numbering",
            Self::Brackets => "brackets",
            Self::Progress { .. } => "progress",
        }
    }

    /// The same without the names in the document.
    #[must_use]
    pub fn without_text(&self) -> Self {
        match self {
            Self::Count { stated, items, .. } => Self::Count {
                member: String::new(),
                stated: *stated,
                array: String::new(),
                items: *items,
            },
            other => other.clone(),
        }
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count {
                member,
                stated,
                array,
                items,
            } => write!(f, "`{member}` is {stated}, but `{array}` has {items} items"),
            Self::Numbering { before, after } => {
                write!(f, "number {before} is followed by {after}")
            }
            Self::Brackets => f.write_str("a closing bracket too many was left out"),
            Self::Progress { percent } => {
                write!(f, "the document was closed at a progress of {percent} %")
            }
        }
    }
}

/// Why a complete document that was joined may lack something: it was repaired where the repair
/// leaves a choice, or says of itself what is not so.
pub(crate) fn suspicion_of_joined(document: &PartialDocument<'_>) -> Option<Suspicion> {
    let is_bracket = |fix: &Fix| fix.kind == FixKind::ExtraBracket;
    let brackets = document.fixes().iter().any(is_bracket);
    brackets
        .then_some(Suspicion::Brackets)
        .or_else(|| suspicion(document.text()))
        .filter(|_| document.is_complete())
}

/// What a complete document says of itself that is not so; nothing if the text is not JSON.
///
/// ```
/// let suspicion = overlock_json::suspicion(r#"{"items": ["a", "b"], "total": 3}"#);
/// assert_eq!(suspicion.map(|it| it.name()), Some("count"));
/// assert_eq!(overlock_json::suspicion(r#"{"items": ["a", "b"], "total": 2}"#), None);
/// ```
pub fn suspicion(document: &str) -> Option<Suspicion> {
    let mut open: Vec<OpenContainer> = Vec::new();
    let mut tokens = Tokens::new(document, 0, false).peekable();
    while let Some(token) = tokens.next() {
        match (token.kind, token.raw) {
            (TokenKind::Mark, "{" | "[") => {
                if let Some(parent) = open.last_mut() {
                    parent.items += 1;
                }
                open.push(OpenContainer::default());
            }
            (TokenKind::Mark, "}" | "]") => {
                let closed = open.pop()?;
                if let Some(suspicion) = closed.suspicion() {
                    return Some(suspicion);
                }
                let Some(parent) = open.last_mut() else {
                    continue;
                };
                if token.raw == "]" {
                    parent.arrays.push((parent.key.clone(), closed.items));
                }
                if let Some(number) = closed.first {
                    parent.numbers.push(number);
                }
            }
            (TokenKind::Mark, _) => {}
            (TokenKind::String, _) if tokens.peek().is_some_and(|next| next.is_mark(":")) => {
                open.last_mut()?.key = decode(token.raw.as_bytes()).into_owned();
            }
            _ => {
                if let Some(parent) = open.last_mut() {
                    parent.value(&token);
                }
            }
        }
    }
    None
}

/// A container that is open.
#[derive(Default)]
struct OpenContainer {
    /// The last key, and the arrays among the members with the numbers of their items.
    key: String,
    arrays: Vec<(String, u64)>,
    counts: Vec<(String, u64)>,
    /// How many items or members there are.
    items: u64,
    /// The number in the first member.
    first: Option<u64>,
    /// The numbers of the items, or in their first members.
    numbers: Vec<u64>,
}

impl OpenContainer {
    fn value(&mut self, token: &Token<'_>) {
        let number = number_at_end(token);
        if self.key.is_empty() {
            self.numbers.extend(number);
        } else if self.items == 0 {
            self.first = number;
        }
        if let (TokenKind::Word, Some(number)) = (token.kind, number)
            && COUNTS.contains(&self.key.as_str())
        {
            self.counts.push((self.key.clone(), number));
        }
        self.items += 1;
    }

    fn suspicion(&self) -> Option<Suspicion> {
        for (member, stated) in &self.counts {
            let longest = self.arrays.iter().max_by_key(|(_, items)| *items);
            if let Some((array, items)) = longest
                && self.arrays.iter().all(|(_, items)| items != stated)
            {
                return Some(Suspicion::Count {
                    member: member.clone(),
                    stated: *stated,
                    array: array.clone(),
                    items: *items,
                });
            }
        }
        let is_next = |pair: &&[u64]| pair[0].checked_add(1) == Some(pair[1]);
        let steps = self.numbers.len().saturating_sub(1);
        let in_order = self.numbers.windows(2).filter(is_next).count();
        // All items are numbered, and all but one or two one after the other.
        if self.numbers.len() as u64 != self.items
            || in_order + 1 < FEWEST_NUMBERED
            || in_order * 4 < steps * 3
        {
            return None;
        }
        let gap = self.numbers.windows(2).find(|pair| !is_next(pair))?;
        Some(Suspicion::Numbering {
            before: gap[0],
            after: gap[1],
        })
    }
}

/// The number that a value is, or that a name such as `section_3` ends with.
fn number_at_end(token: &Token<'_>) -> Option<u64> {
    let name = token.raw.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_number = match token.kind {
        TokenKind::String => name.ends_with(['_', '-', ' ', '#']),
        _ => name.is_empty(),
    };
    token.raw[name.len()..].parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::suspicion;

    #[track_caller]
    fn check(document: &str, reason: Option<&str>) {
        let found = suspicion(document).map(|it| it.to_string());
        assert_eq!(found.as_deref(), reason, "{document}");
    }

    #[test]
    fn a_stated_count_is_compared_with_the_items() {
        check(
            r#"{"title": "T", "items": [{"id": 7}, {"id": 8}], "total": 12}"#,
            Some("`total` is 12, but `items` has 2 items"),
        );
        check(
            r#"[{"count": 1, "rows": [[1, 2], [3, 4]]}]"#,
            Some("`count` is 1, but `rows` has 2 items"),
        );
        check(r#"{"headers": ["a", "b"], "rows": [1], "total": 1}"#, None);
        check(
            r#"[{"city": "Oslo", "count": 100}, {"city": "Oslo", "count": 7}]"#,
            None,
        );
        check(r#"{"total": 12.5, "items": [1]}"#, None);
    }

    #[test]
    fn a_gap_between_numbers_is_found() {
        let items = |numbers: &[u64]| {
            let items = numbers
                .iter()
                .map(|nr| format!(r#"{{"nr": {nr}, "text": "x"}}"#));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        };
        check(&items(&[0, 1, 2, 3, 4]), None);
        check(
            &items(&[0, 1, 2, 3, 5, 6]),
            Some("number 3 is followed by 5"),
        );
        check("[1, 2, 3, 4, 6, 7]", Some("number 4 is followed by 6"));
        check(
            r#"["section_1", "section_2", "section_3", "section_4", "section_6"]"#,
            Some("number 4 is followed by 6"),
        );
        check("[1, 2, 4]", None);
        check(&items(&[3, 17, 4, 99, 100, 101]), None);
        check("[3, 1, 4, 1, 5, 9, 2, 6]", None);
    }

    #[test]
    fn text_that_is_no_json_is_not_suspicious() {
        for text in ["", "no", "]", "{\"total\": 3", "\"total\": 3}"] {
            check(text, None);
        }
    }
}
