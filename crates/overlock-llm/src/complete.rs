//! Drives a run: makes calls and joins the answers until the document is complete or a limit is
//! reached.

use std::error::Error;
use std::mem;

use futures_util::future::{BoxFuture, Either};
use futures_util::{FutureExt, StreamExt, future};
use overlock_budget::{ChatCounter, Plan, PlanOptions};

use crate::backend::{Backend, BackendError, Call, Event, Retried, Retry, Usage};
use crate::continuation::{
    AnswerError, Continuation, Failure, ModelOutput, NextCall, Reason, Step, StepEnd, StepResult,
    Wants, readable,
};
use crate::prompt::{FittedCall, PromptError, next_call};
use crate::run::{DrivenRun, Run};
use crate::sizing::Sizing;
use crate::strategy_history::{StrategyResults, StrategyTally};
use crate::streaming_answer::StreamingAnswer;
use crate::text::TextContinuation;
use crate::wire::WireRequest;

/// The upstream, the request and the limits that a run is driven with.
pub struct Drive<'a> {
    /// The upstream.
    pub backend: &'a dyn Backend,
    /// The caller's request.
    pub request: &'a dyn WireRequest,
    /// Counts tokens for the model.
    pub counter: &'a ChatCounter<'a>,
    /// How calls are planned into the window.
    pub plan: &'a PlanOptions,
    /// When the run stops, complete or not.
    pub deadline: Option<&'a dyn Deadline>,
    /// The maximum of bytes read of one answer.
    pub most_answer_bytes: usize,
    /// Whether the document is [streamed](Observe::stable). If an answer stops being JSON, its
    /// document then counts as cut there, because streamed text is never revised.
    pub live: bool,
}

/// A deadline by the caller's clock.
pub trait Deadline: Sync {
    /// Whether it has passed.
    fn has_passed(&self) -> bool;

    /// Waits for it.
    fn wait(&self) -> BoxFuture<'_, ()>;
}

/// The metadata at the end of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallEnd {
    /// The provider's finish reason.
    pub finish: Option<String>,
    /// The usage that the provider reports.
    pub usage: Option<Usage>,
    /// The tokens of the answer as counted locally, if there was text.
    pub counted: Option<u64>,
}

/// An answer that was read to its end, or as far as it arrived.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// The text that belongs to the document.
    pub(crate) text: String,
    /// The full text, if it differs from `text`.
    pub(crate) full_text: Option<String>,
    /// The model's refusal text.
    pub(crate) refusal: String,
    pub(crate) end: CallEnd,
    /// The error that interrupted the answer. The text before it is a cut answer.
    pub(crate) broken: Option<BackendError>,
    /// Whether the answer was cut at a marker after part of it had been streamed.
    pub(crate) is_cut_at_marker: bool,
    /// The failed attempts before the answer.
    pub(crate) retried: Option<Retried>,
    /// The error of the last attempt, until an answer begins.
    pub(crate) unanswered: Option<BackendError>,
}

/// Observes a run while it is driven.
pub trait Observe: Send {
    /// A call is about to be made.
    fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        let _ = (ask, plan);
    }

    /// An attempt failed and will be repeated.
    fn retrying(&mut self, retry: &Retry) {
        let _ = retry;
    }

    /// A call for a correction is about to be made. `iteration` counts all calls of the run.
    fn correcting(&mut self, iteration: u32, plan: &Plan) {
        let _ = (iteration, plan);
    }

    /// A piece of an answer has arrived.
    fn received(&mut self, piece: &str) {
        let _ = piece;
    }

    /// The document continues with this text, which no later answer will change. These texts joined
    /// are the document, from its length when the drive began.
    fn stable<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        let _ = text;
        future::ready(()).boxed()
    }

    /// A step is done. An error ends the run: steps that cannot be recorded must not be paid for.
    fn stepped<'a>(
        &'a mut self,
        run: Run<'a>,
        step: &'a Step,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let _ = (run, step, end);
        future::ready(Ok(())).boxed()
    }

    /// The run has ended with these results of its strategies.
    fn learnt(&mut self, results: StrategyResults) {
        let _ = results;
    }
}

