//! Scanning a text in pieces, also with the state stored in between, equals scanning it at once. It
//! is complete exactly when another parser accepts it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_fuzz::{number_and_text, parses, pieces, scanned};
use overlock_json::Scanner;

fuzz_target!(|input: &[u8]| {
    let (number, text) = number_and_text(input);
    let whole = scanned(text);

    let mut scanner = Scanner::new();
    let middle = text.len() / 2;
    for piece in pieces(number, text) {
        let before = scanner.offset();
        scanner.feed(piece);
        if before <= middle && middle < before + piece.len() {
            scanner = stored_and_restored(&scanner);
        }
    }
    assert_eq!(scanner, whole, "pieces differ from the whole");

    let complete = whole.is_complete() && whole.syntax_error().is_none();
    // The scanner does not check UTF-8.
    if let Ok(text) = std::str::from_utf8(text) {
        assert_eq!(complete, parses(text), "another parser disagrees");
    }
    if whole.syntax_error().is_some() || complete {
        assert_eq!(whole.cut(), None, "only an open document is cut");
    }
});

fn stored_and_restored(scanner: &Scanner) -> Scanner {
    let stored = serde_json::to_string(scanner).expect("a scanner can be stored");
    let restored = serde_json::from_str(&stored).expect("a stored scanner can be read");
    assert_eq!(*scanner, restored, "storing changed the state");
    restored
}
