//! Usage objects.

use serde_json::{Map, Value, json};

use crate::backend::{Usage, member};

/// A usage object.
pub(in crate::wire) fn usage_object(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
    })
}

/// Reads a usage object.
pub(in crate::wire) fn read_usage(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input: usage.get("prompt_tokens")?.as_u64()?,
        output: usage.get("completion_tokens")?.as_u64()?,
        cached: cached_in(usage),
    })
}

/// The usage object of a first call with the tokens of later calls added. Its other members stay.
pub(in crate::wire) fn add_usage(first: &Value, later: Usage) -> Value {
    let mut usage: Map<String, Value> = first.as_object().cloned().unwrap_or_default();
    let number = |name: &str| first.get(name).and_then(Value::as_u64).unwrap_or_default();
    let input = number("prompt_tokens").saturating_add(later.input);
    let output = number("completion_tokens").saturating_add(later.output);
    usage.insert("prompt_tokens".to_owned(), json!(input));
    usage.insert("completion_tokens".to_owned(), json!(output));
    let total = input.saturating_add(output);
    usage.insert("total_tokens".to_owned(), json!(total));
    if let Some(cached) = later.cached {
        let cached = cached_in(first).unwrap_or_default().saturating_add(cached);
        set_cached(&mut usage, cached);
    }
    Value::Object(usage)
}

/// Writes the cached input tokens into the usage of a completion, if the provider reports them
/// elsewhere.
pub(super) fn place_cached(completion: &mut Value) {
    let reported = Usage::of_completion(completion).and_then(|usage| usage.cached);
    let usage = completion.get_mut("usage").and_then(Value::as_object_mut);
    if let (Some(cached), Some(usage)) = (reported, usage) {
        set_cached(usage, cached);
    }
}

/// The cached input tokens, if the provider reports them.
fn cached_in(usage: &Value) -> Option<u64> {
    let cached = member(usage, ["prompt_tokens_details", "cached_tokens"]);
    cached.and_then(Value::as_u64)
}

fn set_cached(usage: &mut Map<String, Value>, cached: u64) {
    let details = usage.entry("prompt_tokens_details").or_insert(json!({}));
    if !details.is_object() {
        *details = json!({});
    }
    details["cached_tokens"] = json!(cached);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_later_calls_and_keeps_other_members() {
        let first = json!({
            "prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30, "queue_time": 0.5,
        });
        let later = Usage {
            input: 100,
            output: 7,
            cached: Some(64),
        };
        let sum = json!({
            "prompt_tokens": 110, "completion_tokens": 27, "total_tokens": 137, "queue_time": 0.5,
            "prompt_tokens_details": { "cached_tokens": 64 },
        });
        assert_eq!(add_usage(&first, later), sum);
        assert_eq!(
            add_usage(&first, Usage::default()).get("prompt_tokens_details"),
            None
        );
    }

    #[test]
    fn places_the_cached_tokens_of_timings_in_the_usage() {
        let mut completion = json!({
            "usage": {
                "prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": null,
            },
            "timings": { "cache_n": 8 },
        });
        place_cached(&mut completion);
        let usage = read_usage(&completion["usage"]).expect("a usage");
        assert_eq!(usage.cached, Some(8));
    }
}
