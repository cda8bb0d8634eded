//! Token counts of a run.

use std::ops::{AddAssign, Not};

use overlock_llm::Usage;
use serde::{Deserialize, Serialize, Serializer};

use crate::budget::CallBudget;
use crate::step::RecordedStep;

/// The token counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// The number of calls that were answered or rejected, where that was stored. An answer with
    /// several parts has more steps than calls.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub calls: u64,
    /// The tokens of the model's window.
    pub window: u64,
    /// The tokens of prompt and answer in the call that took the most of the window.
    pub peak_tokens: u64,
    /// The cached input tokens, where the provider reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// The tokens that one uncut answer would have saved, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_tokens: Option<u64>,
    /// Whether the model is unknown and its window was assumed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub window_assumed: bool,
    /// Whether the tokens of an answer are unknown, so that `output_tokens` is a minimum.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub output_unknown: bool,
    /// Who counted the tokens, where that was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<CountedBy>,
    /// The most older messages dropped from one call.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub dropped_messages: u64,
}

/// The token counts of a run with the figures derived from them.
#[derive(Serialize)]
struct ShownTally<'a> {
    #[serde(flatten)]
    tally: &'a Tally,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_hit_rate: Option<f64>,
}

/// Who counted the tokens of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    /// The provider, for every call.
    Provider,
    /// Overlock, because the provider reported nothing.
    Us,
    /// The provider for some calls, Overlock for the others.
    Both,
}

impl CountedBy {
    /// Who counted so many calls, some of which the provider reported.
    pub fn of(calls: u32, reported: u32) -> Self {
        match reported {
            0 => Self::Us,
            reported if reported >= calls => Self::Provider,
            _ => Self::Both,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(crate) fn is_nothing(count: &u64) -> bool {
    *count == 0
}

impl Tally {
    /// Counts the steps of a run.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a RecordedStep>) -> Self {
        let mut tally = Self::default();
        for step in steps {
            tally.add(step);
        }
        tally
    }

    /// Counts one more step.
    pub fn add(&mut self, recorded: &RecordedStep) {
        self.calls += u64::from(!recorded.came_along());
        let input = recorded.budget.as_ref().map_or(0, |budget| {
            self.plan(budget);
            budget.input_token_count
        });
        let input = recorded.reported.map_or(input, |reported| reported.input);
        self.add_cached(recorded.reported.and_then(|reported| reported.cached));
        self.call(input, recorded.step.tokens);
        self.add_overhead(recorded.step.overhead_tokens(input));
        // A step without a count of its answer says nothing about the counter.
        if recorded.counted.is_some() {
            let reported = u32::from(recorded.reported.is_some());
            let counted_by = CountedBy::of(1, reported);
            self.counted_by = match self.counted_by {
                Some(before) if before != counted_by => Some(CountedBy::Both),
                _ => Some(counted_by),
            };
        }
    }

    /// Takes the window and dropped messages from a call's budget.
    pub fn plan(&mut self, budget: &CallBudget) {
        self.window = budget.window;
        self.window_assumed = budget.is_window_assumed();
        self.dropped_messages = self.dropped_messages.max(budget.dropped_messages());
    }

    /// Whether any call was answered.
    pub(crate) fn is_of_calls(&self) -> bool {
        self.input_tokens > 0 || self.output_tokens > 0 || self.output_unknown
    }

    /// The total usage.
    pub fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            output: self.output_tokens,
            cached: self.cached_tokens,
        }
    }

    /// Tokens paid relative to one uncut answer: 1 if the answer took one call.
    pub fn cost_ratio(&self) -> Option<f64> {
        let paid = self.input_tokens.saturating_add(self.output_tokens);
        let uncut = paid.saturating_sub(self.overhead_tokens?);
        (uncut > 0 && !self.output_unknown).then(|| ratio(paid, uncut))
    }

    /// The share of the input tokens that the provider read from its prompt cache.
    pub fn cache_hit_rate(&self) -> Option<f64> {
        let cached = self.cached_tokens?;
        (self.input_tokens > 0).then(|| ratio(cached, self.input_tokens))
    }

    fn add_cached(&mut self, tokens: Option<u64>) {
        if let Some(tokens) = tokens {
            let sum = self.cached_tokens.unwrap_or_default();
            self.cached_tokens = Some(sum.saturating_add(tokens));
        }
    }

    fn add_overhead(&mut self, tokens: u64) {
        let sum = self.overhead_tokens.unwrap_or_default();
        self.overhead_tokens = Some(sum.saturating_add(tokens));
    }

    #[expect(clippy::ref_option, reason = "serde passes a reference")]
    pub(crate) fn shown<S: Serializer>(
        tally: &Option<Self>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let shown = tally.as_ref().map(|tally| ShownTally {
            tally,
            cost_ratio: tally.cost_ratio(),
            cache_hit_rate: tally.cache_hit_rate(),
        });
        shown.serialize(serializer)
    }

    /// Counts a call with so many tokens of prompt and answer.
    pub fn call(&mut self, input: u64, output: u64) {
        self.add_overhead(0);
        self.input_tokens = self.input_tokens.saturating_add(input);
        self.output_tokens = self.output_tokens.saturating_add(output);
        self.peak_tokens = self.peak_tokens.max(input.saturating_add(output));
    }
}

impl AddAssign<&Self> for Tally {
    /// Adds the tokens of another run.
    fn add_assign(&mut self, other: &Self) {
        self.call(other.input_tokens, other.output_tokens);
        self.add_overhead(other.overhead_tokens.unwrap_or_default());
        self.add_cached(other.cached_tokens);
    }
}

/// Rounds to three decimals; token counts are rarely more exact.
#[expect(clippy::cast_precision_loss, reason = "no run takes so many tokens")]
fn ratio(part: u64, whole: u64) -> f64 {
    (part as f64 / whole as f64 * 1000.0).round() / 1000.0
}
