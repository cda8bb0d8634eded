//! Drives a run: asks, listens, joins, until the document is whole or there is a reason to stop.

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
use crate::wire::chat::ChatRequest;

/// What a run is driven with.
pub struct Drive<'a> {
    /// Who is asked.
    pub backend: &'a dyn Backend,
    /// What the caller asked.
    pub request: &'a ChatRequest,
    /// Who counts for the model.
    pub counter: &'a ChatCounter<'a>,
    /// What a call is planned by.
    pub plan: &'a PlanOptions,
    /// When the run ends, whatever is there.
    pub deadline: Option<&'a dyn Deadline>,
    /// How many bytes of one answer are read at most.
    pub most_answer_bytes: usize,
    /// Whether the document is [told](Observe::certain) while it arrives. An answer that turns
    /// into something that is no JSON then counts as cut there, since what was told stays.
    pub live: bool,
}

/// A moment by a clock that the caller has.
pub trait Deadline: Sync {
    /// Whether it is over.
    fn has_passed(&self) -> bool;

    /// Waits for it.
    fn wait(&self) -> BoxFuture<'_, ()>;
}

/// What a provider says at the end of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallEnd {
    /// Why it says that the answer ended.
    pub finish: Option<String>,
    /// What the call took, if it says so.
    pub usage: Option<Usage>,
    /// The tokens of the answer as they were counted here, where there was one to be joined.
    pub counted: Option<u64>,
}

/// An answer that has been read to its end, or as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// All of its text that belongs to the document.
    pub(crate) text: String,
    /// All of its text, where some does not.
    pub(crate) came: Option<String>,
    /// All that the model said instead.
    pub(crate) refusal: String,
    pub(crate) end: CallEnd,
    /// What broke it off, if something did. What arrived before is an answer that was cut.
    pub(crate) broken: Option<BackendError>,
    /// Whether it was cut off at a marker after a part of it had been streamed.
    pub(crate) is_cut_at_marker: bool,
    /// The calls that were not answered before.
    pub(crate) retried: Option<Retried>,
    /// Why the last of them was not, until one is.
    pub(crate) unanswered: Option<BackendError>,
}

/// Hears what happens while it happens, and keeps it.
pub trait Observe: Send {
    /// A call is about to be made.
    fn asking(&mut self, ask: &NextCall, plan: &Plan) {
        let _ = (ask, plan);
    }

    /// The call that is being made was not answered, and will be made again.
    fn retrying(&mut self, retry: &Retry) {
        let _ = retry;
    }

    /// A call is about to be made that is to correct the document, and is so many with those before.
    fn correcting(&mut self, iteration: u32, plan: &Plan) {
        let _ = (iteration, plan);
    }

    /// A piece of an answer has arrived.
    fn heard(&mut self, piece: &str) {
        let _ = piece;
    }

    /// The document goes on with this text, which no later answer will change. All of these
    /// together are the document, from where it was when the run was driven.
    fn certain<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        let _ = text;
        future::ready(()).boxed()
    }

    /// A step is done. An error ends the run: what cannot be kept must not be paid for.
    fn stepped<'a>(
        &'a mut self,
        run: Run<'a>,
        step: &'a Step,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let _ = (run, step, end);
        future::ready(Ok(())).boxed()
    }

    /// The run has ended and has shown this about its strategies.
    fn learnt(&mut self, results: StrategyResults) {
        let _ = results;
    }
}

impl Observe for () {}

/// Why a run could not be driven to one of its outcomes.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// What happened could not be kept.
    #[error("what the model answered could not be recorded")]
    Observe(#[source] Box<dyn Error + Send + Sync>),
    /// What the caller sent is no request.
    #[error(transparent)]
    Prompt(PromptError),
    /// The run was moved on by somebody else meanwhile.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// What a run was stopped by, besides what its outcome tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// The model, or the way to it.
    Backend {
        /// What went wrong.
        error: BackendError,
        /// How often it did before.
        retried: Option<Retried>,
    },
    /// The window.
    Window(PromptError),
}

/// Asks until the run has ended. What comes back tells what it was stopped by, if anything.
///
/// Dropping the future ends the call that is being made; the run then is what it was after its
/// last step, and can be driven again.
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

/// The same for a text: asks until its provider does not say any more that it was cut off, or until
/// a limit. What it shows about a strategy says nothing about documents.
pub async fn complete_text(
    run: &mut TextContinuation,
    drive: &Drive<'_>,
    observer: &mut dyn Observe,
) -> Result<Option<StopCause>, DriveError> {
    let mut tally = StrategyTally::default();
    drive_on(DrivenRun::Text(run), drive, &mut tally, observer).await
}

