//! Passes an answer on while it is written, as one stream over all calls.
//!
//! What the upstream sends goes on as it came wherever nothing has to change. What would have to
//! be taken back is held until it is certain. The end is told once, when everything is there.

mod choice;
mod events;

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use overlock_json::Cut as DocumentCut;
use overlock_model::{Continuation, Halves, Outcome, Reason, SseReader, StepEnd, Usage};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::compliance::{Compared, Compliance, NO_ARGUMENTS};
use super::ending::Ending;
use super::first::First;
use super::joining::{Cut, Hear, Hearing, JoinedText, Joiner, found, is_whole};
use super::keyed::{Answered as AnsweredBefore, kept_first};
use super::merged::merge_members;
use super::reading::{Found, Kind, Reading};
use super::taken::{Taken, place_cached, read as read_usage, told as usage_told};
use super::whole::WholeAnswer;
use super::wish::Continues;
use super::{Job, pass_on};
use crate::api::{FaultKind, Part, unfinished};
use crate::body::{KEEP_ALIVE, Reply, event_stream, whole, worked_on};
use crate::error::ApiError;
use crate::record::Recording;
use crate::trace::{Answered, Called};
use crate::upstream::Answer;
use choice::{Choice, Others, ToolCall};
use events::{
    arguments_event, chunks, content_event, end, ending, first_text, with_choice, with_usage,
    wrapping_len,
};

/// So many events wait for a client that reads slowly before nothing more is read for it.
const WAITING: usize = 16;

/// The answer of the upstream as one stream.
pub(crate) fn reply(job: Job, answer: Answer) -> Reply {
    let (sender, receiver) = mpsc::channel(WAITING);
    let keep_alive = job.gateway.settings.limits.keep_alive;
    let headers = answer.headers.clone();
    let work = Relay::new(job, sender).run(answer);
    let mut reply = event_stream(worked_on(receiver, work, keep_alive));
    pass_on(&headers, reply.headers_mut());
    reply
}

/// The rest of an answer that was begun for an earlier request, after what there is of it.
pub(crate) fn resumed(job: Job, first: Value) -> Reply {
    let (sender, receiver) = mpsc::channel(WAITING);
    let keep_alive = job.gateway.settings.limits.keep_alive;
    let work = Relay::new(job, sender).resume(first);
    event_stream(worked_on(receiver, work, keep_alive))
}

/// An answer that came at once, as a stream.
pub(crate) fn told(job: &Job, answer: &WholeAnswer) -> Reply {
    let events = chunks(&answer.value).into_iter();
    let events = events.filter(|event| job.wish.wants_usage || event.get("usage").is_none());
    let events: Vec<String> = events.map(|event| format!("data: {event}\n\n")).collect();
    let mut body = events.concat();
    body.push_str(&ending(
        &answer.outcome,
        answer.continuations,
        &answer.comparison,
    ));
    let mut reply = event_stream(whole(body));
    pass_on(&answer.headers, reply.headers_mut());
    reply
}

/// A stream on its way from the upstream to the client.
struct Relay {
    job: Job,
    out: mpsc::Sender<Bytes>,
    /// What every event of this answer says besides its choices.
    head: Map<String, Value>,
    /// Characters of which half has come.
    halves: Halves,
    /// The answers that have not been ended.
    choices: BTreeMap<u64, Choice>,
    /// Where a recording goes that was lent to work which was dropped.
    lent: Arc<Mutex<Option<Recording>>>,
    /// What events said besides their choices that were not passed on. It is told at the end.
    beside: Map<String, Value>,
    /// What the upstream says its call took.
    usage: Option<Value>,
    /// The tokens of the first answer as they are counted here, where the upstream tells none.
    output_tokens: u64,
    taken: Taken,
    /// How the answer ended: as the first part that is not whole did.
    outcome: Outcome,
    /// Why the upstream's stream broke off.
    broken: Option<String>,
    /// What comparing it with the schemas of the request found.
    compliance: Compliance,
    /// Whether the provider's filter ended the rest of a part of the choice that is being ended.
    is_withheld: bool,
}

/// What content turned out to be.
struct Content {
    found: Found,
    /// Where it stops, if it is a document that nobody goes on with.
    cut: Option<DocumentCut>,
}

impl From<Found> for Content {
    fn from(found: Found) -> Self {
        Self { found, cut: None }
    }
}

