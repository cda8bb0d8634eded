//! A chat request and its record: begins the record, makes the first call, and records how the
//! answer ended.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use overlock_llm::{
    BackendError, CallFailure, Outcome, Reason, Response, Retried, Retry, Usage, retried,
};
use overlock_runs::{Conditions, CountedBy, Record, Unfit, UpstreamFault, to_json};
use overlock_store::{RunId, StoreError};
use serde_json::Value;

use super::context::RequestContext;
use super::finished::FinishedAnswer;
use crate::body::text_of;
use crate::error::ApiError;
use crate::record::{RecordError, Recording, RunInfo};
use crate::reply::Reply;
use crate::trace::Called;
use crate::upstream::failure_reply;

/// A chat request and the record of its answer.
pub(crate) struct ChatRun {
    pub(super) context: RequestContext,
    /// How many messages were dropped.
    pub(super) dropped: usize,
    /// Why the request does not fit the window, if it does not.
    pub(super) unfit: Option<Box<Unfit>>,
    /// The request for the upstream, until that answers.
    pub(super) body: Bytes,
    /// The digest of the idempotency key.
    pub(super) key: Option<String>,
    pub(super) recording: Option<Recording>,
}

/// What a reply is made of.
pub(super) enum Source {
    /// The upstream's answer to the first call.
    Upstream(Box<Response>),
    /// The recorded answer to the first call of an interrupted run.
    Interrupted(Value),
    /// The recorded answer of a finished run.
    Finished(RunId, Box<FinishedAnswer>),
}

impl ChatRun {
    /// Makes the first call, with retries.
    pub(super) async fn call(&mut self) -> Result<Box<Response>, CallFailure> {
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
        let call = || context.call(self.body.clone());
        // Boxed, or every request would hold the space for retries.
        let called = Box::pin(retried(policy, Some(context.deadline), call, retrying)).await;
        self.context.retried = retries;
        match &called {
            Ok(_) => self.body = Bytes::new(),
            Err(failure) => {
                let stats = &self.context.stats;
                stats.called(|| Called::failed(&failure.error));
            }
        }
        called.map(Box::new)
    }

    /// Records a finished answer, the usage of all its calls and who counted it.
    pub(super) async fn record_finished(
        &mut self,
        finished: &FinishedAnswer,
        usage: Option<Usage>,
        counted_by: CountedBy,
    ) {
        if let Some(mut recording) = self.recording.take() {
            match usage {
                Some(_) => recording.counted_by(counted_by),
                None => recording.answered_without_usage(),
            }
            let answer = recording.is_keyed().then(|| finished.stored());
            // The client gets its answer even if it cannot be recorded.
            let _ = recording.end(&finished.outcome, usage, answer).await;
        }
    }

    /// Records that the request does not fit. Returns the error for the client.
    pub(super) async fn record_too_large(&mut self, unfit: Unfit) -> ApiError {
        let error = ApiError::invalid(unfit.message.clone())
            .with_code("context_length_exceeded")
            .with_param(self.context.params.protocol.names().messages);
        if let Some(mut recording) = self.recording.take() {
            recording.note_unfit(unfit);
            let reason = Reason::Window;
            let _ = recording.end(&Outcome::Failed { reason }, None, None).await;
        }
        error
    }

    /// Records a failed first call. Returns the reply, which forwards an error response.
    pub(super) async fn record_refused(&mut self, failure: CallFailure) -> Reply {
        let fault = self.fault(&failure.error);
        self.record_fault(fault).await;
        let context = &self.context;
        failure_reply(
            &context.gateway.client.peer,
            failure,
            context.params.protocol,
        )
    }

    /// Records and traces that the answer to the first call cannot be used.
    pub(super) async fn record_unusable(&mut self, error: BackendError) -> ApiError {
        self.context.stats.called(|| Called::failed(&error));
        let error = ApiError::from(error);
        self.record_failed(&error).await;
        error
    }

    /// Records that there is no answer because of an error.
    pub(super) async fn record_failed(&mut self, error: &ApiError) {
        let fault = match &error.upstream {
            Some(error) => self.fault(error),
            None => UpstreamFault {
                status: None,
                kind: None,
                message: self.context.secrets().scrub(&error.message),
                retried: None,
            },
        };
        self.record_fault(fault).await;
    }

