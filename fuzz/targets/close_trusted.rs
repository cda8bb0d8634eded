//! Without a syntax error the fast scan closes like the validating one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_fuzz::scanned;
use overlock_json::{Closing, close_trusted, close_trusted_portable};

fuzz_target!(|text: &[u8]| {
    let essence =
        |closing: Option<Closing>| closing.map(|closing| (closing.kept_len, closing.closers));
    let closing = essence(close_trusted(text));
    assert_eq!(
        closing,
        essence(close_trusted_portable(text)),
        "the machine decides"
    );

    let scanner = scanned(text);
    if scanner.syntax_error().is_none() {
        assert_eq!(closing, essence(scanner.closing(false)));
    } else if let Some((kept_len, _)) = closing {
        // Other text has no further guarantees.
        assert!(kept_len <= text.len());
    }
});
