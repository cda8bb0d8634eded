//! A fragment joins where it belongs, or not at all.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;

use overlock_json::{ContextOptions, Outcome, PartialDocument, Protocol, StitchOptions, stitch};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::documents::{Kind, documents};
use crate::simulator::{Behaviour, Question};

#[track_caller]
fn check_stitch(base: &str, fragment: &str, outcome: &str, joined: &str) {
    let mut base = PartialDocument::read(base).expect("the base is JSON");
    let before = base.text().to_owned();
    let seam = stitch(&mut base, fragment, &StitchOptions::default());
    assert_eq!(
        (seam.outcome.name(), base.text()),
        (outcome, joined),
        "{before:?} + {fragment:?}"
    );
}

#[test]
fn an_overlap_is_written_once() {
    check_stitch(
        r#"{"a":"hello wor"#,
        r#""hello world","b":1}"#,
        "overlap",
        r#"{"a":"hello world","b":1}"#,
    );
    check_stitch(
        r#"{"a":"hello wor"#,
        r#"{"a":"hello world","b":1}"#,
        "overlap",
        r#"{"a":"hello world","b":1}"#,
    );
    check_stitch(
        "[100, 217, 303, 412, 598,",
        "217, 303, 412, 598, 601]",
        "overlap",
        "[100, 217, 303, 412, 598, 601]",
    );
}

#[test]
fn what_could_be_two_documents_is_left_alone() {
    check_stitch("[0,0,0,", "0,0,0]", "ambiguous", "[0,0,0,");
    check_stitch("[7, 12", "2, 3]", "ambiguous", "[7, 12");
    check_stitch(
        "[100, 200, 300,",
        "200, 300, 400]",
        "ambiguous",
        "[100, 200, 300,",
    );
}

#[test]
fn the_asked_for_overlap_decides_what_is_otherwise_open() {
    let mut base = PartialDocument::read("[0,0,0,").expect("the base is JSON");
    let options = StitchOptions {
        expected_overlap: Some("0,"),
        ..StitchOptions::default()
    };
    let seam = stitch(&mut base, "0,0,0]", &options);
    assert_eq!((seam.outcome, seam.overlap), (Outcome::Overlap, 2));
    assert_eq!(base.text(), "[0,0,0,0,0]");
}

