//! Collects the calls of the demo, and records them if there is a store.

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

use super::{CutState, DemoCall, MODEL};
use crate::draw::{self, Join};
use crate::ending::Failure;
use crate::runs;

pub(super) struct DemoObserver<'a> {
    store: Option<&'a dyn Store>,
    model: &'a Found,
    /// The claim on the run, if it is recorded.
    claim: Option<Claim>,
    calls: Vec<DemoCall>,
    /// The current call, and the text of its answer so far.
    current: Option<(NextCall, Plan)>,
    text: String,
}

impl<'a> DemoObserver<'a> {
    pub(super) fn new(store: Option<&'a dyn Store>, model: &'a Found) -> Self {
        Self {
            store,
            model,
            claim: None,
            calls: Vec::new(),
            current: None,
            text: String::new(),
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

    /// The calls, each with what the model did.
    pub(super) fn into_calls(self, behaviours: Vec<Behaviour>) -> Vec<DemoCall> {
        let calls = self.calls.into_iter().zip(behaviours);
        calls
            .map(|(call, behaviour)| DemoCall { behaviour, ..call })
            .collect()
    }
}

impl Observe for DemoObserver<'_> {
    fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        self.current = Some((ask.clone(), plan.clone()));
        self.text.clear();
    }

    fn received(&mut self, piece: &str) {
        self.text.push_str(piece);
    }

    fn stepped<'b>(
        &'b mut self,
        run: Run<'b>,
        step: &'b Step,
        end: &'b CallEnd,
    ) -> BoxFuture<'b, Result<(), Box<dyn Error + Send + Sync>>> {
        let run = run.document().expect("the demo asks for a document");
        let (ask, plan) = self.current.take().expect("a step follows its call");
        let recorded = match (self.store, &self.claim) {
            (Some(store), Some(claim)) => {
                let budget = CallBudget::of(&plan, self.model);
                let step = RecordedStep::new(run, step, Some(budget))
                    .done_at(runs::now())
                    .with_counts(end.usage, end.counted);
                runs::add_step(store, claim, &step)
            }
            _ => Ok(()),
        };
        self.calls.push(DemoCall {
            ask,
            plan,
            behaviour: Behaviour::AsAsked,
            text: std::mem::take(&mut self.text),
            cut_off: end.finish.as_deref() == Some("length"),
            join: Join::from(&step.result),
            base_len: run.text().len(),
            cut: run.base().and_then(|base| cut_state(run, base)),
        });
        future::ready(recorded.map_err(Into::into)).boxed()
    }
}

fn cut_state(run: &Continuation, base: &PartialDocument<'_>) -> Option<CutState> {
    let cut = base.cut()?;
    let closing = base.scanner().closing(false);
    let open = closing.map(|closing| draw::open_trail(base, &cut, &closing));
    Some(CutState {
        open: open.unwrap_or_default(),
        delivered: run
            .delivered()
            .and_then(|delivered| delivered.lines().pop()),
        cut,
    })
}
