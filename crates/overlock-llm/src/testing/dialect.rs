//! The API formats of the scripted server.

use hyper::HeaderMap;
use serde_json::{Map, Value, json};

use super::messages::{self, AnswerForm};
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
    /// Anthropic's Messages.
    Messages(AnswerForm),
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
            "/v1/messages" => Some(Self::Messages(AnswerForm::default())),
            "/v1/responses" => Some(Self::Responses(None)),
            _ => None,
        }
    }

    /// The format of the answer to a request. `favourite` is a tool that the model calls if it can.
    pub(super) fn answering(self, request: &Map<String, Value>, favourite: Option<&str>) -> Self {
        if matches!(self, Self::Messages(_)) {
            return Self::Messages(AnswerForm::of(request, favourite));
        }
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

    /// Whether a model that calls a tool whenever it can has none for this request. Without tools it
    /// continues the input of a call.
    pub(super) fn has_nothing_to_call(&self, request: &Map<String, Value>) -> bool {
        let choice = request.get("tool_choice");
        let is_text = choice.is_some_and(|choice| choice["type"] == "none");
        matches!(self, Self::Messages(form) if form.tool.is_none()) && !is_text
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
        if !matches!(self, Self::Messages(_)) {
            return Ok(());
        }
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let key = header("x-api-key").or(header("authorization"));
        if key.is_none_or(str::is_empty) {
            return Err((401, "x-api-key header is required".to_owned()));
        }
        if header("anthropic-version").is_none() {
            return Err((400, "anthropic-version: header is required".to_owned()));
        }
        messages::check(request).map_err(|message| (400, message))
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
        if matches!(self, Self::Messages(_))
            && let Some(Value::Array(messages)) = request.get_mut("messages")
        {
            let given = std::mem::take(messages).into_iter();
            *messages = given.map(responses::as_message).collect();
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
            Self::Messages(form) => form.object(heading, &answer),
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
        if let Self::Messages(form) = self {
            let answer = CollectedAnswer::from_events(events);
            return form.stream(heading, events, &answer);
        }
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
        chunks.chain(["data: [DONE]\n\n".to_owned()]).collect()
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
            (Self::Messages(form), event) => return form.chunk(event),
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
            Self::Messages(_) => named("error", &self.error(529, message)),
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
        if !matches!(self, Self::Messages(_)) {
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
