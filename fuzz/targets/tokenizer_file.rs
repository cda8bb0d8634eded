//! Reading any bytes as a tokenizer file terminates. Text that it truncates to a number of tokens
//! has at most that many.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_budget::{CountTokens, Keep, TokenizerFile};
use overlock_fuzz::SEPARATOR;

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(2, |byte| *byte == SEPARATOR);
    let json = parts.next().unwrap_or_default();
    let text = String::from_utf8_lossy(parts.next().unwrap_or(b"the end's\n\n 12 a"));
    let Ok(counter) = TokenizerFile::new(json) else {
        return;
    };
    let all = counter.count(&text);
    assert_eq!(counter.count(&text), all, "counting twice gives the same");
    if all < u64::MAX {
        assert_eq!(counter.count_up_to(&text, all), Some(all));
    }
    for keep in [Keep::Start, Keep::End] {
        for tokens in [0, 1, all / 2] {
            let part = counter.truncate_to(&text, tokens, keep);
            assert!(
                part.is_empty() || counter.count(part) <= tokens,
                "{part:?} counts more than {tokens}"
            );
        }
    }
    counter.count_with_control(&text);
});
