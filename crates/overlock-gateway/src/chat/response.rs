//! One answer, from the first upstream call to the last byte for the client.
//!
//! A streamed answer and one that is not streamed go the same way. The only difference is when the
//! client gets the bytes, and what can still be done while it has none of them.

use std::collections::BTreeMap;

use hyper::header::HeaderMap;
use overlock_llm::assembler::{Assembler, ChoiceParts, UnsentOnly};
use overlock_llm::wire::chat::{
    ChatEvent, ChatResponse, FinalChoice, chunks, has_output, read_usage, usage_object,
};
use overlock_llm::{BackendError, Outcome, Reason, Response, SseReader, Usage};
use serde_json::Value;
use tokio::sync::mpsc;

use super::compliance::Compliance;
use super::finished::{FinishedAnswer, violated};
use super::idempotency::{Answered, kept_first};
use super::out::Out;
use super::refusal::pass_on;
use super::reported::ending_comment;
use super::run::{ChatRun, completion};
use crate::error::ApiError;
use crate::reply::{Reply, driven_body, event_stream};
use crate::totals::UsageTotals;
use crate::trace::{AnswerInfo, Called, error_type};

/// How many events wait for a slow client before the upstream is not read any more.
const WAITING: usize = 16;

/// An answer while it is made.
pub(super) struct ResponseRun {
    pub(super) run: Box<ChatRun>,
    pub(super) out: Out,
    pub(super) wire: ChatResponse,
    pub(super) assembler: Assembler,
    pub(super) totals: UsageTotals,
    /// How the answer ended: as its first part that is not complete.
    pub(super) outcome: Outcome,
    /// Why the upstream's stream broke off.
    pub(super) broken: Option<String>,
    pub(super) compliance: Compliance,
    /// The tokens of the first answer by our count, if the upstream reports none.
    output_tokens: u64,
}

/// The answer of the upstream as one stream.
pub(super) fn streamed(run: Box<ChatRun>, answer: Response) -> Reply {
    let headers = answer.headers.clone();
    let mut reply = worked_on_by(run, async |mut response| {
        let broken = response.read_stream(answer).await.err();
        response.called(broken.as_ref());
        response.stream_end(broken).await;
    });
    pass_on(&headers, reply.headers_mut());
    reply
}

/// The rest of an answer that was begun for an earlier request, after what there is of it.
pub(super) fn resumed_stream(run: Box<ChatRun>, first: Value) -> Reply {
    worked_on_by(run, async move |mut response| {
        for event in chunks(&first) {
            let event = response.wire.read_event(event.to_string().into_bytes());
            response.forward(event.expect("a value is JSON")).await;
        }
        response.stream_end(None).await;
    })
}

fn worked_on_by<F: Future<Output = ()> + Send + 'static>(
    run: Box<ChatRun>,
    work: impl FnOnce(ResponseRun) -> F,
) -> Reply {
    let (sender, receiver) = mpsc::channel(WAITING);
    let keep_alive = run.context.gateway.settings.limits.keep_alive;
    let wire = ChatResponse::streamed(run.head("chat.completion.chunk"));
    let assembler = run.context.assembler(true);
    let response = ResponseRun::new(run, Out::Stream(sender), wire, assembler);
    event_stream(driven_body(receiver, work(response), keep_alive))
}

/// The reply to a request whose answer came as one object.
pub(super) async fn at_end(
    mut run: Box<ChatRun>,
    mut answer: Box<Response>,
) -> Result<Reply, ApiError> {
    let most = run.context.gateway.settings.limits.answer_bytes;
    let read = answer.read_whole(most).await;
    let read = read.and_then(|bytes| Ok((completion(&answer, &bytes)?, bytes)));
    let (value, bytes) = match read {
        Ok(read) => read,
        Err(error) => return Err(Box::pin(run.fails(error)).await),
    };
    // Boxed here, because until then the request only waits.
    Box::pin(async move {
        let mut response = ResponseRun::at_end(run, value);
        response.called(None);
        let mut finished = response.finished().await?;
        finished.bytes = Some(bytes).filter(|_| !finished.is_changed);
        finished.headers = answer.headers;
        Ok(finished.into_reply(&response.run.context.wish))
    })
    .await
}

/// The reply to a request of which a part was answered before.
pub(super) async fn resumed_at_end(run: Box<ChatRun>, first: Value) -> Result<Reply, ApiError> {
    let mut response = ResponseRun::at_end(run, first);
    let finished = response.finished().await?;
    Ok(finished.into_reply(&response.run.context.wish))
}