/// How one of the answers ended.
struct Finish {
    index: u64,
    reason: String,
    /// What is told beside it.
    told_beside: Map<String, Value>,
    /// All of it.
    choice: Value,
}

impl Relay {
    fn new(job: Job, out: mpsc::Sender<Bytes>) -> Self {
        Self {
            job,
            out,
            head: Map::new(),
            halves: Halves::default(),
            choices: BTreeMap::new(),
            lent: Arc::default(),
            beside: Map::new(),
            usage: None,
            output_tokens: 0,
            taken: Taken::default(),
            outcome: Outcome::Complete,
            broken: None,
            compliance: Compliance::default(),
            is_withheld: false,
        }
    }

    async fn run(mut self, answer: Answer) {
        let broken = self.first_answer(answer).await.err();
        self.job.account.called(|| self.first_call(broken.as_ref()));
        let finished = self.finish(broken).await;
        self.end(finished).await;
    }

    /// Goes on with an answer that was begun for an earlier request.
    async fn resume(mut self, first: Value) {
        let finished = self.go_on(first).await;
        self.end(finished).await;
    }

    async fn go_on(&mut self, first: Value) -> Result<(), ApiError> {
        for event in chunks(&first) {
            self.pass_on(event.to_string().into_bytes()).await?;
        }
        self.finish(None).await
    }

    async fn end(&mut self, finished: Result<(), ApiError>) {
        match finished {
            Ok(()) => {
                let comparison = self.compliance.comparison();
                let ending = ending(&self.outcome, self.taken.calls, &comparison);
                self.send(ending.into()).await;
            }
            Err(error) => {
                self.job.failed(&error).await;
                self.job.account.failed(error.name());
                self.event(&error.to_json()).await;
            }
        }
    }

    /// How the call for the first answer ended.
    fn first_call(&self, broken: Option<&ApiError>) -> Called {
        let model = self.head.get("model").and_then(Value::as_str);
        let choices = self.choices.values();
        let finishes = choices.filter_map(|choice| choice.finish.as_deref());
        Called {
            answered: Answered::new(model, finishes),
            usage: self.usage.as_ref().and_then(read_usage),
            seam: None,
            error: broken.map(|error| error.name().into()),
        }
    }

    /// Passes on the first answer as far as it is certain.
    async fn first_answer(&mut self, mut answer: Answer) -> Result<(), ApiError> {
        let mut reader = SseReader::default();
        let most = self.job.gateway.settings.limits.answer_bytes;
        // All that comes counts, thoughts and comments too, but for the wrapping of events.
        let mut heard = 0_usize;
        while let Some(bytes) = answer.next_bytes().await? {
            heard = heard.saturating_add(bytes.len());
            let fed = reader.feed(&bytes);
            fed.map_err(|error| ApiError::upstream(error.to_string()))?;
            while let Some(event) = reader.next_event() {
                if event.data == b"[DONE]" {
                    return Ok(());
                }
                let wrapping = self.pass_on(event.data).await?;
                self.tell_how_far();
                heard = heard.saturating_sub(wrapping);
            }
            if heard > most {
                return Err(ApiError::upstream("the upstream's answer does not end"));
            }
        }
        match reader.finish() {
            Some(event) if event.data != b"[DONE]" => {
                self.pass_on(event.data).await?;
            }
            _ => {}
        }
        let is_ended = self.choices.values().all(|choice| choice.finish.is_some());
        if is_ended && !self.choices.is_empty() {
            return Ok(());
        }
        let error = ApiError::upstream("the upstream's stream ended before its answer did");
        Err(error.with_fault(FaultKind::Broken))
    }

