//! Closing keeps every complete value of every prefix of a document.

use std::collections::BTreeMap;
use std::env;
use std::sync::Mutex;

use overlock_json::{
    CloseOptions, Closed, NoJson, Scanner, close, close_trusted, close_trusted_portable,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::documents::{Kind, documents};

/// A leaf in document order. Empty containers are leaves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    path: String,
    spelling: String,
    end: usize,
}

/// The leaves of a valid document, in document order, without recursion.
pub(crate) fn leaves(json: &str) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut counts: Vec<Option<usize>> = Vec::new();
    let bytes = json.as_bytes();
    let leaf = |path: &[String], spelling: &str, end| Leaf {
        path: path.join("/"),
        spelling: spelling.to_owned(),
        end,
    };
    let (mut at, mut opened) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                counts.push((bytes[at] == b'[').then_some(0));
                if bytes[at] == b'[' {
                    path.push("0".to_owned());
                }
                opened = true;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                let is_array = counts.pop().expect("the document is valid").is_some();
                if is_array || !opened {
                    path.pop();
                }
                at += 1;
                if opened {
                    leaves.push(leaf(&path, if is_array { "[]" } else { "{}" }, at));
                }
            }
            b',' => {
                match counts.last_mut().expect("commas stand in containers") {
                    Some(index) => {
                        *index += 1;
                        *path.last_mut().expect("an array has an index") = index.to_string();
                    }
                    None => drop(path.pop()),
                }
                at += 1;
            }
            b':' | b' ' | b'\n' | b'\r' | b'\t' => {
                at += 1;
                continue;
            }
            b'"' => {
                let start = at;
                at += 1;
                while bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                let after = json[at..].trim_start();
                let is_key = counts.last() == Some(&None) && after.starts_with(':');
                if is_key {
                    path.push(json[start..at].to_owned());
                } else {
                    leaves.push(leaf(&path, &json[start..at], at));
                }
            }
            _ => {
                let start = at;
                while at < bytes.len() && !b",]} \n\r\t".contains(&bytes[at]) {
                    at += 1;
                }
                leaves.push(leaf(&path, &json[start..at], at));
            }
        }
        opened = false;
    }
    leaves
}

#[track_caller]
fn check_close(text: &str, json: &str, truncated: Option<&str>, dropped: Option<&str>) {
    let closed = close(text, &CloseOptions::default()).expect("there is JSON in the text");
    let have = (
        closed.json.as_str(),
        closed.truncated.as_deref(),
        closed.dropped.as_deref(),
    );
    assert_eq!(have, (json, truncated, dropped), "closing {text:?}");
}

