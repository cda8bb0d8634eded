//! Shared code of the fuzz targets: splitting inputs, and the reference parser.
//!
//! Inputs are readable, so that seeds can be written by hand. A number is the first byte, and
//! several texts are separated by [`SEPARATOR`].

use overlock_json::Scanner;
use serde::de::IgnoredAny;

/// The byte between two texts of an input.
pub const SEPARATOR: u8 = 0x1e;

/// Whether another parser accepts the text as a complete JSON document.
pub fn parses(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The scanner after the whole text.
pub fn scanned(text: &[u8]) -> Scanner {
    let mut scanner = Scanner::new();
    scanner.feed(text);
    scanner
}

/// The text as UTF-8, if it is the beginning of an object or array.
///
/// Other texts would be extracted or repaired first.
pub fn as_document(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let begun = text
        .trim_start_matches([' ', '\t', '\n', '\r'])
        .starts_with(['{', '[']);
    (begun && scanned(text.as_bytes()).syntax_error().is_none()).then_some(text)
}

/// The first byte as a number, and the rest.
pub fn number_and_text(input: &[u8]) -> (usize, &[u8]) {
    input
        .split_first()
        .map_or((0, input), |(first, text)| (usize::from(*first), text))
}

/// Splits a text into pieces of one to sixteen bytes.
pub fn pieces(number: usize, text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.chunks(number % 16 + 1)
}
