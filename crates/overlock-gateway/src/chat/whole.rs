//! Makes an answer whole that comes at once.

use std::mem;

use bytes::Bytes;
use hyper::{HeaderMap, StatusCode};
use overlock_json::Cut as DocumentCut;
use overlock_model::{Continuation, Halves, Outcome, Reason, StepEnd, Usage};
use serde_json::{Value, json};

use super::compliance::{Compared, Compliance, NO_ARGUMENTS};
use super::ending::Ending;
use super::first::First;
use super::joining::{Cut, Joined, JoinedText, Joiner, is_whole};
use super::keyed::{Answered as AnsweredBefore, kept_first};
use super::plain_text::plain_text;
use super::reading::{Found, Kind, Reading};
use super::taken::{Taken, place_cached, read as read_usage, told};
use super::wish::Continues;
use super::{Job, pass_on, tell};
use crate::api::{Part, unfinished};
use crate::body::{Reply, reply, whole};
use crate::error::ApiError;
use crate::record::Recording;
use crate::schema::Comparison;
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
    pub(crate) outcome: Outcome,
    pub(crate) continuations: u32,
    pub(crate) comparison: Comparison,
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
            outcome: before.outcome,
            continuations: before.continuations,
            comparison: before.comparison,
        })
    }

    pub(crate) fn into_reply(self) -> Reply {
        let body = match self.bytes {
            Some(bytes) => whole(bytes),
            None => whole(self.value.to_string()),
        };
        let mut reply = reply(StatusCode::OK, "application/json", body);
        pass_on(&self.headers, reply.headers_mut());
        tell(reply.headers_mut(), &self.outcome, self.continuations);
        if let Some(name) = self.comparison.name() {
            let value = hyper::header::HeaderValue::from_static(name);
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
    if let Some(text) = plain_text(job, &bytes) {
        job.ended_plainly(text.usage).await;
        return Ok(WholeAnswer {
            value: Value::Null,
            bytes: Some(bytes),
            headers: answer.headers,
            outcome: Outcome::Complete,
            continuations: 0,
            comparison: Comparison::Matches,
        });
    }
    let mut value = match completion(job, &answer, &bytes) {
        Ok(value) => value,
        Err(error) => return Err(Box::pin(job.fails(error)).await),
    };
    place_cached(&mut value);
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
        outcome: Outcome::Complete,
        cut: None,
        is_withheld: false,
        taken: Taken::default(),
        changed: false,
        compliance: Compliance::default(),
        output_tokens: 0,
    };
    let choices = value.get_mut("choices").and_then(Value::as_array_mut);
    let mut made = Ok(());
    for (number, choice) in (0..).zip(choices.into_iter().flatten()) {
        made = making.choice(number, choice).await;
        if made.is_err() {
            break;
        }
    }
    let Making {
        mut outcome,
        taken,
        mut changed,
        compliance,
        output_tokens,
        ..
    } = making;
    job.recording = recording;
    if let Err(error) = made {
        job.failed(&error).await;
        return Err(error);
    }
    if taken.calls > 0 {
        let own = told(Usage {
            input: job.budget.input_token_count,
            output: output_tokens,
            cached: None,
        });
        let first = value.get("usage").filter(|usage| usage.is_object());
        value["usage"] = taken.added_to(first.unwrap_or(&own));
    }
    let refusal = compliance.refusal(job);
    if refusal.is_some() {
        let reason = Reason::SchemaViolation;
        outcome = Outcome::Failed { reason };
    }
    if let Some(completion) = value.as_object_mut() {
        changed |= compliance.report(job, &outcome, completion);
    }
    let comparison = compliance.comparison();
    let answered = || AnsweredBefore {
        completion: value.clone(),
        outcome: outcome.clone(),
        continuations: taken.calls,
        comparison: comparison.clone(),
        refusal: refusal.clone(),
    };
    let usage = value.get("usage").and_then(read_usage);
    let counted_by = taken.counted_by(first_usage.is_some());
    job.ended(&outcome, usage, counted_by, answered).await;
    job.account.answered(&value, outcome.name(), taken);
    if let Some(refusal) = refusal {
        return Err(violated(refusal));
    }
    Ok(WholeAnswer {
        value,
        bytes: bytes.filter(|_| !changed && taken.calls == 0),
        headers,
        outcome,
        continuations: taken.calls,
        comparison,
    })
}

