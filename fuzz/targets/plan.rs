//! Every plan fits its window, keeps the last user message and everything after it, and counts what
//! it sends. Planning the result again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_budget::{
    Approximate, ChatCounter, ChatRole, Extras, Models, PlanOptions, Trim, plan,
};
use overlock_fuzz::number_and_text;
use overlock_llm::wire::chat::ChatRequest;

fuzz_target!(|input: &[u8]| {
    let (number, text) = number_and_text(input);
    let Ok(request) = ChatRequest::from_json(&String::from_utf8_lossy(text)) else {
        return;
    };
    let found = Models::default().find(request.model().unwrap_or_default());
    let counter = ChatCounter::with_counter(&found, &Approximate);
    let options = PlanOptions {
        window: 200 + 4 * (number as u64 / 4),
        answer_floor: 10,
        trim: [Trim::Off, Trim::Oldest, Trim::Summary, Trim::Oldest][number % 4],
        drop_step: if number % 4 == 3 { 3 } else { 1 },
        ..PlanOptions::default()
    };
    let Ok(first) = plan(&request, &Extras::default(), &counter, &options) else {
        return;
    };
    assert!(first.fits());
    let open = open_turn(&request);
    assert!(first.dropped_messages.iter().all(|place| *place < open));
    let sent = request.rewrite(&first);
    let request = ChatRequest::from_value(sent.clone()).expect("a plan is a request");
    assert_eq!(counter.count(&request).tokens, first.input_token_count);
    assert_eq!(request.requested(), Some(first.adjusted_max_tokens));
    let again = plan(&request, &Extras::default(), &counter, &options).expect("a plan fits");
    assert_eq!(request.rewrite(&again), sent);
});

/// The index of the last user message; 0 without one, as the whole conversation is open.
fn open_turn(request: &ChatRequest) -> usize {
    let messages: Vec<_> = request.messages().collect();
    let is_user = |place: &usize| messages[*place].role() == ChatRole::User;
    (0..messages.len()).rfind(is_user).unwrap_or(0)
}