    /// Passes on an event of the first answer; how many bytes of it were mere wrapping.
    async fn pass_on(&mut self, data: Vec<u8>) -> Result<usize, ApiError> {
        let read = self.halves.read(&data);
        let read = read.map_err(|_| ApiError::upstream("an event of the upstream is not JSON"))?;
        let (mut value, mut changed) = (read.value, read.is_mended);
        if let Some(half) = read.alone {
            match first_text(&mut value) {
                Some(text) => text.insert(0, char::REPLACEMENT_CHARACTER),
                None => self.halves.hold(half),
            }
        }
        if let Some(error) = self.job.gateway.client.error_in(&value) {
            return Err(error);
        }
        place_cached(&mut value);
        let Some(event) = value.as_object_mut() else {
            return Ok(0);
        };
        let usage = event.get("usage").filter(|usage| usage.is_object());
        let has_usage = usage.is_some();
        if has_usage {
            // It is told at the end, for all calls.
            self.usage = event.remove("usage");
            changed = true;
        }
        let choices = event.get("choices").and_then(Value::as_array);
        let has_choices = choices.is_some_and(|choices| !choices.is_empty());
        let wrapping = wrapping_len(data.len(), choices);
        changed |= self.has_one_head(event, has_choices);
        let mut choices = event.get_mut("choices").and_then(Value::as_array_mut);
        if let Some(choices) = &mut choices {
            choices.retain_mut(|choice| self.keeps(choice, &mut changed));
        }
        // All that it said is told later. What says something else is not for us to judge.
        if choices.is_none_or(|choices| choices.is_empty()) && (has_choices || has_usage) {
            let others = event.iter().filter(|(name, value)| {
                let is_told = matches!(
                    name.as_str(),
                    "id" | "object" | "created" | "model" | "choices" | "usage"
                );
                !is_told && !value.is_null() && self.head.get(*name) != Some(*value)
            });
            let others = others.map(|(name, value)| (name.clone(), value.clone()));
            self.beside.extend(others);
            return Ok(wrapping);
        }
        if changed {
            self.event(&value).await;
        } else {
            self.send([b"data: ", data.as_slice(), b"\n\n"].concat().into())
                .await;
        }
        Ok(wrapping)
    }

    /// Shows those who follow the run how much of the first answer has come.
    fn tell_how_far(&mut self) {
        let recording = self.job.recording.as_mut();
        let Some(recording) = recording.filter(|it| it.is_followed()) else {
            return;
        };
        let bytes = self.choices.values().map(Choice::bytes).sum();
        let text = self.choices.values().next().map_or("", Choice::written);
        recording.came(bytes, text);
    }

    /// Gives an event the name of the answer, which is that of the first one that has a choice or
    /// any name; whether that changes it.
    fn has_one_head(&mut self, event: &mut Map<String, Value>, has_choices: bool) -> bool {
        let name = event.get("id").and_then(Value::as_str).unwrap_or_default();
        if self.head.is_empty() {
            if name.is_empty() && !has_choices {
                return false;
            }
            let is_said = |value: &Value| !value.is_null() && value != "";
            self.head = self.job.head("chat.completion.chunk");
            let said = event.iter().filter(|(_, value)| is_said(value));
            self.head
                .extend(said.map(|(name, value)| (name.clone(), value.clone())));
            self.head.remove("choices");
        }
        let is_named = self.head.get("id").and_then(Value::as_str) == Some(name)
            || !has_choices && name.is_empty();
        if !is_named && let Some(id) = self.head.get("id") {
            event.insert("id".to_owned(), id.clone());
        }
        !is_named
    }

