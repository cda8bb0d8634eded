//! The answer to a call for one text.

use serde_json::Value;

use crate::backend::{Event, Usage};

/// The events in a chunk or a complete answer.
pub(in crate::wire) fn events_of(value: &Value) -> Vec<Event> {
    let mut events = Vec::new();
    if let Some(choice) = first_choice(value) {
        let message = message_in(choice);
        let text_of = |value: Option<&Value>| {
            let text = value.and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        events.extend(text_of(message.get("content").or(choice.get("text"))).map(Event::Text));
        events.extend(text_of(message.get("refusal")).map(Event::Refusal));
        events.extend(text_of(choice.get("finish_reason")).map(Event::Finish));
    }
    events.extend(Usage::of_completion(value).map(Event::Usage));
    events
}

/// The first choice of a chunk or a complete answer.
fn first_choice(value: &Value) -> Option<&Value> {
    let is_first = |choice: &&Value| {
        let index = choice.get("index").and_then(Value::as_u64);
        index.is_none_or(|index| index == 0)
    };
    value.get("choices")?.as_array()?.iter().find(is_first)
}

/// The delta or message of a choice; a raw completion has neither.
fn message_in(choice: &Value) -> &Value {
    let message = choice.get("delta").or(choice.get("message"));
    message.unwrap_or(choice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::chat::event::has_output;

    #[track_caller]
    fn check(value: &Value, expected: &[Event]) {
        assert_eq!(events_of(value), expected, "{value}");
    }

    fn text(text: &str) -> Event {
        Event::Text(text.to_owned())
    }

    #[test]
    fn reads_only_the_first_choice() {
        let choice =
            |index: u64, text: &str| json!({ "index": index, "delta": { "content": text } });
        check(&json!({ "choices": [choice(1, "b")] }), &[]);
        check(
            &json!({ "choices": [choice(1, "b"), choice(0, "a")] }),
            &[text("a")],
        );
        check(
            &json!({ "choices": [{ "message": { "content": "a" } }] }),
            &[text("a")],
        );
    }

    #[test]
    fn cached_tokens_are_read_from_usage_or_timings_and_never_guessed() {
        let usage = json!({ "prompt_tokens": 50, "completion_tokens": 7 });
        let check_cached = |value: Value, cached| {
            let usage = Usage {
                input: 50,
                output: 7,
                cached,
            };
            check(&value, &[Event::Usage(usage)]);
        };
        check_cached(json!({ "usage": usage }), None);
        check_cached(
            json!({ "usage": usage, "timings": { "cache_n": 40 } }),
            Some(40),
        );
        let mut usage = usage;
        usage["prompt_tokens_details"] = json!({ "cached_tokens": 0 });
        check_cached(json!({ "usage": usage }), Some(0));
    }

    #[test]
    fn reads_a_refusal() {
        let refusal = Event::Refusal("No.".to_owned());
        let finish = Event::Finish("content_filter".to_owned());
        let said = json!({ "content": null, "refusal": "No." });
        check(
            &json!({ "choices": [{ "delta": said, "finish_reason": "content_filter" }] }),
            &[refusal.clone(), finish],
        );
        check(&json!({ "choices": [{ "message": said }] }), &[refusal]);
    }

    #[test]
    fn reasoning_is_activity_and_empty_pieces_are_not() {
        let chunk = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
        assert!(has_output(&chunk(json!({ "reasoning_content": "Hm." }))));
        assert!(has_output(&chunk(json!({ "tool_calls": [{}] }))));
        assert!(!has_output(&chunk(
            json!({ "content": "", "reasoning": "" })
        )));
        assert!(!has_output(&json!({ "type": "ping" })));
    }
}
