//! Makes an answer whole that comes at once.

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use overlock_budget::ChatCounter;
use overlock_model::{Continuation, Outcome, Usage};
use serde_json::{Value, json};

use super::ending::Ending;
use super::joining::{Cut, Joined, JoinedText, Joiner, found, is_whole};
use super::reading::{Found, Kind};
use super::taken::{Taken, read as read_usage, told};
use super::wish::Continues;
use super::{Ended, Job, pass_on, schema, tell};
use crate::body::{Reply, reply, whole};
use crate::error::ApiError;
use crate::record::Recording;
use crate::trace::{Answered, Called};
use crate::upstream::Answer;

/// An answer that has been made as whole as it can be.
pub(crate) struct WholeAnswer {
    /// The completion as the client gets it.
    pub(crate) value: Value,
    /// The same as it came, where nothing had to change.
    bytes: Option<Bytes>,
    /// What the upstream says about it.
    pub(crate) headers: HeaderMap,
    pub(crate) ended: Ended,
    pub(crate) taken: Taken,
    pub(crate) violates: bool,
}

impl WholeAnswer {
    /// An answer that was given before.
    pub(crate) fn replayed(value: Value) -> Self {
        let choices = value["choices"].as_array();
        let is_cut = |choice: &Value| choice["finish_reason"] == "length";
        let ended = if choices.is_some_and(|choices| choices.iter().any(is_cut)) {
            Ended::Partial
        } else {
            Ended::Complete
        };
        Self {
            value,
            bytes: None,
            headers: HeaderMap::new(),
            ended,
            taken: Taken::default(),
            violates: false,
        }
    }

    pub(crate) fn into_reply(self) -> Reply {
        let body = match self.bytes {
            Some(bytes) => whole(bytes),
            None => whole(self.value.to_string()),
        };
        let mut reply = reply(StatusCode::OK, "application/json", body);
        pass_on(&self.headers, reply.headers_mut());
        tell(reply.headers_mut(), self.ended, self.taken.calls);
        if self.violates {
            let value = hyper::header::HeaderValue::from_static("violated");
            reply.headers_mut().insert("x-overlock-schema", value);
        }
        reply
    }
}

/// Reads what the upstream says and continues what is cut.
pub(crate) async fn read(job: &mut Job, mut answer: Answer) -> Result<WholeAnswer, ApiError> {
    let (mut value, bytes) = match completion(job, &mut answer).await {
        Ok(read) => read,
        Err(error) => {
            job.account.called(|| Called::failed(error.name()));
            job.failed().await;
            return Err(error);
        }
    };
    job.account.called(|| Called {
        answered: Answered::of(&value),
        usage: value.get("usage").and_then(read_usage),
        ..Called::default()
    });
    let mut recording = job.recording.take();
    let counter = ChatCounter::for_model(&job.wish.found);
    let mut making = Making {
        joiner: job.joiner(&counter),
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
    for choice in choices.into_iter().flatten() {
        making.choice(choice).await?;
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
        });
        let first = value.get("usage").filter(|usage| usage.is_object());
        value["usage"] = taken.added_to(first.unwrap_or(&own));
    }
    job.recording = recording;
    let outcome = outcome.unwrap_or_else(|| ended.outcome());
    job.ended(&outcome, &value).await;
    if let Some(violation) = &violation
        && job.gateway.settings.strict_schema
    {
        return Err(ApiError::upstream(format!(
            "the document violates the schema of the request {violation}"
        ))
        .with_code("schema_violation"));
    }
    job.account.answered(&value, ended.name(), taken.calls);
    Ok(WholeAnswer {
        value,
        bytes: (!changed).then_some(bytes),
        headers: answer.headers,
        ended,
        taken,
        violates: violation.is_some(),
    })
}

