use overlock_json::{
    Arrival, ContextOptions, PartialDocument, Protocol, StitchOptions, StreamingDocument, stitch,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::documents::documents;

/// Text that models write before and after a piece of a document.
const BEFORE: [&str; 4] = ["", "", "Sure, here is the rest:\n", "```json\n"];
const AFTER: [&str; 9] = [
    "",
    "",
    "\n```",
    "}",
    "]]",
    " and so on",
    "\\",
    "\u{1}",
    ", 'x': 1}",
];

/// All text released while an answer arrives in pieces of `size` bytes.
fn given(arriving: &mut StreamingDocument, answer: &str, size: usize) -> String {
    let mut rest = answer;
    let mut given = String::new();
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.ceil_char_boundary(size));
        given.push_str(&arriving.feed(piece));
        rest = later;
    }
    given
}

fn settled<'a>(base: &'a PartialDocument<'_>) -> &'a str {
    &base.text()[..base.settled_len()]
}

/// Checks that the whole document was released, except the last piece before an error, and a final
/// comma, quote, number or literal of a growing document.
fn check_given(given: &str, settled: &str, arrival: Arrival) -> Result<(), TestCaseError> {
    let Some(held) = settled.strip_prefix(given) else {
        return Err(TestCaseError::fail(format!("{given:?} {settled:?}")));
    };
    prop_assert!(
        match arrival {
            Arrival::Spoilt => true,
            Arrival::Growing => is_doubtful(held, settled) || is_brackets(held),
            // The brackets that close a continued document wait for the text after it.
            Arrival::Whole => is_brackets(held),
            _ => held.is_empty(),
        },
        "{:?} {:?}",
        given,
        settled
    );
    Ok(())
}

/// Whether a text is only brackets, and perhaps the first string after them.
fn is_brackets(held: &str) -> bool {
    let rest = held.trim_start_matches(['{', '}', '[', ']', ',', ' ', '\t', '\r', '\n']);
    rest.is_empty() || rest.len() < held.len() && rest.starts_with('"')
}

/// Whether the held text is only a comma, a quote, or the end of a number or literal that may
/// continue and may have begun earlier.
fn is_doubtful(held: &str, settled: &str) -> bool {
    let without_comma = |text: &str| {
        let text = text.trim_end();
        text.strip_suffix(',').unwrap_or(text).trim_end().len()
    };
    let settled = &settled[..without_comma(settled)];
    let held = held[..without_comma(held)].trim_start();
    let is_number = held.bytes().all(|byte| b"+-.eE0123456789".contains(&byte));
    let letters = settled.trim_end_matches(|character: char| character.is_ascii_lowercase());
    let word = &settled[letters.len()..];
    let literals = ["true", "false", "null"];
    let is_literal =
        word.ends_with(held) && literals.iter().any(|literal| literal.starts_with(word));
    is_number || is_literal || held == "\""
}

fn check_first(answer: &str, size: usize) -> Result<(), TestCaseError> {
    let mut arriving = StreamingDocument::wrapped_document();
    let given = given(&mut arriving, answer, size);
    if matches!(arriving.arrival(), Arrival::Awaited | Arrival::Unclear) {
        prop_assert_eq!(given, "");
        return Ok(());
    }
    let base = PartialDocument::read(arriving.of_document(answer)).expect("a document has begun");
    check_given(&given, settled(&base), arriving.arrival())?;
    prop_assert_eq!(arriving.arrival() == Arrival::Whole, base.is_complete());
    Ok(())
}

fn check_later(base: &PartialDocument<'_>, answer: &str, size: usize) -> Result<(), TestCaseError> {
    let asked = base.contexts(&ContextOptions::default()).overlap_context;
    let mut arriving = StreamingDocument::after(base, &asked);
    let given = given(&mut arriving, answer, size);
    if matches!(arriving.arrival(), Arrival::Awaited | Arrival::Unclear) {
        prop_assert_eq!(given, "");
        return Ok(());
    }
    let mut joined = base.clone();
    let options = StitchOptions {
        protocol: Protocol::Overlap,
        expected_overlap: Some(&asked),
    };
    let seam = stitch(&mut joined, arriving.of_document(answer), &options);
    check_given(
        &format!("{}{given}", settled(base)),
        settled(&joined),
        arriving.arrival(),
    )?;
    prop_assert!(given.is_empty() || seam.outcome.is_accepted());
    // Brackets that close too much may be left out by the join.
    prop_assert!(arriving.arrival() != Arrival::Whole || joined.is_complete());
    Ok(())
}

#[test]
fn released_text_is_never_revised() {
    let strategy = (documents(), any::<u16>(), 1..50_usize);
    let config = Config {
        cases: 300,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&strategy, |(document, salt, size)| {
        let text = document.text();
        let mut salt = usize::from(salt);
        let mut draw = |count: usize| {
            salt = salt
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695);
            (salt >> 24) % count
        };
        for _ in 0..40 {
            let cut = text.floor_char_boundary(1 + draw(text.len()));
            let (before, after) = (BEFORE[draw(BEFORE.len())], AFTER[draw(AFTER.len())]);
            check_first(&format!("{before}{}{after}", &text[..cut]), size)?;
            let base = PartialDocument::read(&text[..cut]).expect("a container has begun");
            if base.is_complete() {
                continue;
            }
            let asked = base.contexts(&ContextOptions::default()).overlap_context;
            let end = text.floor_char_boundary(cut + draw(text.len() - cut + 1));
            let answer = format!("{before}{asked}{}{after}", &text[cut..end]);
            check_later(&base, &answer, size)?;
        }
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// Errors of models, and their position: before a closing bracket, after a value, or in place of one.
const SLIPS: [(&str, &str, &str); 9] = [
    ("trailing comma", "]", ",]"),
    ("trailing comma", "}", ", }"),
    ("no number", "null", "NaN"),
    ("comment", ",", ", // and more\n"),
    ("comment", "]", "/* all */]"),
    ("Python", "true", "True"),
    ("single quotes", "\"tag\"", "'tag'"),
    ("bare key", "\"tag\":", "tag:"),
    ("unescaped quotes", "said", "said \"no\" and"),
];

#[test]
fn a_repaired_document_begins_with_the_released_text() {
    let document = "{\"rows\": [1, 20, null, true, [\"a\", \"b\"]], \"tag\": \"x\", \
                    \"note\": \"she said so\", \"n\": {\"tag\": -1.5e3}}";
    for (slip, from, to) in SLIPS {
        for (at, _) in document.match_indices(from) {
            let text = [&document[..at], to, &document[at + from.len()..]].concat();
            let base = PartialDocument::read(&text).expect("a document");
            for size in 1..text.len() {
                let mut arriving = StreamingDocument::document();
                let given = given(&mut arriving, &text, size);
                assert!(
                    base.text().starts_with(&given),
                    "{slip}: {given:?} in pieces of {size} of {text:?}, repaired {:?}",
                    base.text()
                );
            }
        }
    }
}