/// Whether a completion is one text at most: what it took is what that text took.
fn is_one_text(completion: &Value) -> bool {
    let choices = completion.get("choices").and_then(Value::as_array);
    let Some([choice]) = choices.map(Vec::as_slice) else {
        return false;
    };
    let calls = choice.pointer("/message/tool_calls");
    let calls = calls.and_then(Value::as_array).map_or(0, Vec::len);
    let content = choice.pointer("/message/content").and_then(Value::as_str);
    let has_content = content.is_some_and(|content| !content.is_empty());
    calls + usize::from(has_content) <= 1
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
    recording: Option<&'a mut Recording>,
    /// How the answer ended: as the first part that is not whole did.
    outcome: Outcome,
    /// Where a document stops that nobody goes on with.
    cut: Option<DocumentCut>,
    /// Whether the provider's filter ended the rest of a part of the choice.
    is_withheld: bool,
    taken: Taken,
    changed: bool,
    compliance: Compliance,
    /// The tokens of the first answer as they are counted here, where the provider tells none.
    output_tokens: u64,
}

impl Making<'_> {
    async fn choice(&mut self, number: u64, choice: &mut Value) -> Result<(), ApiError> {
        let index = choice.get("index").and_then(Value::as_u64);
        let part = Part::content(index.unwrap_or(number));
        let said = choice.get("finish_reason").and_then(Value::as_str);
        let said = said.map(str::to_owned);
        let text = |pointer| {
            let text = choice.pointer(pointer).and_then(Value::as_str);
            text.map(str::to_owned)
        };
        let content = text("/message/content");
        let end = StepEnd {
            finish: said.clone(),
            refusal: text("/message/refusal").filter(|refusal| !refusal.is_empty()),
            ..StepEnd::default()
        };
        // What a provider does not want to be said is not asked for again.
        if said.as_deref() == Some("content_filter") {
            let first = First::all(content.as_deref().unwrap_or_default(), &end);
            let recording = new(&mut self.recording, part);
            let kind = self.job.content_kind();
            let outcome = self.joiner.keep_withheld(kind, &first, recording).await?;
            self.note(outcome);
            return Ok(());
        }
        let mut ending = Ending::said(said.clone());
        let has_calls = calls_something(choice);
        let mut is_unclear = true;
        if let Some(content) = &content {
            let (text, found) = self.content(part, content, &end).await?;
            ending.content(found);
            if text != *content {
                self.replace(choice, "/message/content", text);
            }
            is_unclear = found == Found::Unclear;
            if is_unclear
                && ending.word() == Some("length")
                && let Some(text) = Box::pin(self.longer_text(part, choice, &end)).await?
            {
                is_unclear = false;
                ending.content(text.found());
                if text.is_withheld() {
                    ending.withheld();
                }
                self.replace(choice, "/message/content", text.run.text().to_owned());
                self.note(text.outcome());
                self.taken.join(text.taken);
            }
        }
        if is_unclear {
            let first = First::all(content.as_deref().unwrap_or_default(), &end);
            let recording = new(&mut self.recording, part);
            let kept = self.joiner.keep_unclear(&first, has_calls, recording);
            if let Some(outcome) = Box::pin(kept).await? {
                if outcome.reason() == Some(Reason::NoJson) && self.job.wish.is_strict() {
                    let compared = Compared::not_json("the answer");
                    ending.content(self.compliance.add(Cut::Content, compared));
                }
                self.note(outcome);
            }
        }
        self.calls(part, choice, &end, &mut ending).await?;
        if mem::take(&mut self.is_withheld) {
            ending.withheld();
        }
        let older = choice.pointer("/message/function_call/arguments");
        if let Some(arguments) = older.and_then(Value::as_str) {
            let mut reading = self.job.arguments_reading();
            reading.feed(arguments);
            let tool = choice.pointer("/message/function_call/name");
            let tool = tool.and_then(Value::as_str).unwrap_or_default();
            let compared = self.compared(Cut::Arguments(tool), reading.found(), arguments);
            ending.older_call(compared.await);
        }
        let finish = ending.word();
        if said.as_deref() != finish
            && let Some(choice) = choice.as_object_mut()
        {
            choice.insert("finish_reason".to_owned(), json!(finish));
            self.changed = true;
        }
        // What nobody calls whole is not called so here.
        let Some(reason) = ending.reason() else {
            return Ok(());
        };
        let cut = self.cut.take();
        let has_come = has_calls || content.is_some_and(|content| !content.is_empty());
        self.note(unfinished(reason, has_come, cut));
        Ok(())
    }

    /// Takes note of how a part ended. The first that is not whole tells how all of it did.
    fn note(&mut self, outcome: Outcome) {
        if self.outcome == Outcome::Complete {
            self.outcome = outcome;
        }
    }

    /// More of a text that was cut off and is no document, if that is wanted.
    async fn longer_text(
        &mut self,
        part: Part,
        choice: &Value,
        end: &StepEnd,
    ) -> Result<Option<JoinedText>, ApiError> {
        let content = choice.pointer("/message/content").and_then(Value::as_str);
        let is_wanted = self.job.wish.continues == Continues::Text && !has_tool_calls(choice);
        match content.filter(|content| is_wanted && !content.is_empty()) {
            Some(content) => {
                let recording = self.recording.as_deref_mut().map(|it| it.turn_to(part));
                let first = First::all(content, end);
                let continued = self.joiner.join_text(&first, None, recording);
                continued.await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// The tool calls of a choice, as they should be.
    async fn calls(
        &mut self,
        mut part: Part,
        choice: &mut Value,
        end: &StepEnd,
        ending: &mut Ending,
    ) -> Result<(), ApiError> {
        let calls = choice.pointer_mut("/message/tool_calls");
        let calls = calls.and_then(Value::as_array_mut);
        let calls = (0..).zip(calls.into_iter().flatten());
        for (number, call) in calls {
            part.tool_call = Some(number);
            let function = call.get_mut("function").and_then(Value::as_object_mut);
            let Some(function) = function else {
                continue;
            };
            let name = function.get("name").and_then(Value::as_str);
            let name = name.unwrap_or_default().to_owned();
            let arguments = match function.get("arguments") {
                Some(Value::String(arguments)) => arguments.clone(),
                // Some servers leave out the arguments of a call that has none.
                None | Some(Value::Null) => String::new(),
                Some(_) => continue,
            };
            let (text, found) = self.arguments(part, &name, &arguments, end).await?;
            ending.call(found);
            if text != arguments {
                function.insert("arguments".to_owned(), Value::String(text));
                self.changed = true;
            }
        }
        Ok(())
    }

    fn replace(&mut self, value: &mut Value, pointer: &str, text: String) {
        if let Some(place) = value.pointer_mut(pointer) {
            *place = Value::String(text);
            self.changed = true;
        }
    }

    /// The content as it should be, and what it is then.
    async fn content(
        &mut self,
        part: Part,
        content: &str,
        end: &StepEnd,
    ) -> Result<(String, Found), ApiError> {
        let mut reading = self.job.content_reading();
        reading.feed(content);
        let as_it_came = |found| (content.to_owned(), found);
        if self.job.wish.continues == Continues::Nothing {
            let mut found = reading.found();
            self.keep_as_it_is(part, &reading, end).await?;
            if self.job.wish.is_strict() {
                let document = reading.document();
                found = self.compared(Cut::Content, found, document).await;
            }
            return Ok(as_it_came(found));
        }
        let looks = self.job.content_kind() == Kind::Looks;
        if reading.found() == Found::Whole && (looks || reading.is_alone()) {
            let first = First::all(reading.document(), end);
            if self.job.wish.is_strict() {
                let checked = self.checked(part, Cut::Content, Found::Whole, &first);
                let (corrected, found) = checked.await?;
                return Ok((corrected.unwrap_or_else(|| content.to_owned()), found));
            }
            let recording = new(&mut self.recording, part);
            Box::pin(self.joiner.keep_document(&first, recording)).await?;
            let found = self.compared(Cut::Content, Found::Whole, content).await;
            return Ok(as_it_came(found));
        }
        if looks && !reading.is_open() {
            return Ok(as_it_came(Found::Unclear));
        }
        let first = match self.job.content_kind() {
            Kind::Looks => reading.first(end),
            Kind::Document | Kind::Arguments => First::all(content, end),
        };
        if reading.has_whole_document() {
            let (read, _) = self.joiner.read_first(&first);
            if reading.is_one_of_several(read.base()) {
                return Ok(as_it_came(Found::Unclear));
            }
        }
        self.count(content);
        let recording = self.recording.as_deref_mut().map(|it| it.turn_to(part));
        let continued = self.joiner.join(Cut::Content, &first, None, recording);
        let joined = Box::pin(continued).await?;
        if joined.run.base().is_none() {
            self.taken.join(joined.taken);
            return Ok(as_it_came(Found::Unclear));
        }
        let (run, found) = self.joined(part, Cut::Content, joined).await?;
        let run = &run;
        let document = content_of(self.job, run);
        let is_closed = is_whole(run) || self.job.gateway.settings.close_partial;
        let closing = if is_closed { reading.closing() } else { "" };
        let text = [reading.before_document(), &document, closing].concat();
        Ok((text, found))
    }

    /// Keeps a document that nobody goes on with, unless it is whole and no text is kept.
    async fn keep_as_it_is(
        &mut self,
        part: Part,
        reading: &Reading,
        end: &StepEnd,
    ) -> Result<(), ApiError> {
        let found = reading.found();
        let recording = new(&mut self.recording, part);
        let recording = recording.filter(|it| found == Found::Cut || it.keeps_text());
        let Some(recording) = recording.filter(|_| found != Found::Unclear) else {
            return Ok(());
        };
        let first = First::all(reading.document(), end);
        let step = self.joiner.step_of(Kind::Document, &first);
        self.cut = self.cut.take().or_else(|| step.cut.clone());
        Box::pin(self.joiner.keep(recording, step)).await
    }

    /// The arguments of a tool call as they should be, and what they are then. Those that are not
    /// whole are never closed: a call that looks whole is made.
    async fn arguments(
        &mut self,
        part: Part,
        tool: &str,
        arguments: &str,
        end: &StepEnd,
    ) -> Result<(String, Found), ApiError> {
        let mut reading = self.job.arguments_reading();
        reading.feed(arguments);
        let cut = Cut::Arguments(tool);
        if !reading.is_open() {
            let compared = self.joiner.compare(cut, reading.found(), arguments).await;
            if compared.violation().is_some() {
                let is_empty = arguments.trim().is_empty();
                let document = if is_empty { NO_ARGUMENTS } else { arguments };
                let first = First::all(document, end);
                let found = if is_empty {
                    Found::Whole
                } else {
                    reading.found()
                };
                let (corrected, found) = self.checked(part, cut, found, &first).await?;
                return Ok((corrected.unwrap_or_else(|| arguments.to_owned()), found));
            }
            let recording = new(&mut self.recording, part);
            let recording = recording.filter(|it| it.keeps_text());
            let recording = recording.filter(|_| reading.found() == Found::Whole);
            let first = First::all(arguments, end);
            Box::pin(self.joiner.keep_document(&first, recording)).await?;
            return Ok((arguments.to_owned(), self.compliance.add(cut, compared)));
        }
        self.count(arguments);
        let recording = self.recording.as_deref_mut().map(|it| it.turn_to(part));
        let first = First::all(arguments, end);
        let continued = self.joiner.join(cut, &first, None, recording);
        let joined = Box::pin(continued).await?;
        let (run, found) = self.joined(part, cut, joined).await?;
        Ok((run.text().to_owned(), found))
    }

    /// A first answer that is a whole document, once it is compared with its schema: what replaces
    /// it if it was corrected, and what it is then.
    async fn checked(
        &mut self,
        part: Part,
        cut: Cut<'_>,
        found: Found,
        first: &First<'_>,
    ) -> Result<(Option<String>, Found), ApiError> {
        let recording = self.recording.as_deref_mut().map(|it| it.turn_to(part));
        let begun = self.joiner.begin(first, recording);
        let joined = Box::pin(begun).await?;
        if joined.run.base().is_none() {
            let compared = self.compared(cut, found, first.document);
            return Ok((None, compared.await));
        }
        self.count(first.came);
        let (run, found) = self.joined(part, cut, joined).await?;
        let is_corrected = run.text() != first.document.trim();
        Ok((is_corrected.then(|| run.text().to_owned()), found))
    }

    /// A document that was begun and continued, once it is compared with its schema and corrected.
    async fn joined(
        &mut self,
        part: Part,
        cut: Cut<'_>,
        mut joined: Joined,
    ) -> Result<(Continuation, Found), ApiError> {
        let recording = self.recording.as_deref_mut().map(|it| it.turn_to(part));
        let compared = self.joiner.compare_or_correct(cut, &mut joined, recording);
        let compared = Box::pin(compared).await?;
        self.taken.join(joined.taken);
        self.is_withheld |= joined.is_withheld && !is_whole(&joined.run);
        if let Some(outcome) = joined.outcome() {
            self.note(outcome);
        }
        Ok((joined.run, self.compliance.add(cut, compared)))
    }

    /// Counts a text of the first answer, unless the provider has.
    fn count(&mut self, text: &str) {
        if self.joiner.told.is_none() {
            self.output_tokens += self.joiner.counter.tokens().count(text);
        }
    }

    /// What a part of the answer is once it is compared with its schema.
    async fn compared(&mut self, cut: Cut<'_>, found: Found, text: &str) -> Found {
        let compared = self.joiner.compare(cut, found, text).await;
        self.compliance.add(cut, compared)
    }
}

/// Whether a choice holds calls of tools.
fn has_tool_calls(choice: &Value) -> bool {
    let calls = choice.pointer("/message/tool_calls");
    calls
        .and_then(Value::as_array)
        .is_some_and(|it| !it.is_empty())
}

/// Whether a choice calls anything, in whatever form.
fn calls_something(choice: &Value) -> bool {
    let older = choice.pointer("/message/function_call");
    has_tool_calls(choice) || older.is_some_and(Value::is_object)
}

/// The recording, unless this part of the answer was kept for an earlier request.
fn new<'r>(recording: &'r mut Option<&mut Recording>, part: Part) -> Option<&'r mut Recording> {
    recording.as_deref_mut()?.turn_to_new(part)
}
