//! What of an answer was left out or put right to make a document of it?

use overlock_json::{Fix, FixKind, PartialDocument, extract};

use overlock_runs::Mended;

/// So many changes are told one by one.
const MOST_FIXES: usize = 100;

/// What was changed of an answer from which a document was read; nothing if it was that document.
pub(super) fn repair_report(
    came: &str,
    document: &str,
    base: &PartialDocument<'_>,
) -> Option<Mended> {
    // Most answers are JSON and nothing else, which their length tells.
    if base.fixes().is_empty() && base.text().trim().len() == came.trim().len() {
        return None;
    }
    let shift = came.find(document)?;
    let (start, end) = if base.fixes().is_empty() {
        let start = came.find(base.text())?;
        (start, start + base.text().len())
    } else {
        let found = extract(document)?;
        (shift + found.start, shift + found.end)
    };
    let mut fixes = wrapping(came.get(..start)?, 0);
    fixes.extend(base.fixes().iter().map(|fix| Fix {
        offset: shift + fix.offset,
        ..*fix
    }));
    let after = wrapping(came.get(end..)?, end).into_iter();
    // The end of a fence says no more than its beginning.
    fixes.extend(after.filter(|fix| fix.kind == FixKind::Prose));
    let count = fixes.len();
    fixes.truncate(MOST_FIXES);
    (count > 0).then(|| Mended {
        fixes,
        count,
        original: came.to_owned(),
    })
}

/// What stands around a document: words, and a fence.
fn wrapping(text: &str, offset: usize) -> Vec<Fix> {
    let mut fixes = Vec::new();
    let mut at = offset;
    for line in text.split_inclusive('\n') {
        let said = line.trim();
        let kind = if said.starts_with("```") || said.starts_with("~~~") {
            FixKind::Fence
        } else {
            FixKind::Prose
        };
        let is_told = fixes.iter().any(|fix: &Fix| fix.kind == kind);
        if !said.is_empty() && !is_told {
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

    fn mended_of(came: &str) -> Option<Mended> {
        let base = PartialDocument::read(came).ok()?;
        repair_report(came, came, &base)
    }

    #[track_caller]
    fn check(came: &str, fixes: &[(FixKind, &str)]) {
        let told = mended_of(came).map_or(Vec::new(), |mended| mended.fixes);
        let told: Vec<_> = told
            .iter()
            .map(|fix| (fix.kind, &came[fix.offset..]))
            .collect();
        assert_eq!(told.len(), fixes.len(), "{came:?}: {told:?}");
        for ((kind, rest), (wanted, begin)) in told.iter().zip(fixes) {
            assert_eq!(kind, wanted, "{came:?}");
            assert!(rest.starts_with(begin), "{rest:?} and not {begin:?}");
        }
    }

    #[test]
    fn what_stood_around_a_document_is_told_where_it_was() {
        use FixKind::{Fence, Prose};
        check("```json\n[1]\n```", &[(Fence, "```json")]);
        check("Sure:\n[1]\n", &[(Prose, "Sure")]);
        check(
            "Here:\n```json\n[1]\n```\nDone.",
            &[(Prose, "Here"), (Fence, "```json"), (Prose, "Done")],
        );
    }

    #[test]
    fn what_was_wrong_in_a_document_is_told_where_it_was() {
        use FixKind::{Fence, Quotes, TrailingComma};
        check(
            "```\n['a',]\n```",
            &[(Fence, "```"), (Quotes, "'a'"), (TrailingComma, ",]")],
        );
    }

    proptest! {
        #[test]
        fn nothing_is_told_of_what_is_json_as_it_stands(rows in prop::collection::vec(any::<i32>(), 0..9), cut in 0..20_usize) {
            let text = format!(" {rows:?}\n");
            let text = &text[..text.len().min(cut + 2)];
            prop_assert_eq!(mended_of(text), None, "{}", text);
        }

        #[test]
        fn no_text_is_too_odd_to_be_told_of(came in "[ \n`~{}\\[\\]'\",:a-cé1]{0,40}") {
            if let Some(mended) = mended_of(&came) {
                prop_assert!(mended.fixes.iter().all(|fix| fix.offset <= came.len()));
                prop_assert_eq!(mended.original, came);
            }
        }
    }
}
