//! Keeps and shows what happens in a run.

use std::error::Error;

use futures_util::future::{self, BoxFuture, FutureExt};
use overlock_budget::Plan;
use overlock_model::{Ask, CallEnd, Continuation, Observe, Step};
use overlock_store::{RunId, Store};

use super::show::Show;
use crate::runs;

/// Writes every step to the store before the next call is made.
pub(super) struct Recorder<'a> {
    store: &'a Store,
    id: &'a RunId,
    pub(super) show: Show,
    /// The steps of this process.
    steps: Vec<Step>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(store: &'a Store, id: &'a RunId, run: &Continuation) -> Self {
        Self {
            store,
            id,
            show: Show::new(run),
            steps: Vec::new(),
        }
    }

    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps
    }
}

impl Observe for Recorder<'_> {
    fn asking(&mut self, ask: &Ask, plan: &Plan) {
        self.show.asking(ask, plan);
    }

    fn heard(&mut self, piece: &str) {
        self.show.heard(piece);
    }

    fn stepped<'b>(
        &'b mut self,
        run: &'b Continuation,
        step: &'b Step,
        _end: &'b CallEnd,
    ) -> BoxFuture<'b, Result<(), Box<dyn Error + Send + Sync>>> {
        let kept = runs::add_step(self.store, self.id, step);
        if kept.is_ok() {
            self.show.stepped(run, step);
            // What was added is in the document already.
            self.steps.push(step.without_text());
        }
        future::ready(kept.map_err(Into::into)).boxed()
    }
}
