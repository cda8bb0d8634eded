//! Has the rest of a cut answer written, in as many calls as that takes.

use std::borrow::Cow;
use std::error::Error;

use futures_util::future::{self, BoxFuture};
use futures_util::{FutureExt, TryStreamExt};
use hyper::{HeaderMap, StatusCode};
use overlock_budget::{ChatCounter, ChatRequest, Plan, PlanOptions};
use overlock_json::Base;
use overlock_model::{
    Ask, Backend, BackendError, Call, CallEnd, Continuation, Drive, DriveError, Events, Failure,
    Observe, ObserveText, Obstacle, OpenAi, Outcome, Progress, Reason, Retry, Retrying, Step,
    StepEnd, StepResult, StrategyResults, TextContinuation, TextOptions, Usage, Way, below,
    complete, complete_text, correct,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::first::First;
use super::reading::Found;
use super::taken::Taken;
use super::wish::Wish;
use super::{headers_of, keyed};
use crate::account::Account;
use crate::api::{AnswerLimit, CallBudget, RecordedStep, UpstreamFault, unfinished};
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::metrics::UpstreamError;
use crate::record::{RecordError, Recording};
use crate::secrets::Secrets;
use crate::trace::{Answered, Called};

/// What a continuation of an answer needs to know.
pub(crate) struct Joiner<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) wish: &'a Wish,
    pub(crate) counter: &'a ChatCounter<'a>,
    /// The address of who answers.
    pub(crate) base: &'a str,
    /// What is said after every path.
    pub(crate) query: Option<&'a str>,
    /// What the client showed, unless the demonstration answers.
    pub(crate) shown: Option<&'a HeaderMap>,
    pub(crate) account: &'a Account,
    /// How the window of the first call was divided.
    pub(crate) budget: &'a CallBudget,
    /// What the provider says that the first call took, if it answered with one text.
    pub(crate) told: Option<Usage>,
    pub(crate) deadline: Instant,
}

/// What is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut<'a> {
    /// The content of a message.
    Content,
    /// The arguments of a call of this tool.
    Arguments(&'a str),
}

/// Hears the certain text of a document as it arrives.
pub(crate) trait Hear: Send {
    /// The document goes on with this.
    fn hear<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()>;

    /// Another call begins.
    fn call(&mut self) {}
}

/// Somebody who hears a document from some byte on.
pub(crate) struct Hearing<'a> {
    pub(crate) hear: &'a mut dyn Hear,
    /// How many bytes of it were told before.
    pub(crate) given: usize,
}

/// A document that became whole, or as much of it as could be had.
pub(crate) struct Joined {
    pub(crate) run: Continuation,
    pub(crate) taken: Taken,
    /// Whether the provider's filter ended the last answer.
    pub(crate) is_withheld: bool,
    /// Whether the model would not give the last answer.
    pub(crate) is_declined: bool,
}

impl Joined {
    /// How the document ended.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self.run.outcome()?.clone() {
            Outcome::Partial { cut, .. } if self.is_withheld => Some(Outcome::Partial {
                reason: Reason::ContentFilter,
                cut,
            }),
            Outcome::Partial {
                reason: Reason::MergeFailures | Reason::NoProgress,
                cut,
            } if self.is_declined => Some(Outcome::Partial {
                reason: Reason::Refusal,
                cut,
            }),
            outcome => Some(outcome),
        }
    }
}

/// A text that was gone on with.
pub(crate) struct JoinedText {
    pub(crate) run: TextContinuation,
    pub(crate) taken: Taken,
}

impl JoinedText {
    /// What the text is now, as far as the provider says.
    pub(crate) fn found(&self) -> Found {
        if self.run.is_cut() {
            Found::Cut
        } else {
            Found::Whole
        }
    }

    /// Whether the provider's filter ended it.
    pub(crate) fn is_withheld(&self) -> bool {
        self.run.reason() == Some(Reason::ContentFilter)
    }

    /// How it ended.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.run.reason() {
            Some(reason) => unfinished(reason, true, None),
            None => Outcome::Complete,
        }
    }
}

