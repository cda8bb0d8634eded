//! What did all the calls for one answer take together?

use overlock_model::Usage;
use serde_json::{Map, Value, json};

use crate::api::CountedBy;

/// The tokens of the calls after the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) calls: u32,
    /// Those that were not turned down.
    answered: u32,
    /// Those of which the provider said what they took.
    told: u32,
    pub(crate) usage: Usage,
}

impl Taken {
    /// Another call, of which the provider told what it took, or it was counted here.
    pub(crate) fn add(&mut self, told: Option<Usage>, counted: Usage) {
        self.calls += 1;
        self.answered += 1;
        self.told += u32::from(told.is_some());
        self.usage += told.unwrap_or(counted);
    }

    /// Another call, which the upstream would not have: it took nothing.
    pub(crate) fn turned_down(&mut self) {
        self.calls += 1;
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
        if self.usage.cached > 0 {
            let details = usage.entry("prompt_tokens_details").or_insert(json!({}));
            if let Some(details) = details.as_object_mut() {
                let cached = cached_in(first).saturating_add(self.usage.cached);
                details.insert("cached_tokens".to_owned(), json!(cached));
            }
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

/// What of a prompt the provider had read before.
fn cached_in(usage: &Value) -> u64 {
    let cached = usage.pointer("/prompt_tokens_details/cached_tokens");
    cached.and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_add_up() {
        let first = json!({
            "prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30,
            "prompt_tokens_details": { "cached_tokens": 4 },
        });
        let mut taken = Taken::default();
        assert_eq!(taken.added_to(&first), first);
        let usage = |output, cached| Usage {
            input: 100,
            output,
            cached,
        };
        taken.add(Some(usage(5, 0)), usage(99, 0));
        taken.add(Some(usage(6, 3)), usage(99, 0));
        assert_eq!(
            taken.added_to(&first),
            json!({
                "prompt_tokens": 210, "completion_tokens": 31, "total_tokens": 241,
                "prompt_tokens_details": { "cached_tokens": 7 },
            })
        );
    }

    #[test]
    fn a_sum_says_whose_count_it_is() {
        let counted = Usage::default();
        let mut taken = Taken::default();
        assert_eq!(taken.counted_by(true), CountedBy::Provider);
        assert_eq!(taken.counted_by(false), CountedBy::Us);
        taken.add(None, counted);
        assert_eq!(taken.counted_by(true), CountedBy::Both);
        assert_eq!(taken.counted_by(false), CountedBy::Us);
        taken.add(Some(counted), counted);
        assert_eq!(taken.counted_by(true), CountedBy::Both);
        let mut untold = Taken::default();
        untold.turned_down();
        assert_eq!((untold.calls, untold.counted_by(false)), (1, CountedBy::Us));
        assert_eq!(untold.counted_by(true), CountedBy::Provider);
    }
}
