//! An extracted range lies within the text, and a lone document is extracted completely.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_fuzz::as_document;
use overlock_json::{clean_encoding, extract};

fuzz_target!(|text: &[u8]| {
    let cleaned = clean_encoding(text);
    assert_eq!(cleaned.text.len() + cleaned.dropped, text.len());
    if let Ok(text) = std::str::from_utf8(text) {
        assert_eq!(cleaned.text, text, "nothing should be dropped");
    }

    let extracted = extract(text);
    if let Some(extracted) = &extracted {
        assert!(extracted.start <= extracted.end && extracted.end <= text.len());
    }
    if let Some(document) = as_document(text) {
        let extracted = extracted.expect("a document has begun");
        let range = extracted.start..extracted.end;
        let found = document
            .get(range)
            .expect("a character is never cut in half");
        assert_eq!(found.trim(), document.trim());
    }
});
