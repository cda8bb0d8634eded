//! Makes an answer whole that comes at once.

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use overlock_budget::ChatCounter;
use overlock_model::Usage;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ending::Ending;
use super::joining::{Cut, Joined, JoinedText, Joiner, is_whole};
use super::reading::{Kind, Reading};
use super::taken::{Taken, told};
use super::wish::Continues;
use super::{Ended, Job, pass_on, schema, tell};
use crate::body::{Reply, reply, whole};
use crate::error::ApiError;
use crate::upstream::Answer;

/// An answer that has been made as whole as it can be.
pub(crate) struct WholeAnswer {
    /// The completion as the client gets it.
    pub(crate) value: Value,
    /// The same as it came, where nothing had to change.
    bytes: Option<Bytes>,
    headers: HeaderMap,
    pub(crate) ended: Ended,
    pub(crate) taken: Taken,
    violates: bool,
}

impl WholeAnswer {
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
pub(crate) async fn read(job: &Job, mut answer: Answer) -> Result<WholeAnswer, ApiError> {
    let bytes = answer
        .read_whole(job.gateway.settings.limits.answer_bytes)
        .await?;
    let mut value: Value = serde_json::from_slice(&bytes)
        .map_err(|_| ApiError::upstream("the upstream's answer is not JSON"))?;
    if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
        let said = error.get("message").unwrap_or(error);
        let said = said
            .as_str()
            .map_or_else(|| said.to_string(), str::to_owned);
        return Err(ApiError::upstream(format!("the upstream says: {said}")));
    }
    let Some(choices) = value.get_mut("choices").and_then(Value::as_array_mut) else {
        return Err(ApiError::upstream(
            "the upstream's answer is no chat completion: it has no `choices`",
        ));
    };
    let counter = ChatCounter::for_model(&job.wish.found);
    let mut whole = Making {
        joiner: Joiner {
            gateway: &job.gateway,
            wish: &job.wish,
            counter: &counter,
            base: &job.base,
            headers: &job.headers,
            deadline: Instant::now() + job.gateway.settings.limits.run_time,
        },
        job,
        taken: Taken::default(),
        ended: Ended::Complete,
        changed: false,
        violation: None,
        output_tokens: 0,
    };
    for choice in choices {
        whole.choice(choice).await?;
    }
    let Making {
        taken,
        ended,
        changed,
        violation,
        output_tokens,
        ..
    } = whole;
    if let Some(violation) = &violation
        && job.gateway.settings.strict_schema
    {
        return Err(ApiError::upstream(format!(
            "the document violates the schema of the request {violation}"
        ))
        .with_code("schema_violation"));
    }
    if taken.calls > 0 {
        let own = told(Usage {
            input: job.input_tokens,
            output: output_tokens,
        });
        let first = value.get("usage").filter(|usage| usage.is_object());
        value["usage"] = taken.added_to(first.unwrap_or(&own));
    }
    let usage = value.get("usage").unwrap_or(&Value::Null);
    job.account.answered(usage, ended.name(), taken.calls);
    Ok(WholeAnswer {
        value,
        bytes: (!changed).then_some(bytes),
        headers: answer.headers,
        ended,
        taken,
        violates: violation.is_some(),
    })
}

