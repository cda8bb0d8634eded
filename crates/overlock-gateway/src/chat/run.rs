//! A chat request on its way: what is left to send, and its recording.

use bytes::Bytes;
use overlock_llm::{
    BackendError, CallFailure, Outcome, Reason, Response, Retried, Retry, SurrogateBuffer, Usage,
    retried,
};
use serde_json::{Map, Value, json};

use super::context::RequestContext;
use super::idempotency::Answered;
use super::refusal::failure_reply;
use crate::error::ApiError;
use crate::record::Recording;
use crate::reply::Reply;
use crate::trace::Called;
use overlock_runs::{CountedBy, Unfit, UpstreamFault};

/// A chat request and the recording of its answer.
pub(crate) struct ChatRun {
    pub(crate) context: RequestContext,
    /// How many messages were left out.
    pub(super) dropped: usize,
    /// Why the request cannot be sent, if it cannot.
    pub(super) unfit: Option<Box<Unfit>>,
    /// The request as it goes to the upstream, until that answers.
    pub(super) body: Bytes,
    /// The idempotency key, with whose it is.
    pub(super) key: Option<String>,
    pub(super) recording: Option<Recording>,
}

impl ChatRun {
    /// Makes the first call, and again as long as that may help.
    pub(super) async fn asked(&mut self) -> Result<Box<Response>, CallFailure> {
        self.context.stats.calling(None);
        if let Some(recording) = &mut self.recording {
            recording.asking(None, &self.context.budget);
        }
        let context = &self.context;
        let mut retries = context.retried.clone();
        let retrying = |retry: &Retry| {
            let secrets = context.secrets();
            Retried::add(&mut retries, retry);
            if let Some(retries) = &mut retries {
                retries.error = secrets.scrub(&retries.error);
            }
            if let Some(recording) = &self.recording {
                recording.retrying(retry, |error| secrets.scrub(error));
            }
        };
        let policy = &context.gateway.settings.upstream.retries;
        let ask = || context.ask(self.body.clone());
        // Boxed, or every request would carry the space for what few need.
        let asked = Box::pin(retried(policy, Some(context.deadline), ask, retrying)).await;
        self.context.retried = retries;
        match &asked {
            Ok(_) => self.body = Bytes::new(),
            Err(failure) => {
                let stats = &self.context.stats;
                stats.called(|| Called::failed(&failure.error));
            }
        }
        asked.map(Box::new)
    }

    /// The reply to a request whose first call failed.
    pub(super) async fn refused(&mut self, failure: CallFailure) -> Reply {
        self.fails_by(&failure.error).await;
        failure_reply(&self.context.gateway.client.peer, failure)
    }

    /// Keeps that the request does not fit, and what is said of it.
    pub(super) async fn too_large(&mut self, unfit: Unfit) -> ApiError {
        let error = ApiError::invalid(unfit.message.clone())
            .with_code("context_length_exceeded")
            .with_param("messages");
        if let Some(mut recording) = self.recording.take() {
            recording.note_unfit(unfit);
            let reason = Reason::Window;
            // The client is told all the same.
            let _ = recording.end(&Outcome::Failed { reason }, None, None).await;
        }
        error
    }

    /// What is said of an answer that no upstream has named.
    pub(super) fn head(&self, object: &str) -> Map<String, Value> {
        let recording = self.recording.as_ref();
        let id = recording.map_or("run", |recording| recording.id.as_str());
        let created = recording.map_or(0, Recording::began_at) / 1000;
        let head = json!({
            "id": format!("chatcmpl-{id}"), "object": object, "created": created,
            "model": self.context.wish.model,
        });
        head.as_object().cloned().unwrap_or_default()
    }

    /// Keeps how an answer ended, what that took and who says so, and what was answered for whoever
    /// may ask the same again.
    pub(super) async fn ended(
        &mut self,
        outcome: &Outcome,
        usage: Option<Usage>,
        counted_by: CountedBy,
        answered: impl FnOnce() -> Answered,
    ) {
        if let Some(mut recording) = self.recording.take() {
            match usage {
                Some(_) => recording.counted_by(counted_by),
                None => recording.answered_without_usage(),
            }
            let answer = recording.is_keyed().then(|| answered().kept());
            // The client has its answer all the same.
            let _ = recording.end(outcome, usage, answer).await;
        }
    }

    /// Keeps that there is no answer because of this, and tells of the call.
    pub(super) async fn fails(&mut self, error: BackendError) -> ApiError {
        self.context.stats.called(|| Called::failed(&error));
        self.fails_by(&error).await;
        error.into()
    }

    /// Keeps that there is no answer because of this.
    pub(super) async fn failed(&mut self, error: &ApiError) {
        if let Some(upstream) = &error.upstream {
            return self.fails_by(upstream).await;
        }
        let message = self.context.secrets().scrub(&error.message);
        let fault = UpstreamFault {
            status: None,
            kind: None,
            message,
            retried: None,
        };
        self.ends_by(fault).await;
    }

    /// Keeps that there is no answer because of a failed call.
    async fn fails_by(&mut self, error: &BackendError) {
        let context = &self.context;
        let retried = context.retried.as_ref();
        let fault = UpstreamFault::without(&context.secrets(), error, retried);
        self.ends_by(fault).await;
    }

    /// Keeps that there is no answer, and why. One with a key may be asked for again all the same:
    /// what it is known by is an answer, and not an end.
    async fn ends_by(&mut self, fault: UpstreamFault) {
        if let Some(mut recording) = self.recording.take() {
            recording.note_fault(fault);
            let outcome = recording.unfinished(Reason::ModelError);
            self.context.stats.unfinished(outcome.name());
            let _ = recording.end(&outcome, None, None).await;
        }
    }

    /// Keeps that nobody knows whether the answer ended. One with a key may be asked for again.
    pub(super) async fn does_not_end(&mut self) {
        if let Some(recording) = self.recording.take_if(|it| !it.is_keyed()) {
            let outcome = recording.unfinished(Reason::NoFinish);
            self.context.stats.unfinished(outcome.name());
            let _ = recording.end(&outcome, None, None).await;
        }
    }
}

/// What the upstream says, if it is a completion.
pub(super) fn completion(answer: &Response, bytes: &[u8]) -> Result<Value, BackendError> {
    // Half of a surrogate pair, where an answer was cut, must not make it unreadable.
    let read = SurrogateBuffer::default()
        .read(bytes)
        .map(|read| read.value);
    let value = read.map_err(|_| answer.malformed("it is not JSON"))?;
    if let Some(error) = answer.error_in(&value) {
        return Err(error);
    }
    if !value.get("choices").is_some_and(Value::is_array) {
        return Err(answer.malformed("it is no chat completion, and has no `choices`"));
    }
    Ok(value)
}
