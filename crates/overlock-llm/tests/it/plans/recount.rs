//! Recounts what is sent with `tiktoken`: input, answer and margin are within the window.

use overlock_budget::{Encoding, Sharing};
use overlock_llm::wire::chat::ChatRequest;
use serde_json::Value;
use tiktoken_rs::{CoreBPE, o200k_base};

use super::laws::{Case, counter};
use super::numbers::Numbers;

/// The tokens of a request without tools, by the published rules and `tiktoken`.
fn recounted(request: &Value, encoding: &CoreBPE) -> u64 {
    let tokens = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        encoding.encode_ordinary(text).len() as u64
    };
    let call = |function: &Value| 3 + tokens(&function["name"]) + tokens(&function["arguments"]);
    let message = |message: &Value| {
        let around = match message["role"].as_str() {
            Some("tool") => 6,
            Some("function") => 1,
            _ => 3,
        };
        let name = message.get("name").map_or(0, |name| 1 + tokens(name));
        let parts = message["content"].as_array().into_iter().flatten();
        let parts = parts.map(|part| match part["type"].as_str() {
            // A picture in low detail.
            Some("image_url") => 85,
            _ => tokens(&part["text"]),
        });
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls = calls.map(|it| call(&it["function"]));
        let older = message.get("function_call").map_or(0, call);
        let content = tokens(&message["content"]) + parts.sum::<u64>();
        around + tokens(&message["role"]) + name + content + calls.sum::<u64>() + older
    };
    let messages = request["messages"].as_array().into_iter().flatten();
    3 + messages.map(message).sum::<u64>()
}

#[test]
fn what_is_sent_fits_when_tiktoken_recounts_it() {
    let is_long = std::env::var_os("OVERLOCK_LONG").is_some();
    let count = if is_long { 1_000_000 } else { 3000 };
    let encoding = o200k_base().expect("the encoding is built in");
    let ours = counter(&Encoding::O200kBase);
    let mut numbers = Numbers(7);
    let (mut sent, mut shortened, mut pictures, mut open) = (0, 0, 0, 0);
    for _ in 0..count {
        let mut sketch = numbers.sketch();
        sketch.tools.clear();
        sketch.named = None;
        sketch.schema = false;
        let texts = sketch.texts();
        let (memories, context) = sketch.extras(&texts);
        let case = Case {
            request: ChatRequest::from_value(sketch.request()).expect("a sketch is a request"),
            extras: overlock_budget::Extras {
                memories: &memories,
                context: &context,
                tool_importance: &[],
            },
            counter: &ours,
        };
        let options = sketch.options();
        let Ok(plan) = case.plan(&options) else {
            continue;
        };
        let request = case.request.clone().rewrite(&plan);
        let input = recounted(&request, &encoding);
        assert_eq!(input, plan.input_token_count, "{request}");
        let answer = match options.sharing {
            Sharing::Shared => request["max_tokens"].as_u64().expect("a limit"),
            Sharing::Separate => 0,
        };
        assert!(input + answer + plan.margin.tokens <= options.window);
        sent += 1;
        shortened += u64::from(!plan.shortened.is_empty());
        pictures += u64::from(request.to_string().contains("image_url"));
        let last = case.request.messages().last();
        open += u64::from(last.is_some_and(|last| last.members()["role"] == "tool"));
    }
    let share = |part: u64| part * 100 / sent;
    assert!(sent > count / 2, "{sent} sent");
    assert!(share(shortened) > 5, "{shortened} shortened of {sent}");
    assert!(share(pictures) > 5, "{pictures} with pictures of {sent}");
    assert!(share(open) > 10, "{open} with an open exchange of {sent}");
}