impl Observe for () {}

/// Why a run could not be driven to an outcome.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The observer could not record a step.
    #[error("the model's answer could not be recorded")]
    Observe(#[source] Box<dyn Error + Send + Sync>),
    /// The caller's request is invalid.
    #[error(transparent)]
    Prompt(PromptError),
    /// Other code advanced the run meanwhile.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// The error that stopped a run, in addition to its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// The upstream could not be reached or returned an error.
    Backend {
        /// The error.
        error: BackendError,
        /// The failed attempts before it.
        retried: Option<Retried>,
    },
    /// The call does not fit the window.
    Window(PromptError),
}

/// Makes calls until the run has ended. Returns the error that stopped it, if any.
///
/// Dropping the future cancels the current call. The run then is as after its last step and can be
/// driven again.
pub async fn complete(
    run: &mut Continuation,
    drive: &Drive<'_>,
    observer: &mut dyn Observe,
) -> Result<Option<StopCause>, DriveError> {
    let mut tally = StrategyTally::default();
    let driven = drive_on(DrivenRun::Document(run), drive, &mut tally, observer).await;
    let results = tally.results();
    if !results.is_empty() {
        observer.learnt(results);
    }
    driven
}

/// Completes a text: makes calls until the provider no longer reports that the answer was cut off,
/// or a limit is reached. Strategy results of texts are not reported, since they say nothing about
/// documents.
pub async fn complete_text(
    run: &mut TextContinuation,
    drive: &Drive<'_>,
    observer: &mut dyn Observe,
) -> Result<Option<StopCause>, DriveError> {
    let mut tally = StrategyTally::default();
    drive_on(DrivenRun::Text(run), drive, &mut tally, observer).await
}

/// Makes calls until the run has ended, and counts the results of its strategies.
async fn drive_on(
    mut run: DrivenRun<'_>,
    drive: &Drive<'_>,
    tally: &mut StrategyTally,
    observer: &mut dyn Observe,
) -> Result<Option<StopCause>, DriveError> {
    // The last call that the upstream rejected, and the error that interrupted the last answer.
    let mut refusal = None;
    let mut broken = None;
    run.begin(drive);
    let mut streamed = run.settled_len();
    let mut sizing = Sizing::new(drive);
    while let Some(ask) = run.next() {
        if drive.is_past_deadline() {
            run.stop(Reason::Deadline);
            break;
        }
        let (ask, FittedCall { call, plan }) = match run.fit(&sizing.drive(drive), ask.clone()) {
            Ok(fitted) => fitted,
            Err(error @ PromptError::Window(_)) if ask.wants == Wants::Kpis => {
                let nothing = Collected::default();
                note_refusal(&mut run, &ask, error.to_string(), &nothing, observer).await?;
                continue;
            }
            Err(error @ PromptError::Window(_)) => {
                run.stop(Reason::Window);
                return Ok(Some(StopCause::Window(error)));
            }
            Err(error @ PromptError::Request(_)) => return Err(DriveError::Prompt(error)),
        };
        observer.asking(&ask, &plan);
        let prefill = call.prefill.clone();
        let begun = prefill.as_deref().unwrap_or_default();
        let streaming = Some(run.streaming(&ask, prefill.as_deref()));
        let most_bytes = drive.most_bytes(&plan).saturating_add(begun.len());
        let (mut collected, streamed_len) = drive
            .read_answer(call, most_bytes, streaming, observer)
            .await;
        let fits = |sizing: &Sizing<'_>| run.fit(&sizing.drive(drive), ask.clone()).is_ok();
        if let Some(retry) = sizing.plan_again(&mut collected, &plan, begun, fits) {
            observer.retrying(retry);
            continue;
        }
        let is_at_cut = collected.remove_echo(begun);
        let is_silent = collected.text.is_empty();
        let stop_cause = collected.stop_cause();
        if let Some(error) = collected.broken.as_ref().filter(|_| is_silent) {
            if note_failure(&mut run, &ask, error, &collected, tally, observer).await? {
                refusal = stop_cause;
                continue;
            }
            run.stop(Reason::ModelError);
            return Ok(stop_cause);
        }
        if is_silent && drive.is_past_deadline() {
            broken = collected.unanswered();
            continue;
        }
        let step = run.take(drive, &ask, prefill.as_deref(), &mut collected, is_at_cut)?;
        // An answer that the deadline cut off says nothing about the strategy.
        if !drive.is_past_deadline() || step.end_len().is_some() {
            tally.add(&step);
        }
        broken = stop_cause;
        observer
            .stepped(run.as_run(), &step, &collected.end)
            .await
            .map_err(DriveError::Observe)?;
        streamed += streamed_len;
        let settled = run.settled_len();
        if drive.live && streamed < settled {
            observer.stable(&run.text()[streamed..settled]).await;
            streamed = settled;
        }
    }
    Ok(match run.reason() {
        None => None,
        Some(Reason::ModelError) => refusal,
        Some(_) => broken,
    })
}

