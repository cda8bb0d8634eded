//! Drives a run: asks, listens, joins, until the document is whole or there is a reason to stop.

use std::error::Error;

use futures_util::StreamExt;
use overlock_budget::{ChatCounter, ChatRequest, Plan, PlanOptions};
use tokio::time::{Instant, timeout_at};

use crate::backend::{Backend, BackendError, Collected, Event};
use crate::continuation::{Answer, Ask, Continuation, Outcome, Reason, Step, Wants};
use crate::prompt::{FittedCall, PromptError, next_call};

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
    pub deadline: Option<Instant>,
    /// How many bytes of one answer are read at most.
    pub most_answer_bytes: usize,
}

/// Hears what happens while it happens, and keeps it.
pub trait Observe: Send {
    /// A call is about to be made.
    fn asking(&mut self, ask: &Ask, plan: &Plan) {
        let _ = (ask, plan);
    }

    /// A piece of an answer has arrived.
    fn heard(&mut self, piece: &str) {
        let _ = piece;
    }

    /// A step is done. An error ends the run: what cannot be kept must not be paid for.
    fn stepped(
        &mut self,
        run: &Continuation,
        step: &Step,
        finish: Option<&str>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let _ = (run, step, finish);
        Ok(())
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
}

/// What a run was stopped by, besides what its outcome tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The model, or the way to it.
    Backend(BackendError),
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
) -> Result<Option<Obstacle>, DriveError> {
    // What the upstream said to the last call that it refused.
    let mut refusal = None;
    while let Some(ask) = run.next() {
        if drive.is_late() {
            run.stop(Reason::Deadline);
            break;
        }
        let FittedCall { call, plan } =
            match next_call(run, &ask, drive.request, drive.counter, drive.plan) {
                Ok(fitted) => fitted,
                Err(error @ PromptError::Window(_)) if ask.wants == Wants::Kpis => {
                    note_refusal(run, &ask, error.to_string(), observer)?;
                    continue;
                }
                Err(error @ PromptError::Window(_)) => {
                    run.stop(Reason::Window);
                    return Ok(Some(Obstacle::Window(error)));
                }
                Err(error @ PromptError::Request(_)) => return Err(DriveError::Prompt(error)),
            };
        observer.asking(&ask, &plan);
        let collected = drive.listen(call, observer).await;
        let is_silent = collected.text.is_empty();
        if let Some(error) = collected.broken.clone().filter(|_| is_silent) {
            // What can be counted is worth one call and no more.
            let is_refusal = error.is_refusal() || ask.wants == Wants::Kpis;
            if is_refusal && note_refusal(run, &ask, error.to_string(), observer)? {
                refusal = Some(Obstacle::Backend(error));
                continue;
            }
            run.stop(Reason::ModelError);
            return Ok(Some(Obstacle::Backend(error)));
        }
        if is_silent && drive.is_late() {
            continue;
        }
        // What arrived before a stream broke off is an answer that was cut, like any other.
        let tokens = match collected.usage {
            Some(usage) => usage.output,
            None => drive.counter.tokens().count(&collected.text),
        };
        let text = collected.text.as_bytes();
        let step = run.answered(&ask, &Answer { text, tokens });
        observer
            .stepped(run, &step, collected.finish.as_deref())
            .map_err(DriveError::Observe)?;
    }
    let is_refused = run.outcome().and_then(Outcome::reason) == Some(Reason::ModelError);
    Ok(refusal.filter(|_| is_refused))
}

/// Lets the run go on without an answer to this call, and says whether it can.
fn note_refusal(
    run: &mut Continuation,
    ask: &Ask,
    message: String,
    observer: &mut dyn Observe,
) -> Result<bool, DriveError> {
    let Some(step) = run.refused(ask, message) else {
        return Ok(false);
    };
    let kept = observer.stepped(run, &step, None);
    kept.map_err(DriveError::Observe).map(|()| true)
}

impl Drive<'_> {
    fn is_late(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Makes a call and reads its answer to the end, or as far as it comes in time.
    async fn listen(&self, call: crate::Call, observer: &mut dyn Observe) -> Collected {
        let mut collected = Collected::default();
        let mut events = match self.in_time(self.backend.call(call)).await {
            Some(Ok(events)) => events,
            Some(Err(error)) => {
                collected.broken = Some(error);
                return collected;
            }
            None => return collected,
        };
        while let Some(Some(event)) = self.in_time(events.next()).await {
            match event {
                Ok(Event::Text(text)) => {
                    observer.heard(&text);
                    collected.text.push_str(&text);
                }
                Ok(Event::Finish(reason)) => collected.finish = Some(reason),
                Ok(Event::Usage(usage)) => collected.usage = Some(usage),
                Err(error) => collected.broken = Some(error),
            }
            if collected.text.len() > self.most_answer_bytes {
                let most_bytes = self.most_answer_bytes;
                collected.broken = Some(BackendError::TooLong { most_bytes });
            }
            if collected.broken.is_some() {
                break;
            }
        }
        collected
    }

    /// What a future gives, unless the deadline comes first.
    async fn in_time<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        match self.deadline {
            Some(deadline) => timeout_at(deadline, future).await.ok(),
            None => Some(future.await),
        }
    }
}
