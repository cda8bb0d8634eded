//! The counters of a run that its limits are checked against.

use serde::{Deserialize, Serialize};

use super::repetition::Repetition;
use super::{ContinuationOptions, Failure, Progress, Step, StepResult};
use crate::progress::MeasuredKpi;
use crate::strategy::Strategy;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Tally {
    pub(super) iterations: u32,
    pub(super) output_tokens: u64,
    /// How many answers extended the document.
    pub(super) pieces: u32,
    /// Failures in a row, how many of them brought no new text, and how many were calls that the
    /// upstream rejected.
    pub(super) failures: u32,
    pub(super) empty_failures: u32,
    pub(super) refusals: u32,
    /// How many answers in a row ended before the document began or continued.
    pub(super) short_answers: u32,
    /// Whether the last call for the rest got an answer of only white space for the first time, and
    /// may have a longer one: models that indent deeply spend all tokens of a short answer on it.
    pub(super) is_repeatable: bool,
    /// Whether the request limits an answer, so that the next one may be longer.
    #[serde(skip)]
    pub(super) has_answer_limit: bool,
    /// The index of the current strategy in the options.
    pub(super) strategy: usize,
    /// The strategies that the upstream rejects.
    pub(super) refused: Vec<Strategy>,
    /// The strategies of the failures since the document last changed.
    pub(super) failed_strategies: Vec<Strategy>,
    /// The answers in a row that only repeat one cycle of items.
    pub(super) repetition: Option<Repetition>,
    /// Whether the model is in a loop.
    pub(super) is_looping: bool,
    /// How many correction calls were made.
    pub(super) corrections: u32,
    pub(super) last_kpi: Option<u8>,
    /// Answers in a row without progress; the largest number once the progress fell.
    pub(super) stalls: u32,
    /// How many characters the next answer may have, derived from its call.
    pub(super) answer_chars: Option<usize>,
    /// The KPIs that the model proposed; `None` until it was asked.
    pub(super) kpis: Option<Vec<MeasuredKpi>>,
}

impl Tally {
    pub(super) fn add(&mut self, step: &Step, options: &ContinuationOptions) {
        self.iterations += 1;
        self.output_tokens = self.output_tokens.saturating_add(step.tokens);
        self.corrections += u32::from(step.is_correction());
        // An answer that is not about the document is no progress and no failure.
        if let Some(kpis) = &step.kpis {
            self.kpis = Some(kpis.clone());
            return;
        }
        match &step.result {
            StepResult::Grown { .. } => {
                self.clear_failures();
                self.failed_strategies.clear();
                self.pieces += 1;
                self.is_looping = step.is_looping;
            }
            StepResult::Failed { failure, .. } => self.add_failure(failure, step, options),
        }
        match step.progress {
            Progress::Unknown => {}
            Progress::Rose => {
                self.stalls = 0;
                self.last_kpi = step.kpi.or(self.last_kpi);
            }
            Progress::Stalled | Progress::Slipped => self.stalls = self.stalls.saturating_add(1),
            Progress::Fell => self.stalls = u32::MAX,
        }
    }

    fn add_failure(&mut self, failure: &Failure, step: &Step, options: &ContinuationOptions) {
        self.failures += 1;
        self.empty_failures += u32::from(failure.is_empty());
        let is_refused = matches!(failure, Failure::Refused { .. });
        self.refusals += u32::from(is_refused);
        self.short_answers = match failure {
            Failure::Empty | Failure::NoJson | Failure::Unclear => self.short_answers + 1,
            _ => 0,
        };
        // An answer without tokens was not cut at its limit.
        self.is_repeatable = *failure == Failure::Empty
            && step.strategy.is_some()
            && self.has_answer_limit
            && self.short_answers == 1
            && step.tokens > 0;
        let Some(strategy) = step.strategy else {
            return;
        };
        self.failed_strategies.push(strategy);
        // The same strategy may succeed with a longer overlap or a longer answer.
        if *failure == Failure::Ambiguous || self.is_repeatable {
            return;
        }
        if is_refused && !self.refused.contains(&strategy) {
            self.refused.push(strategy);
        }
        let strategies = &options.strategies;
        let after = |index: usize| (index + 1) % strategies.len().max(1);
        self.strategy = after(self.strategy);
        for _ in strategies {
            if strategies
                .get(self.strategy)
                .is_some_and(|strategy| self.refused.contains(strategy))
            {
                self.strategy = after(self.strategy);
            }
        }
    }

    /// Whether the upstream rejects all strategies.
    pub(super) fn is_every_way_refused(&self, options: &ContinuationOptions) -> bool {
        let is_refused = |strategy: &Strategy| self.refused.contains(strategy);
        match options.strategies.as_slice() {
            [] => is_refused(&Strategy::Overlap),
            strategies => strategies.iter().all(is_refused),
        }
    }

    fn clear_failures(&mut self) {
        (self.failures, self.empty_failures) = (0, 0);
        (self.refusals, self.short_answers) = (0, 0);
        self.is_repeatable = false;
    }

    /// Resets the counters of consecutive failures.
    pub(super) fn reset_failures(&mut self, options: &ContinuationOptions) {
        self.clear_failures();
        self.stalls = 0;
        (self.repetition, self.is_looping) = (None, false);
        if self.is_every_way_refused(options) {
            self.refused.clear();
        }
    }
}