/// An answer in the making.
struct Making<'a> {
    job: &'a Job,
    joiner: Joiner<'a>,
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
        if let Some(content) = content.filter(|_| !is_withheld)
            && let Some((text, whole)) = self.content(&content).await?
        {
            ending.content(whole);
            if text != content {
                self.replace(choice, "/message/content", text);
            }
        }
        if ending.word() == Some("length")
            && let Some(text) = self.longer_text(choice).await?
        {
            ending.content(!text.run.is_cut());
            self.replace(choice, "/message/content", text.run.text().to_owned());
            self.taken.join(text.taken);
        }
        let calls = choice.pointer_mut("/message/tool_calls");
        let calls = calls.and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten().filter(|_| !is_withheld) {
            let text = |pointer| call.pointer(pointer).and_then(Value::as_str);
            let name = text("/function/name").unwrap_or_default().to_owned();
            let Some(arguments) = text("/function/arguments").map(str::to_owned) else {
                continue;
            };
            let known = self.arguments(&name, &arguments).await?;
            ending.call(known.as_ref().map(|(_, whole)| *whole));
            if let Some((text, _)) = known.filter(|(text, _)| *text != arguments) {
                self.replace(call, "/function/arguments", text);
            }
        }
        let finish = ending.word().unwrap_or("stop");
        if said.as_deref() != Some(finish)
            && let Some(choice) = choice.as_object_mut()
        {
            choice.insert("finish_reason".to_owned(), json!(finish));
            self.changed = true;
        }
        if matches!(finish, "length" | "content_filter") {
            self.ended = Ended::Partial;
        }
        Ok(())
    }

    /// More of a text that was cut off, if that is wanted and it is no document.
    async fn longer_text(&self, choice: &Value) -> Result<Option<JoinedText>, ApiError> {
        let content = choice.pointer("/message/content").and_then(Value::as_str);
        let Some(content) = content.filter(|_| self.job.wish.continues == Continues::Text) else {
            return Ok(None);
        };
        let mut reading = Reading::new(self.job.content_kind());
        reading.feed(content);
        if content.is_empty() || reading.is_whole().is_some() {
            return Ok(None);
        }
        self.joiner.join_text(content, None).await.map(Some)
    }

    fn replace(&mut self, value: &mut Value, pointer: &str, text: String) {
        if let Some(place) = value.pointer_mut(pointer) {
            *place = Value::String(text);
            self.changed = true;
        }
    }

    /// The content as it should be, and whether it is whole; nothing if it is no JSON.
    async fn content(&mut self, content: &str) -> Result<Option<(String, bool)>, ApiError> {
        let kind = self.job.content_kind();
        if kind == Kind::Verbatim {
            return Ok(None);
        }
        let mut reading = Reading::new(Kind::Looks);
        reading.feed(content);
        if reading.is_whole() == Some(true) && (kind == Kind::Looks || reading.is_bare()) {
            self.check_schema(content);
            return Ok(Some((content.to_owned(), true)));
        }
        if kind == Kind::Looks && !reading.is_open() {
            return Ok(None);
        }
        let Joined { run, taken } = self.join(Cut::Content, content).await?;
        self.taken.join(taken);
        if run.base().is_none() {
            return Ok(None);
        }
        if is_whole(&run) {
            self.check_schema(run.text());
            return Ok(Some((run.text().to_owned(), true)));
        }
        let closed = run
            .last_valid_complete_part()
            .filter(|_| self.job.gateway.settings.close_partial);
        Ok(Some((
            closed.unwrap_or_else(|| run.text().to_owned()),
            false,
        )))
    }

    /// The arguments of a tool call as they should be, and whether they are whole. Those that are
    /// not are never closed: a call that looks whole is made.
    async fn arguments(
        &mut self,
        tool: &str,
        arguments: &str,
    ) -> Result<Option<(String, bool)>, ApiError> {
        let mut reading = Reading::new(self.job.arguments_kind());
        reading.feed(arguments);
        if reading.is_whole() == Some(true) {
            return Ok(Some((arguments.to_owned(), true)));
        }
        if !reading.is_open() {
            return Ok(None);
        }
        let Joined { run, taken } = self.join(Cut::Arguments(tool), arguments).await?;
        self.taken.join(taken);
        Ok(Some((run.text().to_owned(), is_whole(&run))))
    }

    async fn join(&mut self, cut: Cut<'_>, first: &str) -> Result<Joined, ApiError> {
        self.output_tokens += self.joiner.counter.tokens().count(first);
        self.joiner.join(cut, first, None).await
    }

    fn check_schema(&mut self, document: &str) {
        if let Some(schema) = &self.job.wish.schema
            && self.violation.is_none()
        {
            self.violation = schema::violation(schema, document);
        }
    }
}
