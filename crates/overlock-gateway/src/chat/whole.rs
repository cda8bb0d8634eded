//! Makes an answer whole that comes at once.

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use overlock_model::{Continuation, Halves, Outcome, Usage};
use serde_json::{Value, json};

use super::ending::Ending;
use super::joining::{Cut, Joined, JoinedText, Joiner, found, is_whole};
use super::keyed::{Answered as AnsweredBefore, kept_first};
use super::plain_text;
use super::reading::{Found, Kind};
use super::taken::{Taken, read as read_usage, told};
use super::wish::Continues;
use super::{Ended, Job, pass_on, schema, tell};
use crate::api::Part;
use crate::body::{Reply, reply, whole};
use crate::error::ApiError;
use crate::record::Recording;
use crate::trace::{Answered, Called};
use crate::upstream::Answer;

/// An answer that has been made as whole as it can be.
pub(crate) struct WholeAnswer {
    /// The completion as the client gets it, unless it is a plain text that is not streamed.
    pub(crate) value: Value,
    /// The same as it came, where nothing had to change.
    bytes: Option<Bytes>,
    /// What the upstream says about it.
    pub(crate) headers: HeaderMap,
    pub(crate) ended: Ended,
    pub(crate) continuations: u32,
    pub(crate) violates: bool,
}

impl WholeAnswer {
    /// An answer that was given before, or what was said instead of it.
    pub(crate) fn replayed(before: AnsweredBefore) -> Result<Self, ApiError> {
        if let Some(refusal) = before.refusal {
            return Err(violated(refusal));
        }
        Ok(Self {
            value: before.completion,
            bytes: None,
            headers: HeaderMap::new(),
            ended: before.ended,
            continuations: before.continuations,
            violates: before.violates,
        })
    }

    pub(crate) fn into_reply(self) -> Reply {
        let body = match self.bytes {
            Some(bytes) => whole(bytes),
            None => whole(self.value.to_string()),
        };
        let mut reply = reply(StatusCode::OK, "application/json", body);
        pass_on(&self.headers, reply.headers_mut());
        tell(reply.headers_mut(), self.ended, self.continuations);
        if self.violates {
            let value = hyper::header::HeaderValue::from_static("violated");
            reply.headers_mut().insert("x-overlock-schema", value);
        }
        reply
    }
}

/// Reads what the upstream says and continues what is cut.
pub(crate) async fn read(job: &mut Job, mut answer: Box<Answer>) -> Result<WholeAnswer, ApiError> {
    let most = job.gateway.settings.limits.answer_bytes;
    let bytes = match answer.read_whole(most).await {
        Ok(bytes) => bytes,
        Err(error) => return Err(Box::pin(job.fails(error)).await),
    };
    if let Some(usage) = plain_text::usage_of(job, &bytes) {
        job.ended_plainly(usage).await;
        return Ok(WholeAnswer {
            value: Value::Null,
            bytes: Some(bytes),
            headers: answer.headers,
            ended: Ended::Complete,
            continuations: 0,
            violates: false,
        });
    }
    let value = match completion(job, &answer, &bytes) {
        Ok(value) => value,
        Err(error) => return Err(Box::pin(job.fails(error)).await),
    };
    job.account.called(|| Called {
        answered: Answered::of(&value),
        usage: value.get("usage").and_then(read_usage),
        ..Called::default()
    });
    // Boxed, or every request would carry the space for calls that few need.
    Box::pin(made_whole(job, value, Some(bytes), answer.headers)).await
}

/// Goes on with an answer that was begun for an earlier request.
pub(crate) async fn resumed(job: &mut Job, first: Value) -> Result<WholeAnswer, ApiError> {
    made_whole(job, first, None, HeaderMap::new()).await
}

/// Continues what is cut of a completion, which came as these bytes.
async fn made_whole(
    job: &mut Job,
    mut value: Value,
    bytes: Option<Bytes>,
    headers: HeaderMap,
) -> Result<WholeAnswer, ApiError> {
    let mut recording = job.recording.take();
    if let Some(recording) = &mut recording {
        recording.answered_first(|| kept_first(&value));
    }
    let first_usage = value.get("usage").and_then(read_usage);
    job.told = first_usage.filter(|_| is_one_text(&value));
    let mut making = Making {
        joiner: job.joiner(),
        job,
        recording: recording.as_mut(),
        outcome: None,
        taken: Taken::default(),
        ended: Ended::Complete,
        changed: false,
        violation: None,
        output_tokens: 0,
    };
    let choices = value.get_mut("choices").and_then(Value::as_array_mut);
    for (number, choice) in (0..).zip(choices.into_iter().flatten()) {
        making.choice(number, choice).await?;
    }
    let Making {
        outcome,
        taken,
        ended,
        changed,
        violation,
        output_tokens,
        ..
    } = making;
    if taken.calls > 0 {
        let own = told(Usage {
            input: job.budget.input_token_count,
            output: output_tokens,
            cached: 0,
        });
        let first = value.get("usage").filter(|usage| usage.is_object());
        value["usage"] = taken.added_to(first.unwrap_or(&own));
    }
    job.recording = recording;
    let outcome = outcome.unwrap_or_else(|| ended.outcome());
    let refusal = violation
        .as_ref()
        .filter(|_| job.gateway.settings.strict_schema);
    let refusal = refusal
        .map(|violation| format!("the document violates the schema of the request {violation}"));
    let answered = || AnsweredBefore {
        completion: value.clone(),
        ended,
        continuations: taken.calls,
        violates: violation.is_some(),
        refusal: refusal.clone(),
    };
    let usage = value.get("usage").and_then(read_usage);
    let counted_by = taken.counted_by(first_usage.is_some());
    job.ended(&outcome, usage, counted_by, answered).await;
    if let Some(refusal) = refusal {
        return Err(violated(refusal));
    }
    job.account.answered(&value, ended.name(), taken.calls);
    Ok(WholeAnswer {
        value,
        bytes: bytes.filter(|_| !changed),
        headers,
        ended,
        continuations: taken.calls,
        violates: violation.is_some(),
    })
}

