//! The scanner state does not depend on how the text was split.

use overlock_json::{Container, CutPlace, Scalar, Scanner, Visitor};
use proptest::prelude::*;

use crate::documents::documents;

fn scanned(text: &[u8]) -> Scanner {
    let mut scanner = Scanner::new();
    scanner.feed(text);
    scanner
}

#[track_caller]
fn check_cut(text: &str, place: CutPlace, path: &str) {
    let cut = scanned(text.as_bytes()).cut().expect("the text is cut");
    assert_eq!(
        (cut.place, cut.path.as_str()),
        (place, path),
        "cutting {text:?}"
    );
    assert_eq!(cut.offset, text.len());
}

#[test]
fn names_the_place_and_the_path_of_every_cut() {
    check_cut(" ", CutPlace::Root, "");
    check_cut(r#"{"a":["#, CutPlace::ContainerStart, "/a");
    check_cut(r#"{"a":1,"b"#, CutPlace::Key, "");
    check_cut(r#"{"a":1,"b""#, CutPlace::AfterKey, "/b");
    check_cut(r#"{"a":1,"b":"#, CutPlace::AfterColon, "/b");
    check_cut(r#"{"a":"xy"#, CutPlace::String, "/a");
    check_cut(r#"{"a":"x\u00"#, CutPlace::Escape, "/a");
    check_cut(r#"{"a":"x\ud83d"#, CutPlace::Escape, "/a");
    check_cut(r#"{"a":"x\ud83d\ud"#, CutPlace::Escape, "/a");
    check_cut("[7, 12", CutPlace::Number, "/1");
    check_cut("[7, tr", CutPlace::Literal, "/1");
    check_cut(r#"{"a":1 "#, CutPlace::AfterValue, "");
    check_cut("[7,", CutPlace::AfterComma, "");
    check_cut(
        r#"{"a/b":{"~\u00e9":[[],{"c":"#,
        CutPlace::AfterColon,
        "/a~1b/~0é/1/c",
    );
    check_cut(r#""root"#, CutPlace::String, "");
    check_cut("-", CutPlace::Number, "");
}

#[test]
fn complete_and_malformed_texts_have_no_cut() {
    for complete in ["{}", "[1] ", "\"a\"", "12", "null", " -1.5e-7"] {
        let scanner = scanned(complete.as_bytes());
        assert!(
            scanner.is_complete() && scanner.cut().is_none(),
            "{complete:?}"
        );
    }
    for (malformed, offset) in [
        ("{'a': 1}", 1),
        ("[1,]", 3),
        ("[1}", 2),
        ("[01", 2),
        ("[1.]", 3),
        ("[\"\t\"", 2),
        ("[\"\\x\"", 3),
        ("[\"\\u12g", 6),
        ("[trux", 4),
        ("{} x", 3),
        ("{\"a\" 1", 5),
        ("[1 2", 3),
        ("+1", 0),
        ("{,", 1),
        ("[-x", 2),
        ("12 x", 3),
        ("{\"a\":}", 5),
    ] {
        let scanner = scanned(malformed.as_bytes());
        assert_eq!(
            scanner
                .syntax_error()
                .map(|syntax_error| syntax_error.offset),
            Some(offset),
            "{malformed:?}"
        );
        assert!(
            !scanner.is_complete() && scanner.cut().is_none(),
            "{malformed:?}"
        );
    }
}

#[test]
fn a_syntax_error_says_what_was_expected_and_where() {
    let scanner = scanned(b"[1 2]");
    let syntax_error = scanner
        .syntax_error()
        .expect("a comma is missing")
        .to_string();
    assert_eq!(
        syntax_error,
        "expected `,` or the end of the container at byte 3"
    );
}

#[test]
fn a_million_levels_neither_overflow_nor_show_a_million_names() {
    let scanner = scanned("[".repeat(1_000_000).as_bytes());
    assert_eq!(scanner.depth(), 1_000_000);
    let path = scanner.path();
    assert!(path.contains("… 998999 levels …"), "{}", &path[..100]);
    assert!(path.len() < 5_000);
    let closing = scanner.closing(false).expect("a container has begun");
    assert_eq!(closing.closers.len(), 1_000_000);
}

proptest! {
    #[test]
    fn pieces_leave_the_state_of_the_whole(
        document in documents(),
        at in any::<prop::sample::Index>(),
        size in 1..9_usize,
    ) {
        let text = document.text();
        let text = &text.as_bytes()[..at.index(text.len() + 1)];
        let mut pieces = Scanner::new();
        for piece in text.chunks(size) {
            pieces.feed(piece);
            let stored = serde_json::to_string(&pieces).expect("the state serialises");
            pieces = serde_json::from_str(&stored).expect("the state comes back");
        }
        prop_assert_eq!(pieces, scanned(text));
    }

    #[test]
    fn any_bytes_leave_the_same_state_in_pieces(
        text in prop::collection::vec(prop::sample::select(&b"{}[]\",:\\u0d8aetrfn-1. \xC3\xA9\xF0"[..]), 0..60),
        size in 1..5_usize,
    ) {
        let mut pieces = Scanner::new();
        text.chunks(size).for_each(|piece| pieces.feed(piece));
        prop_assert_eq!(&pieces, &scanned(&text));
        // A damaged stored state never causes a panic.
        let serde = serde_json::from_slice::<serde_json::Value>(&text).is_ok();
        prop_assert!(!serde || pieces.is_complete());
    }

    #[test]
    fn a_damaged_state_is_refused_or_harmless(
        document in documents(),
        at in any::<prop::sample::Index>(),
        damage in any::<prop::sample::Index>(),
        digit in prop::sample::select(&b"0123456789"[..]),
    ) {
        let text = document.text();
        let (head, tail) = text.as_bytes().split_at(at.index(text.len()));
        let mut stored = serde_json::to_vec(&scanned(head)).expect("the state serialises");
        let digits: Vec<usize> = (0..stored.len()).filter(|at| stored[*at].is_ascii_digit()).collect();
        stored[digits[damage.index(digits.len())]] = digit;
        if let Ok(mut scanner) = serde_json::from_slice::<Scanner>(&stored) {
            scanner.feed(tail);
            let _ = (scanner.cut(), scanner.closing(false), scanner.losses(true));
        }
    }
}

/// Writes a document without white space from the calls of a scanner.
#[derive(Default)]
struct Retold {
    written: Vec<u8>,
    text: Vec<u8>,
    bare: Vec<u8>,
}

impl Retold {
    fn value(&mut self, value: &[u8]) {
        if !matches!(self.written.last(), None | Some(b'[' | b'{' | b':')) {
            self.written.push(b',');
        }
        self.written.extend_from_slice(value);
    }
}

impl Visitor for Retold {
    fn open(&mut self, container: Container) {
        self.value(match container {
            Container::Object => b"{",
            Container::Array => b"[",
        });
    }

    fn close(&mut self, container: Container) {
        self.written.push(match container {
            Container::Object => b'}',
            Container::Array => b']',
        });
    }

    fn key(&mut self, raw: &[u8]) {
        self.value(&[b"\"", raw, b"\":"].concat());
    }

    fn text(&mut self, raw: &[u8]) {
        self.text.extend_from_slice(raw);
    }

    fn bare(&mut self, raw: &[u8]) {
        self.bare.extend_from_slice(raw);
    }

    fn scalar(&mut self, kind: Scalar) {
        let text = std::mem::take(&mut self.text);
        let bare = std::mem::take(&mut self.bare);
        if kind == Scalar::String {
            assert!(bare.is_empty());
            self.value(&[b"\"", &text[..], b"\""].concat());
        } else {
            assert!(text.is_empty());
            self.value(&bare);
        }
    }
}

/// The document without the white space between its tokens.
fn tight(text: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let keeps = |character: &char| {
        let keeps = in_string || !character.is_ascii_whitespace();
        in_string ^= *character == '"' && !is_escaped;
        is_escaped = in_string && *character == '\\' && !is_escaped;
        keeps
    };
    text.chars().filter(keeps).collect()
}

proptest! {
    #[test]
    fn a_visitor_gets_all_tokens_for_every_split(
        document in documents(),
        sizes in prop::collection::vec(1..9_usize, 1..9),
    ) {
        let text = document.text();
        let mut retold = Retold::default();
        let mut scanner = Scanner::new();
        let mut rest = text.as_bytes();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            scanner.feed_with(piece, &mut retold);
            rest = after;
        }
        // Only the end of the text ends a root number.
        if !retold.bare.is_empty() {
            retold.scalar(Scalar::Number);
        }
        let written = String::from_utf8(retold.written).expect("the text was UTF-8");
        prop_assert_eq!(written, tight(&text));
    }
}
