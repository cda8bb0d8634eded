//! The usage of all calls for one answer.

use overlock_json::Suspicion;
use overlock_llm::wire::Protocol;
use overlock_llm::{Step, Usage};
use serde_json::Value;

use overlock_runs::{CountedBy, RecordedStep};

/// The outcome and usage of a request, without text from prompts, answers or headers. The model name is sanitized.
#[derive(Debug, Default)]
pub(crate) struct RequestTotals {
    /// The tokens of all calls.
    pub(crate) usage: Usage,
    /// The calls after the first.
    pub(crate) continued: UsageTotals,
    pub(crate) outcome: Option<&'static str>,
    /// The error after the answer had begun.
    pub(crate) error: Option<&'static str>,
    pub(crate) model: Option<String>,
}

/// The tokens of the calls after the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageTotals {
    pub(crate) calls: u32,
    /// Those that the upstream did not reject.
    pub(crate) answered: u32,
    /// Those with usage reported by the provider.
    pub(crate) reported: u32,
    pub(crate) usage: Usage,
    /// The tokens that one uncut answer would not have needed.
    pub(crate) overhead_tokens: u64,
    /// Why a document that was joined may lack something.
    pub(crate) suspicious: Option<&'static str>,
}

impl UsageTotals {
    /// Adds a call, with the usage that the provider reported, or else the gateway's count. A call
    /// that the upstream rejected has no usage.
    pub(crate) fn add(&mut self, step: &Step, reported: Option<Usage>, counted: Usage) {
        self.calls += 1;
        let suspicious = step.suspicious.as_ref();
        self.suspicious = self.suspicious.or(suspicious.map(Suspicion::name));
        if step.is_rejected() {
            return;
        }
        self.answered += 1;
        self.reported += u32::from(reported.is_some());
        let usage = reported.unwrap_or(counted);
        self.usage += usage;
        let overhead = step.overhead_tokens(usage.input);
        self.overhead_tokens = self.overhead_tokens.saturating_add(overhead);
    }

    /// Adds the recorded calls after the first.
    pub(crate) fn add_recorded(&mut self, steps: &[&RecordedStep]) {
        for step in steps.iter().skip(1) {
            let budget = step.budget.as_ref();
            let counted = Usage {
                input: budget.map_or(0, |budget| budget.input_token_count),
                output: step.step.tokens,
                cached: None,
            };
            self.add(&step.step, step.reported, counted);
        }
    }

    /// Who counted these calls and the first one.
    pub(crate) fn counted_by(&self, is_first_reported: bool) -> CountedBy {
        CountedBy::of(
            self.answered + 1,
            self.reported + u32::from(is_first_reported),
        )
    }

    /// The usage of the first call, with these calls added to it.
    pub(crate) fn added_to(&self, first: &Value, protocol: Protocol) -> Value {
        match self.calls {
            0 => first.clone(),
            _ => protocol.add_usage(first, self.usage),
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
    fn sums_the_usage_of_calls() {
        let first = json!({
            "prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30,
            "prompt_tokens_details": { "cached_tokens": 4 },
        });
        let mut totals = UsageTotals::default();
        assert_eq!(totals.added_to(&first, Protocol::ChatCompletions), first);
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
            totals.added_to(&first, Protocol::ChatCompletions),
            json!({
                "prompt_tokens": 210, "completion_tokens": 31, "total_tokens": 241,
                "prompt_tokens_details": { "cached_tokens": 7 },
            })
        );
        assert_eq!(totals.overhead_tokens, 211);
    }

    #[test]
    fn a_sum_says_who_counted() {
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
        let mut unreported = UsageTotals::default();
        let rejected = Failure::Refused {
            message: String::new(),
        };
        unreported.add(&step(0, rejected), None, counted);
        assert_eq!(
            (unreported.calls, unreported.counted_by(false)),
            (1, CountedBy::Us)
        );
        assert_eq!(unreported.counted_by(true), CountedBy::Provider);
    }
}
