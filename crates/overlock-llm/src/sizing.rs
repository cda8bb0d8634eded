//! Corrects the token count of calls after the server rejected one for its size.
//!
//! If another tokenizer is used instead of the model's own, a call may be larger than counted. The
//! error names the true sizes, and the call is planned and made again with them.

use std::time::Duration;

use overlock_budget::{ChatCounter, Plan, PlanOptions, Scale};

use crate::backend::{RefusedSize, Retried, Retry};
use crate::complete::{Collected, Drive};
use crate::prompt::begun_tokens;

/// The counter and the plan options of a drive, corrected by the sizes in size errors.
pub(crate) struct Sizing<'a> {
    counter: ChatCounter<'a>,
    options: PlanOptions,
    /// The rejected call, while it is repeated.
    refused: Option<Retry>,
}

impl<'a> Sizing<'a> {
    pub(crate) fn new(drive: &Drive<'a>) -> Self {
        Self {
            counter: drive.counter.clone(),
            options: drive.plan.clone(),
            refused: None,
        }
    }

    /// The drive with the corrected counter and options.
    pub(crate) fn drive<'b>(&'b self, drive: &Drive<'b>) -> Drive<'b> {
        Drive {
            counter: &self.counter,
            plan: &self.options,
            ..*drive
        }
    }

    /// Returns the failed attempt if the call was rejected for its size and should be planned
    /// again. That happens once in a row, and only if the call then fits; the answer to the second
    /// call records the first.
    pub(crate) fn plan_again(
        &mut self,
        collected: &mut Collected,
        plan: &Plan,
        prefill: &str,
        fits: impl FnOnce(&Self) -> bool,
    ) -> Option<&Retry> {
        if let Some(refused) = self.refused.take() {
            Retried::add(&mut collected.retried, &refused);
            return None;
        }
        let error = collected.broken.as_ref()?;
        let size = error.refused_size().filter(|_| collected.text.is_empty())?;
        let before = (self.counter.clone(), self.options.clone());
        if !self.learn(size, plan, prefill) || !fits(self) {
            (self.counter, self.options) = before;
            return None;
        }
        let (error, wait) = (error.clone(), Duration::ZERO);
        self.refused = Some(Retry { error, wait });
        self.refused.as_ref()
    }

    /// Applies the sizes from an error; returns whether they change the plan.
    fn learn(&mut self, size: RefusedSize, plan: &Plan, prefill: &str) -> bool {
        let begun = begun_tokens(prefill, &self.counter);
        let counted = plan.input_token_count.saturating_add(begun);
        let input = size.input.filter(|input| *input > counted);
        if let Some(input) = input {
            // The next request may have even more tokens per counted token, so add a margin.
            let input = input.saturating_add(input / 16);
            let scale = Scale::of(self.counter.scale().apply(input), counted);
            self.counter = self.counter.scaled(scale);
        }
        let window = size.window.filter(|window| *window < self.options.window);
        self.options.window = window.unwrap_or(self.options.window);
        input.is_some() || window.is_some()
    }
}