impl ResponseRun {
    fn new(run: Box<ChatRun>, out: Out, wire: ChatResponse, assembler: Assembler) -> Self {
        Self {
            run,
            out,
            wire,
            assembler,
            totals: UsageTotals::default(),
            outcome: Outcome::Complete,
            broken: None,
            compliance: Compliance::default(),
            output_tokens: 0,
        }
    }

    fn at_end(run: Box<ChatRun>, completion: Value) -> Self {
        let mut assembler = run.context.assembler(false);
        let wire = ChatResponse::complete(completion, &mut assembler);
        Self::new(run, Out::AtEnd, wire, assembler)
    }

    /// Whether something can be done that is possible only while nothing was sent.
    pub(super) fn allows(&self, what: UnsentOnly) -> bool {
        let is_wanted = match what {
            UnsentOnly::ClosePartial => self.run.context.gateway.settings.close_partial,
            UnsentOnly::Replace | UnsentOnly::CorrectSchema | UnsentOnly::RemoveLoop => true,
        };
        is_wanted && matches!(self.out, Out::AtEnd)
    }

    /// The first call has ended.
    fn called(&self, broken: Option<&BackendError>) {
        self.run.context.stats.called(|| {
            let choices = self.assembler.choices();
            let finishes = choices.filter_map(|(_, choice)| choice.finish.as_deref());
            Called {
                answered: AnswerInfo::new(self.wire.model(), finishes),
                usage: self.wire.usage().and_then(read_usage),
                seam: None,
                error: broken.map(error_type),
            }
        });
    }

    /// Forwards the events of the first answer as far as they are stable.
    async fn read_stream(&mut self, mut answer: Response) -> Result<(), BackendError> {
        let mut reader = SseReader::default();
        let most_bytes = self.run.context.gateway.settings.limits.answer_bytes;
        // Everything counts, also reasoning and comments, but not the overhead of events.
        let mut read = 0_usize;
        loop {
            let bytes = answer.next_bytes().await?;
            let is_end = bytes.is_none();
            if let Some(bytes) = bytes {
                read = read.saturating_add(bytes.len());
                let fed = reader.feed(&bytes);
                fed.map_err(|error| answer.malformed(&error.to_string()))?;
            }
            let next = |reader: &mut SseReader| match reader.next_event() {
                None if is_end => reader.finish(),
                event => event,
            };
            while let Some(event) = next(&mut reader) {
                if event.data == b"[DONE]" {
                    return Ok(());
                }
                let event = self.wire.read_event(event.data);
                let event = event.map_err(|_| answer.malformed("an event is not JSON"))?;
                if let Some(error) = answer.error_in(&event.value) {
                    return Err(error);
                }
                if has_output(&event.value) {
                    answer.mark_active();
                }
                let overhead = self.forward(event).await;
                if self.assembler.is_ended() {
                    answer.mark_ended();
                }
                self.show_progress();
                read = read.saturating_sub(overhead);
            }
            if read > most_bytes {
                return Err(answer.failed(BackendError::TooLong { most_bytes }));
            }
            if is_end {
                break;
            }
        }
        if self.assembler.is_ended() {
            return Ok(());
        }
        Err(answer.ended_early())
    }

    /// Forwards an event of the first answer. Returns how many of its bytes are overhead.
    async fn forward(&mut self, event: ChatEvent) -> usize {
        let forwarded = self.wire.forward(event, &mut self.assembler);
        if let Some(data) = forwarded.data {
            let event = [b"data: ", data.as_slice(), b"\n\n"].concat();
            self.out.send(event.into()).await;
        }
        forwarded.overhead
    }

    /// Shows subscribers of the run how much of the first answer has arrived.
    fn show_progress(&mut self) {
        let recording = self.run.recording.as_mut();
        let Some(recording) = recording.filter(|it| it.is_followed()) else {
            return;
        };
        let bytes = self.assembler.text_len() as u64;
        let first = self.assembler.choices().next();
        recording.received(bytes, first.map_or("", |(_, choice)| choice.written()));
    }

    /// Continues what is cut and ends the stream.
    async fn stream_end(mut self, broken: Option<BackendError>) {
        match self.finish(broken).await {
            Ok(finished) => {
                let FinishedAnswer {
                    outcome,
                    continuations,
                    comparison,
                    ..
                } = finished;
                let end = ending_comment(&outcome, continuations, &comparison);
                self.out.send(end.into()).await;
            }
            Err(error) => {
                self.run.failed(&error).await;
                self.run.context.stats.failed(error.name());
                self.out.event(&error.to_json()).await;
            }
        }
    }

    /// Continues what is cut of an answer that is not streamed.
    async fn finished(&mut self) -> Result<FinishedAnswer, ApiError> {
        let finished = self.finish(None).await;
        if let Err(error) = &finished {
            self.run.failed(error).await;
        }
        finished
    }