/// Goes on with a document that was begun for an earlier request.
pub(crate) async fn resumed(job: &mut Job, run: Continuation) -> Result<WholeAnswer, ApiError> {
    let mut recording = job.recording.take();
    let counter = ChatCounter::for_model(&job.wish.found);
    let joiner = job.joiner(&counter);
    let continued = joiner.go_on(run, Cut::Content, None, recording.as_mut());
    let Joined { run, taken } = continued.await?;
    job.recording = recording;
    let ended = if is_whole(&run) {
        Ended::Complete
    } else {
        Ended::Partial
    };
    let message = json!({ "role": "assistant", "content": content_of(job, &run) });
    let mut value = Value::Object(job.head("chat.completion"));
    value["choices"] = json!([{
        "index": 0,
        "message": message,
        "finish_reason": if is_whole(&run) { "stop" } else { "length" },
    }]);
    value["usage"] = told(job.usage_of(&run, &taken));
    let outcome = run.outcome().cloned().unwrap_or_else(|| ended.outcome());
    job.ended(&outcome, &value).await;
    job.account.answered(&value, ended.name(), taken.calls);
    Ok(WholeAnswer {
        ended,
        taken,
        ..WholeAnswer::replayed(value)
    })
}

/// What the upstream says, if it is a completion.
async fn completion(job: &Job, answer: &mut Answer) -> Result<(Value, Bytes), ApiError> {
    let most = job.gateway.settings.limits.answer_bytes;
    let bytes = answer.read_whole(most).await?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| {
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
    Ok((value, bytes))
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
    async fn choice(&mut self, choice: &mut Value) -> Result<(), ApiError> {
        let said = choice.get("finish_reason").and_then(Value::as_str);
        let said = said.map(str::to_owned);
        // What a provider does not want to be said is not asked for again.
        let is_withheld = said.as_deref() == Some("content_filter");
        let mut ending = Ending::said(said.clone());
        let content = choice.pointer("/message/content").and_then(Value::as_str);
        let content = content.map(str::to_owned);
        if let Some(content) = content.filter(|_| !is_withheld) {
            let (text, found) = self.content(&content).await?;
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
        for call in calls.into_iter().flatten().filter(|_| !is_withheld) {
            let text = |pointer| call.pointer(pointer).and_then(Value::as_str);
            let name = text("/function/name").unwrap_or_default().to_owned();
            let Some(arguments) = text("/function/arguments").map(str::to_owned) else {
                continue;
            };
            let (text, found) = self.arguments(&name, &arguments).await?;
            ending.call(found);
            if text != arguments {
                self.replace(call, "/function/arguments", text);
            }
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
    async fn longer_text(&self, choice: &Value) -> Result<Option<JoinedText>, ApiError> {
        let content = choice.pointer("/message/content").and_then(Value::as_str);
        let calls = choice.pointer("/message/tool_calls");
        let has_calls = calls
            .and_then(Value::as_array)
            .is_some_and(|it| !it.is_empty());
        let is_wanted = self.job.wish.continues == Continues::Text && !has_calls;
        match content.filter(|content| is_wanted && !content.is_empty()) {
            Some(content) => self.joiner.join_text(content, None).await.map(Some),
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
    async fn content(&mut self, content: &str) -> Result<(String, Found), ApiError> {
        let mut reading = self.job.content_reading();
        reading.feed(content);
        let as_it_came = |found| (content.to_owned(), found);
        if self.job.wish.continues == Continues::Nothing {
            return Ok(as_it_came(reading.found()));
        }
        let looks = self.job.content_kind() == Kind::Looks;
        if reading.found() == Found::Whole && (looks || reading.is_alone()) {
            if let Some(recording) = free(&mut self.recording) {
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
        let recording = free(&mut self.recording);
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
        let continued = self.joiner.join(cut, arguments, None, None);
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

/// The recording, if nothing is in it yet.
fn free<'r>(recording: &'r mut Option<&mut Recording>) -> Option<&'r mut Recording> {
    recording
        .as_deref_mut()
        .filter(|recording| !recording.has_steps())
}