#[test]
fn closes_every_kind_of_cut() {
    check_close(r#"{"a":["#, r#"{"a":[]}"#, None, None);
    check_close(r#"{"a":1,"b"#, r#"{"a":1}"#, None, None);
    check_close(r#"{"a":1,"b""#, r#"{"a":1}"#, None, Some("/b"));
    check_close(r#"{"a":1,"b":"#, r#"{"a":1}"#, None, Some("/b"));
    check_close(r#"{"a":"xy"#, r#"{"a":"xy"}"#, Some("/a"), None);
    check_close(r#"{"a":"x\u00"#, r#"{"a":"x"}"#, Some("/a"), None);
    check_close(r#"{"a":"x\ud83d\ude"#, r#"{"a":"x"}"#, Some("/a"), None);
    check_close("[7, 12", "[7]", None, Some("/1"));
    check_close("[7, tr", "[7, true]", None, None);
    check_close(r#"{"a":1 "#, r#"{"a":1 }"#, None, None);
    check_close("[7,", "[7]", None, None);
    check_close(r#"{ "a" : { "b"#, r#"{ "a" : {}}"#, None, None);
}

#[test]
fn closes_root_scalars_that_are_certain() {
    check_close(r#""abc"#, r#""abc""#, Some(""), None);
    check_close("12", "12", None, None);
    check_close("nul", "null", None, None);
    for nothing in ["", " ", "-", "1.", "\u{feff}"] {
        assert!(
            close(nothing, &CloseOptions::default()).is_err(),
            "{nothing:?}"
        );
    }
    assert_eq!(close("", &CloseOptions::default()), Err(NoJson::Empty));
}

#[test]
fn strict_closing_drops_the_half_string() {
    let strict = CloseOptions { strict: true };
    let closed = close(r#"{"a":[1,"xy"#, &strict).expect("a container has begun");
    let wanted = Closed {
        json: r#"{"a":[1]}"#.to_owned(),
        complete: false,
        truncated: None,
        dropped: Some("/a/1".to_owned()),
        fixes: Vec::new(),
    };
    assert_eq!(closed, wanted);
    assert!(close(r#""ab"#, &strict).is_err());
}

/// Checks the property of closing for one document at one offset.
pub(crate) fn check_law(text: &str, whole: &[Leaf], offset: usize) -> Result<(), TestCaseError> {
    let prefix = &text.as_bytes()[..offset];
    let closed = close(prefix, &CloseOptions::default()).expect("a container has begun");
    prop_assert!(
        serde_json::from_str::<serde::de::IgnoredAny>(&closed.json).is_ok(),
        "{}",
        closed.json
    );
    prop_assert!(closed.fixes.is_empty());
    let have = leaves(&closed.json);

    let mut differing = 0;
    for (have, whole) in have.iter().zip(whole) {
        if (&have.path, &have.spelling) == (&whole.path, &whole.spelling) {
            continue;
        }
        differing += 1;
        let is_container = have.spelling == "[]" || have.spelling == "{}";
        let is_cut_string = closed.truncated.is_some()
            && have.path == whole.path
            && whole
                .spelling
                .starts_with(&have.spelling[..have.spelling.len() - 1]);
        prop_assert!(
            is_cut_string || is_container && whole.path.starts_with(&have.path),
            "{have:?} is not {whole:?} in {}",
            closed.json
        );
    }
    prop_assert!(differing <= 1 && have.len() <= whole.len());

    // A number is complete only if something follows it.
    let is_number = |leaf: &Leaf| {
        leaf.spelling
            .starts_with(|c: char| c == '-' || c.is_ascii_digit())
    };
    let complete = whole
        .iter()
        .filter(|leaf| leaf.end + usize::from(is_number(leaf)) <= offset)
        .count();
    prop_assert!(
        have.len() >= complete,
        "{} of {complete} leaves in {}",
        have.len(),
        closed.json
    );

    // `close_trusted` finds the same length and closers.
    let mut scanner = Scanner::new();
    scanner.feed(prefix);
    let closing = scanner.closing(false);
    prop_assert_eq!(&close_trusted(prefix), &closing);
    prop_assert_eq!(&close_trusted_portable(prefix), &closing);
    Ok(())
}

#[test]
fn every_prefix_closes_to_its_complete_values() {
    let shares = Mutex::new(BTreeMap::<&str, usize>::new());
    let mut runner = TestRunner::new(Config {
        cases: if env::var_os("OVERLOCK_LONG").is_some() {
            2_000
        } else {
            60
        },
        ..Config::default()
    });
    let result = runner.run(&documents(), |document| {
        let text = document.text();
        let whole = leaves(&text);
        let begun = text.len() - text.trim_start().len() + 1;
        let mut shares = shares.lock().expect("no test panicked with the lock");
        *shares.entry("documents").or_default() += 1;
        *shares.entry("periodic").or_default() += usize::from(document.kind == Kind::Periodic);
        *shares.entry("deeper than 50").or_default() += usize::from(document.kind == Kind::Deep);
        *shares.entry("with cuts in an escape").or_default() += usize::from(text.contains('\\'));
        for offset in begun..=text.len() {
            *shares.entry("cuts").or_default() += 1;
            check_law(&text, &whole, offset)?;
        }
        Ok(())
    });
    let shares = shares.into_inner().expect("no test panicked with the lock");
    println!("{shares:?}");
    if let Err(failure) = result {
        panic!("{failure}");
    }
    for (kind, least) in [
        ("periodic", 20),
        ("with cuts in an escape", 20),
        ("deeper than 50", 10),
    ] {
        assert!(
            shares[kind] * 100 >= least * shares["documents"],
            "{kind}: {shares:?}"
        );
    }
}

#[test]
fn a_bracket_in_an_open_string_without_a_container_closes_nothing() {
    for text in ["\"}", "\r\"a]", "\"\\\"] "] {
        let mut scanner = Scanner::new();
        scanner.feed(text.as_bytes());
        let closing = scanner.closing(false);
        assert_eq!(close_trusted(text.as_bytes()), closing, "{text:?}");
        assert_eq!(close_trusted_portable(text.as_bytes()), closing, "{text:?}");
        let closers = closing.map(|closing| closing.closers);
        assert_eq!(closers.as_deref(), Some("\""), "{text:?}");
    }
}
