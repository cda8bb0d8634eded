//! What was left out or repaired to read a document from an answer.

use overlock_json::{Fix, FixKind, PartialDocument, extract};
use serde::{Deserialize, Serialize};

/// How many changes a report lists.
const MOST_FIXES: usize = 100;

/// The differences between an answer and the document that was read from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairReport {
    /// The first changes, in the order of the answer; offsets are bytes of it.
    pub fixes: Vec<Fix>,
    /// How many changes there were.
    pub count: usize,
    /// The original answer; empty if no text is recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub original: String,
}

impl RepairReport {
    /// Compares an answer with the document that was read from this part of it. Returns nothing if
    /// nothing was changed.
    pub fn of(answer: &str, part: &str, document: &PartialDocument<'_>) -> Option<Self> {
        // Most answers are JSON and nothing else, which their length shows.
        if document.fixes().is_empty() && document.text().trim().len() == answer.trim().len() {
            return None;
        }
        let shift = answer.find(part)?;
        let (start, end) = if document.fixes().is_empty() {
            let start = answer.find(document.text())?;
            (start, start + document.text().len())
        } else {
            let found = extract(part)?;
            (shift + found.start, shift + found.end)
        };
        let mut fixes = wrapping(answer.get(..start)?, 0);
        fixes.extend(document.fixes().iter().map(|fix| Fix {
            offset: shift + fix.offset,
            ..*fix
        }));
        let after = wrapping(answer.get(end..)?, end).into_iter();
        // The opening fence was reported already.
        fixes.extend(after.filter(|fix| fix.kind == FixKind::Prose));
        let count = fixes.len();
        fixes.truncate(MOST_FIXES);
        (count > 0).then(|| Self {
            fixes,
            count,
            original: answer.to_owned(),
        })
    }

    pub(crate) fn without_text(&self) -> Self {
        Self {
            fixes: self.fixes.clone(),
            count: self.count,
            original: String::new(),
        }
    }
}

/// The first prose and the first fence in the text around a document.
fn wrapping(text: &str, offset: usize) -> Vec<Fix> {
    let mut fixes = Vec::new();
    let mut at = offset;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        let kind = if content.starts_with("```") || content.starts_with("~~~") {
            FixKind::Fence
        } else {
            FixKind::Prose
        };
        let is_listed = fixes.iter().any(|fix: &Fix| fix.kind == kind);
        if !content.is_empty() && !is_listed {
            fixes.push(Fix { kind, offset: at });
        }
        at += line.len();
    }
    fixes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report_of(answer: &str) -> Option<RepairReport> {
        let document = PartialDocument::read(answer).ok()?;
        RepairReport::of(answer, answer, &document)
    }

    #[track_caller]
    fn check(answer: &str, fixes: &[(FixKind, &str)]) {
        let found = report_of(answer).map_or(Vec::new(), |report| report.fixes);
        assert_eq!(found.len(), fixes.len(), "{answer:?}: {found:?}");
        for (fix, (kind, begin)) in found.iter().zip(fixes) {
            let rest = &answer[fix.offset..];
            assert_eq!(fix.kind, *kind, "{answer:?}");
            assert!(rest.starts_with(begin), "{rest:?} and not {begin:?}");
        }
    }

    #[test]
    fn reports_text_around_a_document_with_its_offset() {
        use FixKind::{Fence, Prose};
        check("```json\n[1]\n```", &[(Fence, "```json")]);
        check("Sure:\n[1]\n", &[(Prose, "Sure")]);
        check(
            "Here:\n```json\n[1]\n```\nDone.",
            &[(Prose, "Here"), (Fence, "```json"), (Prose, "Done")],
        );
    }

    #[test]
    fn reports_repairs_with_their_offset() {
        use FixKind::{Fence, Quotes, TrailingComma};
        check(
            "```\n['a',]\n```",
            &[(Fence, "```"), (Quotes, "'a'"), (TrailingComma, ",]")],
        );
    }

    proptest! {
        #[test]
        fn reports_nothing_for_plain_json(rows in prop::collection::vec(any::<i32>(), 0..9), cut in 0..20_usize) {
            let text = format!(" {rows:?}\n");
            let text = &text[..text.len().min(cut + 2)];
            prop_assert_eq!(report_of(text), None, "{}", text);
        }

        #[test]
        fn every_offset_is_in_the_answer(answer in "[ \n`~{}\\[\\]'\",:a-cé1]{0,40}") {
            if let Some(report) = report_of(&answer) {
                prop_assert!(report.fixes.iter().all(|fix| fix.offset <= answer.len()));
                prop_assert_eq!(report.original, answer);
            }
        }
    }
}