    /// Continues what is cut, records the answer and sends its end.
    async fn finish(
        &mut self,
        mut broken: Option<BackendError>,
    ) -> Result<FinishedAnswer, ApiError> {
        if let Some(recording) = &mut self.run.recording {
            recording.answered_first(|| kept_first(&self.wire.first(&self.assembler)));
        }
        let first_usage = self.wire.usage().and_then(read_usage);
        let is_one_text = self.assembler.is_one_text();
        self.run.context.first_usage = first_usage.filter(|_| is_one_text);
        let secrets = self.run.context.secrets();
        self.broken = broken.as_ref().map(|it| secrets.scrub(&it.to_string()));
        if let Some(error) = broken.take_if(|_| !self.assembler.survives_break()) {
            self.leave();
            while let Some((index, mut choice)) = self.assembler.pop_first() {
                self.send_rest(index, &mut choice).await;
            }
            return Err(error.into());
        }
        let mut choices = BTreeMap::new();
        // A client that disconnects meanwhile leaves those that are still there.
        while let Some((index, choice)) = self.assembler.pop_first() {
            self.count(&choice);
            let end = Box::pin(self.end_choice(index, choice)).await?;
            choices.insert(index, end);
        }
        let has_end = choices.values().all(|choice| choice.finish.is_some());
        if matches!(self.out, Out::Stream(_)) && (choices.is_empty() || !has_end) {
            if broken.is_none() {
                self.run.does_not_end().await;
            }
            let message = "the upstream's answer does not say that it ended";
            return Err(broken.map_or_else(|| ApiError::upstream(message), ApiError::from));
        }
        self.close(&choices, first_usage.is_some()).await
    }

    /// Records the answer and then sends its end: a client that has seen the end can ask for the
    /// same answer again, whatever happens to this process.
    async fn close(
        &mut self,
        choices: &BTreeMap<u64, FinalChoice>,
        is_usage_reported: bool,
    ) -> Result<FinishedAnswer, ApiError> {
        let context = &self.run.context;
        let refusal = self.compliance.refusal(context);
        let refusal = refusal.filter(|_| matches!(self.out, Out::AtEnd));
        if refusal.is_some() {
            let reason = Reason::SchemaViolation;
            self.outcome = Outcome::Failed { reason };
        }
        let outcome = self.outcome.clone();
        let usage = self.usage();
        let report = self.compliance.report(context.wish.is_strict(), &outcome);
        let ends = self.wire.encode_ends(choices, report.as_ref());
        let (value, is_changed) = self.wire.finished(choices, usage.as_ref(), report.as_ref());
        let continuations = self.totals.calls;
        let comparison = self.compliance.comparison();
        let answered = || Answered {
            completion: value.clone(),
            outcome: outcome.clone(),
            continuations,
            comparison: comparison.clone(),
            refusal: refusal.clone(),
        };
        let reported = usage.as_ref().and_then(read_usage);
        let counted_by = self.totals.counted_by(is_usage_reported);
        let ended = self.run.ended(&outcome, reported, counted_by, answered);
        ended.await;
        for event in ends {
            self.out.event(&event).await;
        }
        let context = &self.run.context;
        let stats = &context.stats;
        stats.answered(&value, outcome.name(), self.totals);
        if let Some(usage) = usage.filter(|_| context.wish.wants_usage) {
            self.out.event(&self.wire.encode_usage(usage)).await;
        }
        if let Some(refusal) = refusal {
            return Err(violated(refusal));
        }
        Ok(FinishedAnswer {
            value,
            bytes: None,
            is_changed,
            headers: HeaderMap::new(),
            outcome,
            continuations,
            comparison,
        })
    }

    /// The usage of all calls. An answer that is not streamed reports none if the upstream reports
    /// none and it was not continued.
    fn usage(&self) -> Option<Value> {
        let first = self.wire.usage();
        if first.is_none() && self.totals.calls == 0 && matches!(self.out, Out::AtEnd) {
            return None;
        }
        let counted = usage_object(Usage {
            input: self.run.context.budget.input_token_count,
            output: self.output_tokens,
            cached: None,
        });
        Some(self.totals.added_to(first.unwrap_or(&counted)))
    }

    /// Counts the texts of the first answer, unless the upstream has.
    fn count(&mut self, choice: &ChoiceParts) {
        if self.wire.usage().is_none() {
            let counter = self.run.context.wish.counter().tokens();
            self.output_tokens += choice.texts().map(|text| counter.count(text)).sum::<u64>();
        }
    }
}

impl Drop for ResponseRun {
    /// A client that disconnects leaves a record of what had arrived.
    fn drop(&mut self) {
        self.leave();
    }
}