/// Whether a completion is one text: what it took is what that text took.
fn is_one_text(completion: &Value) -> bool {
    let choices = completion.get("choices").and_then(Value::as_array);
    let Some([choice]) = choices.map(Vec::as_slice) else {
        return false;
    };
    let calls = choice.pointer("/message/tool_calls");
    let calls = calls.and_then(Value::as_array).map_or(0, Vec::len);
    let content = choice.pointer("/message/content").and_then(Value::as_str);
    let has_content = content.is_some_and(|content| !content.is_empty());
    calls + usize::from(has_content) == 1
}

/// What is said instead of a document that must not violate its schema.
fn violated(refusal: String) -> ApiError {
    ApiError::upstream(refusal).with_code("schema_violation")
}

/// What the upstream says, if it is a completion.
fn completion(job: &Job, answer: &Answer, bytes: &[u8]) -> Result<Value, ApiError> {
    // A half of a character, where an answer was cut, spoils no more than itself.
    let read = Halves::default().read(bytes).map(|read| read.value);
    let value: Value = read.map_err(|_| {
        ApiError::upstream(match answer.packing() {
            Some(packing) => format!("the upstream's answer is packed as `{packing}`"),
            None => "the upstream's answer is not JSON".to_owned(),
        })
    })?;
    if let Some(error) = job.gateway.client.error_in(&value) {
        return Err(error);
    }
    if !value.get("choices").is_some_and(Value::is_array) {
        return Err(ApiError::upstream(
            "the upstream's answer is no chat completion: it has no `choices`",
        ));
    }
    Ok(value)
}

/// The document, or its valid part closed where that is wanted.
fn content_of(job: &Job, run: &Continuation) -> String {
    let is_closed = !is_whole(run) && job.gateway.settings.close_partial;
    let part = run.last_valid_complete_part().filter(|_| is_closed);
    part.unwrap_or_else(|| run.text().to_owned())
}

/// An answer in the making.
struct Making<'a> {
    job: &'a Job,
    joiner: Joiner<'a>,
    /// Keeps the first document there is.
    recording: Option<&'a mut Recording>,
    outcome: Option<Outcome>,
    taken: Taken,
    ended: Ended,
    changed: bool,
    violation: Option<String>,
    /// The tokens of the first answer, as they are counted here.
    output_tokens: u64,
}

