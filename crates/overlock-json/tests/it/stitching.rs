//! A fragment joins where it belongs, or not at all.

use std::cell::RefCell;
use std::collections::BTreeMap;

use overlock_json::{Base, ContextOptions, Outcome, Protocol, StitchOptions, contexts, stitch};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::documents::{Kind, documents};
use crate::simulator::{Behaviour, Question};

#[track_caller]
fn check_stitch(base: &str, fragment: &str, outcome: &str, joined: &str) {
    let mut base = Base::read(base).expect("the base is JSON");
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
        "[100, 200, 300,",
        "200, 300, 400]",
        "overlap",
        "[100, 200, 300, 400]",
    );
}

#[test]
fn what_could_be_two_documents_is_left_alone() {
    check_stitch("[0,0,0,", "0,0,0]", "ambiguous", "[0,0,0,");
    check_stitch("[7, 12", "2, 3]", "ambiguous", "[7, 12");
}

#[test]
fn the_asked_for_overlap_decides_what_is_otherwise_open() {
    let mut base = Base::read("[0,0,0,").expect("the base is JSON");
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
fn the_remaining_items_are_appended() {
    check_stitch(
        r#"{"title":"T","items":[{"id":1},{"id":2},"#,
        r#"{"items":[{"id":3},{"id":4}],"total":4}"#,
        "remainder",
        r#"{"title":"T","items":[{"id":1},{"id":2},{"id":3},{"id":4}],"total":4}"#,
    );
    check_stitch(
        r#"{"title":"T","items":[{"id":1},{"id":2} "#,
        r#"{"title":"T","items":[{"id":3}]}"#,
        "remainder",
        r#"{"title":"T","items":[{"id":1},{"id":2} ,{"id":3}]}"#,
    );
    check_stitch(
        r#"{"items":[{"id":1},{"id":2,"tags":["a","#,
        r#"{"items":[{"id":2,"tags":["a","b"]},{"id":3}]}"#,
        "remainder",
        r#"{"items":[{"id":1},{"id":2,"tags":["a","b"]},{"id":3}]}"#,
    );
    check_stitch(
        r#"{"items":[{"id":1},{"id":2},"#,
        r#"[{"id":3}]"#,
        "remainder",
        r#"{"items":[{"id":1},{"id":2},{"id":3}]"#,
    );
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
fn a_character_cut_in_half_is_finished_by_the_next_fragment() {
    let document = r#"["日本語"]"#.as_bytes();
    for cut in 2..document.len() {
        let mut base = Base::read(&document[..cut]).expect("an array has begun");
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
            out.push_str(&format!(
                "{:?}",
                code_units(rest.get(1..end).unwrap_or(&rest[1..]))
            ));
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

#[derive(Default)]
struct Tally {
    right: usize,
    ambiguous: usize,
    refused: usize,
    wrong: usize,
    /// Of the documents that do not repeat themselves: all, and those not joined.
    distinct: usize,
    missed: usize,
}

#[test]
fn stitching_is_a_law() {
    let tallies = RefCell::new(BTreeMap::<Behaviour, Tally>::new());
    let mut runner = TestRunner::new(Config {
        cases: 150,
        max_shrink_iters: 200,
        ..Config::default()
    });
    let strategy = (documents(), any::<u16>());
    let result = runner.run(&strategy, |(document, salt)| {
        let text = document.text();
        let begun = 1 + text.len() - text.trim_start().len();
        let cuts: Vec<usize> = (begun..text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        let step = 1 + cuts.len() / 40;
        for (number, cut) in cuts.into_iter().enumerate().skip(usize::from(salt) % step).step_by(step) {
            let base = Base::read(&text[..cut]).expect("a container has begun");
            let asked = contexts(&text[..cut], &ContextOptions::default()).expect("as above").overlap_context;
            let number = number + usize::from(salt);
            let question = Question { document: &text, value: &document.value, cut, asked: &asked, number };
            for behaviour in Behaviour::ALL.into_iter() {
                let Some(answer) = question.answer(behaviour) else { continue };
                if behaviour == Behaviour::ContinuesUnasked && question.doubles_at_the_cut() {
                    continue;
                }
                let mut tallies = tallies.borrow_mut();
                let tally = tallies.entry(behaviour).or_default();
                let options = StitchOptions {
                    protocol: behaviour.protocol(number),
                    expected_overlap: (behaviour.is_as_asked() && behaviour != Behaviour::Prefilled).then_some(asked.as_str()),
                };
                let mut joined = base.clone();
                let seam = stitch(&mut joined, &answer, &options);

                let is_right = if behaviour == Behaviour::AsAskedAndCutAgain {
                    text.starts_with(joined.text()) && joined.text().len() >= cut
                } else if behaviour.is_as_asked() {
                    joined.text() == text
                } else {
                    normalised(joined.text()) == normalised(&text)
                };
                let accepted = seam.outcome.is_accepted();
                if !accepted {
                    prop_assert_eq!(joined.text(), base.text());
                }
                let is_prefix = joined.scanner().offence().is_none() && joined.text().starts_with(&base.text()[..seam.offset]);
                prop_assert!(is_prefix);
                match (&seam.outcome, is_right, behaviour.has_nothing_new()) {
                    (Outcome::Ambiguous { .. }, _, _) => tally.ambiguous += 1,
                    (_, true, false) => tally.right += 1,
                    (_, _, true) if !accepted => tally.right += 1,
                    _ if accepted => tally.wrong += 1,
                    _ => tally.refused += 1,
                }
                if (base.text().len() > 30 || accepted) && (!is_right && !behaviour.has_nothing_new() || accepted && behaviour.has_nothing_new()) && (accepted || document.kind != Kind::Periodic) && std::env::var("SAMPLES").is_ok_and(|v| v == format!("{behaviour:?}") || v == "Wrong" && accepted) {
                    println!("SAMPLE {behaviour:?} {:?} {:?} {:?}\n   BASE {:?}\n   ANSWER {answer:?}\n   JOINED {:?}", seam.outcome, options.protocol, document.kind, base.text(), joined.text());
                }
                if accepted && !is_right || accepted && behaviour.has_nothing_new() {
                    if std::env::var("SAMPLES").is_err() { prop_assert!(false, "{behaviour:?} {:?}: {:?} + {answer:?} gave {:?} with {options:?}", seam.outcome, base.text(), joined.text()); }
                }
                if document.kind != Kind::Periodic && cut >= 16 {
                    tally.distinct += 1;
                    tally.missed += usize::from(!accepted);
                }
                // An answer cut again before it said anything new is a repeat.
                let may_repeat = behaviour == Behaviour::AsAskedAndCutAgain && seam.outcome == Outcome::Repeat;
                prop_assert!(!behaviour.is_as_asked() || accepted || may_repeat, "{behaviour:?} {:?}: {:?} + {answer:?}", seam.outcome, base.text());
            }
        }
        Ok(())
    });
    let tallies = tallies.into_inner();
    println!(
        "{:34}{:>8}{:>11}{:>9}{:>7}{:>14}",
        "behaviour", "right", "ambiguous", "refused", "wrong", "distinct"
    );
    for (behaviour, tally) in &tallies {
        let joined = 100.0 * (1.0 - tally.missed as f64 / tally.distinct.max(1) as f64);
        println!(
            "{:34}{:>8}{:>11}{:>9}{:>7}{joined:>13.2}%",
            format!("{behaviour:?}"),
            tally.right,
            tally.ambiguous,
            tally.refused,
            tally.wrong
        );
    }
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
