//! Repaired text parses, and valid JSON is returned byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_fuzz::parses;
use overlock_json::{RepairOptions, Several, repair};

fuzz_target!(|text: &[u8]| {
    for several in [Several::Array, Several::First] {
        let repaired = repair(text, &RepairOptions { several });
        if let Ok(repaired) = &repaired {
            assert!(parses(&repaired.json), "not JSON: {:?}", repaired.json);
        }
        if let Ok(text) = std::str::from_utf8(text)
            && parses(text)
        {
            let repaired = repaired.expect("valid JSON is JSON");
            assert_eq!(repaired.json, text);
            assert!(
                repaired.fixes.is_empty(),
                "nothing was wrong: {:?}",
                repaired.fixes
            );
        }
    }
});