/// Continues the run after a call that failed without an answer; returns whether it can.
async fn note_failure(
    run: &mut DrivenRun<'_>,
    ask: &NextCall,
    error: &BackendError,
    collected: &Collected,
    tally: &mut StrategyTally,
    observer: &mut dyn Observe,
) -> Result<bool, DriveError> {
    // The KPI question is optional, so it is made only once.
    if !error.is_refusal() && ask.wants != Wants::Kpis {
        return Ok(false);
    }
    if let Some(strategy) = ask.strategy.filter(|_| !error.is_about_size()) {
        tally.add_refusal(strategy);
    }
    note_refusal(run, ask, error.to_string(), collected, observer).await
}

/// Continues the run without an answer to this call; returns whether it can.
async fn note_refusal(
    run: &mut DrivenRun<'_>,
    ask: &NextCall,
    message: String,
    collected: &Collected,
    observer: &mut dyn Observe,
) -> Result<bool, DriveError> {
    let Some(mut step) = run.refused(ask, message) else {
        return Ok(false);
    };
    step.end.retried = collected.retried.clone().map(Box::new);
    // A call that was rejected or never made costs nothing.
    let end = CallEnd {
        usage: collected.end.usage.or(Some(Usage::default())),
        ..CallEnd::default()
    };
    let kept = observer.stepped(run.as_run(), &step, &end).await;
    kept.map_err(DriveError::Observe).map(|()| true)
}

/// A shorter prefix may match by chance.
pub(crate) const SHORTEST_ECHO: usize = 16;

/// The rest of an answer that begins with the prefill of its call, which some servers repeat;
/// `None` if it does not.
pub fn after_echo<'a>(answer: &'a [u8], prefill: &str) -> Option<&'a [u8]> {
    let rest = answer.strip_prefix(prefill.as_bytes());
    rest.filter(|_| prefill.len() >= SHORTEST_ECHO)
}

impl Collected {
    /// Removes the prefill, which some servers repeat; returns whether it was there.
    pub(crate) fn remove_echo(&mut self, prefill: &str) -> bool {
        let is_there = after_echo(self.text.as_bytes(), prefill).is_some();
        if is_there {
            self.text.drain(..prefill.len());
            if let Some(full) = self.full_text.as_mut().filter(|it| it.starts_with(prefill)) {
                full.drain(..prefill.len());
            }
        }
        is_there
    }

    /// All of its text.
    fn full_text(&self) -> &str {
        self.full_text.as_deref().unwrap_or(&self.text)
    }

