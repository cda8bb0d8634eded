//! A join keeps the base, except for half an escape at its end, and gives a valid prefix of JSON. A
//! rejection changes nothing.
//!
//! The input is a base, a fragment, and optionally the requested overlap.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_fuzz::{SEPARATOR, scanned};
use overlock_json::{PartialDocument, Protocol, StitchOptions, stitch};

fuzz_target!(|input: &[u8]| {
    let mut texts = input.splitn(3, |byte| *byte == SEPARATOR);
    let (Some(text), Some(fragment)) = (texts.next(), texts.next()) else {
        return;
    };
    let expected_overlap = texts.next().and_then(|text| std::str::from_utf8(text).ok());
    let Ok(base) = PartialDocument::read(text) else {
        return;
    };
    assert_eq!(
        *base.scanner(),
        scanned(base.text().as_bytes()),
        "the base knows its own state"
    );

    for protocol in [
        Protocol::Overlap,
        Protocol::Prefill,
        Protocol::AtCut,
        Protocol::Remainder,
        Protocol::Auto,
    ] {
        for expected_overlap in [None, expected_overlap] {
            let mut stitched = base.clone();
            let options = StitchOptions {
                protocol,
                expected_overlap,
            };
            let seam = stitch(&mut stitched, fragment, &options);
            if seam.outcome.is_accepted() {
                assert!(
                    stitched.text().starts_with(settled(base.text())),
                    "the base was changed"
                );
                let scanner = scanned(stitched.text().as_bytes());
                assert_eq!(scanner.syntax_error(), None, "the result is not JSON");
                assert_eq!(
                    *stitched.scanner(),
                    scanner,
                    "the state is not that of the result"
                );
            } else {
                assert_eq!(stitched.text(), base.text(), "a refusal changed the base");
                assert_eq!(
                    stitched.scanner(),
                    base.scanner(),
                    "a refusal changed the state"
                );
            }
        }
    }
});

/// The base without an incomplete escape sequence or surrogate pair at its end, which a fragment may
/// rewrite.
fn settled(base: &str) -> &str {
    let longest = r"\ud83c\udf0".len();
    let tail = base.len().saturating_sub(longest);
    let held = base.as_bytes()[tail..]
        .iter()
        .position(|byte| *byte == b'\\');
    held.map_or(base, |at| &base[..tail + at])
}