    fn fault(&self, error: &BackendError) -> UpstreamFault {
        let context = &self.context;
        UpstreamFault::without(&context.secrets(), error, context.retried.as_ref())
    }

    /// A run with a key has no answer then, so a later request with the key begins again.
    async fn record_fault(&mut self, fault: UpstreamFault) {
        if let Some(mut recording) = self.recording.take() {
            recording.note_fault(fault);
            self.record_unfinished(recording, Reason::ModelError).await;
        }
    }

    /// Records that the upstream did not say whether the answer ended. A run with a key stays
    /// interrupted, so that a later request continues it.
    pub(super) async fn record_endless(&mut self) {
        if let Some(recording) = self.recording.take_if(|it| !it.is_keyed()) {
            self.record_unfinished(recording, Reason::NoFinish).await;
        }
    }

    async fn record_unfinished(&self, recording: Recording, reason: Reason) {
        let outcome = recording.unfinished(reason);
        self.context.stats.unfinished(outcome.name());
        let _ = recording.end(&outcome, None, None).await;
    }
}

impl RequestContext {
    /// What is recorded of the request itself, with or without its text. Other processes see by the
    /// lock of the run that it is worked on, or else by the lock of this worker.
    pub(super) fn about(
        &self,
        text: Option<&str>,
        has_lock: bool,
        worker: Option<&RunId>,
    ) -> RunInfo {
        let options = self.params.continuation(&self.gateway);
        let schema = self.params.schema.as_ref().filter(|_| text.is_some());
        let conditions = Conditions {
            // A query may contain a key.
            upstream: self.base.split('?').next().map(str::to_owned),
            schema: schema.map(|schema| schema.bounded.value().clone()),
            is_held: has_lock,
            worker: worker.map(ToString::to_string),
        };
        let blank = || self.params.protocol.blank_request(&self.params.model);
        let request = text.map_or_else(|| blank().to_string(), str::to_owned);
        RunInfo {
            model: self.params.model.clone(),
            request,
            options: to_json(&options),
            conditions: to_json(&conditions),
        }
    }

    /// Begins to record a request without an idempotency key.
    pub(super) async fn begin_recording(&self) -> Option<Recording> {
        match self.gateway.settings.record {
            Record::Off => None,
            Record::Metadata => self.metadata_recording(),
            Record::Full => Box::pin(self.full_recording()).await,
        }
    }

    /// A request is answered even if it cannot be recorded.
    async fn full_recording(&self) -> Option<Recording> {
        let recorder = self.gateway.recorder.as_ref()?;
        let worker = recorder.locked_worker().await;
        let text = text_of(&self.params.text).ok()?;
        let about = self.about(Some(text), false, worker);
        Recording::begin(recorder, Arc::new(about)).await.ok()
    }

    /// Without text, most requests to a model have the same description, until another order of
    /// strategies is learnt.
    fn metadata_recording(&self) -> Option<Recording> {
        let recorder = self.gateway.recorder.as_ref()?;
        let about = || Arc::new(self.about(None, false, None));
        let strategies = self.params.strategies(&self.gateway);
        let is_common = self.params.max_total_tokens == self.gateway.settings.max_total_tokens;
        let story = &self.params.known.metadata_info;
        let common = is_common.then(|| story.get_or_init(|| (strategies.to_vec(), about())));
        let about = match common {
            Some((known, about)) if known == strategies => Arc::clone(about),
            _ => about(),
        };
        Some(Recording::metadata(recorder, about))
    }
}

impl From<RecordError> for ApiError {
    /// A run could not be recorded although a later request depends on it.
    fn from(error: RecordError) -> Self {
        store_error(match error {
            RecordError::Store(StoreError::Superseded { .. }) => {
                "another process is answering this request"
            }
            // A message of the store may name files of this machine.
            RecordError::Store(_) | RecordError::Closed => "the run could not be recorded",
        })
    }
}

/// The error for a run with an idempotency key whose record cannot be read.
pub(super) fn damaged() -> ApiError {
    store_error("the record of the first request with this `idempotency-key` cannot be read")
}

fn store_error(message: &str) -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message).with_code("store")
}
