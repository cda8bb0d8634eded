//! One answer, from the first upstream call to the last byte for the client.
//!
//! A streamed answer and one that is not streamed take the same path. They differ only in when the
//! client gets the bytes, and in what can still be done while it has none of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use hyper::header::HeaderMap;
use overlock_llm::assembler::{Assembler, ChoiceParts, UnsentOnly};
use overlock_llm::wire::{FinalChoice, Protocol, WireAnswer, WireEvent};
use overlock_llm::{BackendError, Outcome, Reason, Response, SseReader, Usage};
use overlock_runs::to_json;
use serde_json::Value;
use tokio::sync::mpsc;

use super::compliance::Compliance;
use super::finished::{FinishedAnswer, IdempotentAnswer};
use super::out::Out;
use super::run::ChatRun;
use crate::error::ApiError;
use crate::record::Recording;
use crate::reply::{Reply, driven_body, event_stream};
use crate::totals::UsageTotals;
use crate::trace::{AnswerInfo, Called, error_type};
use crate::upstream::forward_headers;

/// How many events are buffered for a slow client before the upstream is not read any further.
const MOST_BUFFERED: usize = 16;

/// An answer while it is made.
pub(super) struct ResponseRun {
    pub(super) run: Box<ChatRun>,
    pub(super) out: Out,
    pub(super) wire: Box<dyn WireAnswer>,
    pub(super) assembler: Assembler,
    pub(super) totals: UsageTotals,
    /// How the answer ended: the outcome of its first part that is not complete.
    pub(super) outcome: Outcome,
    /// Why the upstream's stream broke off.
    pub(super) broken: Option<String>,
    pub(super) compliance: Compliance,
    /// Our count of the first answer, if the upstream reports no usage.
    output_tokens: u64,
}

/// The reply to a request whose first answer is a stream.
pub(super) fn streamed(run: Box<ChatRun>, answer: Response) -> Reply {
    let headers = answer.headers.clone();
    let mut reply = stream_of(run, async |mut response| {
        let broken = response.read_stream(answer).await.err();
        response.trace_call(broken.as_ref());
        response.end_stream(broken).await;
    });
    forward_headers(&headers, reply.headers_mut());
    reply
}

/// The reply that sends the recorded first answer of an interrupted run again, and continues it.
pub(super) async fn resumed(run: Box<ChatRun>, first: Value) -> Result<Reply, ApiError> {
    if !run.context.params.is_streamed {
        let response = ResponseRun::at_end(run, first);
        return response.reply(None, &HeaderMap::new()).await;
    }
    Ok(stream_of(run, async move |mut response| {
        for event in response.protocol().events(&first, true) {
            let event = response.wire.read_event(event.to_string().into_bytes());
            response.forward(event.expect("a value is JSON")).await;
        }
        response.end_stream(None).await;
    }))
}

fn stream_of<F: Future<Output = ()> + Send + 'static>(
    run: Box<ChatRun>,
    work: impl FnOnce(ResponseRun) -> F,
) -> Reply {
    let (sender, receiver) = mpsc::channel(MOST_BUFFERED);
    let keep_alive = run.context.gateway.settings.limits.keep_alive;
    let recording = run.recording.as_ref();
    let id = recording.map_or("run", |recording| recording.id.as_str());
    let created = recording.map_or(0, Recording::began_at) / 1000;
    let params = &run.context.params;
    let wire = params
        .protocol
        .streamed(id, created, &params.model, params.wants_usage);
    let assembler = run.context.assembler(true);
    let response = ResponseRun::new(run, Out::Stream(sender), wire, assembler);
    event_stream(driven_body(receiver, work(response), keep_alive))
}

/// The reply to a request whose first answer is one object.
pub(super) async fn at_end(
    mut run: Box<ChatRun>,
    mut answer: Box<Response>,
) -> Result<Reply, ApiError> {
    let most = run.context.gateway.settings.limits.answer_bytes;
    let protocol = run.context.params.protocol;
    let read = answer.answer_object(protocol, most).await;
    let (value, original) = match read {
        Ok(read) => read,
        Err(error) => return Err(Box::pin(run.record_unusable(error)).await),
    };
    // Boxed here, because until then the request only waits.
    Box::pin(async move {
        let response = ResponseRun::at_end(run, value);
        response.trace_call(None);
        response.reply(original, &answer.headers).await
    })
    .await
}

