//! Records, counts and streams what happens while an answer is continued.

use std::borrow::Cow;
use std::error::Error;

use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use overlock_budget::Plan;
use overlock_llm::{
    CallEnd, Failure, NextCall, Observe, Progress, Retry, Run, Step, StepEnd, StepResult, Strategy,
    StrategyResults, Usage, Wants,
};

use super::context::RequestContext;
use super::first::keep;
use crate::record::Recording;
use crate::totals::UsageTotals;
use crate::trace::{AnswerInfo, Called};
use overlock_runs::{CallBudget, RecordedStep};

/// Takes the stable text of a part while it is continued.
pub(super) trait Listen: Send {
    /// The part goes on with this.
    fn hear<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()>;

    /// Another call begins.
    fn call(&mut self) {}
}

/// Observes the calls of one part.
pub(super) struct Observer<'a, 'l> {
    context: &'a RequestContext,
    listener: Option<&'a mut (dyn Listen + 'l)>,
    totals: &'a mut UsageTotals,
    pub(super) recording: Option<&'a mut Recording>,
    /// The call that is being made.
    calling: Option<Calling>,
    pub(super) last_answer: LastAnswer,
}

/// How the last answer of a part ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastAnswer {
    /// Whether the provider's filter ended it.
    pub(super) is_withheld: bool,
    /// Whether the model declined to give it.
    pub(super) is_declined: bool,
}

/// A call that is being made.
struct Calling {
    iteration: u32,
    way: Option<Strategy>,
    budget: CallBudget,
    /// Whether it is for a text that is no document.
    plain_text: bool,
    /// What has arrived of its answer, if the run is recorded.
    coming: String,
}

impl<'a, 'l> Observer<'a, 'l> {
    pub(super) fn new(
        context: &'a RequestContext,
        listener: Option<&'a mut (dyn Listen + 'l)>,
        totals: &'a mut UsageTotals,
        recording: Option<&'a mut Recording>,
    ) -> Self {
        Self {
            context,
            listener,
            totals,
            recording,
            calling: None,
            last_answer: LastAnswer::default(),
        }
    }

    /// Whether the client gets the rest while it arrives.
    pub(super) fn is_live(&self) -> bool {
        self.listener.is_some()
    }

    fn call(&mut self, calling: Calling, name: Option<&'static str>) {
        self.context.stats.calling(name);
        if let Some(recording) = &mut self.recording {
            recording.asking(calling.way.map(Strategy::name), &calling.budget);
        }
        self.calling = Some(calling);
        if let Some(listener) = &mut self.listener {
            listener.call();
        }
    }

    /// The call has ended. Returns how its window was divided.
    fn ended(&mut self, step: &Step, end: &CallEnd, counted: Usage) -> Option<CallBudget> {
        self.totals.add(step, end.usage, counted);
        let usage = end.usage.unwrap_or(counted);
        let stats = &self.context.stats;
        stats.called(|| called(step, Some(usage)));
        let declined = Failure::Declined;
        self.last_answer = LastAnswer {
            is_withheld: step.end.finish.as_deref() == Some("content_filter"),
            is_declined: matches!(&step.result, StepResult::Failed { failure, .. } if *failure == declined),
        };
        self.calling.take().map(|calling| calling.budget)
    }

    fn keep(
        &mut self,
        step: impl FnOnce() -> RecordedStep,
    ) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        let Some(recording) = self.recording.as_deref_mut() else {
            return future::ready(Ok(())).boxed();
        };
        let mut step = step();
        let end = &mut step.step.end;
        if end.broken.is_some() || end.retried.is_some() {
            let secrets = self.context.secrets();
            let told = end.retried.as_mut().map(|retried| &mut retried.error);
            for told in told.into_iter().chain(&mut end.broken) {
                *told = secrets.scrub(told);
            }
        }
        async move { Ok(keep(recording, step).await?) }.boxed()
    }
}

impl Drop for Observer<'_, '_> {
    /// A client that disconnects during a call leaves a step with what had arrived.
    fn drop(&mut self) {
        let (Some(calling), Some(recording)) = (self.calling.take(), &mut self.recording) else {
            return;
        };
        if calling.coming.is_empty() {
            return;
        }
        let tokens = self.context.wish.counter().tokens().count(&calling.coming);
        let step = Step {
            iteration: calling.iteration,
            way: calling.way,
            tokens,
            kpi: None,
            kpis: None,
            progress: Progress::Unknown,
            is_looping: false,
            result: StepResult::Failed {
                failure: Failure::Cancelled,
                raw: Some(calling.coming),
            },
            end: StepEnd::default(),
        };
        recording.record_partial(RecordedStep {
            plain_text: calling.plain_text,
            counted: Some(tokens),
            ..RecordedStep::of_text(step, Some(calling.budget))
        });
    }
}

impl Observe for Observer<'_, '_> {
    fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        let calling = Calling {
            iteration: ask.iteration,
            way: ask.way,
            budget: self.context.budget_of(plan),
            plain_text: ask.wants == Wants::Text,
            coming: String::new(),
        };
        let name = match ask.wants {
            Wants::Text => Some("text"),
            _ => ask.way.map(Strategy::name),
        };
        self.call(calling, name);
    }

    fn correcting(&mut self, iteration: u32, plan: &Plan) {
        let calling = Calling {
            iteration,
            way: None,
            budget: self.context.budget_of(plan),
            plain_text: false,
            coming: String::new(),
        };
        self.call(calling, Some("correction"));
    }

    fn retrying(&mut self, retry: &Retry) {
        if let Some(recording) = &mut self.recording {
            let context = self.context;
            recording.retrying(retry, |error| context.secrets().scrub(error));
        }
    }

    fn received(&mut self, piece: &str) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        recording.add_text(piece);
        if let Some(calling) = &mut self.calling {
            calling.coming.push_str(piece);
        }
    }

    fn stable<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        match &mut self.listener {
            Some(listener) => listener.hear(text),
            None => future::ready(()).boxed(),
        }
    }

    fn stepped<'a>(
        &'a mut self,
        run: Run<'a>,
        step: &'a Step,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let calling = self.calling.as_ref();
        let counted = Usage {
            input: calling.map_or(0, |calling| calling.budget.input_token_count),
            output: step.tokens,
            cached: None,
        };
        let budget = self.ended(step, end, counted);
        self.keep(|| {
            let recorded = match run {
                Run::Document(run) => RecordedStep::new(run, step, budget),
                Run::Text(_) => RecordedStep::of_text(step.clone(), budget),
            };
            recorded.with_counts(end.usage, end.counted)
        })
    }

    fn learnt(&mut self, results: StrategyResults) {
        let context = self.context;
        // The demo model has nothing to learn from.
        if context.shown.is_some() {
            context
                .gateway
                .learn_strategies(&context.wish.model, results);
        }
    }
}

/// How the call of a step ended.
fn called(step: &Step, usage: Option<Usage>) -> Called {
    let seam = match &step.result {
        StepResult::Grown { seam, .. } => seam.clone(),
        StepResult::Failed { failure, .. } => failure.name().to_owned(),
    };
    let error = match &step.result {
        StepResult::Failed {
            failure: Failure::Refused { .. },
            ..
        } => Some("refused"),
        _ => step.end.broken.as_ref().map(|_| "broken"),
    };
    Called {
        answered: AnswerInfo::new(None, step.end.finish.as_deref().into_iter()),
        usage,
        seam: Some(seam),
        error: error.map(Cow::Borrowed),
    }
}
