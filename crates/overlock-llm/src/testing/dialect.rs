//! The API formats of the scripted server.

use hyper::HeaderMap;
use serde_json::{Map, Value, json};

use super::responses;
use crate::backend::{Call, Event, Usage};

/// An API format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// OpenAI's chat completions.
    Chat,
    /// The same, with a call of this tool as answer.
    Tool(String),
    /// OpenAI's completions of a plain prompt.
    Raw,
    /// Anthropic's messages.
    Messages,
    /// OpenAI's Responses, with a call of this tool as answer, if one is named.
    Responses(Option<String>),
}

/// The HTTP status and the message of an error.
pub(super) type ErrorReply = (u16, String);

impl Dialect {
    /// The format at a path.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/completions" => Some(Self::Raw),
            "/v1/messages" => Some(Self::Messages),
            "/v1/responses" => Some(Self::Responses(None)),
            _ => None,
        }
    }

    /// The format of the answer to a request.
    pub(super) fn answering(self, request: &Map<String, Value>) -> Self {
        if matches!(self, Self::Responses(_)) {
            return Self::Responses(responses::forced_tool(request));
        }
        let tool = request.get("tool_choice").filter(|_| self == Self::Chat);
        let name = tool.and_then(|tool| tool.pointer("/function/name")?.as_str());
        match name {
            Some(name) => Self::Tool(name.to_owned()),
            None => self,
        }
    }

    /// Validates a request as strictly as the provider.
    pub(super) fn check(
        &self,
        headers: &HeaderMap,
        request: &Map<String, Value>,
    ) -> Result<(), ErrorReply> {
        if matches!(self, Self::Responses(_)) {
            return responses::check(request).map_err(|message| (400, message));
        }
        if *self != Self::Messages {
            return Ok(());
        }
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        if header("x-api-key").is_none_or(str::is_empty) {
            return Err((401, "x-api-key header is required".to_owned()));
        }
        if header("anthropic-version") != Some("2023-06-01") {
            return Err((400, "anthropic-version: header is required".to_owned()));
        }
        check_messages(request).map_err(|message| (400, message))
    }

    /// The call in a request: a last assistant message is its prefill.
    pub(super) fn call(&self, mut request: Map<String, Value>) -> Call {
        if matches!(self, Self::Responses(_)) {
            return responses::call(request);
        }
        if *self == Self::Raw {
            let prompt = request.remove("prompt").unwrap_or_default();
            let prefill = prompt.as_str().map(str::to_owned);
            return Call { request, prefill };
        }
        let messages = request.get_mut("messages").and_then(Value::as_array_mut);
        let last =
            messages.and_then(|messages| messages.pop_if(|message| message["role"] == "assistant"));
        let prefill = last.and_then(|message| message["content"].as_str().map(str::to_owned));
        Call { request, prefill }
    }

    /// The answer without streaming.
    pub(super) fn complete(&self, heading: &Heading, events: &[Event]) -> Value {
        let answer = CollectedAnswer::from_events(events);
        match self {
            Self::Responses(tool) => responses::object(heading, &answer, tool.as_deref()),
            Self::Messages => json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "text", "text": answer.text }],
                "stop_reason": stop_reason(&answer.finish),
                "usage": { "input_tokens": answer.usage.input, "output_tokens": answer.usage.output },
            }),
            Self::Chat | Self::Tool(_) | Self::Raw => {
                let mut choice = json!({ "index": 0, "finish_reason": answer.finish });
                match self {
                    Self::Raw => choice["text"] = json!(answer.text),
                    Self::Tool(name) => choice["message"] = tool_call(name, &answer.text),
                    _ => {
                        choice["message"] = json!({ "role": "assistant", "content": answer.text });
                    }
                }
                json!({
                    "id": heading.id(), "object": "chat.completion", "created": 0,
                    "model": heading.model,
                    "choices": [choice],
                    "usage": usage_of(&answer.usage),
                })
            }
        }
    }

    /// The answer as a stream, event by event.
    pub(super) fn stream(&self, heading: &Heading, events: &[Event]) -> Vec<String> {
        if let Self::Responses(tool) = self {
            let answer = CollectedAnswer::from_events(events);
            return responses::stream(&responses::object(heading, &answer, tool.as_deref()));
        }
        if *self != Self::Messages {
            let begin = match self {
                Self::Tool(name) => {
                    let mut begin = tool_call(name, "");
                    begin["tool_calls"][0]["index"] = json!(0);
                    Some(begin)
                }
                Self::Chat => Some(json!({ "role": "assistant", "content": "" })),
                _ => None,
            };
            let begin = begin.map(|begin| {
                let choice = json!({ "index": 0, "delta": begin, "finish_reason": null });
                chunk(heading, &json!([choice]))
            });
            let chunks = events.iter().map(|event| self.chunk(heading, event));
            let chunks = begin.into_iter().chain(chunks);
            return chunks.chain(["data: [DONE]\n\n".to_owned()]).collect();
        }
        let answer = CollectedAnswer::from_events(events);
        let usage = json!({ "input_tokens": answer.usage.input, "output_tokens": 1 });
        let mut chunks = vec![
            named(
                "message_start",
                &json!({ "message": { "type": "message", "role": "assistant", "content": [], "usage": usage } }),
            ),
            named(
                "content_block_start",
                &json!({ "index": 0, "content_block": { "type": "text", "text": "" } }),
            ),
            named("ping", &json!({})),
        ];
        let texts = events
            .iter()
            .filter(|event| matches!(event, Event::Text(_)));
        chunks.extend(texts.map(|event| self.chunk(heading, event)));
        chunks.extend([
            named("content_block_stop", &json!({ "index": 0 })),
            named(
                "message_delta",
                &json!({
                    "delta": { "stop_reason": stop_reason(&answer.finish), "stop_sequence": null },
                    "usage": { "output_tokens": answer.usage.output },
                }),
            ),
            named("message_stop", &json!({})),
        ]);
        chunks
    }

    /// One event of a stream.
    pub(super) fn chunk(&self, heading: &Heading, event: &Event) -> String {
        let choice = match (self, event) {
            (Self::Responses(_), event) => {
                let Event::Text(text) = event else {
                    return String::new();
                };
                return named(
                    "response.output_text.delta",
                    &json!({ "output_index": 0, "content_index": 0, "delta": text }),
                );
            }
            (Self::Messages, event) => {
                let text = if let Event::Text(text) = event {
                    text
                } else {
                    ""
                };
                let delta = json!({ "type": "text_delta", "text": text });
                return named(
                    "content_block_delta",
                    &json!({ "index": 0, "delta": delta }),
                );
            }
            (_, Event::Usage(usage)) => {
                let mut value = chunk_of(heading, &json!([]));
                value["usage"] = usage_of(usage);
                return format!("data: {value}\n\n");
            }
            (Self::Raw, Event::Text(text)) => json!({ "index": 0, "text": text }),
            (Self::Chat, Event::Text(text)) => {
                json!({ "index": 0, "delta": { "content": text }, "finish_reason": null })
            }
            (_, Event::Refusal(text)) => json!({ "index": 0, "delta": { "refusal": text } }),
            // Retries are made by the client only.
            (_, Event::Retry(_)) => return String::new(),
            (Self::Tool(_), Event::Text(text)) => {
                let call = json!({ "index": 0, "function": { "arguments": text } });
                let delta = json!({ "tool_calls": [call] });
                json!({ "index": 0, "delta": delta, "finish_reason": null })
            }
            (_, Event::Finish(reason)) => {
                json!({ "index": 0, "delta": {}, "finish_reason": reason })
            }
        };
        chunk(heading, &json!([choice]))
    }

    /// An error in the middle of a stream.
    pub(super) fn error_event(&self, message: &str) -> String {
        match self {
            Self::Messages => named("error", &self.error(529, message)),
            Self::Responses(_) => named(
                "error",
                &json!({ "code": "server_error", "message": message }),
            ),
            Self::Chat | Self::Tool(_) | Self::Raw => {
                format!("data: {}\n\n", self.error(529, message))
            }
        }
    }

    /// The body of an error.
    pub(super) fn error(&self, status: u16, message: &str) -> Value {
        if *self != Self::Messages {
            return json!({ "error": { "message": message, "type": "error" } });
        }
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        json!({ "type": "error", "error": { "type": kind, "message": message } })
    }
}