impl ResponseRun {
    fn new(run: Box<ChatRun>, out: Out, wire: Box<dyn WireAnswer>, assembler: Assembler) -> Self {
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

    fn at_end(run: Box<ChatRun>, object: Value) -> Self {
        let mut assembler = run.context.assembler(false);
        let wire = run.context.params.protocol.complete(object, &mut assembler);
        Self::new(run, Out::AtEnd, wire, assembler)
    }

    fn protocol(&self) -> Protocol {
        self.run.context.params.protocol
    }

    /// Whether the answer can still do what is possible only while nothing was sent.
    pub(super) fn allows(&self, what: UnsentOnly) -> bool {
        let closes = self.run.context.gateway.settings.close_partial;
        let is_wanted = what != UnsentOnly::ClosePartial || closes;
        is_wanted && !self.out.is_stream()
    }

    /// Ends the span of the first call.
    fn trace_call(&self, broken: Option<&BackendError>) {
        self.run.context.stats.called(|| {
            let choices = self.assembler.choices();
            let finishes = choices.filter_map(|(_, choice)| choice.finish.as_deref());
            Called {
                answered: AnswerInfo::new(self.wire.model(), finishes),
                usage: self.first_usage(),
                seam: None,
                error: broken.map(error_type),
            }
        });
    }

    /// Forwards the events of the first answer as far as they are stable.
    async fn read_stream(&mut self, mut answer: Response) -> Result<(), BackendError> {
        let mut reader = SseReader::default();
        let protocol = self.protocol();
        let most_bytes = self.run.context.gateway.settings.limits.answer_bytes;
        // Reasoning and comments count as well, but not the JSON around the texts of events.
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
                answer.check_error(protocol, &event.value)?;
                if protocol.has_output(&event.value) {
                    answer.mark_active();
                }
                let overhead = self.forward(event).await;
                if self.assembler.is_ended() {
                    answer.mark_ended();
                }
                self.show_progress();
                if self.wire.is_over() {
                    return Ok(());
                }
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
    async fn forward(&mut self, event: WireEvent) -> usize {
        let forwarded = self.wire.forward(event, &mut self.assembler);
        self.out.send(forwarded.bytes).await;
        forwarded.overhead
    }

    /// Shows subscribers of the run how much of the first answer has arrived.
    fn show_progress(&mut self) {
        let recording = self.run.recording.as_mut();
        if let Some(recording) = recording.filter(|it| it.is_followed()) {
            let bytes = self.assembler.text_len() as u64;
            let first = self.assembler.choices().next();
            recording.received(bytes, first.map_or("", |(_, choice)| choice.written()));
        }
    }

    /// Continues what is cut and ends the stream.
    async fn end_stream(mut self, broken: Option<BackendError>) {
        match self.finish(broken).await {
            Ok(finished) => {
                let end = finished.end_of_stream(self.protocol());
                self.out.send(end).await;
            }
            Err(error) => {
                self.run.record_failed(&error).await;
                self.run.context.stats.failed(error.name());
                let events = self.wire.encode_error(&error.body());
                self.out.send(events).await;
            }
        }
    }

    /// Continues what is cut of an answer that is not streamed.
    async fn reply(
        mut self,
        original: Option<Bytes>,
        headers: &HeaderMap,
    ) -> Result<Reply, ApiError> {
        let finished = self.finish(None).await;
        if let Err(error) = &finished {
            self.run.record_failed(error).await;
        }
        finished?.into_reply(&self.run.context.params, original, headers)
    }

    /// Continues what is cut, records the answer and sends its end.
    async fn finish(
        &mut self,
        mut broken: Option<BackendError>,
    ) -> Result<FinishedAnswer, ApiError> {
        if let Some(recording) = &mut self.run.recording {
            recording.answered_first(|| {
                let first = self.wire.first(&self.assembler);
                to_json(&IdempotentAnswer::First(Cow::Owned(first)))
            });
        }
        let first_usage = self.first_usage();
        if let Some(usage) = first_usage {
            self.run.context.learn_ratio(usage.input);
        }
        let is_one_text = self.assembler.is_one_text();
        self.run.context.first_usage = first_usage.filter(|_| is_one_text);
        let scrub = |text: String| self.run.context.secrets().scrub(&text);
        self.broken = broken.as_ref().map(|it| scrub(it.to_string()));
        if let Some(error) = broken.take_if(|_| !self.assembler.survives_break()) {
            self.record_rest();
            while let Some((index, mut choice)) = self.assembler.pop_first() {
                self.send_rest(index, &mut choice).await;
            }
            return Err(error.into());
        }
        let mut choices = BTreeMap::new();
        // If the client disconnects, the choices that are left are recorded as they are.
        while let Some((index, choice)) = self.assembler.pop_first() {
            self.count(&choice);
            let end = Box::pin(self.end_choice(index, choice)).await?;
            choices.insert(index, end);
        }
        let has_end = choices.values().all(|choice| choice.finish.is_some());
        if self.out.is_stream() && (choices.is_empty() || !has_end) {
            if broken.is_none() {
                self.run.record_endless().await;
            }
            let message = "the upstream's answer does not say that it ended";
            return Err(broken.map_or_else(|| ApiError::upstream(message), ApiError::from));
        }
        Ok(self.close(&choices, first_usage.is_some()).await)
    }

    /// Records the answer and then sends its end: a client that has seen the end can get the same
    /// answer again, even if this process stops.
    async fn close(
        &mut self,
        choices: &BTreeMap<u64, FinalChoice>,
        is_usage_reported: bool,
    ) -> FinishedAnswer {
        let context = &self.run.context;
        let refusal = self.compliance.refusal(context);
        let refusal = refusal.filter(|_| !self.out.is_stream());
        if refusal.is_some() {
            let reason = Reason::SchemaViolation;
            self.outcome = Outcome::Failed { reason };
        }
        let outcome = self.outcome.clone();
        let protocol = context.params.protocol;
        let usage = self.usage();
        let reported = usage.as_ref().or(self.wire.usage());
        let reported = reported.and_then(|it| protocol.read_usage(it));
        let is_strict = context.params.is_strict();
        let report = self.compliance.report(is_strict, &outcome);
        let (is_stream, wire) = (self.out.is_stream(), &mut self.wire);
        let end = is_stream.then(|| wire.encode_end(choices, usage.as_ref(), report.as_ref()));
        let (completion, is_changed) = self.wire.finished(choices, usage.as_ref(), report.as_ref());
        let finished = FinishedAnswer {
            completion,
            outcome,
            suspicious: self.totals.suspicious.map(str::to_owned),
            continuations: self.totals.calls,
            comparison: self.compliance.comparison(),
            refusal,
            is_changed,
        };
        let counted_by = self.totals.counted_by(is_usage_reported);
        let recorded = self.run.record_finished(&finished, reported, counted_by);
        recorded.await;
        self.run.context.remember(&finished);
        self.out.send(end.unwrap_or_default()).await;
        let summary = protocol.summary(&finished.completion);
        let stats = &self.run.context.stats;
        stats.answered(&summary, finished.outcome.name(), self.totals);
        finished
    }

    /// The usage of all calls; `None` if the answer keeps what the upstream reports.
    fn usage(&self) -> Option<Value> {
        if self.totals.calls == 0 && !self.out.is_stream() {
            return None;
        }
        let protocol = self.protocol();
        let counted = protocol.usage_object(Usage {
            input: self.run.context.budget.input_token_count,
            output: self.output_tokens,
            cached: None,
        });
        let first = self.wire.usage().unwrap_or(&counted);
        Some(self.totals.added_to(first, protocol))
    }

    /// The usage of the first call, if the upstream reports it.
    fn first_usage(&self) -> Option<Usage> {
        let usage = self.wire.usage()?;
        self.protocol().read_usage(usage)
    }

    /// Counts the texts of the first answer, unless the upstream reports its usage.
    fn count(&mut self, choice: &ChoiceParts) {
        if self.wire.usage().is_none() {
            let counter = self.run.context.params.counter().tokens();
            self.output_tokens += choice.texts().map(|text| counter.count(text)).sum::<u64>();
        }
    }
}

impl Drop for ResponseRun {
    /// A client that disconnects leaves a record of what had arrived.
    fn drop(&mut self) {
        self.record_rest();
    }
}