/// Asks until the run has ended, and counts what became of its strategies.
async fn drive_on(
    mut run: DrivenRun<'_>,
    drive: &Drive<'_>,
    tally: &mut StrategyTally,
    observer: &mut dyn Observe,
) -> Result<Option<StopCause>, DriveError> {
    // What the upstream said to the last call that it refused, and what broke off the last answer.
    let mut refusal = None;
    let mut broken = None;
    run.begin(drive);
    let mut told = run.settled_len();
    let mut sizing = Sizing::new(drive);
    while let Some(ask) = run.next() {
        if drive.is_late() {
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
        let arriving = Some(run.arriving(&ask, prefill.as_deref()));
        let most_bytes = drive.most_bytes(&plan).saturating_add(begun.len());
        let starts_at_cut = drive.backend.starts_at_cut(&call);
        let (mut collected, heard) = drive.listen(call, most_bytes, arriving, observer).await;
        let fits = |sizing: &Sizing<'_>| run.fit(&sizing.drive(drive), ask.clone()).is_ok();
        if let Some(retry) = sizing.plan_again(&mut collected, &plan, begun, fits) {
            observer.retrying(retry);
            continue;
        }
        let is_at_cut = collected.remove_echo(begun) || starts_at_cut;
        let is_silent = collected.text.is_empty();
        let obstacle = collected.obstacle();
        if let Some((error, obstacle)) = collected.broken.as_ref().zip(obstacle.clone())
            && is_silent
        {
            // What can be counted is worth one call and no more.
            let is_refusal = error.is_refusal() || ask.wants == Wants::Kpis;
            let message = error.to_string();
            if let Some(way) = ask.way.filter(|_| is_refusal && !error.is_about_size()) {
                tally.add_refusal(way);
            }
            if is_refusal && note_refusal(&mut run, &ask, message, &collected, observer).await? {
                refusal = Some(obstacle);
                continue;
            }
            run.stop(Reason::ModelError);
            return Ok(Some(obstacle));
        }
        if is_silent && drive.is_late() {
            broken = collected.unanswered();
            continue;
        }
        let is_rest = run.has_begun();
        let step = run.take(drive, &ask, prefill.as_deref(), &mut collected, is_at_cut)?;
        // What the deadline cut off cannot be judged.
        if !drive.is_late() || step.end_len().is_some() {
            tally.add(&step);
        }
        // What a provider withholds after the document has begun is not to be had by asking again.
        if is_rest && step.end.finish.as_deref() == Some("content_filter") {
            run.stop(Reason::ContentFilter);
        }
        broken = obstacle;
        observer
            .stepped(run.as_run(), &step, &collected.end)
            .await
            .map_err(DriveError::Observe)?;
        told += heard;
        let settled = run.settled_len();
        if drive.live && told < settled {
            observer.certain(&run.text()[told..settled]).await;
            told = settled;
        }
    }
    Ok(match run.reason() {
        None => None,
        Some(Reason::ModelError) => refusal,
        Some(_) => broken,
    })
}

/// Lets the run go on without an answer to this call, and says whether it can.
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
    // Nobody pays for a call that the server would not have, or that was never made.
    let end = CallEnd {
        usage: collected.end.usage.or(Some(Usage::default())),
        ..CallEnd::default()
    };
    let kept = observer.stepped(run.as_run(), &step, &end).await;
    kept.map_err(DriveError::Observe).map(|()| true)
}

/// What is shorter than this may come back by chance.
pub(crate) const SHORTEST_ECHO: usize = 16;

/// The rest of an answer that begins with the prefill of its call, which some servers send back;
/// nothing if it does not.
pub fn after_echo<'a>(answer: &'a [u8], prefill: &str) -> Option<&'a [u8]> {
    let rest = answer.strip_prefix(prefill.as_bytes());
    rest.filter(|_| prefill.len() >= SHORTEST_ECHO)
}

impl Collected {
    /// Removes the prefill, which some servers send back; whether it was there.
    pub(crate) fn remove_echo(&mut self, prefill: &str) -> bool {
        let is_there = after_echo(self.text.as_bytes(), prefill).is_some();
        if is_there {
            self.text.drain(..prefill.len());
            if let Some(came) = self.came.as_mut().filter(|it| it.starts_with(prefill)) {
                came.drain(..prefill.len());
            }
        }
        is_there
    }

    /// All of its text.
    fn came(&self) -> &str {
        self.came.as_deref().unwrap_or(&self.text)
    }

    /// What broke it off, if something did.
    pub(crate) fn obstacle(&self) -> Option<StopCause> {
        self.stopped_by(self.broken.as_ref())
    }

    /// What nobody waited for any longer, if it had not been answered.
    pub(crate) fn unanswered(&self) -> Option<StopCause> {
        self.stopped_by(self.unanswered.as_ref())
    }

    fn stopped_by(&self, error: Option<&BackendError>) -> Option<StopCause> {
        Some(StopCause::Backend {
            error: error?.clone(),
            retried: self.retried.clone(),
        })
    }

