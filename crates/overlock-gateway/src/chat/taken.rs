//! What did all the calls for one answer take together?

use overlock_model::{Step, Usage};
use serde_json::{Map, Value, json};

use crate::api::CountedBy;

/// The tokens of the calls after the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) calls: u32,
    /// Those that were not turned down.
    pub(crate) answered: u32,
    /// Those of which the provider said what they took.
    pub(crate) told: u32,
    pub(crate) usage: Usage,
    /// Those that one uncut answer would not have taken.
    pub(crate) overhead_tokens: u64,
}

impl Taken {
    /// Another call, of which the provider reports the tokens, or they were counted here. One
    /// that the upstream refused took none.
    pub(crate) fn add(&mut self, step: &Step, told: Option<Usage>, counted: Usage) {
        self.calls += 1;
        if step.is_turned_down() {
            return;
        }
        self.answered += 1;
        self.told += u32::from(told.is_some());
        let usage = told.unwrap_or(counted);
        self.usage += usage;
        let overhead = step.overhead_tokens(usage.input);
        self.overhead_tokens = self.overhead_tokens.saturating_add(overhead);
    }

    /// Who counted these calls and the first one, which the provider told or not.
    pub(crate) fn counted_by(&self, first_is_told: bool) -> CountedBy {
        CountedBy::of(self.answered + 1, self.told + u32::from(first_is_told))
    }

    /// The calls of another part of the same answer.
    pub(crate) fn join(&mut self, other: Self) {
        self.calls += other.calls;
        self.answered += other.answered;
        self.told += other.told;
        self.usage += other.usage;
        self.overhead_tokens = self.overhead_tokens.saturating_add(other.overhead_tokens);
    }

    /// What the upstream said of its first call, and these calls added to it. All that it said
    /// besides is kept.
    pub(crate) fn added_to(&self, first: &Value) -> Value {
        if self.calls == 0 {
            return first.clone();
        }
        let mut usage: Map<String, Value> = first.as_object().cloned().unwrap_or_default();
        let number = |name: &str| first.get(name).and_then(Value::as_u64).unwrap_or_default();
        let input = number("prompt_tokens").saturating_add(self.usage.input);
        let output = number("completion_tokens").saturating_add(self.usage.output);
        usage.insert("prompt_tokens".to_owned(), json!(input));
        usage.insert("completion_tokens".to_owned(), json!(output));
        usage.insert(
            "total_tokens".to_owned(),
            json!(input.saturating_add(output)),
        );
        if let Some(cached) = self.usage.cached {
            let cached = cached_in(first).unwrap_or_default().saturating_add(cached);
            set_cached(&mut usage, cached);
        }
        Value::Object(usage)
    }
}

/// A usage as `OpenAI` tells it.
pub(crate) fn told(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
    })
}

/// A usage that was told so.
pub(crate) fn read(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input: usage.get("prompt_tokens")?.as_u64()?,
        output: usage.get("completion_tokens")?.as_u64()?,
        cached: cached_in(usage),
    })
}

/// Writes the cached input tokens of a completion into its usage, where the provider reports them
/// elsewhere.
pub(crate) fn place_cached(completion: &mut Value) {
    let told = Usage::of_completion(completion).and_then(|usage| usage.cached);
    let usage = completion.get_mut("usage").and_then(Value::as_object_mut);
    if let (Some(cached), Some(usage)) = (told, usage) {
        set_cached(usage, cached);
    }
}

/// The cached input tokens, where the provider reports them.
fn cached_in(usage: &Value) -> Option<u64> {
    let cached = usage.pointer("/prompt_tokens_details/cached_tokens");
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
    use overlock_model::{Failure, StepEnd, TextContinuation};

    use super::*;

    /// A call of 100 input tokens whose answer changed nothing.
    fn step(output: u64, failure: Failure) -> Step {
        let mut step = TextContinuation::first_step("", output, StepEnd::default());
        step.result = overlock_model::StepResult::Failed { failure, raw: None };
        step
    }

    #[test]
    fn the_calls_add_up() {
        let first = json!({
            "prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30,
            "prompt_tokens_details": { "cached_tokens": 4 },
        });
        let mut taken = Taken::default();
        assert_eq!(taken.added_to(&first), first);
        let mut add = |output, cached| {
            let usage = |output| Usage {
                input: 100,
                output,
                cached,
            };
            let step = step(output, Failure::Empty);
            taken.add(&step, Some(usage(output)), usage(99));
        };
        add(5, None);
        add(6, Some(3));
        assert_eq!(
            taken.added_to(&first),
            json!({
                "prompt_tokens": 210, "completion_tokens": 31, "total_tokens": 241,
                "prompt_tokens_details": { "cached_tokens": 7 },
            })
        );
        assert_eq!(taken.overhead_tokens, 211);
    }

    #[test]
    fn cached_tokens_that_nobody_reports_are_not_in_the_sum() {
        let first = json!({ "prompt_tokens": 10, "completion_tokens": 20 });
        let mut taken = Taken::default();
        taken.add(&step(5, Failure::Empty), None, Usage::default());
        assert_eq!(taken.added_to(&first).get("prompt_tokens_details"), None);
    }

    #[test]
    fn cached_tokens_among_timings_are_placed_in_the_usage() {
        let mut completion = json!({
            "usage": {
                "prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": null,
            },
            "timings": { "cache_n": 8 },
        });
        place_cached(&mut completion);
        let usage = read(&completion["usage"]).expect("a usage");
        assert_eq!(usage.cached, Some(8));
    }

    #[test]
    fn a_sum_says_whose_count_it_is() {
        let counted = Usage::default();
        let answered = step(0, Failure::Empty);
        let mut taken = Taken::default();
        assert_eq!(taken.counted_by(true), CountedBy::Provider);
        assert_eq!(taken.counted_by(false), CountedBy::Us);
        taken.add(&answered, None, counted);
        assert_eq!(taken.counted_by(true), CountedBy::Both);
        assert_eq!(taken.counted_by(false), CountedBy::Us);
        taken.add(&answered, Some(counted), counted);
        assert_eq!(taken.counted_by(true), CountedBy::Both);
        let mut untold = Taken::default();
        let refused = Failure::Refused {
            message: String::new(),
        };
        untold.add(&step(0, refused), None, counted);
        assert_eq!((untold.calls, untold.counted_by(false)), (1, CountedBy::Us));
        assert_eq!(untold.counted_by(true), CountedBy::Provider);
    }
}
