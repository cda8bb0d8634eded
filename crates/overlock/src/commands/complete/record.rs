//! Records and shows the steps of a run.

use std::error::Error;

use futures_util::future::{self, BoxFuture, FutureExt};
use overlock_budget::{Found, Plan};
use overlock_llm::{CallEnd, NextCall, Observe, Retry, Run, Step, StrategyResults};
use overlock_runs::{CallBudget, RecordedStep};
use overlock_store::{Claim, Store};

use super::interrupt::Interrupt;
use super::progress::CallProgress;
use crate::runs;

/// Writes every step to the store before the next call is made.
pub(super) struct Recorder<'a> {
    store: &'a dyn Store,
    claim: &'a Claim,
    model: &'a Found,
    pub(super) show: CallProgress,
    interrupt: Interrupt,
    /// The plan of the current call.
    budget: Option<CallBudget>,
    /// The steps of this process.
    steps: Vec<RecordedStep>,
    /// How well each strategy worked.
    pub(super) learnt: Option<StrategyResults>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        store: &'a dyn Store,
        claim: &'a Claim,
        model: &'a Found,
        interrupt: Interrupt,
    ) -> Self {
        Self {
            store,
            claim,
            model,
            show: CallProgress::new(),
            interrupt,
            budget: None,
            steps: Vec::new(),
            learnt: None,
        }
    }

    pub(super) fn into_steps(self) -> Vec<RecordedStep> {
        self.steps
    }
}

impl Observe for Recorder<'_> {
    fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        self.budget = Some(CallBudget::of(plan, self.model));
        self.interrupt.asking(ask);
        self.show.asking(ask, plan);
    }

    fn retrying(&mut self, retry: &Retry) {
        self.show.retrying(retry);
    }

    fn received(&mut self, piece: &str) {
        self.show.received(piece);
    }

    fn stepped<'b>(
        &'b mut self,
        run: Run<'b>,
        step: &'b Step,
        end: &'b CallEnd,
    ) -> BoxFuture<'b, Result<(), Box<dyn Error + Send + Sync>>> {
        let run = run.document().expect("`complete` asks for documents");
        let recorded = RecordedStep::new(run, step, self.budget.take())
            .done_at(runs::now())
            .with_counts(end.usage, end.counted);
        let added = runs::add_step(self.store, self.claim, &recorded);
        self.show.stepped(run, step);
        // The text is in the document already.
        let mut reported = recorded.without_text();
        reported.step.end.refusal = recorded.step.end.refusal;
        self.steps.push(reported);
        future::ready(added.map_err(Into::into)).boxed()
    }

    fn learnt(&mut self, results: StrategyResults) {
        self.learnt = Some(results);
    }
}