impl Joiner<'_> {
    /// Goes on with a text that was cut off at its limit.
    pub(crate) async fn join_text(
        &self,
        first: &First<'_>,
        mut hear: Option<&mut dyn Hear>,
        mut recording: Option<&mut Recording>,
    ) -> Result<JoinedText, ApiError> {
        let prefill = self.wish.known.prefill;
        let continuation = self.wish.continuation(self.gateway);
        let options = TextOptions {
            max_iterations: continuation.max_iterations,
            max_output_tokens: self.wish.max_total_tokens,
            can_prefill: prefill.is_possible() && continuation.ways.first() == Some(&Way::Prefill),
        };
        let earlier = recording.as_deref().map(Recording::earlier_text);
        let earlier = earlier.filter(|steps| !steps.is_empty());
        let (mut run, mut taken) = if let Some(steps) = earlier {
            keyed::resumed_text(options, &steps)?
        } else {
            let tokens = if let Some(recording) = recording.as_deref_mut() {
                let step = self.text_step(first);
                let tokens = step.step.tokens;
                self.keep(recording, step).await?;
                tokens
            } else {
                self.tokens_of(first)
            };
            let run = TextContinuation::new(first.came.to_owned(), tokens, options);
            (run, Taken::default())
        };
        if let (Some(hear), Some(owed)) = (&mut hear, run.text().get(first.came.len()..))
            && !owed.is_empty()
        {
            hear.hear(owed).await;
        }
        let request = self.request(Cut::Content)?;
        let backend = self.backend();
        let plan = self.plan();
        let drive = self.drive(&backend, &request, &plan, hear.is_some());
        let mut observer = Observer::new(self, hear, &mut taken, recording);
        // Boxed, or every request would carry the space for calls that few need.
        let driven = Box::pin(complete_text(&mut run, &drive, &mut observer)).await;
        let obstacle = driven.map_err(undriven)?;
        self.note_fault(obstacle.as_ref(), observer.recording.take());
        self.stopped_by(obstacle.as_ref());
        drop(observer);
        Ok(JoinedText { run, taken })
    }

    /// Continues a document that a first answer began. Nothing is kept of one that began none.
    pub(crate) async fn join(
        &self,
        cut: Cut<'_>,
        first: &First<'_>,
        hear: Option<Hearing<'_>>,
        mut recording: Option<&mut Recording>,
    ) -> Result<Joined, ApiError> {
        let joined = self.begin(first, recording.as_deref_mut()).await?;
        self.go_on(joined, cut, hear, recording).await
    }

    /// The document that a first answer began, or that an earlier request made of it.
    pub(crate) async fn begin(
        &self,
        first: &First<'_>,
        recording: Option<&mut Recording>,
    ) -> Result<Joined, ApiError> {
        let earlier = recording.as_deref().and_then(Recording::earlier);
        if let Some((options, steps)) = earlier {
            return keyed::resumed(options, &steps);
        }
        let (run, step) = self.read_first(first);
        if let (Some(recording), Some(step), Some(_)) = (recording, step, run.base()) {
            let step = self.document_step(&run, &step, first);
            self.keep(recording, step).await?;
        }
        Ok(Joined {
            run,
            taken: Taken::default(),
            is_withheld: false,
            is_declined: false,
        })
    }

    /// Has the model correct a whole document that violates its schema in this way. The document
    /// stays as it is unless `check` accepts what the model answers.
    pub(crate) async fn correct(
        &self,
        cut: Cut<'_>,
        joined: &mut Joined,
        violation: &str,
        check: impl AsyncFnOnce(&str) -> Result<(), String>,
        recording: Option<&mut Recording>,
    ) -> Result<(), ApiError> {
        let request = self.request(cut)?;
        let (backend, plan) = (self.backend(), self.plan());
        let drive = self.drive(&backend, &request, &plan, false);
        let Joined { run, taken, .. } = joined;
        let mut observer = Observer::new(self, None, taken, recording);
        // Boxed, or every request would carry the space for a call that few need.
        let driven = Box::pin(correct(run, violation, &drive, check, &mut observer)).await;
        let obstacle = driven.map_err(undriven)?;
        self.note_fault(obstacle.as_ref(), observer.recording.take());
        self.stopped_by(obstacle.as_ref());
        Ok(())
    }

    /// Continues a document that was begun.
    async fn go_on(
        &self,
        joined: Joined,
        cut: Cut<'_>,
        hear: Option<Hearing<'_>>,
        recording: Option<&mut Recording>,
    ) -> Result<Joined, ApiError> {
        let Joined {
            mut run, mut taken, ..
        } = joined;
        let hear = match hear {
            None => None,
            Some(Hearing { hear, given }) => {
                let settled = run.base().map_or(0, Base::settled_len);
                if let Some(owed) = run.text().get(given..settled).filter(|it| !it.is_empty()) {
                    hear.hear(owed).await;
                }
                Some(hear)
            }
        };
        if run.outcome().is_some() || run.base().is_none() {
            let (is_withheld, is_declined) = (false, false);
            return Ok(Joined {
                run,
                taken,
                is_withheld,
                is_declined,
            });
        }
        let request = self.request(cut)?;
        let backend = self.backend();
        let plan = self.plan();
        let drive = self.drive(&backend, &request, &plan, hear.is_some());
        let mut observer = Observer::new(self, hear, &mut taken, recording);
        // Boxed, or every request would carry the space for calls that few need.
        let driven = Box::pin(complete(&mut run, &drive, &mut observer)).await;
        let obstacle = driven.map_err(undriven)?;
        self.note_fault(obstacle.as_ref(), observer.recording.take());
        self.stopped_by(obstacle.as_ref());
        let (is_withheld, is_declined) = (observer.is_withheld, observer.is_declined);
        drop(observer);
        Ok(Joined {
            run,
            taken,
            is_withheld,
            is_declined,
        })
    }

    /// Who is asked for the rest.
    fn backend(&self) -> Retrying<Placed<'_>> {
        Retrying::new(Placed(self), self.gateway.settings.upstream.retries)
    }

    /// Keeps why a call was not answered, or not to its end.
    fn note_fault(&self, obstacle: Option<&Obstacle>, recording: Option<&mut Recording>) {
        let (Some(Obstacle::Backend { error, retried }), Some(recording)) = (obstacle, recording)
        else {
            return;
        };
        let retried = retried.as_ref();
        recording.note_fault(UpstreamFault::without(&self.secrets(), error, retried));
    }

    /// The keys that go with the request.
    fn secrets(&self) -> Secrets {
        let own = self.gateway.settings.upstream.key.as_deref();
        Secrets::of(own, self.shown, self.query)
    }

    /// Tells how a call ended that nobody has heard of since.
    fn stopped_by(&self, obstacle: Option<&Obstacle>) {
        self.account.called(|| match obstacle {
            Some(Obstacle::Backend { error, .. }) => Called::failed(&failure(error)),
            _ => Called::failed("timeout"),
        });
    }

    fn drive<'d>(
        &'d self,
        backend: &'d dyn Backend,
        request: &'d ChatRequest,
        plan: &'d PlanOptions,
        live: bool,
    ) -> Drive<'d> {
        Drive {
            backend,
            request,
            counter: self.counter,
            plan,
            deadline: Some(self.deadline),
            most_answer_bytes: self.gateway.settings.limits.answer_bytes,
            live,
        }
    }

    /// Keeps a step. An answer depends on whether it can be kept only where there is a key.
    pub(crate) async fn keep(
        &self,
        recording: &mut Recording,
        step: RecordedStep,
    ) -> Result<(), ApiError> {
        let kept = kept(recording, step).await;
        kept.map_err(|error| keyed::unkept(&error))
    }

    fn plan(&self) -> PlanOptions {
        PlanOptions {
            // Who sets no limit wants none but the model's own.
            grow: self.wish.requested.is_none(),
            ..self.wish.known.plan.clone()
        }
    }

    /// How the window of one more call is divided. Its limit is told whether or not the client
    /// has set one: how long the rest may be is agreed on with every piece of it.
    fn budget_of(&self, plan: &Plan) -> CallBudget {
        CallBudget::of(plan, &self.wish.known.found).with_limit(AnswerLimit {
            asked: self.wish.requested,
            sent: Some(plan.adjusted_max_tokens),
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

async fn kept(recording: &mut Recording, mut step: RecordedStep) -> Result<(), RecordError> {
    recording.place(&mut step);
    match recording.step(&step).await {
        Err(error) if recording.is_keyed() => Err(error),
        _ => Ok(()),
    }
}

/// The upstream, to which each call tells its own place in the trace of the request.
struct Placed<'a>(&'a Joiner<'a>);

impl Backend for Placed<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let Self(joiner) = self;
        async {
            let (http, prefill) = (joiner.gateway.http.clone(), joiner.wish.known.prefill);
            let mut headers = headers_of(joiner.gateway, joiner.shown);
            joiner.account.place_in_trace(&mut headers);
            let base = match joiner.query {
                Some(query) => Cow::Owned(below(joiner.base, &format!("?{query}"))),
                None => Cow::Borrowed(joiner.base),
            };
            let backend = OpenAi::new(http, &base, None, prefill)?;
            let errors = joiner.gateway.metrics.upstream_errors.clone();
            let count = move |error: &BackendError| {
                if let Some(kind) = counted(error) {
                    errors.add(kind);
                }
            };
            let mut backend = backend.with_headers(&headers);
            for key in joiner.secrets().iter() {
                backend = backend.hiding(key);
            }
            let events = backend.ask(call).await.inspect_err(&count)?;
            let events: Events<'_> = Box::pin(events.inspect_err(count));
            Ok(events)
        }
        .boxed()
    }

    fn starts_at_cut(&self, call: &Call) -> bool {
        self.0.wish.known.prefill.carries_grammar(call)
    }
}

/// As what an error is counted; nothing if nothing was sent.
fn counted(error: &BackendError) -> Option<UpstreamError> {
    Some(match error {
        BackendError::Address { .. } | BackendError::Unsupported { .. } => return None,
        BackendError::Unreachable { .. } | BackendError::Certificate { .. } => {
            UpstreamError::Unreachable
        }
        BackendError::TimedOut { .. } => UpstreamError::Late,
        BackendError::Status { status, .. } => match StatusCode::from_u16(*status) {
            Ok(status) if !status.is_success() => UpstreamError::Status(status),
            // A stream that turned into an error began well.
            _ => UpstreamError::Broken,
        },
        BackendError::Malformed { .. }
        | BackendError::Broken { .. }
        | BackendError::TooLong { .. } => UpstreamError::Broken,
    })
}

/// The name of what went wrong with a call.
fn failure(error: &BackendError) -> Cow<'static, str> {
    Cow::Borrowed(match error {
        BackendError::Status { status, .. } => return status.to_string().into(),
        BackendError::Address { .. } => "address",
        BackendError::Unreachable { .. } => "unreachable",
        BackendError::Certificate { .. } => "certificate",
        BackendError::Unsupported { .. } => "unsupported",
        BackendError::TimedOut { .. } => "timeout",
        BackendError::Malformed { .. } => "malformed",
        BackendError::Broken { .. } => "broken",
        BackendError::TooLong { .. } => "too_long",
    })
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
        answered: Answered::new(None, step.end.finish.as_deref().into_iter()),
        usage,
        seam: Some(seam),
        error: error.map(Cow::Borrowed),
    }
}

