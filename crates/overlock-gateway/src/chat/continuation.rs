//! Asks for the rest of a cut part, in as many calls as it takes.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use overlock_budget::PlanOptions;
use overlock_json::PartialDocument;
use overlock_llm::assembler::PartState;
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{
    Backend, BackendError, Call, Continuation, Drive, DriveError, Events, OpenAi, Outcome, Peer,
    Reason, Retrying, StopCause, Strategy, TextContinuation, TextOptions, complete, complete_text,
    correct,
};
use serde_json::{Value, json};

use super::context::RequestContext;
use super::first::{First, keep_step};
use super::observer::{LastAnswer, Listen, Observer};
use super::resume::{resumed, resumed_text, unkept};
use crate::error::ApiError;
use crate::record::{RecordError, Recording};
use crate::totals::UsageTotals;
use crate::trace::Called;
use overlock_runs::{UpstreamFault, unfinished};

/// What is cut.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut<'a> {
    /// The content of a message.
    Content,
    /// The arguments of a call of this tool.
    Arguments(&'a str),
}

/// Where a document goes while it is continued.
pub(super) struct LiveDocument<'a> {
    pub(super) listener: &'a mut dyn Listen,
    /// How many bytes of the document were sent before.
    pub(super) sent: usize,
}

/// A document that became whole, or as much of it as could be had.
pub(super) struct Joined {
    pub(super) run: Continuation,
    pub(super) totals: UsageTotals,
    last_answer: LastAnswer,
}

impl Joined {
    fn new(run: Continuation, totals: UsageTotals) -> Self {
        Self {
            run,
            totals,
            last_answer: LastAnswer::default(),
        }
    }

    /// Whether the provider's filter ended the document.
    pub(super) fn is_withheld(&self) -> bool {
        self.last_answer.is_withheld && !is_complete(&self.run)
    }

    /// How the document ended.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self.run.outcome()?.clone() {
            Outcome::Partial { cut, .. } if self.last_answer.is_withheld => {
                Some(Outcome::Partial {
                    reason: Reason::ContentFilter,
                    cut,
                })
            }
            Outcome::Partial {
                reason: Reason::MergeFailures | Reason::NoProgress,
                cut,
            } if self.last_answer.is_declined => Some(Outcome::Partial {
                reason: Reason::Refusal,
                cut,
            }),
            outcome => Some(outcome),
        }
    }
}

/// A text that was gone on with.
pub(super) struct JoinedText {
    pub(super) run: TextContinuation,
    pub(super) totals: UsageTotals,
}

impl JoinedText {
    /// What the text is now, as far as the provider says.
    pub(super) fn state(&self) -> PartState {
        if self.run.is_cut() {
            PartState::Cut
        } else {
            PartState::Complete
        }
    }

    /// Whether the provider's filter ended it.
    pub(super) fn is_withheld(&self) -> bool {
        self.run.reason() == Some(Reason::ContentFilter)
    }

    /// How it ended.
    pub(super) fn outcome(&self) -> Outcome {
        match self.run.reason() {
            Some(reason) => unfinished(reason, true, None),
            None => Outcome::Complete,
        }
    }
}

