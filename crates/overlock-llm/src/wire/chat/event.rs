//! Composes the events of a stream, and counts how many of their bytes are content.

use serde_json::{Map, Value, json};

use crate::assembler::Delta;
use crate::backend::Usage;
use crate::wire::answer::{AnswerSummary, REPORT, WireEncoder, frame};

/// Whether an event has output of the model: content, reasoning, a tool call or a finish reason.
pub(in crate::wire) fn has_output(event: &Value) -> bool {
    const OUTPUTS: [&str; 7] = [
        "content",
        "refusal",
        "tool_calls",
        "function_call",
        "reasoning_content",
        "reasoning",
        "thinking",
    ];
    let is_output = |value: &Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        other => other.is_object(),
    };
    let choices = event.get("choices").and_then(Value::as_array);
    choices.into_iter().flatten().any(|choice| {
        let message = choice.get("delta").or(choice.get("message"));
        let outputs = OUTPUTS.iter().filter_map(|name| message?.get(name));
        let own = ["text", "finish_reason"].map(|name| choice.get(name));
        outputs.chain(own.into_iter().flatten()).any(is_output)
    })
}

/// A completion as the events of a stream, with or without its usage.
pub(in crate::wire) fn chunks(completion: &Value, wants_usage: bool) -> Vec<Value> {
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
        let mut first = json!({ "index": index, "delta": delta, "finish_reason": null });
        if let Some(logprobs) = choice.get("logprobs") {
            first["logprobs"] = logprobs.clone();
        }
        events.push(with_choice(&head, &first));
        let others = choice.as_object().into_iter().flatten();
        let others = others.filter(|(name, _)| !is_choice_member(name));
        let others = others.map(|(name, value)| (name.clone(), value.clone()));
        events.push(with_choice(&head, &end(&index, &finish, others)));
    }
    if let (Some(report), Some(last)) = (report, events.last_mut()) {
        last[REPORT] = report;
    }
    if let Some(usage) = usage.filter(|it| it.is_object() && wants_usage) {
        events.push(with_usage(&head, usage));
    }
    events
}

/// The end of a choice, with its other members.
pub(super) fn end(
    index: &Value,
    finish: &Value,
    others: impl Iterator<Item = (String, Value)>,
) -> Value {
    let end = json!({ "index": index, "delta": {}, "finish_reason": finish });
    let mut choice = end.as_object().cloned().unwrap_or_default();
    choice.extend(others);
    Value::Object(choice)
}

/// Whether every choice has this member.
pub(super) fn is_choice_member(name: &str) -> bool {
    matches!(
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

fn content_event(head: &Map<String, Value>, index: u64, text: &str) -> Value {
    with_choice(
        head,
        &json!({ "index": index, "delta": { "content": text }, "finish_reason": null }),
    )
}

fn arguments_event(head: &Map<String, Value>, index: u64, call: u64, text: &str) -> Value {
    let call = json!({ "index": call, "function": { "arguments": text } });
    with_choice(
        head,
        &json!({ "index": index, "delta": { "tool_calls": [call] }, "finish_reason": null }),
    )
}

/// The first text in an event that continues the answer.
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

/// The maximum overhead of an event.
const LONGEST_OVERHEAD: usize = 4096;

/// The bytes around the data of an event.
const FRAME: usize = b"data: \n\n".len();

/// How many bytes of an event of this length are not content.
pub(super) fn overhead_len(len: usize, choices: Option<&Vec<Value>>) -> usize {
    let content: usize = choices.into_iter().flatten().map(content_len).sum();
    match content {
        0 => 0,
        content => len.saturating_sub(content).min(LONGEST_OVERHEAD) + FRAME,
    }
}

/// How many bytes of a choice are content.
fn content_len(choice: &Value) -> usize {
    let members = choice.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| *name != "index" && *name != "delta");
    let delta = choice.get("delta").map_or(0, text_len);
    delta + members.map(member_len).sum::<usize>()
}

/// The bytes counted for a number.
const NUMBER: usize = 4;

/// How many bytes of a member are content. Its name counts, except for the names in every event.
fn member_len((name, value): (&String, &Value)) -> usize {
    match (name.as_str(), value) {
        (_, Value::Null) => 0,
        ("role" | "content", value) => text_len(value),
        (name, value) => name.len() + text_len(value),
    }
}

/// The bytes of all texts in a value.
fn text_len(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_len).sum(),
        Value::Object(members) => members.iter().map(member_len).sum(),
        Value::Number(_) => NUMBER,
        Value::Null | Value::Bool(_) => 0,
    }
}

/// Writes the events that continue an answer.
pub(super) struct ChatEncoder(pub(super) Map<String, Value>);

impl WireEncoder for ChatEncoder {
    fn encode(&mut self, index: u64, delta: Delta<'_>) -> Vec<u8> {
        let Self(head) = self;
        let event = match delta {
            Delta::Text(text) => content_event(head, index, text),
            Delta::ToolArguments { call, text } => arguments_event(head, index, call as u64, text),
            Delta::FunctionArguments(_) | Delta::Refusal(_) | Delta::Finish(_) => {
                return Vec::new();
            }
        };
        frame(event.to_string().as_bytes())
    }
}

/// The figures of a completion.
pub(in crate::wire) fn summary(completion: &Value) -> AnswerSummary<'_> {
    let choices = completion.get("choices").and_then(Value::as_array);
    let finishes = choices.into_iter().flatten();
    AnswerSummary {
        model: completion.get("model").and_then(Value::as_str),
        finishes: finishes
            .filter_map(|choice| choice.get("finish_reason")?.as_str())
            .collect(),
        usage: Usage::of_completion(completion),
    }
}