/// A message that calls a tool.
fn tool_call(name: &str, arguments: &str) -> Value {
    let function = json!({ "name": name, "arguments": arguments });
    let call = json!({ "id": "call_scripted", "type": "function", "function": function });
    json!({ "role": "assistant", "content": null, "tool_calls": [call] })
}

/// The metadata of an answer.
pub(super) struct Heading {
    /// Its number among all answers.
    pub(super) number: usize,
    /// The model name in the request.
    pub(super) model: String,
}

impl Heading {
    fn id(&self) -> String {
        format!("chatcmpl-scripted-{}", self.number)
    }
}

fn chunk(heading: &Heading, choices: &Value) -> String {
    format!("data: {}\n\n", chunk_of(heading, choices))
}

fn chunk_of(heading: &Heading, choices: &Value) -> Value {
    json!({
        "id": heading.id(), "object": "chat.completion.chunk", "created": 0, "model": heading.model,
        "choices": choices,
    })
}

fn usage_of(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    })
}

/// The joined events of an answer.
pub(super) struct CollectedAnswer {
    pub(super) text: String,
    pub(super) finish: String,
    pub(super) usage: Usage,
}

impl CollectedAnswer {
    fn from_events(events: &[Event]) -> Self {
        let mut answer = Self {
            text: String::new(),
            finish: String::new(),
            usage: Usage::default(),
        };
        for event in events {
            match event {
                Event::Text(piece) | Event::Refusal(piece) => answer.text.push_str(piece),
                Event::Finish(reason) => answer.finish.clone_from(reason),
                Event::Usage(usage) => answer.usage = *usage,
                // Retries are made by the client only.
                Event::Retry(_) => {}
            }
        }
        answer
    }
}

