//! Records the answers of models within a step, as they come.

use std::error::Error;

use futures_util::future::{self, BoxFuture, FutureExt};
use overlock_budget::Plan;
use overlock_llm::{
    CallEnd, NextCall, Observe, Retried, Retry, Run as DrivenRun, Step, StepResult,
    StrategyResults, Usage, Wants,
};
use overlock_runs::{Answered, CountedBy, Recording, StepAnswers, StoredAnswer};
use overlock_store::StoreError;
use serde_json::{Map, Value};

use crate::engine::Watch;

/// What models have answered in a step, kept as it comes.
pub(crate) struct Answers<'a> {
    step_id: &'a str,
    kept: StepAnswers,
    /// The tokens of the prompt that is being answered.
    pub(crate) asking: u64,
    /// Those of the window that it is in.
    pub(crate) window: u64,
    /// Who is asked.
    pub(crate) model: String,
    /// The time, and when it was at the beginning of the step.
    clock: &'a (dyn Fn() -> u64 + Sync),
    began_at: u64,
    /// What the last call took that went on with a text, and who says so.
    pub(crate) last: (Usage, CountedBy),
    /// The calls that were not answered, by this process.
    pub(crate) retried: Option<Retried>,
    /// What the run for the document has shown about its strategies.
    pub(crate) learnt: Option<StrategyResults>,
    recording: &'a mut Recording,
    watch: &'a mut dyn Watch,
}

impl<'a> Answers<'a> {
    /// Those of a step of which some were given before.
    pub(crate) fn new(
        step_id: &'a str,
        kept: StepAnswers,
        recording: &'a mut Recording,
        watch: &'a mut dyn Watch,
        clock: &'a (dyn Fn() -> u64 + Sync),
    ) -> Self {
        Self {
            step_id,
            kept,
            asking: 0,
            window: 0,
            model: String::new(),
            clock,
            began_at: clock(),
            last: (Usage::default(), CountedBy::Us),
            retried: None,
            learnt: None,
            recording,
            watch,
        }
    }

    /// What all of them took.
    pub(crate) fn usage(&self) -> Usage {
        self.kept.usage()
    }

    /// How many calls there were, how many of their answers could not be joined if any, and where
    /// there were several what the first took, whose window is told.
    pub(crate) fn calls(&self) -> Map<String, Value> {
        let answers = &self.kept.0;
        let mut told = Map::new();
        told.insert("calls".to_owned(), answers.len().into());
        let is_refused = |answered: &&Answered| match &answered.answer {
            StoredAnswer::Document(step) => matches!(step.result, StepResult::Failed { .. }),
            StoredAnswer::Text { .. } => false,
        };
        let refused = answers.iter().filter(is_refused).count();
        if refused > 0 {
            told.insert("refused".to_owned(), refused.into());
        }
        if let [first, _, ..] = answers.as_slice() {
            let output = first.usage.output.into();
            told.insert("first_output_tokens".to_owned(), output);
        }
        told
    }

    /// The tokens of the call that took the most of its window.
    pub(crate) fn peak_tokens(&self) -> Option<u64> {
        Some(self.kept.peak()?.0)
    }

    /// Who says so: the provider only if it does of all of them.
    pub(crate) fn counted_by(&self) -> CountedBy {
        let mut answers = self.kept.0.iter();
        if answers.any(|it| it.counted_by == CountedBy::Us) {
            CountedBy::Us
        } else {
            CountedBy::Provider
        }
    }

    /// Whether any was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.0.is_empty()
    }

    /// The steps on the way to a document.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let stored = self.kept.0.iter();
        stored
            .filter_map(|answered| match &answered.answer {
                StoredAnswer::Document(step) => Some(step.as_ref().clone()),
                StoredAnswer::Text { .. } => None,
            })
            .collect()
    }

    /// A text, its tokens, and whether there is more of it.
    pub(crate) fn text(&self) -> Option<(String, u64, bool)> {
        let mut stored = self.kept.0.iter().rev();
        stored.find_map(|answered| match &answered.answer {
            StoredAnswer::Text {
                text,
                tokens,
                is_cut,
            } => Some((text.clone(), *tokens, *is_cut)),
            StoredAnswer::Document(_) => None,
        })
    }

    /// What a call took by its provider, or by our own count of its answer.
    pub(crate) fn took(&self, end: &CallEnd, output: u64) -> (Usage, CountedBy) {
        let counted = Usage {
            input: self.asking,
            output,
            cached: None,
        };
        let told = end.usage.map(|usage| (usage, CountedBy::Provider));
        told.unwrap_or((counted, CountedBy::Us))
    }

    /// Keeps an answer, and what its call took.
    pub(crate) fn keep(
        &mut self,
        answer: StoredAnswer,
        (usage, by): (Usage, CountedBy),
    ) -> Result<(), StoreError> {
        let answered = Answered {
            answer,
            usage,
            counted_by: by,
            window: self.window,
            model: self.model.clone(),
            worked: [self.began_at, (self.clock)()],
        };
        self.recording.answered(self.step_id, &answered)?;
        self.kept.0.push(answered);
        Ok(())
    }
}

impl Observe for Answers<'_> {
    fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        self.asking = plan.input_token_count;
        self.window = plan.window;
        if ask.wants != Wants::Text {
            self.watch.asking(self.step_id, ask.iteration);
        }
    }

    fn retrying(&mut self, retry: &Retry) {
        Retried::add(&mut self.retried, retry);
        self.watch.retrying(self.step_id, retry);
    }

    fn heard(&mut self, piece: &str) {
        self.watch.heard(self.step_id, piece);
    }

    fn stepped<'a>(
        &'a mut self,
        run: DrivenRun<'a>,
        step: &'a Step,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let usage = self.took(end, step.tokens);
        let kept = match run {
            DrivenRun::Document(_) => {
                self.keep(StoredAnswer::Document(Box::new(step.clone())), usage)
            }
            // The step that made the call records all of the text.
            DrivenRun::Text(_) => {
                self.last = usage;
                Ok(())
            }
        };
        future::ready(kept.map_err(Into::into)).boxed()
    }

    fn learnt(&mut self, results: StrategyResults) {
        self.learnt = Some(results);
    }
}
