//! What did all the calls for one answer take together?

use overlock_llm::wire::chat::add_usage;
use overlock_llm::{Step, Usage};
use serde_json::Value;

use overlock_runs::CountedBy;

/// How a request ended and what it took. Nothing in it comes from a prompt, an answer or a header; the name of the model is made harmless.
#[derive(Debug, Default)]
pub(crate) struct RequestTotals {
    /// The tokens of all calls.
    pub(crate) usage: Usage,
    /// The calls after the first.
    pub(crate) continued: UsageTotals,
    pub(crate) outcome: Option<&'static str>,
    /// What went wrong after the answer had begun.
    pub(crate) error: Option<&'static str>,
    pub(crate) model: Option<String>,
}

/// The tokens of the calls after the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageTotals {
    pub(crate) calls: u32,
    /// Those that were not turned down.
    pub(crate) answered: u32,
    /// Those of which the provider said what they took.
    pub(crate) told: u32,
    pub(crate) usage: Usage,
    /// Those that one uncut answer would not have taken.
    pub(crate) overhead_tokens: u64,
}

impl UsageTotals {
    /// Another call, of which the provider reports the tokens, or they were counted here. One
    /// that the upstream refused took none.
    pub(crate) fn add(&mut self, step: &Step, told: Option<Usage>, counted: Usage) {
        self.calls += 1;
        if step.is_rejected() {
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

    /// The usage of the first call, with these calls added to it.
    pub(crate) fn added_to(&self, first: &Value) -> Value {
        match self.calls {
            0 => first.clone(),
            _ => add_usage(first, self.usage),
        }
    }
}

#[cfg(test)]
mod tests {
    use overlock_llm::{Failure, StepEnd, TextContinuation};
    use serde_json::json;

    use super::*;

    /// A call of 100 input tokens whose answer changed nothing.
    fn step(output: u64, failure: Failure) -> Step {
        let mut step = TextContinuation::first_step("", output, StepEnd::default());
        step.result = overlock_llm::StepResult::Failed { failure, raw: None };
        step
    }

    #[test]
    fn the_calls_add_up() {
        let first = json!({
            "prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30,
            "prompt_tokens_details": { "cached_tokens": 4 },
        });
        let mut totals = UsageTotals::default();
        assert_eq!(totals.added_to(&first), first);
        let mut add = |output, cached| {
            let usage = |output| Usage {
                input: 100,
                output,
                cached,
            };
            let step = step(output, Failure::Empty);
            totals.add(&step, Some(usage(output)), usage(99));
        };
        add(5, None);
        add(6, Some(3));
        assert_eq!(
            totals.added_to(&first),
            json!({
                "prompt_tokens": 210, "completion_tokens": 31, "total_tokens": 241,
                "prompt_tokens_details": { "cached_tokens": 7 },
            })
        );
        assert_eq!(totals.overhead_tokens, 211);
    }

    #[test]
    fn a_sum_says_whose_count_it_is() {
        let counted = Usage::default();
        let answered = step(0, Failure::Empty);
        let mut totals = UsageTotals::default();
        assert_eq!(totals.counted_by(true), CountedBy::Provider);
        assert_eq!(totals.counted_by(false), CountedBy::Us);
        totals.add(&answered, None, counted);
        assert_eq!(totals.counted_by(true), CountedBy::Both);
        assert_eq!(totals.counted_by(false), CountedBy::Us);
        totals.add(&answered, Some(counted), counted);
        assert_eq!(totals.counted_by(true), CountedBy::Both);
        let mut untold = UsageTotals::default();
        let refused = Failure::Refused {
            message: String::new(),
        };
        untold.add(&step(0, refused), None, counted);
        assert_eq!((untold.calls, untold.counted_by(false)), (1, CountedBy::Us));
        assert_eq!(untold.counted_by(true), CountedBy::Provider);
    }
}
