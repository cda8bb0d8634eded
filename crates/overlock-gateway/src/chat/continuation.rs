//! Requests the rest of a cut part, in as many calls as it takes.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use overlock_budget::PlanOptions;
use overlock_json::PartialDocument;
use overlock_llm::assembler::PartState;
use overlock_llm::wire::WireRequest;
use overlock_llm::{
    Backend, BackendError, Call, Continuation, Drive, DriveError, Events, OpenAi, Outcome, Peer,
    Reason, Retrying, StopCause, Strategy, TextContinuation, TextOptions, complete, complete_text,
    correct,
};
use overlock_runs::UpstreamFault;

use super::context::RequestContext;
use super::first::FirstText;
use super::observer::PartCalls;
use super::run::damaged;
use crate::error::ApiError;
use crate::record::{RecordError, Recording};
use crate::trace::Called;

impl PartCalls<'_> {
    /// Continues a text that was cut off at its limit.
    pub(super) async fn join_text(
        &mut self,
        first: &FirstText<'_>,
    ) -> Result<TextContinuation, ApiError> {
        let params = &self.context.params;
        let continuation = params.continuation(&self.context.gateway);
        let options = TextOptions {
            max_iterations: continuation.max_iterations,
            max_output_tokens: params.max_total_tokens,
            can_prefill: params.prefill().is_possible()
                && continuation.strategies.first() == Some(&Strategy::Prefill),
        };
        let earlier = self.recording.as_deref().map(Recording::earlier_text);
        let mut run = if let Some(steps) = earlier.filter(|steps| !steps.is_empty()) {
            self.totals.add_recorded(&steps);
            let run = TextContinuation::resume(steps.iter().map(|step| &step.step), options);
            run.ok_or_else(damaged)?
        } else {
            let step = self.context.text_step(first);
            let tokens = step.step.tokens;
            if let Some(recording) = &mut self.recording {
                recording.step(step).await?;
            }
            TextContinuation::new(first.text.to_owned(), tokens, options)
        };
        let unsent = run.text().get(first.text.len()..);
        self.out.send(unsent.unwrap_or_default()).await;
        let continue_text = async |drive: &Drive<'_>, calls: &mut PartCalls<'_>| {
            complete_text(&mut run, drive, calls).await
        };
        self.drive(continue_text).await?;
        Ok(run)
    }

    /// Continues a document of which this many bytes were sent, or requests one that the first
    /// answer was about to begin.
    pub(super) async fn join(
        &mut self,
        first: &FirstText<'_>,
        sent: usize,
    ) -> Result<Continuation, ApiError> {
        let mut run = self.begin(first).await?;
        let stable = run.base().map_or(0, PartialDocument::settled_len);
        let unsent = run.text().get(sent..stable);
        self.out.send(unsent.unwrap_or_default()).await;
        if run.outcome().is_none() {
            let continue_document = async |drive: &Drive<'_>, calls: &mut PartCalls<'_>| {
                complete(&mut run, drive, calls).await
            };
            self.drive(continue_document).await?;
        }
        Ok(run)
    }

    /// Reads the document of a first answer, or resumes it as an earlier request has recorded it.
    pub(super) async fn begin(&mut self, first: &FirstText<'_>) -> Result<Continuation, ApiError> {
        let earlier = self.recording.as_deref().and_then(Recording::earlier);
        if let Some((options, steps)) = earlier {
            self.totals.add_recorded(&steps);
            let steps = steps.iter().map(|step| &step.step);
            let mut run = Continuation::resume(options.clone(), steps).map_err(|_| damaged())?;
            run.try_again();
            return Ok(run);
        }
        let (mut run, step) = self.context.read_first(first);
        if run.base().is_none() && !first.awaits_document(step.as_ref()) {
            run.stop(Reason::NoJson);
        } else if let (Some(recording), Some(step)) = (&mut self.recording, &step) {
            let step = self.context.document_step(&run, step, first);
            recording.step(step).await?;
        }
        Ok(run)
    }

    /// Has the model correct a complete document that violates its schema in this way. The document
    /// changes only if `check` accepts the corrected one.
    pub(super) async fn correct(
        &mut self,
        run: &mut Continuation,
        violation: &str,
        check: impl AsyncFnOnce(&str) -> Result<(), String>,
    ) -> Result<(), ApiError> {
        let correct_run = async |drive: &Drive<'_>, calls: &mut PartCalls<'_>| {
            correct(run, violation, drive, check, calls).await
        };
        self.drive(correct_run).await
    }

    /// Makes the calls, and records what stopped them.
    async fn drive(
        &mut self,
        calls: impl AsyncFnOnce(&Drive<'_>, &mut PartCalls<'_>) -> Result<Option<StopCause>, DriveError>,
    ) -> Result<(), ApiError> {
        let context = self.context;
        let request = context.params.request()?.for_one_text(self.target.tool)?;
        let settings = &context.gateway.settings;
        let backend = Retrying::new(TracedUpstream(context), settings.upstream.retries);
        let plan = PlanOptions {
            // Without a limit of the client, only the model limits an answer.
            grow: context.params.requested.is_none(),
            ..context.params.plan_options(&*request)
        };
        let drive = Drive {
            backend: &backend,
            request: &*request,
            counter: context.params.counter(),
            plan: &plan,
            deadline: Some(&context.deadline),
            most_answer_bytes: settings.limits.answer_bytes,
            live: self.out.out.is_stream(),
        };
        // Boxed, or every request would hold the space for calls that few need.
        let driven = Box::pin(calls(&drive, self)).await;
        let cause = driven.map_err(|error| match error {
            DriveError::Observe(error) => {
                let error = error.downcast::<RecordError>();
                error.map_or(RecordError::Closed, |it| *it).into()
            }
            DriveError::Prompt(_) | DriveError::Answer(_) => ApiError::upstream(error.to_string()),
        })?;
        let Some(StopCause::Backend { error, retried }) = &cause else {
            context.stats.called(|| Called {
                error: Some("timeout".into()),
                ..Called::default()
            });
            return Ok(());
        };
        if let Some(recording) = &mut self.recording {
            let secrets = context.secrets();
            recording.note_fault(UpstreamFault::without(&secrets, error, retried.as_ref()));
        }
        context.stats.called(|| Called::failed(error));
        Ok(())
    }
}

/// The upstream, with one span in the trace of the request for each call.
struct TracedUpstream<'a>(&'a RequestContext);

impl Backend for TracedUpstream<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let Self(context) = self;
        async {
            let (client, params) = (&context.gateway.client, &context.params);
            let base = context.with_query(&context.base);
            let backend = OpenAi::speaking(
                params.protocol,
                client.http.clone(),
                &base,
                None,
                params.prefill(),
            )?;
            let peer = (*client.peer).clone();
            let peer = context.secrets().iter().fold(peer, Peer::hiding);
            let backend = backend.on_behalf_of(&context.call_headers(), &Arc::new(peer));
            backend.ask(call).await
        }
        .boxed()
    }

    fn starts_at_cut(&self, request: &dyn WireRequest) -> bool {
        self.0.params.prefill().carries_grammar(request)
    }
}

/// The state of the document of a run.
pub(super) fn state_of(run: &Continuation) -> PartState {
    if run.outcome() == Some(&Outcome::Complete) {
        PartState::Complete
    } else {
        PartState::Cut
    }
}
