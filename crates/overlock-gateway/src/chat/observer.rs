//! Records, counts and streams the later calls for one part of an answer.

use std::borrow::Cow;
use std::error::Error;

use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use overlock_budget::Plan;
use overlock_llm::{
    CallEnd, Continuation, Failure, NextCall, Observe, Outcome, Reason, Retry, Run, Step, StepEnd,
    StepResult, Strategy, StrategyResults, TextContinuation, Usage, Wants,
};
use overlock_runs::{AnswerLimit, CallBudget, RecordedStep};

use super::context::{AnswerPart, RequestContext};
use super::out::PartOut;
use super::run::ChatRun;
use crate::record::Recording;
use crate::totals::UsageTotals;
use crate::trace::{AnswerInfo, Called};

/// The later calls for one part: they continue it, or correct it.
pub(super) struct PartCalls<'a> {
    pub(super) context: &'a RequestContext,
    pub(super) target: AnswerPart<'a>,
    pub(super) out: PartOut,
    pub(super) totals: &'a mut UsageTotals,
    pub(super) recording: Option<&'a mut Recording>,
    current: Option<CurrentCall>,
    /// Why the provider or the model stopped the last answer, if they did.
    stopped: Option<Reason>,
}

/// A call that is being made.
struct CurrentCall {
    iteration: u32,
    strategy: Option<Strategy>,
    budget: CallBudget,
    is_for_text: bool,
    /// The answer as far as it has arrived, if the run is recorded.
    received: String,
}

impl<'a> PartCalls<'a> {
    pub(super) fn new(
        run: &'a mut ChatRun,
        target: AnswerPart<'a>,
        out: PartOut,
        totals: &'a mut UsageTotals,
    ) -> Self {
        let recording = run.recording.as_mut();
        Self {
            context: &run.context,
            target,
            out,
            totals,
            recording: recording.map(|it| it.turn_to(target.part)),
            current: None,
            stopped: None,
        }
    }

    /// How a document ended.
    pub(super) fn outcome(&self, run: &Continuation) -> Option<Outcome> {
        let mut outcome = run.outcome()?.clone();
        if let Outcome::Partial { reason, .. } = &mut outcome {
            let is_failure = matches!(reason, Reason::MergeFailures | Reason::NoProgress);
            let stopped = self.stopped;
            let stopped = stopped.filter(|it| *it == Reason::ContentFilter || is_failure);
            *reason = stopped.unwrap_or(*reason);
        }
        Some(outcome)
    }

    /// Whether the provider's filter ended a document.
    pub(super) fn is_withheld(&self, run: &Continuation) -> bool {
        let is_complete = run.outcome() == Some(&Outcome::Complete);
        self.stopped == Some(Reason::ContentFilter) && !is_complete
    }

    fn begin_call(
        &mut self,
        iteration: u32,
        strategy: Option<Strategy>,
        plan: &Plan,
        name: Option<&'static str>,
        is_for_text: bool,
    ) {
        let params = &self.context.params;
        // Every call says how long its answer may be, even if the client does not.
        let budget = CallBudget::of(plan, &params.known.found).with_limit(AnswerLimit {
            asked: params.requested,
            sent: Some(plan.adjusted_max_tokens),
        });
        self.context.stats.calling(name);
        if let Some(recording) = &mut self.recording {
            recording.asking(strategy.map(Strategy::name), &budget);
        }
        self.current = Some(CurrentCall {
            iteration,
            strategy,
            budget,
            is_for_text,
            received: String::new(),
        });
        self.out.out.keep_alive();
    }
}

impl Drop for PartCalls<'_> {
    /// A client that disconnects during a call leaves a step with what had arrived.
    fn drop(&mut self) {
        let (Some(call), Some(recording)) = (self.current.take(), &mut self.recording) else {
            return;
        };
        if call.received.is_empty() {
            return;
        }
        let tokens = self.context.params.counter().tokens().count(&call.received);
        let step = Step {
            iteration: call.iteration,
            strategy: call.strategy,
            result: StepResult::Failed {
                failure: Failure::Cancelled,
                raw: Some(call.received),
            },
            ..TextContinuation::first_step("", tokens, StepEnd::default())
        };
        recording.record_partial(RecordedStep {
            plain_text: call.is_for_text,
            counted: Some(tokens),
            ..RecordedStep::of_text(step, Some(call.budget))
        });
    }
}

impl Observe for PartCalls<'_> {
    fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        let is_for_text = ask.wants == Wants::Text;
        let name = if is_for_text {
            Some("text")
        } else {
            ask.strategy.map(Strategy::name)
        };
        self.begin_call(ask.iteration, ask.strategy, plan, name, is_for_text);
    }

    fn correcting(&mut self, iteration: u32, plan: &Plan) {
        self.begin_call(iteration, None, plan, Some("correction"), false);
    }

    fn retrying(&mut self, retry: &Retry) {
        if let Some(recording) = &mut self.recording {
            let context = self.context;
            recording.retrying(retry, |error| context.secrets().scrub(error));
        }
    }

    fn received(&mut self, piece: &str) {
        if let Some(recording) = &mut self.recording {
            recording.add_text(piece);
            if let Some(call) = &mut self.current {
                call.received.push_str(piece);
            }
        }
    }

    fn stable<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        self.out.send(text).boxed()
    }

    fn stepped<'a>(
        &'a mut self,
        run: Run<'a>,
        step: &'a Step,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let budget = self.current.take().map(|call| call.budget);
        let counted = Usage {
            input: budget.as_ref().map_or(0, |it| it.input_token_count),
            output: step.tokens,
            cached: None,
        };
        self.totals.add(step, end.usage, counted);
        let usage = end.usage.unwrap_or(counted);
        self.context.stats.called(|| called(step, usage));
        self.stopped = match &step.result {
            _ if step.end.finish.as_deref() == Some("content_filter") => {
                Some(Reason::ContentFilter)
            }
            StepResult::Failed { failure, .. } if *failure == Failure::Declined => {
                Some(Reason::Refusal)
            }
            _ => None,
        };
        let Some(recording) = self.recording.as_deref_mut() else {
            return future::ready(Ok(())).boxed();
        };
        let recorded = match run {
            Run::Document(run) => RecordedStep::new(run, step, budget),
            Run::Text(_) => RecordedStep::of_text(step.clone(), budget),
        };
        let mut recorded = recorded.with_counts(end.usage, end.counted);
        let end = &mut recorded.step.end;
        let retried = end.retried.as_mut().map(|retried| &mut retried.error);
        for message in retried.into_iter().chain(&mut end.broken) {
            *message = self.context.secrets().scrub(message);
        }
        async move { Ok(recording.step(recorded).await?) }.boxed()
    }

    fn learnt(&mut self, results: StrategyResults) {
        let context = self.context;
        // The demo model has nothing to learn from.
        if context.shown.is_some() {
            let model = &context.params.model;
            context.gateway.learn_strategies(model, results);
        }
    }
}

/// The end of a call, for its trace.
fn called(step: &Step, usage: Usage) -> Called {
    let seam = match &step.result {
        StepResult::Grown { seam, .. } => seam.clone(),
        StepResult::Failed { failure, .. } => failure.name().to_owned(),
    };
    let broken = step.end.broken.as_ref().map(|_| "broken");
    let error = step.is_rejected().then_some("refused").or(broken);
    Called {
        answered: AnswerInfo::new(None, step.end.finish.as_deref().into_iter()),
        usage: Some(usage),
        seam: Some(seam),
        error: error.map(Cow::Borrowed),
    }
}
