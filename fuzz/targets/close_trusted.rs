//! On text without an offence, the fast scan closes as the validating one does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_fuzz::scanned;
use overlock_json::close_trusted;

fuzz_target!(|text: &[u8]| {
    let scanner = scanned(text);
    if scanner.offence().is_some() {
        // Nothing is promised about the answer, but there must be one.
        let closing = close_trusted(text);
        assert!(closing.kept_len <= text.len());
        return;
    }
    if let Some(expected) = scanner.closing(false) {
        let closing = close_trusted(text);
        assert_eq!(closing.kept_len, expected.kept_len);
        assert_eq!(closing.closers, expected.closers);
    }
});
