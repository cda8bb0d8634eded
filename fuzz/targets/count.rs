//! Every encoding counts like a reference implementation, stops exactly at a limit, and truncates to
//! the longest part that fits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_budget::{CountTokens, Encoding, Keep};
use overlock_fuzz::number_and_text;
use tiktoken_rs::{
    CoreBPE, cl100k_base_singleton, o200k_base_singleton, o200k_harmony_singleton,
    p50k_base_singleton, r50k_base_singleton,
};

fuzz_target!(|input: &[u8]| {
    let (number, text) = number_and_text(input);
    let text = String::from_utf8_lossy(text);
    let encoding = Encoding::ALL[number % Encoding::ALL.len()];
    let count = encoding.count(&text);
    let expected = oracle(encoding).encode_ordinary(&text).len() as u64;
    assert_eq!(count, expected, "{encoding}");
    assert_eq!(encoding.count_up_to(&text, count), Some(count));
    if let Some(less) = count.checked_sub(1) {
        assert_eq!(encoding.count_up_to(&text, less), None);
    }
    // Tries all parts, so only for short texts.
    if text.len() > 300 {
        return;
    }
    let tokens = count * (number as u64 / 5) / 50;
    let places = || (0..=text.len()).filter(|place| text.is_char_boundary(*place));
    let fits = |part: &&str| encoding.count(part) <= tokens;
    assert_eq!(
        Some(encoding.truncate_to(&text, tokens, Keep::Start)),
        places().rev().map(|end| &text[..end]).find(fits)
    );
    assert_eq!(
        Some(encoding.truncate_to(&text, tokens, Keep::End)),
        places().map(|start| &text[start..]).find(fits)
    );
});

fn oracle(encoding: Encoding) -> &'static CoreBPE {
    match encoding {
        Encoding::O200kBase => o200k_base_singleton(),
        Encoding::O200kHarmony => o200k_harmony_singleton(),
        Encoding::Cl100kBase => cl100k_base_singleton(),
        Encoding::P50kBase => p50k_base_singleton(),
        Encoding::R50kBase => r50k_base_singleton(),
    }
}