impl RequestContext {
    /// Goes on with a text that was cut off at its limit.
    pub(super) async fn join_text(
        &self,
        first: &First<'_>,
        mut listener: Option<&mut dyn Listen>,
        mut recording: Option<&mut Recording>,
    ) -> Result<JoinedText, ApiError> {
        let prefill = self.wish.known.prefill;
        let continuation = self.wish.continuation(&self.gateway);
        let options = TextOptions {
            max_iterations: continuation.max_iterations,
            max_output_tokens: self.wish.max_total_tokens,
            can_prefill: prefill.is_possible()
                && continuation.ways.first() == Some(&Strategy::Prefill),
        };
        let earlier = recording.as_deref().map(Recording::earlier_text);
        let earlier = earlier.filter(|steps| !steps.is_empty());
        let (mut run, mut totals) = if let Some(steps) = earlier {
            resumed_text(options, &steps)?
        } else {
            let tokens = if let Some(recording) = recording.as_deref_mut() {
                let step = self.text_step(first);
                let tokens = step.step.tokens;
                keep_step(recording, step).await?;
                tokens
            } else {
                self.tokens_of(first)
            };
            let run = TextContinuation::new(first.came.to_owned(), tokens, options);
            (run, UsageTotals::default())
        };
        if let (Some(listener), Some(unsent)) = (&mut listener, run.text().get(first.came.len()..))
            && !unsent.is_empty()
        {
            listener.hear(unsent).await;
        }
        let observer = Observer::new(self, listener, &mut totals, recording);
        let continue_text = async |drive: &Drive<'_>, observer: &mut Observer<'_, '_>| {
            complete_text(&mut run, drive, observer).await
        };
        self.driven(Cut::Content, observer, continue_text).await?;
        Ok(JoinedText { run, totals })
    }

    /// Continues a document that a first answer began, or asks for one that it was about to begin.
    pub(super) async fn join(
        &self,
        cut: Cut<'_>,
        first: &First<'_>,
        live: Option<LiveDocument<'_>>,
        mut recording: Option<&mut Recording>,
    ) -> Result<Joined, ApiError> {
        let joined = self.begin(first, recording.as_deref_mut()).await?;
        self.go_on(joined, cut, live, recording).await
    }

    /// The document that a first answer began, or that an earlier request made of it.
    pub(super) async fn begin(
        &self,
        first: &First<'_>,
        recording: Option<&mut Recording>,
    ) -> Result<Joined, ApiError> {
        let earlier = recording.as_deref().and_then(Recording::earlier);
        if let Some((options, steps)) = earlier {
            let (run, totals) = resumed(options, &steps)?;
            return Ok(Joined::new(run, totals));
        }
        let (mut run, step) = self.read_first(first);
        let is_kept = run.base().is_some() || first.awaits_document(step.as_ref());
        if let (Some(recording), Some(step), true) = (recording, &step, is_kept) {
            let step = self.document_step(&run, step, first);
            keep_step(recording, step).await?;
        }
        if !is_kept {
            run.stop(Reason::NoJson);
        }
        Ok(Joined::new(run, UsageTotals::default()))
    }

    /// Has the model correct a whole document that violates its schema in this way. The document
    /// stays as it is unless `check` accepts what the model answers.
    pub(super) async fn correct(
        &self,
        cut: Cut<'_>,
        joined: &mut Joined,
        violation: &str,
        check: impl AsyncFnOnce(&str) -> Result<(), String>,
        recording: Option<&mut Recording>,
    ) -> Result<(), ApiError> {
        let Joined { run, totals, .. } = joined;
        let observer = Observer::new(self, None, totals, recording);
        let correct_run = async |drive: &Drive<'_>, observer: &mut Observer<'_, '_>| {
            correct(run, violation, drive, check, observer).await
        };
        self.driven(cut, observer, correct_run).await?;
        Ok(())
    }

    /// Makes the calls for one part, and records what stopped them. Returns how the last answer
    /// ended.
    async fn driven(
        &self,
        cut: Cut<'_>,
        mut observer: Observer<'_, '_>,
        calls: impl AsyncFnOnce(
            &Drive<'_>,
            &mut Observer<'_, '_>,
        ) -> Result<Option<StopCause>, DriveError>,
    ) -> Result<LastAnswer, ApiError> {
        let request = self.request(cut)?;
        let backend = Retrying::new(Placed(self), self.gateway.settings.upstream.retries);
        let plan = PlanOptions {
            // Who sets no limit wants none but the model's own.
            grow: self.wish.requested.is_none(),
            ..self.wish.known.plan.clone()
        };
        let drive = Drive {
            backend: &backend,
            request: &request,
            counter: self.wish.counter(),
            plan: &plan,
            deadline: Some(&self.deadline),
            most_answer_bytes: self.gateway.settings.limits.answer_bytes,
            live: observer.is_live(),
        };
        // Boxed, or every request would carry the space for calls that few need.
        let driven = Box::pin(calls(&drive, &mut observer)).await;
        let obstacle = driven.map_err(undriven)?;
        let Some(StopCause::Backend { error, retried }) = &obstacle else {
            self.stats.called(|| Called {
                error: Some("timeout".into()),
                ..Called::default()
            });
            return Ok(observer.last_answer);
        };
        if let Some(recording) = observer.recording.take() {
            let fault = UpstreamFault::without(&self.secrets(), error, retried.as_ref());
            recording.note_fault(fault);
        }
        self.stats.called(|| Called::failed(error));
        Ok(observer.last_answer)
    }

    /// Has a document continued, or begun.
    async fn go_on(
        &self,
        joined: Joined,
        cut: Cut<'_>,
        live: Option<LiveDocument<'_>>,
        recording: Option<&mut Recording>,
    ) -> Result<Joined, ApiError> {
        let Joined {
            mut run,
            mut totals,
            ..
        } = joined;
        let listener = match live {
            None => None,
            Some(LiveDocument { listener, sent }) => {
                let stable = run.base().map_or(0, PartialDocument::settled_len);
                if let Some(unsent) = run.text().get(sent..stable).filter(|it| !it.is_empty()) {
                    listener.hear(unsent).await;
                }
                Some(listener)
            }
        };
        if run.outcome().is_some() {
            return Ok(Joined::new(run, totals));
        }
        let observer = Observer::new(self, listener, &mut totals, recording);
        let continue_document = async |drive: &Drive<'_>, observer: &mut Observer<'_, '_>| {
            complete(&mut run, drive, observer).await
        };
        let last_answer = self.driven(cut, observer, continue_document).await?;
        Ok(Joined {
            run,
            totals,
            last_answer,
        })
    }

    /// What the client asked, as far as it holds for one more piece of one answer.
    fn request(&self, cut: Cut<'_>) -> Result<ChatRequest, ApiError> {
        let request = self.wish.request()?;
        let open_turn = request.open_turn();
        let mut request = request.into_value();
        let Some(members) = request.as_object_mut() else {
            return Err(ApiError::invalid("the request is no object"));
        };
        for name in ["n", "logprobs", "top_logprobs", "stream", "stream_options"] {
            members.remove(name);
        }
        if let Cut::Arguments(_) = cut {
            // It describes the content, and not the arguments of a call.
            members.remove("response_format");
        }
        for (tools, choice) in [("tools", "tool_choice"), ("functions", "function_call")] {
            if members.contains_key(tools) {
                // The rest of an answer is text, and so is that of a tool call.
                members.insert(choice.to_owned(), json!("none"));
            }
        }
        if let (Cut::Arguments(tool), Some(Value::Array(messages))) =
            (cut, members.get_mut("messages"))
        {
            messages.push(json!({
                "role": "user",
                "content": format!(
                    "Call the tool `{tool}`: answer with the JSON object of its arguments, and \
                     nothing else."
                ),
            }));
        }
        let request = ChatRequest::from_value(request)
            .map_err(|error| ApiError::invalid(error.to_string()))?;
        Ok(request.with_open_turn(open_turn))
    }
}

