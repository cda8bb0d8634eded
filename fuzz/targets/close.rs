//! Closing any bytes gives JSON or reports that there is none. A document that is only cut is not
//! changed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_fuzz::{as_document, parses, scanned};
use overlock_json::{CloseOptions, close};

fuzz_target!(|text: &[u8]| {
    for strict in [false, true] {
        let closed = close(text, &CloseOptions { strict });
        if let Ok(closed) = &closed {
            assert!(parses(&closed.json), "not JSON: {:?}", closed.json);
        }
        let Some(document) = as_document(text) else {
            continue;
        };
        let closed = closed.expect("a document has begun");
        let closing = scanned(text).closing(strict).expect("a document has begun");
        let kept = document
            .get(..closing.kept_len)
            .expect("a character is never cut in half");
        assert_eq!(
            closed.json.trim(),
            format!("{kept}{}", closing.closers).trim()
        );
        assert!(
            closed.fixes.is_empty(),
            "nothing needed a fix: {:?}",
            closed.fixes
        );
        assert_eq!(closed.complete, parses(document));
    }
});