    /// What a step keeps of how its answer ended.
    pub(crate) fn step_end(&self) -> StepEnd {
        let at_marker = "the answer repeats a marker of the prompt and was cut off there";
        let at_marker = self.is_cut_at_marker.then(|| at_marker.to_owned());
        // The provider's `stop` is not the end of an answer that was cut off here.
        let is_end = |finish: &String| !self.is_cut_at_marker || finish != "stop";
        StepEnd {
            finish: self.end.finish.clone().filter(is_end),
            refusal: (!self.refusal.is_empty()).then(|| self.refusal.clone()),
            broken: self.broken.as_ref().map(ToString::to_string).or(at_marker),
            retried: self.retried.clone().map(Box::new),
            answer_bytes: Some(self.came().len() as u64),
        }
    }
}

/// A token of an answer has about so many characters, and seldom fewer.
const CHARS_PER_TOKEN: u64 = 3;

/// The tokens of no answer have so many bytes on average: the longest are white space.
const BYTES_PER_TOKEN: u64 = 64;

/// Even the shortest answer may have so many.
const BYTES_BESIDE: u64 = 16 << 10;

impl Drive<'_> {
    /// The call for what is to be asked. If its answer will be short, less is to be repeated, so
    /// that something new has room in it.
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

    /// Gives the run an answer as far as it came; what became of it. What arrived before a stream
    /// broke off is an answer that was cut, like any other.
    pub(crate) fn take_answer(
        &self,
        run: &mut Continuation,
        ask: &NextCall,
        collected: &mut Collected,
        is_at_cut: bool,
    ) -> Result<Step, AnswerError> {
        let counted = self.counter.tokens().count(collected.came());
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
            *raw = readable(collected.came().as_bytes());
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

    /// What the next call of a run is planned by: its answer may have the tokens that are left.
    pub(crate) fn options_for(&self, run: &Continuation) -> PlanOptions {
        let mut options = self.plan.clone();
        if let Some(most) = run.options().max_output_tokens {
            let left = most.saturating_sub(run.output_tokens());
            options.answer_cap = Some(left.min(options.answer_cap.unwrap_or(options.window)));
        }
        options
    }

    /// How many bytes of an answer are read: no server that keeps to what was agreed sends more.
    pub(crate) fn most_bytes(&self, plan: &Plan) -> usize {
        let agreed = plan.adjusted_max_tokens.saturating_mul(BYTES_PER_TOKEN) + BYTES_BESIDE;
        let agreed = usize::try_from(agreed).unwrap_or(usize::MAX);
        agreed.min(self.most_answer_bytes)
    }

    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(Deadline::has_passed)
    }

    /// Makes a call and reads its answer to the end, or as far as it comes in time. The number is
    /// how many bytes of the document have been told meanwhile.
    pub(crate) async fn listen(
        &self,
        call: Call,
        most_bytes: usize,
        mut arriving: Option<StreamingAnswer>,
        observer: &mut dyn Observe,
    ) -> (Collected, usize) {
        let mut collected = Collected::default();
        let mut told = 0;
        let mut late = match self.deadline {
            Some(deadline) => deadline.wait(),
            None => future::pending().boxed(),
        };
        let mut events = match in_time(&mut late, self.backend.call(call)).await {
            Some(Ok(events)) => events,
            Some(Err(error)) => {
                collected.broken = Some(error);
                return (collected, told);
            }
            None => return (collected, told),
        };
        while let Some(Some(event)) = in_time(&mut late, events.next()).await {
            collected.unanswered = None;
            match event {
                Ok(Event::Text(text)) => {
                    observer.heard(&text);
                    collected.text.push_str(&text);
                    if let Some(arriving) = &mut arriving {
                        let certain = arriving.feed(&text);
                        if self.live && !certain.is_empty() {
                            told += certain.len();
                            observer.certain(&certain).await;
                        }
                        if arriving.is_spoilt() {
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
        if let Some(arriving) = arriving {
            collected.is_cut_at_marker = arriving.is_cut_at_marker(&collected.text);
            let document = arriving.of_document(collected.text.clone());
            let came = mem::replace(&mut collected.text, document);
            collected.came = (came != collected.text).then_some(came);
        }
        (collected, told)
    }
}

/// What a future gives, unless the deadline comes first.
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
    fn an_echo_is_removed_from_what_came_only_where_it_stands() {
        let prefill = "[\"alpha\", \"beta\"";
        let answer = format!("{prefill}]");
        for (came, left) in [(answer.clone(), "]"), ("é".repeat(20), &"é".repeat(20))] {
            let mut collected = Collected {
                text: answer.clone(),
                came: Some(came),
                ..Collected::default()
            };
            assert!(collected.remove_echo(prefill));
            assert_eq!((collected.text.as_str(), collected.came()), ("]", left));
        }
    }
}
