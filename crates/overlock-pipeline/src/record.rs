//! Records the answers of models within a step as they arrive.

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

/// The model answers of a step, recorded as they arrive.
pub(crate) struct Answers<'a> {
    step_id: &'a str,
    stored: StepAnswers,
    /// The tokens of the current prompt.
    pub(crate) asking: u64,
    /// The tokens of its window.
    pub(crate) window: u64,
    /// The model that is called.
    pub(crate) model: String,
    /// The current time, and the time at which the step began.
    clock: &'a (dyn Fn() -> u64 + Sync),
    began_at: u64,
    /// The usage of the last call that continued a text, and who counted it.
    pub(crate) last: (Usage, CountedBy),
    /// The failed attempts of this process.
    pub(crate) retried: Option<Retried>,
    /// What continuing the document has shown about the strategies.
    pub(crate) learnt: Option<StrategyResults>,
    recording: &'a mut Recording,
    watch: &'a mut dyn Watch,
}

impl<'a> Answers<'a> {
    /// The answers of a step, starting with those stored earlier.
    pub(crate) fn new(
        step_id: &'a str,
        stored: StepAnswers,
        recording: &'a mut Recording,
        watch: &'a mut dyn Watch,
        clock: &'a (dyn Fn() -> u64 + Sync),
    ) -> Self {
        Self {
            step_id,
            stored,
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

    /// Their total usage.
    pub(crate) fn usage(&self) -> Usage {
        self.stored.usage()
    }

    /// The notes on the calls: their number, the answers that could not be joined, and for several
    /// calls the output of the first, to which the noted window belongs.
    pub(crate) fn calls(&self) -> Map<String, Value> {
        let answers = &self.stored.0;
        let mut notes = Map::new();
        notes.insert("calls".to_owned(), answers.len().into());
        let is_refused = |answered: &&Answered| match &answered.answer {
            StoredAnswer::Document(step) => matches!(step.result, StepResult::Failed { .. }),
            StoredAnswer::Text { .. } => false,
        };
        let refused = answers.iter().filter(is_refused).count();
        if refused > 0 {
            notes.insert("refused".to_owned(), refused.into());
        }
        if let [first, _, ..] = answers.as_slice() {
            let output = first.usage.output.into();
            notes.insert("first_output_tokens".to_owned(), output);
        }
        notes
    }

    /// The tokens of the call that used most of its window.
    pub(crate) fn peak_tokens(&self) -> Option<u64> {
        Some(self.stored.peak()?.0)
    }

    /// Who counted them: the provider only if it reported all of them.
    pub(crate) fn counted_by(&self) -> CountedBy {
        let mut answers = self.stored.0.iter();
        if answers.any(|it| it.counted_by == CountedBy::Us) {
            CountedBy::Us
        } else {
            CountedBy::Provider
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.stored.0.is_empty()
    }

    /// The steps of a document.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let stored = self.stored.0.iter();
        stored
            .filter_map(|answered| match &answered.answer {
                StoredAnswer::Document(step) => Some(step.as_ref().clone()),
                StoredAnswer::Text { .. } => None,
            })
            .collect()
    }

    /// The text so far, its tokens, and whether it is cut off.
    pub(crate) fn text(&self) -> Option<(String, u64, bool)> {
        let mut stored = self.stored.0.iter().rev();
        stored.find_map(|answered| match &answered.answer {
            StoredAnswer::Text {
                text,
                tokens,
                is_cut,
            } => Some((text.clone(), *tokens, *is_cut)),
            StoredAnswer::Document(_) => None,
        })
    }

    /// The usage of a call by its provider, or else by our own count of its answer.
    pub(crate) fn usage_of_call(&self, end: &CallEnd, output: u64) -> (Usage, CountedBy) {
        let counted = Usage {
            input: self.asking,
            output,
            cached: None,
        };
        let reported = end.usage.map(|usage| (usage, CountedBy::Provider));
        reported.unwrap_or((counted, CountedBy::Us))
    }

    /// Records an answer with its usage.
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
        self.stored.0.push(answered);
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

    fn received(&mut self, piece: &str) {
        self.watch.received(self.step_id, piece);
    }

    fn stepped<'a>(
        &'a mut self,
        run: DrivenRun<'a>,
        step: &'a Step,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let usage = self.usage_of_call(end, step.tokens);
        let recorded = match run {
            DrivenRun::Document(_) => {
                self.keep(StoredAnswer::Document(Box::new(step.clone())), usage)
            }
            // The action records the whole text.
            DrivenRun::Text(_) => {
                self.last = usage;
                Ok(())
            }
        };
        future::ready(recorded.map_err(Into::into)).boxed()
    }

    fn learnt(&mut self, results: StrategyResults) {
        self.learnt = Some(results);
    }
}