    /// Takes what an event says of one choice, and leaves what can be passed on of it; whether
    /// that is anything.
    fn keeps(&mut self, choice: &mut Value, changed: &mut bool) -> bool {
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let job = &self.job;
        let known = self.choices.entry(index).or_insert_with(|| Choice {
            content: job.content_reading(),
            calls: Vec::new(),
            last_calls: BTreeMap::new(),
            older_call: None,
            others: Others::default(),
            finish: None,
            said: None,
            has_role: false,
        });
        let Some(choice) = choice.as_object_mut() else {
            return false;
        };
        let finish = choice.get_mut("finish_reason");
        let finish = finish.filter(|it| !it.is_null());
        let is_end = finish.is_some();
        if let Some(finish) = finish {
            known.finish = finish.as_str().map(str::to_owned);
            *finish = Value::Null;
            *changed = true;
        }
        let has_more = known.others.take_beside(choice, is_end);
        let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) else {
            return has_more;
        };
        // Each answer has its role once, at its beginning.
        let is_told = delta.get("role").is_some_and(|role| !role.is_null());
        match (known.has_role, is_told) {
            (true, true) => {
                delta.remove("role");
                *changed = true;
            }
            (false, false) => {
                delta.insert("role".to_owned(), json!("assistant"));
                *changed = true;
            }
            _ => {}
        }
        known.has_role = true;
        merge_members(&mut known.others.message, delta, &["content", "tool_calls"]);
        if let Some(Value::String(content)) = delta.get_mut("content") {
            let given = known.content.feed(content);
            if given != *content {
                *content = given;
                *changed = true;
            }
        }
        let older = delta
            .get("function_call")
            .and_then(|call| call.get("arguments"));
        if let Some(arguments) = older.and_then(Value::as_str) {
            let reading = || Reading::verbatim(Kind::Arguments);
            known.older_call.get_or_insert_with(reading).feed(arguments);
        }
        let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            let index = call.get("index").and_then(Value::as_u64).unwrap_or(0);
            let at = known.call_of(index, call).unwrap_or_else(|| {
                known.calls.push(ToolCall {
                    members: Map::new(),
                    arguments: job.arguments_reading(),
                    said: None,
                });
                let at = known.calls.len() - 1;
                known.last_calls.insert(index, at);
                at
            });
            let known = &mut known.calls[at];
            let Some(call) = call.as_object_mut() else {
                continue;
            };
            // Calls are told apart by their place, as they are when they are said again.
            if index != at as u64 {
                call.insert("index".to_owned(), json!(at));
                *changed = true;
            }
            merge_members(&mut known.members, call, &["function"]);
            let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) else {
                continue;
            };
            let place = known.members.entry("function");
            if let Some(known) = place.or_insert(json!({})).as_object_mut() {
                merge_members(known, function, &["arguments"]);
            }
            if let Some(Value::String(arguments)) = function.get_mut("arguments") {
                let given = known.arguments.feed(arguments);
                if given != *arguments {
                    *arguments = given;
                    *changed = true;
                }
            }
        }
        // An event that only had an end or a text that is held back says nothing any more.
        let says = |(name, value): (&String, &Value)| match value {
            Value::Null => false,
            Value::String(text) if name == "content" => !text.is_empty(),
            _ => true,
        };
        has_more || delta.iter().any(says)
    }

    /// Continues what is cut, and tells the end.
    async fn finish(&mut self, broken: Option<ApiError>) -> Result<(), ApiError> {
        let mut recording = self.job.recording.take();
        if let Some(recording) = &mut recording {
            recording.answered_first(|| kept_first(&self.first()));
        }
        self.job.recording = recording;
        let first_usage = self.usage.as_ref().and_then(read_usage);
        let is_one_text = self.choices.values().map(Choice::texts).sum::<usize>() <= 1;
        self.job.told = first_usage.filter(|_| is_one_text);
        let broken_by = broken.as_ref();
        self.broken = broken_by.map(|error| self.job.secrets().scrub(&error.message));
        if broken.is_some() && !self.choices.values().all(Choice::outlives_a_break) {
            self.leave();
            for (index, mut choice) in mem::take(&mut self.choices) {
                self.rests(index, &mut choice).await;
            }
            return broken.map_or(Ok(()), Err);
        }
        let mut finishes = Vec::new();
        // Whoever leaves meanwhile leaves those that are still there.
        while let Some((index, mut choice)) = self.choices.pop_first() {
            let ending = self.ending_of(index, &mut choice).await?;
            let Some(reason) = ending.word().map(str::to_owned) else {
                finishes.clear();
                break;
            };
            let told_beside = mem::take(&mut choice.others.beside_end);
            let choice = choice.into_whole(index, &reason);
            finishes.push(Finish {
                index,
                reason,
                told_beside,
                choice,
            });
        }
        // An answer of which nobody knows the end has none.
        if finishes.is_empty() {
            if broken.is_none() {
                self.job.does_not_end().await;
            }
            let nothing = || ApiError::upstream("the upstream's answer does not say that it ended");
            return Err(broken.unwrap_or_else(nothing));
        }
        let counted = usage_told(Usage {
            input: self.job.budget.input_token_count,
            output: self.output_tokens,
            cached: None,
        });
        let usage = self.taken.added_to(self.usage.as_ref().unwrap_or(&counted));
        self.close(finishes, usage).await;
        Ok(())
    }

    /// Keeps an answer and tells its end, in this order: who has seen the end may ask for the same
    /// again, whatever happens to this process, and gets it.
    async fn close(&mut self, finishes: Vec<Finish>, usage: Value) {
        let ends = finishes.iter().map(|it| {
            let beside = it.told_beside.clone().into_iter();
            let choice = end(&json!(it.index), &json!(it.reason), beside);
            with_choice(&self.head, &choice)
        });
        let mut ends: Vec<Value> = ends.collect();
        let outcome = self.outcome.clone();
        let mut answer = self.answer(finishes, &usage);
        if let Some(Value::Object(last)) = ends.last_mut() {
            last.extend(self.beside.clone());
            self.compliance.report(&self.job, &outcome, last);
        }
        if let Value::Object(answer) = &mut answer {
            self.compliance.report(&self.job, &outcome, answer);
        }
        let before = || AnsweredBefore {
            completion: answer.clone(),
            outcome: outcome.clone(),
            continuations: self.taken.calls,
            comparison: self.compliance.comparison(),
            refusal: None,
        };
        let taken = read_usage(&usage);
        let counted_by = self.taken.counted_by(self.usage.is_some());
        self.job.ended(&outcome, taken, counted_by, before).await;
        for event in &ends {
            self.event(event).await;
        }
        self.job
            .account
            .answered(&answer, outcome.name(), self.taken);
        if self.job.wish.wants_usage {
            let event = with_usage(&self.head, usage);
            self.event(&event).await;
        }
    }

    /// The answer as it would have come at once.
    fn answer(&self, finishes: Vec<Finish>, usage: &Value) -> Value {
        let choices = finishes.into_iter().map(|end| end.choice);
        self.completion(choices.collect(), usage)
    }

    /// What the first call answered, as it would have come at once.
    fn first(&self) -> Value {
        let choices = self.choices.iter();
        let choices = choices.map(|(index, choice)| choice.first(*index));
        let usage = self.usage.as_ref().unwrap_or(&Value::Null);
        self.completion(choices.collect(), usage)
    }

    fn completion(&self, choices: Value, usage: &Value) -> Value {
        let mut completion = self.head.clone();
        completion.extend(self.beside.clone());
        completion.insert("object".to_owned(), json!("chat.completion"));
        completion.insert("choices".to_owned(), choices);
        completion.insert("usage".to_owned(), usage.clone());
        Value::Object(completion)
    }

    /// Passes on what was held back of an answer that nothing more comes of.
    async fn rests(&self, index: u64, choice: &mut Choice) {
        let rest = choice.content.rest();
        self.content(index, &rest).await;
        for (number, call) in (0..).zip(&mut choice.calls) {
            let rest = call.arguments.rest();
            self.arguments(index, number, &rest).await;
        }
    }

    /// Continues what is cut of one answer; how it ends then.
    async fn ending_of(&mut self, index: u64, choice: &mut Choice) -> Result<Ending, ApiError> {
        self.output_tokens += self.count(choice.content.text());
        let part = Part::content(index);
        let end = choice.end(self.broken.as_deref());
        let mut ending = Ending::said(choice.finish.clone());
        // What a provider does not want to be said is not asked for again.
        if choice.finish.as_deref() == Some("content_filter") {
            for call in &choice.calls {
                self.output_tokens += self.count(call.arguments.text());
            }
            let first = First::all(choice.content.text(), &end);
            let kind = self.job.content_kind();
            let keep = async |joiner: Joiner<'_>, recording: Option<&mut Recording>| {
                let recording = recording.and_then(|it| it.turn_to_new(part));
                joiner.keep_withheld(kind, &first, recording).await
            };
            let outcome = self.recorded(keep).await?;
            self.note(outcome);
            self.rests(index, choice).await;
            return Ok(ending);
        }
        let has_calls = !choice.calls.is_empty() || choice.older_call.is_some();
        let content = self.content_found(index, choice, &end).await?;
        ending.content(content.found);
        if content.found == Found::Unclear
            && ending.word() == Some("length")
            && self.job.wish.continues == Continues::Text
            && choice.calls.is_empty()
            && !choice.content.text().is_empty()
        {
            let first = First::all(choice.content.text(), &end);
            let longer = self.continued_text(part, &first).await?;
            ending.content(longer.found());
            if longer.is_withheld() {
                ending.withheld();
            }
            self.note(longer.outcome());
            choice.said = Some(longer.run.text().to_owned());
        } else if content.found == Found::Unclear {
            let first = First::all(choice.content.text(), &end);
            let keep = async |joiner: Joiner<'_>, recording: Option<&mut Recording>| {
                let recording = recording.and_then(|it| it.turn_to_new(part));
                joiner.keep_unclear(&first, has_calls, recording).await
            };
            if let Some(outcome) = self.recorded(keep).await? {
                if outcome.reason() == Some(Reason::NoJson) && self.job.wish.is_strict() {
                    let compared = Compared::not_json("the answer");
                    ending.content(self.compliance.add(Cut::Content, compared));
                }
                self.note(outcome);
            }
        }
        for (number, call) in (0..).zip(&mut choice.calls) {
            let tool_call = Some(number);
            let part = Part { tool_call, ..part };
            ending.call(self.call_found(part, number, call, &end).await?);
        }
        if mem::take(&mut self.is_withheld) {
            ending.withheld();
        }
        if let Some(reading) = &choice.older_call {
            let name = choice.others.message.get("function_call");
            let name = name.and_then(|call| call.get("name")?.as_str());
            let name = name.unwrap_or_default();
            let cut = Cut::Arguments(name);
            let compared = self.compared(cut, reading.found(), reading.text());
            ending.older_call(compared.await);
        }
        let Some(reason) = ending.reason() else {
            return Ok(ending);
        };
        let has_come = has_calls || !choice.content.text().is_empty();
        self.note(unfinished(reason, has_come, content.cut));
        Ok(ending)
    }

    /// Passes on all that there is of a tool call, and continues it where it is cut; what it is
    /// then.
    async fn call_found(
        &mut self,
        part: Part,
        number: u64,
        call: &mut ToolCall,
        end: &StepEnd,
    ) -> Result<Found, ApiError> {
        let index = part.choice;
        self.output_tokens += self.count(call.arguments.text());
        if call.arguments.is_open() {
            let reading = &call.arguments;
            let cut = Cut::Arguments(call.name());
            let first = First::all(reading.document(), end);
            let run = self.continued(index, Some(number), cut, &first, reading.given_len());
            let run = run.await?;
            let found = self.compared(cut, found(&run), run.text()).await;
            call.said = Some(run.text().to_owned());
            return Ok(found);
        }
        let rest = call.arguments.rest();
        self.arguments(index, number, &rest).await;
        let reading = &call.arguments;
        let cut = Cut::Arguments(call.name());
        if reading.text().trim().is_empty() {
            let (corrected, found) = self.corrected(part, cut, reading.found(), end).await?;
            if let Some(corrected) = corrected {
                self.arguments(index, number, &corrected).await;
                call.said = Some(corrected);
            }
            return Ok(found);
        }
        let found = self.compared(cut, reading.found(), reading.text()).await;
        let recording = self.job.recording.as_ref();
        if reading.found() == Found::Whole && recording.is_some_and(Recording::keeps_text) {
            let first = First::all(reading.document(), end);
            self.keep_document(part, &first).await?;
        }
        Ok(found)
    }

    /// Takes note of how a part ended. The first that is not whole tells how all of it did.
    fn note(&mut self, outcome: Outcome) {
        if self.outcome == Outcome::Complete {
            self.outcome = outcome;
        }
    }

    /// Does something that is recorded, and keeps the recording whatever comes of it.
    async fn recorded<T>(
        &mut self,
        work: impl AsyncFnOnce(Joiner<'_>, Option<&mut Recording>) -> T,
    ) -> T {
        let mut lent = Lent {
            recording: self.job.recording.take(),
            back: Arc::clone(&self.lent),
        };
        let done = work(self.job.joiner(), lent.recording.as_mut()).await;
        drop(lent);
        self.job.recording = self.given_back();
        done
    }

    /// The recording that was lent, whatever became of the work it was lent to.
    fn given_back(&self) -> Option<Recording> {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        lent.take()
    }

    /// Passes on all that there is of the content, and continues it where it is a document that is
    /// cut; what it is then.
    async fn content_found(
        &mut self,
        index: u64,
        choice: &mut Choice,
        end: &StepEnd,
    ) -> Result<Content, ApiError> {
        let reading = &mut choice.content;
        if reading.is_to_be_read_again() {
            return self.read_again(index, choice, end).await;
        }
        if reading.is_open() {
            let first = reading.first(end);
            let run = self.continued(index, None, Cut::Content, &first, reading.given_len());
            let run = run.await?;
            let found = self.compared(Cut::Content, found(&run), run.text()).await;
            let closing = if is_whole(&run) {
                reading.closing()
            } else {
                ""
            };
            self.content(index, closing).await;
            choice.said = Some([reading.before_document(), run.text(), closing].concat());
            return Ok(Content::from(found));
        }
        let rest = reading.rest();
        self.content(index, &rest).await;
        let found = reading.found();
        let is_continued = self.job.wish.continues != Continues::Nothing;
        if found == Found::Whole && is_continued {
            let first = reading.first(end);
            self.keep_document(Part::content(index), &first).await?;
            return Ok(Content::from(
                self.compared(Cut::Content, found, first.document).await,
            ));
        }
        let recording = self.job.recording.as_ref();
        let keeps_text = recording.is_some_and(Recording::keeps_text);
        let first = First::all(reading.document(), end);
        let cut = match found {
            Found::Unclear => return Ok(Content::from(found)),
            Found::Whole | Found::Invalid if !keeps_text => None,
            _ => self.keep_document(Part::content(index), &first).await?,
        };
        let found = if self.job.wish.is_strict() {
            self.compared(Cut::Content, found, first.document).await
        } else {
            found
        };
        Ok(Content { found, cut })
    }

    /// Reads content as if it had come at once, where a document was asked for and something else
    /// came with it or spoilt it. What was passed on stays.
    async fn read_again(
        &mut self,
        index: u64,
        choice: &mut Choice,
        end: &StepEnd,
    ) -> Result<Content, ApiError> {
        let reading = &choice.content;
        let given = reading.given();
        let first = First::all(reading.text(), end);
        let (read, _) = self.job.joiner().read_first(&first);
        let base = read.base();
        match base.filter(|_| !reading.is_one_of_several(base)) {
            Some(base) if base.text().starts_with(given) => {
                let run = self.continued(index, None, Cut::Content, &first, given.len());
                let run = run.await?;
                let found = self.compared(Cut::Content, found(&run), run.text()).await;
                choice.said = Some(run.text().to_owned());
                Ok(Content::from(found))
            }
            Some(_) if reading.has_whole_document() => {
                let first = reading.first(end);
                self.keep_document(Part::content(index), &first).await?;
                let found = self
                    .compared(Cut::Content, Found::Whole, first.document)
                    .await;
                Ok(Content::from(found))
            }
            Some(_) => {
                let first = First {
                    document: given,
                    ..first
                };
                let cut = self.keep_document(Part::content(index), &first).await?;
                choice.said = Some(given.to_owned());
                let found = Found::Cut;
                Ok(Content { found, cut })
            }
            // It is no document, or several: nothing of it is left out.
            None => {
                let rest = reading.not_given();
                self.content(index, &rest).await;
                choice.said = Some([given, &rest].concat());
                Ok(Content::from(Found::Unclear))
            }
        }
    }

    /// The tokens of a text of the first answer; none where the upstream says how many it has.
    fn count(&self, text: &str) -> u64 {
        if self.usage.is_some() {
            return 0;
        }
        self.job.wish.known.counter.tokens().count(text)
    }

    /// Has the rest of a document written and passes it on, from so many bytes of it on.
    async fn continued(
        &mut self,
        index: u64,
        call: Option<u64>,
        cut: Cut<'_>,
        first: &First<'_>,
        given: usize,
    ) -> Result<Continuation, ApiError> {
        let part = Part {
            choice: index,
            tool_call: call,
        };
        let mut listener = self.listener(index, call);
        let keep = async |joiner: Joiner<'_>, recording: Option<&mut Recording>| {
            let hearing = Hearing {
                hear: &mut listener,
                given,
            };
            let recording = recording.map(|it| it.turn_to(part));
            joiner.join(cut, first, Some(hearing), recording).await
        };
        let joined = self.recorded(keep).await?;
        self.taken.join(joined.taken);
        self.is_withheld |= joined.is_withheld && !is_whole(&joined.run);
        if let Some(outcome) = joined.outcome() {
            self.note(outcome);
        }
        Ok(joined.run)
    }

    /// The arguments of a call that came without any, if the model had to correct that, and what
    /// the call is then. Nothing of them was sent, so they can still change.
    async fn corrected(
        &mut self,
        part: Part,
        cut: Cut<'_>,
        found: Found,
        end: &StepEnd,
    ) -> Result<(Option<String>, Found), ApiError> {
        let compared = self.job.joiner().compare(cut, found, "").await;
        if compared.violation().is_none() {
            return Ok((None, self.compliance.add(cut, compared)));
        }
        let first = First::all(NO_ARGUMENTS, end);
        let check = async |joiner: Joiner<'_>, recording: Option<&mut Recording>| {
            let mut recording = recording.map(|it| it.turn_to(part));
            let mut joined = joiner.begin(&first, recording.as_deref_mut()).await?;
            let compared = joiner.compare_or_correct(cut, &mut joined, recording);
            let compared = compared.await?;
            Ok::<_, ApiError>((joined, compared))
        };
        let (joined, compared) = self.recorded(check).await?;
        self.taken.join(joined.taken);
        let found = self.compliance.add(cut, compared);
        let is_corrected = found == Found::Whole;
        Ok((is_corrected.then(|| joined.run.text().to_owned()), found))
    }

    /// Has the rest of a text written and passes it on.
    async fn continued_text(
        &mut self,
        part: Part,
        first: &First<'_>,
    ) -> Result<JoinedText, ApiError> {
        let mut listener = self.listener(part.choice, None);
        let keep = async |joiner: Joiner<'_>, recording: Option<&mut Recording>| {
            let recording = recording.map(|it| it.turn_to(part));
            let hear: Option<&mut dyn Hear> = Some(&mut listener);
            joiner.join_text(first, hear, recording).await
        };
        let longer = self.recorded(keep).await?;
        self.taken.join(longer.taken);
        Ok(longer)
    }

    /// Keeps a document that nobody goes on with; where it stops, if it does.
    async fn keep_document(
        &mut self,
        part: Part,
        first: &First<'_>,
    ) -> Result<Option<DocumentCut>, ApiError> {
        let keep = async |joiner: Joiner<'_>, recording: Option<&mut Recording>| {
            let Some(recording) = recording.and_then(|it| it.turn_to_new(part)) else {
                return Ok(None);
            };
            let step = joiner.step_of(Kind::Document, first);
            let cut = step.cut.clone();
            joiner.keep(recording, step).await.map(|()| cut)
        };
        self.recorded(keep).await
    }

    /// Keeps what has come of answers that will not be whole.
    fn leave(&mut self) {
        let recording = self.job.recording.take();
        let Some(mut recording) = recording.or_else(|| self.given_back()) else {
            return;
        };
        let joiner = self.job.joiner();
        for (index, choice) in &self.choices {
            let end = choice.end(self.broken.as_deref());
            let first = First::all(choice.content.text(), &end);
            if !first.came.is_empty() {
                let step = joiner.step_of(self.job.content_kind(), &first);
                recording.turn_to(Part::content(*index));
                recording.leave(step);
            }
        }
        self.job.recording = Some(recording);
    }

    fn listener(&self, index: u64, call: Option<u64>) -> Listener {
        Listener {
            out: self.out.clone(),
            head: self.head.clone(),
            index,
            call,
        }
    }

    /// What a part of the answer is once it is compared with its schema.
    async fn compared(&mut self, cut: Cut<'_>, found: Found, text: &str) -> Found {
        let compared = self.job.joiner().compare(cut, found, text).await;
        self.compliance.add(cut, compared)
    }

    async fn content(&self, index: u64, text: &str) {
        if !text.is_empty() {
            let event = content_event(&self.head, index, text);
            self.event(&event).await;
        }
    }

    async fn arguments(&self, index: u64, call: u64, text: &str) {
        if !text.is_empty() {
            let event = arguments_event(&self.head, index, call, text);
            self.event(&event).await;
        }
    }

    async fn event(&self, value: &Value) {
        self.send(format!("data: {value}\n\n").into()).await;
    }

    async fn send(&self, bytes: Bytes) {
        // Who has gone away takes this work along.
        let _ = self.out.send(bytes).await;
    }
}

impl Drop for Relay {
    /// Whoever goes away leaves what has come by then.
    fn drop(&mut self) {
        self.leave();
    }
}

/// A recording that is given back even by work that is dropped before its end.
struct Lent {
    recording: Option<Recording>,
    back: Arc<Mutex<Option<Recording>>>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut back = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        *back = self.recording.take();
    }
}

/// Passes on the rest of a document.
struct Listener {
    out: mpsc::Sender<Bytes>,
    head: Map<String, Value>,
    index: u64,
    /// The tool call whose arguments these are; without one it is the content.
    call: Option<u64>,
}

impl Hear for Listener {
    fn hear<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        let event = match self.call {
            None => content_event(&self.head, self.index, text),
            Some(call) => arguments_event(&self.head, self.index, call, text),
        };
        async move {
            // Who has gone away takes this work along.
            let _ = self.out.send(format!("data: {event}\n\n").into()).await;
        }
        .boxed()
    }

    fn call(&mut self) {
        // There is something in the way already if there is no room for it.
        let _ = self.out.try_send(Bytes::from_static(KEEP_ALIVE));
    }
}