impl Making<'_> {
    async fn choice(&mut self, number: u64, choice: &mut Value) -> Result<(), ApiError> {
        let index = choice.get("index").and_then(Value::as_u64);
        let mut part = Part {
            choice: index.unwrap_or(number),
            tool_call: None,
        };
        let said = choice.get("finish_reason").and_then(Value::as_str);
        let said = said.map(str::to_owned);
        // What a provider does not want to be said is not asked for again.
        let is_withheld = said.as_deref() == Some("content_filter");
        let mut ending = Ending::said(said.clone());
        let content = choice.pointer("/message/content").and_then(Value::as_str);
        let content = content.map(str::to_owned);
        if let Some(content) = content.filter(|_| !is_withheld) {
            let (text, found) = self.content(part, &content).await?;
            ending.content(found);
            if text != content {
                self.replace(choice, "/message/content", text);
            }
            if found == Found::Unclear
                && ending.word() == Some("length")
                && let Some(text) = Box::pin(self.longer_text(choice)).await?
            {
                ending.content(text.found());
                self.replace(choice, "/message/content", text.run.text().to_owned());
                self.taken.join(text.taken);
            }
        }
        let calls = choice.pointer_mut("/message/tool_calls");
        let calls = calls.and_then(Value::as_array_mut);
        let calls = (0..).zip(calls.into_iter().flatten());
        for (number, call) in calls.filter(|_| !is_withheld) {
            part.tool_call = Some(number);
            let text = |pointer| call.pointer(pointer).and_then(Value::as_str);
            let name = text("/function/name").unwrap_or_default().to_owned();
            let Some(arguments) = text("/function/arguments").map(str::to_owned) else {
                continue;
            };
            let (text, found) = self.arguments(part, &name, &arguments).await?;
            ending.call(found);
            if text != arguments {
                self.replace(call, "/function/arguments", text);
            }
        }
        let older = choice.pointer("/message/function_call/arguments");
        if let Some(arguments) = older.and_then(Value::as_str).filter(|_| !is_withheld) {
            let mut reading = self.job.arguments_reading();
            reading.feed(arguments);
            ending.older_call(reading.found());
        }
        let finish = ending.word();
        if said.as_deref() != finish
            && let Some(choice) = choice.as_object_mut()
        {
            choice.insert("finish_reason".to_owned(), json!(finish));
            self.changed = true;
        }
        // What nobody calls whole is not called so here.
        if matches!(finish, None | Some("length" | "content_filter")) {
            self.ended = Ended::Partial;
        }
        Ok(())
    }

    /// More of a text that was cut off and is no document, if that is wanted.
    async fn longer_text(&mut self, choice: &Value) -> Result<Option<JoinedText>, ApiError> {
        let content = choice.pointer("/message/content").and_then(Value::as_str);
        let calls = choice.pointer("/message/tool_calls");
        let has_calls = calls
            .and_then(Value::as_array)
            .is_some_and(|it| !it.is_empty());
        let is_wanted = self.job.wish.continues == Continues::Text && !has_calls;
        match content.filter(|content| is_wanted && !content.is_empty()) {
            Some(content) => {
                let recording = self.recording.as_deref_mut();
                let continued = self.joiner.join_text(content, None, recording);
                continued.await.map(Some)
            }
            None => Ok(None),
        }
    }

    fn replace(&mut self, value: &mut Value, pointer: &str, text: String) {
        if let Some(place) = value.pointer_mut(pointer) {
            *place = Value::String(text);
            self.changed = true;
        }
    }

    /// The content as it should be, and what it is then.
    async fn content(&mut self, part: Part, content: &str) -> Result<(String, Found), ApiError> {
        let mut reading = self.job.content_reading();
        reading.feed(content);
        let as_it_came = |found| (content.to_owned(), found);
        if self.job.wish.continues == Continues::Nothing {
            return Ok(as_it_came(reading.found()));
        }
        let looks = self.job.content_kind() == Kind::Looks;
        if reading.found() == Found::Whole && (looks || reading.is_alone()) {
            if let Some(recording) = kept(&mut self.recording, part).filter(|it| !it.has_steps()) {
                Box::pin(self.joiner.begun(content, Some(recording))).await?;
            }
            self.check_schema(content);
            return Ok(as_it_came(Found::Whole));
        }
        if looks && !reading.is_open() {
            return Ok(as_it_came(Found::Unclear));
        }
        if reading.has_whole_document() {
            let read = Box::pin(self.joiner.begun(content, None)).await?;
            if reading.is_one_of_several(read.base()) {
                return Ok(as_it_came(Found::Unclear));
            }
        }
        self.output_tokens += self.joiner.counter.tokens().count(content);
        let recording = kept(&mut self.recording, part);
        let continued = self.joiner.join(Cut::Content, content, None, recording);
        let Joined { run, taken } = Box::pin(continued).await?;
        self.taken.join(taken);
        if run.base().is_none() {
            return Ok(as_it_came(Found::Unclear));
        }
        if is_whole(&run) {
            self.check_schema(run.text());
        }
        self.outcome = self.outcome.take().or_else(|| run.outcome().cloned());
        Ok((content_of(self.job, &run), found(&run)))
    }

    /// The arguments of a tool call as they should be, and what they are then. Those that are not
    /// whole are never closed: a call that looks whole is made.
    async fn arguments(
        &mut self,
        part: Part,
        tool: &str,
        arguments: &str,
    ) -> Result<(String, Found), ApiError> {
        let mut reading = self.job.arguments_reading();
        reading.feed(arguments);
        if !reading.is_open() {
            return Ok((arguments.to_owned(), reading.found()));
        }
        self.output_tokens += self.joiner.counter.tokens().count(arguments);
        let cut = Cut::Arguments(tool);
        let recording = kept(&mut self.recording, part);
        let continued = self.joiner.join(cut, arguments, None, recording);
        let Joined { run, taken } = Box::pin(continued).await?;
        self.taken.join(taken);
        Ok((run.text().to_owned(), found(&run)))
    }

    fn check_schema(&mut self, document: &str) {
        if let Some(schema) = &self.job.wish.schema
            && self.violation.is_none()
        {
            self.violation = schema::violation(schema, document);
        }
    }
}

/// The recording, if this part of the answer is kept.
fn kept<'r>(recording: &'r mut Option<&mut Recording>, part: Part) -> Option<&'r mut Recording> {
    recording.as_deref_mut()?.turn_to(part)
}
