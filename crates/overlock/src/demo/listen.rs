//! Notes what happens in a run, call by call, and records it where that was asked for.

use std::error::Error;

use futures_util::future::{self, BoxFuture, FutureExt};
use overlock_budget::{Found, Plan};
use overlock_json::PartialDocument;
use overlock_llm::testing::Behaviour;
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{
    CallEnd, Continuation, ContinuationOptions, NextCall, Observe, Outcome, Run, Step,
};
use overlock_runs::{CallBudget, Conditions, RecordedStep};
use overlock_store::{Claim, Store};

use super::{Call, MODEL, Stop};
use crate::draw::{self, Join};
use crate::ending::Failure;
use crate::runs;

pub(super) struct Listener<'a> {
    store: Option<&'a dyn Store>,
    model: &'a Found,
    /// The run, once it has begun to be recorded.
    claim: Option<Claim>,
    calls: Vec<Call>,
    /// The call that is being made, and what has been heard of its answer.
    asked: Option<(NextCall, Plan)>,
    heard: String,
}

impl<'a> Listener<'a> {
    pub(super) fn new(store: Option<&'a dyn Store>, model: &'a Found) -> Self {
        Self {
            store,
            model,
            claim: None,
            calls: Vec::new(),
            asked: None,
            heard: String::new(),
        }
    }

    pub(super) fn begin(
        &mut self,
        request: &ChatRequest,
        options: &ContinuationOptions,
    ) -> Result<(), Failure> {
        if let Some(store) = self.store {
            let (id, conditions) = (runs::new_id(), Conditions::default());
            let claim = runs::begin(store, &id, MODEL, request, options, &conditions)?;
            self.claim = Some(claim);
        }
        Ok(())
    }

    pub(super) fn end(&self, outcome: &Outcome) -> Result<(), Failure> {
        if let (Some(store), Some(claim)) = (self.store, &self.claim) {
            let ended = runs::end(store, claim, outcome, None);
            ended.map_err(|source| Failure::Store { source })?;
        }
        Ok(())
    }

    /// The calls, each with what the model did at it.
    pub(super) fn into_calls(self, behaved: Vec<Behaviour>) -> Vec<Call> {
        let calls = self.calls.into_iter().zip(behaved);
        calls
            .map(|(call, behaviour)| Call { behaviour, ..call })
            .collect()
    }
}

impl Observe for Listener<'_> {
    fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        self.asked = Some((ask.clone(), plan.clone()));
        self.heard.clear();
    }

    fn heard(&mut self, piece: &str) {
        self.heard.push_str(piece);
    }

    fn stepped<'b>(
        &'b mut self,
        run: Run<'b>,
        step: &'b Step,
        end: &'b CallEnd,
    ) -> BoxFuture<'b, Result<(), Box<dyn Error + Send + Sync>>> {
        let run = run.document().expect("the demo asks for a document");
        let (ask, plan) = self.asked.take().expect("an answer follows a question");
        let kept = match (self.store, &self.claim) {
            (Some(store), Some(claim)) => {
                let budget = CallBudget::of(&plan, self.model);
                let step = RecordedStep::new(run, step, Some(budget))
                    .done_at(runs::now())
                    .with_counts(end.usage, end.counted);
                runs::add_step(store, claim, &step)
            }
            _ => Ok(()),
        };
        self.calls.push(Call {
            ask,
            plan,
            behaviour: Behaviour::AsAsked,
            text: std::mem::take(&mut self.heard),
            cut_off: end.finish.as_deref() == Some("length"),
            join: Join::from(&step.result),
            base_len: run.text().len(),
            stop: run.base().and_then(|base| stop(run, base)),
        });
        future::ready(kept.map_err(Into::into)).boxed()
    }
}

fn stop(run: &Continuation, base: &PartialDocument<'_>) -> Option<Stop> {
    let cut = base.cut()?;
    let closing = base.scanner().closing(false);
    let open = closing.map(|closing| draw::open_trail(base, &cut, &closing));
    Some(Stop {
        open: open.unwrap_or_default(),
        delivered: run
            .delivered()
            .and_then(|delivered| delivered.lines().pop()),
        cut,
    })
}
