//! What are the calls of a run planned by, once the server has refused one for its size?
//!
//! Where another tokenizer stands in for the model's own, a call may be larger than it was counted.
//! The refusal names the true sizes: the call is planned again with them and made once more.

use std::time::Duration;

use overlock_budget::{ChatCounter, Plan, PlanOptions, Scale};

use crate::backend::{RefusedSize, Retried, Retry};
use crate::complete::{Collected, Drive};
use crate::prompt::begun_tokens;

/// The counter and the options of a drive, corrected by the sizes that refusals name.
pub(crate) struct Sizing<'a> {
    counter: ChatCounter<'a>,
    options: PlanOptions,
    /// The last call, if it was refused for its size and is planned again.
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

    /// The same drive, whose calls are planned by this.
    pub(crate) fn drive<'b>(&'b self, drive: &Drive<'b>) -> Drive<'b> {
        Drive {
            counter: &self.counter,
            plan: &self.options,
            ..*drive
        }
    }

    /// Whether a call with this plan and this prefill was refused for its size and is to be planned
    /// again. That happens once, and only if it then fits; the answer to the second call records
    /// the first.
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

    /// Takes the sizes from a refusal; whether they change how the call is planned.
    fn learn(&mut self, size: RefusedSize, plan: &Plan, prefill: &str) -> bool {
        let begun = begun_tokens(prefill, &self.counter);
        let counted = plan.input_token_count.saturating_add(begun);
        let input = size.input.filter(|input| *input > counted);
        if let Some(input) = input {
            // What is sent next may need even more for each counted token than what was refused.
            let input = input.saturating_add(input / 16);
            let scale = Scale::of(self.counter.scale().apply(input), counted);
            self.counter = self.counter.scaled(scale);
        }
        let window = size.window.filter(|window| *window < self.options.window);
        self.options.window = window.unwrap_or(self.options.window);
        input.is_some() || window.is_some()
    }
}