/// The upstream, to which each call tells its own place in the trace of the request.
struct Placed<'a>(&'a RequestContext);

impl Backend for Placed<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let Self(context) = self;
        async {
            let (client, prefill) = (&context.gateway.client, context.wish.known.prefill);
            let mut headers = context.headers();
            context.stats.place_in_trace(&mut headers);
            let base = context.with_query(&context.base);
            let backend = OpenAi::new(client.http.clone(), &base, None, prefill)?;
            let peer = (*client.peer).clone();
            let peer = context.secrets().iter().fold(peer, Peer::hiding);
            let backend = backend.on_behalf_of(&headers, &Arc::new(peer));
            backend.ask(call).await
        }
        .boxed()
    }

    fn starts_at_cut(&self, call: &Call) -> bool {
        self.0.wish.known.prefill.carries_grammar(call)
    }
}

/// Why a run could not be driven, to the client.
fn undriven(error: DriveError) -> ApiError {
    match error {
        DriveError::Observe(error) => {
            let error = error.downcast::<RecordError>();
            unkept(&error.map_or(RecordError::Closed, |it| *it))
        }
        error @ (DriveError::Prompt(_) | DriveError::Answer(_)) => {
            ApiError::upstream(error.to_string())
        }
    }
}

/// The state of the document of a run.
pub(super) fn state_of(run: &Continuation) -> PartState {
    if is_complete(run) {
        PartState::Complete
    } else {
        PartState::Cut
    }
}

/// Whether the document of a run is complete.
pub(super) fn is_complete(run: &Continuation) -> bool {
    run.outcome() == Some(&Outcome::Complete)
}
