//! Joins against an adversary that knows the document.
//!
//! `OVERLOCK_ADVERSARY=100000 cargo test -p overlock-json --test it adversary -- --nocapture` prints
//! how many of so many joins are right, refused and silently wrong, by behaviour and mode.

use crate::adversary::{Findings, Mode, run};

fn joins() -> usize {
    let wanted = std::env::var("OVERLOCK_ADVERSARY");
    wanted
        .ok()
        .and_then(|joins| joins.parse().ok())
        .unwrap_or(4_000)
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
fn an_overlap_that_is_there_as_asked_always_joins() {
    let findings = run(joins(), 1);
    if let Ok(path) = std::env::var("OVERLOCK_STORIES") {
        std::fs::write(path, findings.stories.join("\n")).expect("the stories are written");
    }
    print(&findings);
    for (row, tally) in findings
        .rows
        .iter()
        .filter(|(row, _)| row.name == "as it should")
    {
        let is_right = row.mode == Mode::Auto || tally.right == tally.joins;
        assert!(is_right, "an overlap that is there as asked always joins");
    }
}

/// The silently wrong joins that are known, of so many with a fixed seed. Fewer are welcome here.
/// The one is a second `]` that closes a container too early, which shows only in what follows.
const KNOWN_WRONG: [(Mode, &str, usize); 4] = [
    (Mode::Asked, "to join", 1),
    (Mode::Asked, "to refuse", 0),
    (Mode::Auto, "to join", 0),
    (Mode::Auto, "to refuse", 0),
];

#[test]
fn no_more_joins_are_silently_wrong_than_are_known() {
    let findings = run(4_000, 1);
    let wrong = KNOWN_WRONG.map(|(mode, duty, _)| (mode, duty, findings.sums[&(mode, duty)].wrong));
    assert_eq!(wrong, KNOWN_WRONG);
    let asked = findings.sums[&(Mode::Asked, "to join")];
    assert!(asked.right * 100 >= asked.joins * 90, "{asked:?}");
    let streamed_otherwise = findings.rows.values().map(|tally| tally.streamed_otherwise);
    assert_eq!(streamed_otherwise.sum::<usize>(), 0);
    assert!(findings.chains.values().all(|tally| tally.wrong == 0));
}
