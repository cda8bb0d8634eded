//! Compacting any text in any language at any level gives no longer and no empty text. A result that
//! claims to fit does fit, and every text is classified.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_code::{CompactOptions, Docs, FitOptions, Language, Level, classify, compact, fit};

fuzz_target!(|bytes: &[u8]| {
    let [choice, text @ ..] = bytes else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let language = [Language::Sql, Language::Dotnet][usize::from(choice & 1)];
    let docs = [Docs::Keep, Docs::Drop][usize::from(choice >> 1 & 1)];
    for level in [Level::Lossless, Level::Outline] {
        let compacted = compact(&text, language, &CompactOptions { level, docs });
        assert_eq!(compacted.text.is_empty(), text.is_empty());
        assert_eq!(compacted.compacted, compacted.text.len() < text.len());
        assert!(compacted.compacted || compacted.text == text);
    }

    let count = |text: &str| text.split_whitespace().count() as u64;
    let options = FitOptions {
        tokens: u64::from(choice >> 2),
        docs,
        relevant: &["a"],
    };
    let fitted = fit(&text, language, &options, &count);
    assert_eq!(fitted.fits, count(&fitted.text) <= options.tokens);
    assert!(fitted.text.len() <= text.len() && fitted.text.is_empty() == text.is_empty());

    let classification = classify(&text);
    assert!((0.0..=1.0).contains(&classification.confidence));
});