    /// The error that interrupted the answer.
    pub(crate) fn stop_cause(&self) -> Option<StopCause> {
        self.backend_stop(self.broken.as_ref())
    }

    /// The error of the last attempt, if the deadline passed before an answer.
    pub(crate) fn unanswered(&self) -> Option<StopCause> {
        self.backend_stop(self.unanswered.as_ref())
    }

    fn backend_stop(&self, error: Option<&BackendError>) -> Option<StopCause> {
        Some(StopCause::Backend {
            error: error?.clone(),
            retried: self.retried.clone(),
        })
    }

    /// How the answer ended, for the step.
    pub(crate) fn step_end(&self) -> StepEnd {
        let at_marker = "the answer was cut off at a marker of the prompt";
        let at_marker = self.is_cut_at_marker.then(|| at_marker.to_owned());
        // The provider's `stop` does not apply to an answer that was cut here.
        let is_end = |finish: &String| !self.is_cut_at_marker || finish != "stop";
        StepEnd {
            finish: self.end.finish.clone().filter(is_end),
            refusal: (!self.refusal.is_empty()).then(|| self.refusal.clone()),
            broken: self.broken.as_ref().map(ToString::to_string).or(at_marker),
            retried: self.retried.clone().map(Box::new),
            answer_bytes: Some(self.full_text().len() as u64),
        }
    }
}

/// A low estimate of the characters of a token.
const CHARS_PER_TOKEN: u64 = 3;

/// No answer has more bytes per token on average: the longest tokens are white space.
const BYTES_PER_TOKEN: u64 = 64;

/// Allowed in addition, so that short answers are not cut.
const EXTRA_BYTES: u64 = 16 << 10;