/// Why a run could not be driven, to the client.
fn undriven(error: DriveError) -> ApiError {
    match error {
        DriveError::Observe(error) => {
            let unkept = error.downcast::<RecordError>();
            keyed::unkept(&unkept.map_or(RecordError::Closed, |it| *it))
        }
        error @ (DriveError::Prompt(_) | DriveError::Answer(_)) => {
            ApiError::upstream(error.to_string())
        }
    }
}

/// Tells what happens in a run to those who want to know.
struct Observer<'a, 'h> {
    joiner: &'a Joiner<'a>,
    hear: Option<&'a mut (dyn Hear + 'h)>,
    taken: &'a mut Taken,
    recording: Option<&'a mut Recording>,
    /// The call that is being made.
    calling: Option<Calling>,
    /// Whether the provider's filter ended the last answer.
    is_withheld: bool,
    /// Whether the model would not give the last answer.
    is_declined: bool,
}

/// A call that is being made.
struct Calling {
    iteration: u32,
    way: Option<Way>,
    budget: CallBudget,
    /// Whether it is for a text that is no document.
    plain_text: bool,
    /// What has come of its answer, where anything of the run is kept.
    coming: String,
}

impl<'a, 'h> Observer<'a, 'h> {
    fn new(
        joiner: &'a Joiner<'a>,
        hear: Option<&'a mut (dyn Hear + 'h)>,
        taken: &'a mut Taken,
        recording: Option<&'a mut Recording>,
    ) -> Self {
        Self {
            joiner,
            hear,
            taken,
            recording,
            calling: None,
            is_withheld: false,
            is_declined: false,
        }
    }

    fn call(&mut self, calling: Calling, name: Option<&'static str>) {
        self.joiner.account.calling(name);
        if let Some(recording) = &mut self.recording {
            recording.asking(calling.way.map(Way::name), &calling.budget);
        }
        self.calling = Some(calling);
        if let Some(hear) = &mut self.hear {
            hear.call();
        }
    }

    /// The call that is being made has ended; how its window was divided.
    fn ended(&mut self, step: &Step, end: &CallEnd, counted: Usage) -> Option<CallBudget> {
        self.taken.add(step, end.usage, counted);
        let usage = end.usage.unwrap_or(counted);
        let account = self.joiner.account;
        account.called(|| called(step, Some(usage)));
        self.is_withheld = step.end.finish.as_deref() == Some("content_filter");
        let declined = Failure::Declined;
        self.is_declined =
            matches!(&step.result, StepResult::Failed { failure, .. } if *failure == declined);
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
            let secrets = self.joiner.secrets();
            let told = end.retried.as_mut().map(|retried| &mut retried.error);
            for told in told.into_iter().chain(&mut end.broken) {
                *told = secrets.scrub(told);
            }
        }
        async move { Ok(kept(recording, step).await?) }.boxed()
    }
}

