//! Joins against an adversary that knows the document.
//!
//! `OVERLOCK_ADVERSARY=100000 cargo test -p overlock-json --test it adversary -- --nocapture` prints
//! how many of so many joins are right, refused and silently wrong, by behaviour and mode.

use overlock_json::{PartialDocument, Protocol, StitchOptions, stitch};
use proptest::prelude::*;

use crate::adversary::documents::document;
use crate::adversary::{Findings, Mode, run};

/// A number that is set in the environment.
fn set(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

fn print(findings: &Findings) {
    let line = |name: &str, mode: Mode, tally: &crate::adversary::Tally| {
        println!(
            "{name:40}{:8}{:>8}{:>8}{:>7}{:>9}{:>7}{:>8}",
            format!("{mode:?}"),
            tally.joins,
            tally.right,
            tally.short,
            tally.refused,
            tally.wrong,
            tally.streamed_otherwise
        );
    };
    println!(
        "{:40}{:8}{:>8}{:>8}{:>7}{:>9}{:>7}{:>8}",
        "behaviour", "mode", "joins", "right", "short", "refused", "wrong", "stream"
    );
    for (row, tally) in &findings.rows {
        line(&format!("{:2} {}", row.number, row.name), row.mode, tally);
    }
    for ((mode, duty), tally) in &findings.sums {
        line(duty, *mode, tally);
    }
    for (mode, tally) in &findings.chains {
        line("chains", *mode, tally);
    }
}

#[test]
fn an_overlap_that_is_there_as_asked_joins() {
    let seed = set("OVERLOCK_SEED").unwrap_or(1);
    let findings = run(
        document,
        set("OVERLOCK_ADVERSARY").unwrap_or(4_000),
        seed as u64,
    );
    if let Ok(path) = std::env::var("OVERLOCK_STORIES") {
        std::fs::write(path, findings.stories.join("\n")).expect("the stories are written");
    }
    print(&findings);
    for (row, tally) in findings
        .rows
        .iter()
        .filter(|(row, _)| row.name == "as it should")
    {
        // A document that says the overlap again is not told from a model that does.
        let is_right = tally.wrong == 0 && tally.right * 100 >= tally.joins * 98;
        assert!(row.mode == Mode::Auto || is_right, "{tally:?}");
    }
}

#[test]
fn no_join_is_silently_wrong() {
    let findings = run(document, 4_000, 1);
    for ((mode, duty), tally) in &findings.sums {
        assert!(
            *duty == "undecidable" || tally.wrong == 0,
            "{mode:?} {duty}"
        );
    }
    let asked = findings.sums[&(Mode::Asked, "to join")];
    assert!(asked.right * 100 >= asked.joins * 88, "{asked:?}");
    let streamed_otherwise = findings.rows.values().map(|tally| tally.streamed_otherwise);
    assert_eq!(streamed_otherwise.sum::<usize>(), 0);
    assert!(findings.chains.values().all(|tally| tally.wrong == 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Most streams arrive one byte at a time.
    #[test]
    fn a_stream_comes_to_what_the_whole_answer_does(seed in any::<u64>()) {
        let findings = run(document, 300, seed);
        let otherwise = findings.rows.values().map(|tally| tally.streamed_otherwise);
        prop_assert_eq!(otherwise.sum::<usize>(), 0, "{}", findings.stories.join("\n"));
    }
}

#[track_caller]
fn check_asked(base: &str, asked: &str, answer: &str, outcome: &str, joined: &str) {
    let mut document = PartialDocument::read(base).expect("a document has begun");
    assert!(base.ends_with(asked), "{asked:?}");
    let options = StitchOptions {
        protocol: Protocol::Overlap,
        expected_overlap: Some(asked),
    };
    let seam = stitch(&mut document, answer, &options);
    let reached = (seam.outcome.name(), document.text());
    assert_eq!(reached, (outcome, joined), "{base:?} + {answer:?}");
}

#[test]
fn a_reworded_restart_is_never_appended() {
    let base = r#"{"items":[{"t":"red fox"},{"t":"jay bird"},{"t":"owl in the barn"},{""#;
    let asked = r#",{"t":"jay bird"},{"t":"owl in the barn"},{""#;
    for restart in [
        r#"{"items":[{"t":"a red fox"},{"t":"jay bird"},{"t":"owl in the barn"},{"t":"hen"}]}"#,
        r#"{"items":[{"t":"jay bird"},{"t":"red fox"},{"t":"owl in the barn"},{"t":"hen"}]}"#,
    ] {
        let mut document = PartialDocument::read(base).expect("a document has begun");
        let options = StitchOptions {
            protocol: Protocol::Overlap,
            expected_overlap: Some(asked),
        };
        let seam = stitch(&mut document, restart, &options);
        assert!(!seam.outcome.is_accepted(), "{seam:?}");
        assert_eq!(document.text(), base);
    }
}

const CUT: &str = r#"{"title": "Rivers", "notes": ["the first delivery", "an improved de"#;
const ASKED: &str = r#"["the first delivery", "an improved de"#;
const REST: &str = r#"livery query"]}"#;
const WHOLE: &str =
    r#"{"title": "Rivers", "notes": ["the first delivery", "an improved delivery query"]}"#;

#[test]
fn an_overlap_that_is_written_twice_is_written_once() {
    for between in ["", "\n\n"] {
        let answer = [ASKED, between, ASKED, REST].concat();
        check_asked(CUT, ASKED, &answer, "overlap", WHOLE);
    }
}

#[test]
fn an_overlap_that_is_reworded_is_refused() {
    for (word, again) in [("first", "frist"), ("improved", "imporved"), ("the ", "a ")] {
        let mut document = PartialDocument::read(CUT).expect("a document has begun");
        let options = StitchOptions {
            protocol: Protocol::Overlap,
            expected_overlap: Some(ASKED),
        };
        let answer = [&ASKED.replace(word, again), REST].concat();
        let seam = stitch(&mut document, &answer, &options);
        assert!(!seam.outcome.is_accepted(), "{answer:?}: {seam:?}");
    }
}

#[test]
fn what_stands_before_the_overlap_is_left_out() {
    for before in [
        "... ",
        "Sure! Here is the rest:\n\n",
        "45%\n",
        "45\n",
        "45 percent\n",
        "45/100\n",
        "[[overlap]]\n",
        "- the overlap, word for word\n- then the rest\n\n",
        "# Continuation\n",
        "Hello! ",
        "\u{feff}",
    ] {
        check_asked(
            CUT,
            ASKED,
            &[before, ASKED, REST].concat(),
            "overlap",
            WHOLE,
        );
    }
}

#[test]
fn what_was_stripped_is_never_joined_to_a_token() {
    for (base, answer) in [
        (r#"{"values": [12, 7, 2"#, "... ,\n  9.387,\n  4\n]}"),
        (
            r#"{"text": "two words"#,
            "Sure! Here is the rest:\n\n and more\"}",
        ),
    ] {
        let mut document = PartialDocument::read(base).expect("a document has begun");
        let seam = stitch(&mut document, answer, &StitchOptions::default());
        assert!(!seam.outcome.is_accepted(), "{seam:?}");
    }
}

#[test]
fn slips_in_a_continuation_are_mended_where_it_joins() {
    for rest in [
        "livery query\",]}",
        "livery query\"]}}",
        "livery query\"/* the last */]}",
    ] {
        check_asked(CUT, ASKED, &[ASKED, rest].concat(), "overlap", WHOLE);
    }
    check_asked(
        r#"{"rows": [{"name": "Ada", "ok": "#,
        r#"{"name": "Ada", "ok": "#,
        r#"{"name": "Ada", "ok": True, 'note': 'new'}]}"#,
        "overlap",
        r#"{"rows": [{"name": "Ada", "ok": true, "note": "new"}]}"#,
    );
}

#[test]
fn an_equal_row_after_the_last_one_is_not_taken_for_an_overlap() {
    let row = "\n [\n  \"Oslo\",\n  \"ok\",\n  100\n ],";
    let base = format!("{{\"rows\": [{row}{row}\n [\n  ");
    let asked = &base[base.len() - row.len() - 5..];
    let answer = "\"Oslo\",\n  \"ok\",\n  100\n ],\n [\n  \"Bergen\"\n ]\n]}";
    check_asked(&base, asked, answer, "ambiguous", &base);
    check_asked("[7, 7, 7, ", "7, 7, ", "7, 8]", "ambiguous", "[7, 7, 7, ");
}

#[test]
fn typographic_quotes_and_line_ends_make_no_difference() {
    let typed = [ASKED, REST].concat().replace('"', "“");
    check_asked(CUT, ASKED, &typed, "overlap", WHOLE);
    let base = "{\n  \"title\": \"Rivers\",\n  \"rows\": [\n    ";
    let answer = base.replace('\n', "\r\n") + "1]}";
    check_asked(base, base, &answer, "resumed", &format!("{base}1]}}"));
}