impl Drive<'_> {
    /// Plans the call. If its answer will be short, the overlap is shortened, so that the answer
    /// has room for new text.
    pub(crate) fn fit(
        &self,
        run: &mut Continuation,
        ask: NextCall,
    ) -> Result<(NextCall, FittedCall), PromptError> {
        let options = self.options_for(run);
        let call = |run: &Continuation, ask: &NextCall| {
            next_call(run, ask, self.request, self.counter, &options)
        };
        let fitted = call(run, &ask)?;
        let answer_chars = fitted
            .plan
            .adjusted_max_tokens
            .saturating_mul(CHARS_PER_TOKEN);
        run.expect_answer_chars(usize::try_from(answer_chars).unwrap_or(usize::MAX));
        match run.next().filter(|other| *other != ask) {
            Some(other) => call(run, &other).map(|fitted| (other, fitted)),
            None => Ok((ask, fitted)),
        }
    }

    /// Passes an answer to the run. Text that arrived before a stream broke off is a cut answer.
    pub(crate) fn take_answer(
        &self,
        run: &mut Continuation,
        ask: &NextCall,
        collected: &mut Collected,
        is_at_cut: bool,
    ) -> Result<Step, AnswerError> {
        let counted = self.counter.tokens().count(collected.full_text());
        collected.end.counted = Some(counted);
        let is_rest = run.base().is_some();
        let answer = ModelOutput {
            text: collected.text.as_bytes(),
            tokens: collected.end.usage.map_or(counted, |usage| usage.output),
            is_at_cut,
        };
        let mut step = run.answered(ask, &answer)?;
        step.end = collected.step_end();
        if let StepResult::Failed { raw, .. } = &mut step.result
            && is_rest
        {
            *raw = readable(collected.full_text().as_bytes());
        }
        let is_silent = collected.text.is_empty();
        if is_silent && step.end.refusal.is_some() && ask.wants != Wants::Kpis {
            step.result = StepResult::Failed {
                failure: Failure::Declined,
                raw: None,
            };
        }
        Ok(step)
    }

    /// The plan options of the next call: its answer may have the remaining tokens.
    pub(crate) fn options_for(&self, run: &Continuation) -> PlanOptions {
        let mut options = self.plan.clone();
        if let Some(most) = run.options().max_output_tokens {
            let left = most.saturating_sub(run.output_tokens());
            options.answer_cap = Some(left.min(options.answer_cap.unwrap_or(options.window)));
        }
        options
    }

    /// The maximum of bytes to read: no server that respects the token limit sends more.
    pub(crate) fn most_bytes(&self, plan: &Plan) -> usize {
        let tokens = plan.adjusted_max_tokens;
        let limit = tokens.saturating_mul(BYTES_PER_TOKEN) + EXTRA_BYTES;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        limit.min(self.most_answer_bytes)
    }

    pub(crate) fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(Deadline::has_passed)
    }

    /// Makes a call and reads its answer until it ends or the deadline passes. The number is how
    /// many bytes of the document were streamed meanwhile.
    pub(crate) async fn read_answer(
        &self,
        call: Call,
        most_bytes: usize,
        mut streaming: Option<StreamingAnswer>,
        observer: &mut dyn Observe,
    ) -> (Collected, usize) {
        let mut collected = Collected::default();
        let mut streamed = 0;
        let mut late = match self.deadline {
            Some(deadline) => deadline.wait(),
            None => future::pending().boxed(),
        };
        let mut events = match in_time(&mut late, self.backend.call(call)).await {
            Some(Ok(events)) => events,
            Some(Err(error)) => {
                collected.broken = Some(error);
                return (collected, streamed);
            }
            None => return (collected, streamed),
        };
        while let Some(Some(event)) = in_time(&mut late, events.next()).await {
            collected.unanswered = None;
            match event {
                Ok(Event::Text(text)) => {
                    observer.received(&text);
                    collected.text.push_str(&text);
                    if let Some(streaming) = &mut streaming {
                        let stable = streaming.feed(&text);
                        if self.live && !stable.is_empty() {
                            streamed += stable.len();
                            observer.stable(&stable).await;
                        }
                        if streaming.is_spoilt() {
                            break;
                        }
                    }
                }
                Ok(Event::Retry(retry)) => {
                    Retried::add(&mut collected.retried, &retry);
                    observer.retrying(&retry);
                    collected.unanswered = Some(retry.error);
                }
                Ok(Event::Refusal(text)) => collected.refusal.push_str(&text),
                Ok(Event::Finish(reason)) => collected.end.finish = Some(reason),
                Ok(Event::Usage(usage)) => collected.end.usage = Some(usage),
                Err(error) => collected.broken = Some(error),
            }
            if collected.text.len().max(collected.refusal.len()) > most_bytes {
                collected.broken = Some(BackendError::TooLong { most_bytes });
            }
            if collected.broken.is_some() {
                break;
            }
        }
        if let Some(streaming) = streaming {
            collected.is_cut_at_marker = streaming.is_cut_at_marker(&collected.text);
            let document = streaming.of_document(collected.text.clone());
            let full = mem::replace(&mut collected.text, document);
            collected.full_text = (full != collected.text).then_some(full);
        }
        (collected, streamed)
    }
}

/// The output of a future, unless the deadline passes first.
async fn in_time<T>(
    late: &mut BoxFuture<'_, ()>,
    future: impl Future<Output = T> + Unpin,
) -> Option<T> {
    match future::select(future, late).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_removed_from_the_full_text_only_if_it_is_there() {
        let prefill = "[\"alpha\", \"beta\"";
        let answer = format!("{prefill}]");
        for (full, left) in [(answer.clone(), "]"), ("é".repeat(20), &"é".repeat(20))] {
            let mut collected = Collected {
                text: answer.clone(),
                full_text: Some(full),
                ..Collected::default()
            };
            assert!(collected.remove_echo(prefill));
            assert_eq!(
                (collected.text.as_str(), collected.full_text()),
                ("]", left)
            );
        }
    }
}