impl Drop for Observer<'_, '_> {
    /// Whoever goes away in the middle of a call leaves what has come of it.
    fn drop(&mut self) {
        let (Some(calling), Some(recording)) = (self.calling.take(), &mut self.recording) else {
            return;
        };
        if calling.coming.is_empty() {
            return;
        }
        let tokens = self.joiner.counter.tokens().count(&calling.coming);
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
        recording.leave(RecordedStep {
            plain_text: calling.plain_text,
            counted: Some(tokens),
            ..RecordedStep::of_text(step, Some(calling.budget))
        });
    }
}

impl Observe for Observer<'_, '_> {
    fn asking(&mut self, ask: &Ask, plan: &Plan) {
        let calling = Calling {
            iteration: ask.iteration,
            way: ask.way,
            budget: self.joiner.budget_of(plan),
            plain_text: false,
            coming: String::new(),
        };
        self.call(calling, ask.way.map(Way::name));
    }

    fn correcting(&mut self, iteration: u32, plan: &Plan) {
        let calling = Calling {
            iteration,
            way: None,
            budget: self.joiner.budget_of(plan),
            plain_text: false,
            coming: String::new(),
        };
        self.call(calling, Some("correction"));
    }

    fn retrying(&mut self, retry: &Retry) {
        if let Some(recording) = &mut self.recording {
            let joiner = self.joiner;
            recording.retrying(retry, |error| joiner.secrets().scrub(error));
        }
    }

