//! The events of a stream: how they are put together, and what in them says something.

use overlock_model::Outcome;
use serde_json::{Map, Value, json};

use super::super::compliance::REPORT;
use crate::schema::Comparison;

/// A completion as the events of a stream.
pub(super) fn chunks(completion: &Value) -> Vec<Value> {
    let mut head = completion.as_object().cloned().unwrap_or_default();
    let choices = head.remove("choices");
    let usage = head.remove("usage");
    let report = head.shift_remove(REPORT);
    head.insert("object".to_owned(), json!("chat.completion.chunk"));
    let choices = choices.as_ref().and_then(Value::as_array);
    let mut events = Vec::new();
    for choice in choices.into_iter().flatten() {
        let index = choice.get("index").cloned().unwrap_or(json!(0));
        let mut delta = choice.get("message").cloned().unwrap_or(json!({}));
        let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
        for (number, call) in calls.into_iter().flatten().enumerate() {
            call["index"] = json!(number);
        }
        let finish = choice.get("finish_reason").cloned().unwrap_or(Value::Null);
        let mut said = json!({ "index": index, "delta": delta, "finish_reason": null });
        if let Some(logprobs) = choice.get("logprobs") {
            said["logprobs"] = logprobs.clone();
        }
        events.push(with_choice(&head, &said));
        let beside = choice.as_object().into_iter().flatten();
        let beside = beside.filter(|(name, _)| stands_beside(name));
        let beside = beside.map(|(name, value)| (name.clone(), value.clone()));
        events.push(with_choice(&head, &end(&index, &finish, beside)));
    }
    // It tells how all of the answer ended.
    if let (Some(report), Some(last)) = (report, events.last_mut()) {
        last[REPORT] = report;
    }
    if let Some(usage) = usage.filter(Value::is_object) {
        events.push(with_usage(&head, usage));
    }
    events
}

/// The last words of a stream. How it went is a comment, since headers are gone long ago.
pub(super) fn ending(outcome: &Outcome, continuations: u32, comparison: &Comparison) -> String {
    let mut comment = format!(
        ": overlock outcome={} continuations={continuations}",
        outcome.name()
    );
    if let Some(reason) = outcome.reason() {
        comment.push_str(" reason=");
        comment.push_str(reason.name());
    }
    if let Some(name) = comparison.name() {
        comment.push_str(" schema=");
        comment.push_str(name);
    }
    comment + "\n\ndata: [DONE]\n\n"
}

/// The end of a choice, with what stands beside it.
pub(super) fn end(
    index: &Value,
    finish: &Value,
    beside: impl Iterator<Item = (String, Value)>,
) -> Value {
    let said = json!({ "index": index, "delta": {}, "finish_reason": finish });
    let mut choice = said.as_object().cloned().unwrap_or_default();
    choice.extend(beside);
    Value::Object(choice)
}

/// Whether this member of a choice is none that every choice has.
pub(super) fn stands_beside(name: &str) -> bool {
    !matches!(
        name,
        "index" | "delta" | "message" | "finish_reason" | "logprobs"
    )
}

pub(super) fn with_choice(head: &Map<String, Value>, choice: &Value) -> Value {
    let mut event = head.clone();
    event.insert("choices".to_owned(), json!([choice]));
    Value::Object(event)
}

pub(super) fn with_usage(head: &Map<String, Value>, usage: Value) -> Value {
    let mut event = head.clone();
    event.insert("choices".to_owned(), json!([]));
    event.insert("usage".to_owned(), usage);
    Value::Object(event)
}

pub(super) fn content_event(head: &Map<String, Value>, index: u64, text: &str) -> Value {
    with_choice(
        head,
        &json!({ "index": index, "delta": { "content": text }, "finish_reason": null }),
    )
}

pub(super) fn arguments_event(
    head: &Map<String, Value>,
    index: u64,
    call: u64,
    text: &str,
) -> Value {
    let call = json!({ "index": call, "function": { "arguments": text } });
    with_choice(
        head,
        &json!({ "index": index, "delta": { "tool_calls": [call] }, "finish_reason": null }),
    )
}

/// The first text of an answer that an event goes on with.
pub(super) fn first_text(event: &mut Value) -> Option<&mut String> {
    let choices = event.get_mut("choices")?.as_array_mut()?;
    let mut deltas = choices
        .iter_mut()
        .filter_map(|choice| choice.get_mut("delta"));
    deltas.find_map(|delta| {
        let delta = delta.as_object_mut()?;
        let has_content = delta.get("content").is_some_and(Value::is_string);
        let text = if has_content {
            delta.get_mut("content")
        } else {
            let calls = delta.get_mut("tool_calls")?.as_array_mut()?;
            calls
                .iter_mut()
                .find_map(|call| call.pointer_mut("/function/arguments"))
        };
        match text? {
            Value::String(text) => Some(text),
            _ => None,
        }
    })
}

/// More than so many bytes are no wrapping.
const LONGEST_WRAPPING: usize = 4096;

/// What stands around the data of an event.
const FRAME: usize = b"data: \n\n".len();

/// How many bytes of an event of so many say nothing themselves: they wrap its choices.
pub(super) fn wrapping_len(len: usize, choices: Option<&Vec<Value>>) -> usize {
    let said: usize = choices.into_iter().flatten().map(said_len).sum();
    match said {
        0 => 0,
        said => len.saturating_sub(said).min(LONGEST_WRAPPING) + FRAME,
    }
}

/// How many bytes of a choice say something.
fn said_len(choice: &Value) -> usize {
    let members = choice.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| *name != "index" && *name != "delta");
    let delta = choice.get("delta").map_or(0, text_len);
    delta + members.map(member_len).sum::<usize>()
}

/// A number is kept like a short text.
const NUMBER: usize = 4;

/// How many bytes a member says. Its name is kept with it, but for those that all pieces have.
fn member_len((name, value): (&String, &Value)) -> usize {
    match (name.as_str(), value) {
        (_, Value::Null) => 0,
        ("role" | "content", value) => text_len(value),
        (name, value) => name.len() + text_len(value),
    }
}

/// How many bytes of text there are in a value.
fn text_len(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_len).sum(),
        Value::Object(members) => members.iter().map(member_len).sum(),
        Value::Number(_) => NUMBER,
        Value::Null | Value::Bool(_) => 0,
    }
}