#[test]
fn a_continuation_joins_at_the_cut() {
    check_stitch(r#"{"a":[1,2,"#, "3,4]}", "exact", r#"{"a":[1,2,3,4]}"#);
    check_stitch(
        r#"[{"id":1},{"id":2},"#,
        r#"{"id":3},{"id":4}]"#,
        "exact",
        r#"[{"id":1},{"id":2},{"id":3},{"id":4}]"#,
    );
}

#[test]
fn a_restart_goes_on_at_the_cut() {
    check_stitch(
        r#"{"title": "Report", "rows": [{"id": 1, "name": "Ada"}, {"id": 2, "na"#,
        "Here you are:\n```json\n{\n  \"title\": \"Report\",\n  \"rows\": [\n    {\"id\": 1, \"name\": \"Ada\"},\n    {\"id\": 2, \"name\": \"Bob\"}\n  ]\n}\n```",
        "resumed",
        "{\"title\": \"Report\", \"rows\": [{\"id\": 1, \"name\": \"Ada\"}, {\"id\": 2, \"name\": \"Bob\"}\n  ]\n}",
    );
    check_stitch(
        r#"{"rows":[{"id":1,"name":"Ada"},{"id":2,"name":"B\u00f6"#,
        r#"{"id": 2, "name": "Böll"}]}"#,
        "resumed",
        r#"{"rows":[{"id":1,"name":"Ada"},{"id":2,"name":"B\u00f6ll"}]}"#,
    );
}

#[test]
fn an_empty_item_may_be_a_restart_that_was_closed_early() {
    let base = r#"{"title":"T","items":[{"id":1},{"id":2},"#;
    check_stitch(base, r#"{"title":"T","items":[{}]}"#, "ambiguous", base);
    check_stitch(base, r#"{"items":[{},{"id":3}]}"#, "ambiguous", base);
    let begun = r#"{"title":"T","items":[{"id":1},{"id":2},{"#;
    check_stitch(begun, r#"{"title":"T","items":[{}]}"#, "ambiguous", begun);
}

#[track_caller]
fn check_remainder(before: &str, fragment: &str, outcome: &str, joined: &str) {
    let mut base = PartialDocument::read(before).expect("the base is JSON");
    let options = StitchOptions {
        protocol: Protocol::Remainder,
        ..StitchOptions::default()
    };
    let seam = stitch(&mut base, fragment, &options);
    assert_eq!((seam.outcome.name(), base.text()), (outcome, joined));
}

#[test]
fn the_remaining_items_are_appended() {
    check_remainder(
        r#"{"title":"T","items":[{"id":1},{"id":2},"#,
        r#"{"items":[{"id":3},{"id":4}],"total":4}"#,
        "remainder",
        r#"{"title":"T","items":[{"id":1},{"id":2},{"id":3},{"id":4}],"total":4}"#,
    );
    check_remainder(
        r#"{"title":"T","items":[{"id":1},{"id":2} "#,
        r#"{"title":"T","items":[{"id":3}]}"#,
        "remainder",
        r#"{"title":"T","items":[{"id":1},{"id":2} ,{"id":3}]}"#,
    );
    check_remainder(
        r#"{"items":[{"id":1},{"id":2,"tags":["a","#,
        r#"{"items":[{"id":2,"tags":["a","b"]},{"id":3}]}"#,
        "remainder",
        r#"{"items":[{"id":1},{"id":2,"tags":["a","b"]},{"id":3}]}"#,
    );
    check_remainder(
        r#"{"items":[{"id":1},{"id":2},"#,
        r#"[{"id":3}]"#,
        "remainder",
        r#"{"items":[{"id":1},{"id":2},{"id":3}]"#,
    );
}

#[test]
fn items_that_were_not_asked_for_may_begin_the_document_again() {
    let base = r#"{"items":[{"id":1},{"id":2},"#;
    let rest = r#"{"items":[{"id":3},{"id":4}],"total":4}"#;
    check_stitch(base, rest, "ambiguous", base);
    let item = |id: usize| format!(r#"{{"id":{id},"name":"{}"}},"#, "red fox ".repeat(id));
    let items: String = (1..9).map(item).collect();
    let base = format!("{{\"items\":[{items}");
    let rest = r#"{"items":[{"id":9,"name":"owl"}],"total":9}"#;
    let joined = format!("{base}{}", &rest[10..]);
    check_stitch(&base, rest, "remainder", &joined);
}

#[test]
fn what_does_not_belong_is_refused() {
    let base = r#"{"items":[{"id":1},{"id":2},"#;
    check_stitch(
        base,
        r#"{"error":{"message":"overloaded"}}"#,
        "no-match",
        base,
    );
    check_stitch(base, r#"{"items":[{"id":1},{"id":"#, "repeat", base);
    check_stitch(base, "", "repeat", base);
    check_stitch(
        r#"{"a":"The wea"#,
        "I'm sorry, I was cut off. \", \"b\": 1}",
        "no-match",
        r#"{"a":"The wea"#,
    );
    check_stitch("{}", "1", "no-match", "{}");
}

#[test]
fn an_item_that_the_array_has_already_is_not_appended() {
    let base = r#"{"items":[{"id":1,"name":"Ada"},{"id":"#;
    let first_again = r#"{"items":[{"id":1,"name":"Ada"}]}"#;
    check_stitch(base, first_again, "ambiguous", base);
    let base = r#"{"rows":[[10,20],[30,40],[50,"#;
    let begun_anew = r#"{"rows":[[10,20],[30]]}"#;
    check_stitch(base, begun_anew, "no-match", base);
}

#[test]
fn the_remaining_items_of_a_tree_are_not_taken_for_its_inside() {
    let base = r#"{"name": "root", "children": [{"name": "a", "children": []}, {"name": ""#;
    let rest = r#"{"name": "root", "children": [{"name": "b", "children": []}]}"#;
    check_stitch(base, rest, "ambiguous", base);
}

#[test]
fn the_cut_record_again_and_its_successors_may_come_as_an_array() {
    check_stitch(
        r#"{"items":[{"id":1},{"id":2,"name":"B"#,
        r#"[{"id":2,"name":"Bob"},{"id":3,"name":"Eve"}]"#,
        "remainder",
        r#"{"items":[{"id":1},{"id":2,"name":"Bob"},{"id":3,"name":"Eve"}]"#,
    );
}

#[test]
fn a_list_in_a_refusal_is_not_the_end_of_a_cut_escape() {
    let base = r#"{"url":"http:\/\/db:5432\"#;
    let refusal = "Unfortunately it is too long.\n\n1. Split it\n2. Ask again";
    check_stitch(base, refusal, "no-match", base);
}

#[test]
fn a_number_at_the_cut_may_come_back_in_another_spelling() {
    check_stitch(
        r#"{"sensor": "kitchen", "values": [100"#,
        r#"{"sensor": "kitchen", "values": [1e2, 7]}"#,
        "resumed",
        r#"{"sensor": "kitchen", "values": [100, 7]}"#,
    );
}

#[test]
fn a_prefilled_answer_that_begins_the_document_again_is_no_news() {
    let base = r#"{"title": "The harbour", "chapters": [{"heading": "Morning"},"#;
    let mut joined = PartialDocument::read(base).expect("the base is JSON");
    let options = StitchOptions {
        protocol: Protocol::Prefill,
        ..StitchOptions::default()
    };
    let fragment = r#"{"title": "The harbour", "chapters": [{"head"#;
    let seam = stitch(&mut joined, fragment, &options);
    assert_eq!((seam.outcome, joined.text()), (Outcome::Repeat, base));
}

#[test]
fn an_answer_that_is_known_to_start_at_the_cut_may_repeat_earlier_items() {
    let options = StitchOptions {
        protocol: Protocol::AtCut,
        ..StitchOptions::default()
    };
    let item = r#"  {"name": "Santos", "about": "a river in the south-s", "size": 200}"#;
    let document = format!("[\n{}\n]", [item; 6].join(",\n"));
    for cut in 2..document.len() {
        for len in [12, 90, document.len()] {
            let end = document.len().min(cut + len);
            if document[cut..end].trim().is_empty() {
                continue;
            }
            let mut joined = PartialDocument::read(&document[..cut]).expect("an array has begun");
            let seam = stitch(&mut joined, &document[cut..end], &options);
            assert_eq!(
                (seam.outcome, joined.text()),
                (Outcome::Exact, &document[..end]),
                "cut at {cut}"
            );
        }
    }
    let cut = r#"{"title": "The harbour", "chapters": [{"heading": "Morn"#;
    let mut joined = PartialDocument::read(cut).expect("the base is JSON");
    let again = r#"{"title": "The harbour", "chapters": [{"head"#;
    let seam = stitch(&mut joined, again, &options);
    assert_eq!((seam.outcome, joined.text()), (Outcome::Repeat, cut));
}

#[test]
fn an_apology_is_not_written_into_a_string() {
    let options = StitchOptions {
        protocol: Protocol::Prefill,
        ..StitchOptions::default()
    };
    let check = |base: &str, fragment: &str, expected: &str| {
        let mut joined = PartialDocument::read(base).expect("the base is JSON");
        let seam = stitch(&mut joined, fragment, &options);
        assert_eq!(seam.outcome.name(), expected, "{base:?} {fragment:?}");
        let grown = if expected == "exact" { fragment } else { "" };
        assert_eq!(joined.text(), format!("{base}{grown}"));
    };
    let cut = r#"{"title": "Rivers of Eur"#;
    check(
        cut,
        "I'm sorry, but I cannot continue this document.",
        "no-match",
    );
    check(cut, "ope\", \"rows\": [", "exact");
    // In the middle of a sentence, and between values, these are words like others.
    check(r#"{"text": "And so"#, " I have come home.\"}", "exact");
    check(r#"{"text": "#, "\"I have come home.\"}", "exact");
}

#[track_caller]
fn check_asked(base: &str, fragment: &str, asked: &str, joined: &str) {
    let mut base = PartialDocument::read(base).expect("the base is JSON");
    let options = StitchOptions {
        expected_overlap: Some(asked),
        ..StitchOptions::default()
    };
    let seam = stitch(&mut base, fragment, &options);
    assert_eq!((seam.outcome, base.text()), (Outcome::Overlap, joined));
}

#[test]
fn more_than_the_asked_for_overlap_joins_after_it() {
    check_asked(
        "[[4, 5, 6], [4, 5, 6], [417, 525, 731, 862, 943, 188, 276, 359, 604, 910], ",
        "[417, 525, 731, 862, 943, 188, 276, 359, 604, 910], [4, 5, 7]]",
        "276, 359, 604, 910], ",
        "[[4, 5, 6], [4, 5, 6], [417, 525, 731, 862, 943, 188, 276, 359, 604, 910], [4, 5, 7]]",
    );
}

#[test]
fn less_than_the_asked_for_overlap_of_equal_items_is_no_more_than_it() {
    let item = format!(
        "\"{}\", ",
        "the same words in every item of the list ".repeat(2)
    );
    let document = format!(
        "[{}",
        item.repeat(20).trim_end_matches(", ").to_owned() + "]"
    );
    let cut = item.len() * 15 + 30;
    let asked = &document[cut - 500..cut];
    for repeated in 1..500 {
        let mut base = PartialDocument::read(&document[..cut]).expect("an array has begun");
        let options = StitchOptions {
            protocol: Protocol::Overlap,
            expected_overlap: Some(asked),
        };
        let fragment = &document[cut - repeated..];
        if fragment.trim_start().starts_with(asked.trim_start()) {
            // It is taken at its word.
            continue;
        }
        let seam = stitch(&mut base, fragment, &options);
        let is_right = base.text() == document;
        assert!(
            is_right || !seam.outcome.is_accepted(),
            "{repeated}: {seam:?}"
        );
    }
}

#[test]
fn talk_before_the_asked_for_overlap_may_have_braces_and_quotes() {
    check_asked(
        r#"{"rows": ["alpha", "be"#,
        "Continuing the {rows} after \"alpha\", as asked:\n[\"alpha\", \"beta\"]}",
        r#"["alpha", "be"#,
        r#"{"rows": ["alpha", "beta"]}"#,
    );
}

/// Comparisons that would cost the square of the text, or all of a large base.
#[test]
fn no_text_makes_stitching_slow() {
    let mut members = String::new();
    for number in 0..40_000 {
        let _ = write!(members, "\"k{number}\":{number},");
    }
    let zeros = "0,".repeat(8_000);
    let letters = "the quick brown fox. ".repeat(400_000);
    let cases = [
        (
            format!("[{zeros}"),
            format!("{zeros}{}]", "1".repeat(1_000_000)),
        ),
        (
            format!("{{{members}\"items\":[{{\"id\":1}},"),
            format!("{{{members}\"items\":[{{\"id\":2}}]}}"),
        ),
        (format!("[\"{letters}"), "[\"the quick\"]".to_owned()),
    ];
    for (base, fragment) in cases {
        let mut base = PartialDocument::read(&base).expect("the base is JSON");
        let seam = stitch(&mut base, &fragment, &StitchOptions::default());
        assert!(
            seam.scanned <= 40 * fragment.len() + 200_000,
            "{} bytes for {}",
            seam.scanned,
            fragment.len()
        );
    }
}

#[test]
fn a_character_cut_in_half_is_finished_by_the_next_fragment() {
    let document = r#"["日本語"]"#.as_bytes();
    for cut in 2..document.len() {
        let mut base = PartialDocument::read(&document[..cut]).expect("an array has begun");
        let options = StitchOptions {
            protocol: Protocol::Prefill,
            ..StitchOptions::default()
        };
        let seam = stitch(&mut base, &document[cut..], &options);
        assert_eq!(
            (seam.outcome, base.text().as_bytes()),
            (Outcome::Exact, document),
            "cut at {cut}"
        );
    }
}

/// What a raw string stands for, as UTF-16, where half a surrogate pair has its place.
fn code_units(raw: &str) -> Vec<u16> {
    let mut units = Vec::new();
    let mut rest = raw;
    while let Some(first) = rest.chars().next() {
        let len = match (first, rest.as_bytes().get(1)) {
            ('\\', Some(b'u')) => {
                units.extend(
                    rest.get(2..6)
                        .and_then(|digits| u16::from_str_radix(digits, 16).ok()),
                );
                6
            }
            ('\\', Some(escaped)) => {
                units.push(u16::from(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    other => *other,
                }));
                2
            }
            _ => {
                units.extend(first.encode_utf16(&mut [0; 2]).iter());
                first.len_utf8()
            }
        };
        rest = rest.get(len..).unwrap_or_default();
    }
    units
}

/// A document without the white space and escapes that make no difference.
fn normalised(json: &str) -> String {
    let mut out = String::new();
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let len = if first == '"' {
            let mut end = 1;
            while end < rest.len() && rest.as_bytes()[end] != b'"' {
                end += if rest.as_bytes()[end] == b'\\' { 2 } else { 1 };
            }
            let units = code_units(rest.get(1..end).unwrap_or(&rest[1..]));
            let _ = write!(out, "{units:?}");
            rest.len().min(end + 1)
        } else {
            if !first.is_whitespace() {
                out.push(first);
            }
            first.len_utf8()
        };
        rest = &rest[len..];
    }
    out
}

/// What became of the answers of one behaviour.
#[derive(Default)]
struct Tally {
    /// Joined to the document, or refused if there was nothing to join.
    right: usize,
    ambiguous: usize,
    refused: usize,
    wrong: usize,
    /// Answers about records, which two texts can tell apart, and how many of them were right.
    records: usize,
    records_right: usize,
}

/// What the table calls an answer.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Right,
    Ambiguous,
    Refused,
    Wrong,
}

/// Sends one answer and says what came of it.
fn verdict(
    question: &Question<'_>,
    base: &PartialDocument<'_>,
    behaviour: Behaviour,
) -> Option<(Verdict, String)> {
    let answer = question.answer(behaviour)?;
    if behaviour == Behaviour::ContinuesUnasked && question.doubles_at_the_cut() {
        return None;
    }
    let expects = behaviour.is_as_asked() && behaviour != Behaviour::Prefilled;
    let options = StitchOptions {
        protocol: behaviour.protocol(question.number),
        expected_overlap: expects.then_some(question.asked),
    };
    let mut joined = base.clone();
    let seam = stitch(&mut joined, &answer, &options);
    let accepted = seam.outcome.is_accepted();

    let document = question.document;
    let is_document = match behaviour {
        // An answer cut again before it said anything new is a repeat.
        Behaviour::AsAskedAndCutAgain => {
            document.starts_with(joined.text()) && (accepted || seam.outcome == Outcome::Repeat)
        }
        _ if behaviour.is_as_asked() => joined.text() == document,
        _ => normalised(joined.text()) == normalised(document),
    };
    let grew = joined.text().starts_with(&base.text()[..seam.offset])
        && joined.scanner().syntax_error().is_none();
    let stayed = joined.text() == base.text();
    let verdict = match seam.outcome {
        _ if !(if accepted { grew } else { stayed }) => Verdict::Wrong,
        Outcome::Ambiguous { .. } => Verdict::Ambiguous,
        _ if is_document && !behaviour.has_nothing_new() => Verdict::Right,
        _ if accepted => Verdict::Wrong,
        _ if behaviour.has_nothing_new() => Verdict::Right,
        _ => Verdict::Refused,
    };
    let story = format!(
        "{behaviour:?} with {options:?}\n{:?}\n+ {answer:?}\n= {:?}: {:?}",
        base.text(),
        seam.outcome,
        joined.text()
    );
    Some((verdict, story))
}

#[test]
fn stitching_is_a_law() {
    let tallies = RefCell::new(BTreeMap::<Behaviour, Tally>::new());
    let config = Config {
        cases: match std::env::var_os("OVERLOCK_LONG") {
            Some(_) => 300,
            None => 60,
        },
        max_shrink_iters: 500,
        ..Config::default()
    };
    let result = TestRunner::new(config).run(&(documents(), any::<u16>()), |(document, salt)| {
        let text = document.text();
        let cuts: Vec<usize> = (1..text.len())
            .filter(|at| text.is_char_boundary(*at))
            .collect();
        let step = 1 + cuts.len() / 40;
        for (number, cut) in cuts
            .into_iter()
            .enumerate()
            .skip(usize::from(salt) % step)
            .step_by(step)
        {
            let base = PartialDocument::read(&text[..cut]).expect("a container has begun");
            let asked = base.contexts(&ContextOptions::default()).overlap_context;
            let number = number + usize::from(salt);
            let question = Question {
                document: &text,
                value: &document.value,
                cut,
                asked: &asked,
                number,
            };
            for behaviour in Behaviour::ALL {
                let Some((verdict, story)) = verdict(&question, &base, behaviour) else {
                    continue;
                };
                let mut tallies = tallies.borrow_mut();
                let tally = tallies.entry(behaviour).or_default();
                match verdict {
                    Verdict::Right => tally.right += 1,
                    Verdict::Ambiguous => tally.ambiguous += 1,
                    Verdict::Refused => tally.refused += 1,
                    Verdict::Wrong => tally.wrong += 1,
                }
                if document.kind == Kind::Records && cut >= 16 {
                    tally.records += 1;
                    tally.records_right += usize::from(verdict == Verdict::Right);
                }
                prop_assert!(verdict != Verdict::Wrong, "silently wrong: {}", story);
                prop_assert!(
                    verdict == Verdict::Right
                        || !behaviour.is_as_asked()
                        || verdict == Verdict::Ambiguous && question.says_overlap_again(),
                    "{}",
                    story
                );
            }
        }
        Ok(())
    });
    let tallies = tallies.into_inner();
    println!(
        "{:32}{:>8}{:>11}{:>9}{:>7}{:>18}",
        "behaviour", "right", "ambiguous", "refused", "wrong", "right of records"
    );
    for (behaviour, tally) in &tallies {
        let name = format!("{behaviour:?}");
        let Tally {
            right,
            ambiguous,
            refused,
            wrong,
            records,
            records_right,
        } = tally;
        println!(
            "{name:32}{right:>8}{ambiguous:>11}{refused:>9}{wrong:>7}{records_right:>9}/{records}"
        );
    }
    if let Err(failure) = result {
        panic!("{failure}");
    }
    for (behaviour, tally) in tallies
        .iter()
        .filter(|(behaviour, _)| behaviour.is_decidable())
    {
        let Tally {
            records,
            records_right,
            ..
        } = tally;
        assert!(
            records_right * 100 >= records * 97,
            "{behaviour:?}: {records_right} of {records}"
        );
    }
}

#[test]
fn a_document_in_many_pieces_comes_together() {
    let mut runner = TestRunner::new(Config {
        cases: 60,
        ..Config::default()
    });
    let strategy = (documents(), 1..60_usize);
    let result = runner.run(&strategy, |(document, size)| {
        let text = document.text();
        let first = text.ceil_char_boundary(size);
        let mut base = PartialDocument::read(&text[..first]).expect("a container has begun");
        while !base.is_complete() {
            let asked = base.contexts(&ContextOptions::default()).overlap_context;
            let (cut, end) = (
                base.text().len(),
                text.ceil_char_boundary(base.text().len() + size),
            );
            let answer = format!("{asked}{}", text[cut..end].trim_end());
            let answer = if end == text.len() || answer.len() == asked.len() {
                format!("{asked}{}", &text[cut..])
            } else {
                answer
            };
            let options = StitchOptions {
                protocol: Protocol::Overlap,
                expected_overlap: Some(&asked),
            };
            let seam = stitch(&mut base, &answer, &options);
            // The model may have written the overlap twice.
            let is_doubled = text[cut..].starts_with(&asked);
            if is_doubled && matches!(seam.outcome, Outcome::Ambiguous { .. }) {
                return Ok(());
            }
            prop_assert!(
                seam.outcome == Outcome::Overlap,
                "{:?}: {:?}",
                seam.outcome,
                base.text()
            );
        }
        prop_assert_eq!(base.text(), &text);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

#[test]
fn joining_costs_the_fragment_and_not_the_base() {
    let record =
        |id: usize| format!(r#"{{"id": {id}, "title": "The record of that number {id}"}}, "#);
    let cost = |records: usize, respaced: bool, protocol: Protocol| {
        let text: String = std::iter::once("[".to_owned())
            .chain((0..records).map(|number| record(100_000 + number)))
            .collect();
        let base_text = &text[..text.len() - 12];
        let mut base = PartialDocument::read(base_text).expect("an array has begun");
        let start = if protocol == Protocol::Prefill {
            base_text.len()
        } else {
            base_text.len() - 200
        };
        let mut fragment = format!("{}{}null]", &text[start..], record(100_000 + records));
        if respaced {
            fragment = fragment.replace(", ", ",\n  ");
        }
        let options = StitchOptions {
            protocol,
            ..StitchOptions::default()
        };
        let seam = stitch(&mut base, &fragment, &options);
        (seam.outcome.name(), seam.scanned)
    };
    for (respaced, protocol, outcome) in [
        (false, Protocol::Overlap, "overlap"),
        (false, Protocol::Prefill, "exact"),
        (true, Protocol::Overlap, "reformatted"),
    ] {
        let (small, large) = (
            cost(4_000, respaced, protocol),
            cost(400_000, respaced, protocol),
        );
        assert_eq!((small.0, large.0), (outcome, outcome));
        assert!(
            large.1 <= small.1 + 1_000,
            "{outcome}: {} bytes for 100 times the base of {}",
            large.1,
            small.1
        );
    }
}
