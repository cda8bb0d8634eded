//! Counting a document while it grows equals a fresh count of the whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_fuzz::{as_document, number_and_text, pieces};
use overlock_json::{Delivered, Scanner, delivered};

fuzz_target!(|input: &[u8]| {
    let (number, text) = number_and_text(input);
    let mut grown = Delivered::default();
    let mut scanner = Scanner::new();
    for piece in pieces(number, text) {
        scanner.feed_with(piece, &mut grown);
    }

    let mut fresh = Delivered::default();
    Scanner::new().feed_with(text, &mut fresh);
    assert_eq!(grown, fresh, "pieces differ from the whole");
    assert_eq!(grown.to_string(), fresh.lines().join("\n"));

    if as_document(text).is_some() {
        let counted = delivered(text).expect("a document has begun");
        assert_eq!(counted.lines(), fresh.lines());
    }
});