fn named(name: &str, body: &Value) -> String {
    let mut value = json!({ "type": name });
    if let (Value::Object(value), Value::Object(body)) = (&mut value, body) {
        let body = body
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()));
        value.extend(body);
    }
    format!("event: {name}\ndata: {value}\n\n")
}

fn stop_reason(finish: &str) -> &'static str {
    if finish == "length" {
        "max_tokens"
    } else {
        "end_turn"
    }
}

/// Validates a request like Anthropic.
fn check_messages(request: &Map<String, Value>) -> Result<(), String> {
    const KNOWN: [&str; 10] = [
        "model",
        "messages",
        "max_tokens",
        "system",
        "stop_sequences",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "output_config",
    ];
    if let Some(name) = request.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!("{name}: Extra inputs are not permitted"));
    }
    if request.get("max_tokens").and_then(Value::as_u64).is_none() {
        return Err("max_tokens: Field required".to_owned());
    }
    let messages = request.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or("messages: Field required")?;
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if !matches!(role, "user" | "assistant") {
            return Err(format!("messages: Unexpected role \"{role}\""));
        }
        let is_known = match &message["content"] {
            Value::String(text) => !text.is_empty(),
            Value::Array(parts) => parts.iter().all(|part| match part["type"].as_str() {
                Some("text") => part["text"].as_str().is_some_and(|text| !text.is_empty()),
                Some("image") => part["source"]["type"].is_string(),
                _ => false,
            }),
            _ => false,
        };
        if !is_known {
            return Err(format!("messages.{index}.content: Input should be text"));
        }
    }
    let last = messages.last().filter(|last| last["role"] == "assistant");
    let begun = last.and_then(|last| last["content"].as_str());
    if begun.is_some_and(|begun| begun.ends_with(char::is_whitespace)) {
        return Err(
            "messages: final assistant content cannot end with trailing whitespace".to_owned(),
        );
    }
    Ok(())
}