    fn heard(&mut self, piece: &str) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        recording.heard(piece);
        if let Some(calling) = &mut self.calling {
            calling.coming.push_str(piece);
        }
    }

    fn certain<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        match &mut self.hear {
            Some(hear) => hear.hear(text),
            None => future::ready(()).boxed(),
        }
    }

    fn stepped<'a>(
        &'a mut self,
        run: &'a Continuation,
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
        self.keep(|| RecordedStep::new(run, step, budget).with_counts(end.usage, end.counted))
    }

    fn learnt(&mut self, results: StrategyResults) {
        let joiner = self.joiner;
        // The demonstration has nothing to learn from.
        if joiner.shown.is_some() {
            joiner.gateway.learn_strategies(&joiner.wish.model, results);
        }
    }
}

impl ObserveText for Observer<'_, '_> {
    fn calling(&mut self, iteration: u32, way: Way, plan: &Plan) {
        let calling = Calling {
            iteration,
            way: Some(way),
            budget: self.joiner.budget_of(plan),
            plain_text: true,
            coming: String::new(),
        };
        self.call(calling, Some("text"));
    }

    fn called<'a>(
        &'a mut self,
        step: &'a Step,
        usage: Usage,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let budget = self.ended(step, end, usage);
        self.keep(|| {
            RecordedStep::of_text(step.clone(), budget).with_counts(end.usage, end.counted)
        })
    }
}

/// What a run made of a document.
pub(crate) fn found(run: &Continuation) -> Found {
    if is_whole(run) {
        Found::Whole
    } else {
        Found::Cut
    }
}

/// Whether a run was called whole.
pub(crate) fn is_whole(run: &Continuation) -> bool {
    run.outcome() == Some(&Outcome::Complete)
}
