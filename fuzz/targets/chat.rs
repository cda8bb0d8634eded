//! Any text is a chat request or is rejected with a reason. A request is preserved, and its count is
//! the sum of its parts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_budget::{Approximate, ChatCounter, Models};
use overlock_llm::wire::chat::ChatRequest;

fuzz_target!(|text: &[u8]| {
    let text = String::from_utf8_lossy(text);
    let request = match ChatRequest::from_json(&text) {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let found = Models::default().find(request.model().unwrap_or_default());
    let count = ChatCounter::with_counter(&found, &Approximate).count(&request);
    let messages = count
        .messages
        .iter()
        .fold(0, |sum: u64, one| sum.saturating_add(*one));
    let sum = messages
        .saturating_add(count.tools)
        .saturating_add(count.frame);
    assert_eq!(count.tokens, sum);

    let whole: serde_json::Value = serde_json::from_str(&text).expect("it was read before");
    assert_eq!(request.into_value(), whole);
});
