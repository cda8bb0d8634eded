//! Speaks Anthropic's messages.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Map, Value, json};

use super::events::{Heard, streamed};
use super::http::{Endpoint, Http, error_message};
use super::sse::SseEvent;
use super::{Backend, BackendError, Call, Event, Events, Usage};

/// The version of the protocol that is spoken.
const VERSION: &str = "2023-06-01";

/// What an answer may have where the request does not say; the protocol insists on a number.
const DEFAULT_MAX_TOKENS: u64 = 4096;

/// A server at an address such as `https://api.anthropic.com/v1`.
pub struct Anthropic {
    http: Http,
    messages: Endpoint,
    can_prefill: bool,
}

impl Anthropic {
    /// The server at a base address. Newer models refuse an answer that was begun for them:
    /// `can_prefill` says whether this one takes it.
    pub fn new(http: Http, base: &str, key: &str, can_prefill: bool) -> Result<Self, BackendError> {
        let headers = [
            ("x-api-key", key.trim().to_owned()),
            ("anthropic-version", VERSION.to_owned()),
        ];
        Ok(Self {
            http,
            messages: Endpoint::new(base, "/messages", &headers)?,
            can_prefill,
        })
    }

    async fn ask(&self, call: Call) -> Result<Events, BackendError> {
        let body = Value::Object(translate(call)).to_string().into_bytes();
        let mut answer = self.http.post(&self.messages, body).await?;
        let host = self.messages.host().to_owned();
        if answer.is_event_stream() {
            return Ok(streamed(answer, host, understand));
        }
        let body = answer.read_whole().await?;
        let events = whole(&body, &host)?;
        Ok(stream::iter(events.into_iter().map(Ok)).boxed())
    }
}

impl Backend for Anthropic {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events, BackendError>> {
        self.ask(call).boxed()
    }

    fn can_prefill(&self) -> bool {
        self.can_prefill
    }
}

/// The request in Anthropic's words. What both have under the same name goes as it is.
fn translate(call: Call) -> Map<String, Value> {
    let mut request = Map::new();
    for name in ["model", "temperature", "top_p", "top_k"] {
        if let Some(value) = call.request.get(name) {
            request.insert(name.to_owned(), value.clone());
        }
    }
    let max_tokens = ["max_completion_tokens", "max_tokens"]
        .iter()
        .find_map(|name| call.request.get(*name).filter(|value| !value.is_null()));
    request.insert(
        "max_tokens".to_owned(),
        max_tokens
            .cloned()
            .unwrap_or_else(|| json!(DEFAULT_MAX_TOKENS)),
    );
    if let Some(stop) = call.request.get("stop") {
        let stops = match stop {
            Value::String(_) => json!([stop]),
            other => other.clone(),
        };
        request.insert("stop_sequences".to_owned(), stops);
    }

    let mut system = Vec::new();
    let mut messages = Vec::new();
    let given = call.request.get("messages").and_then(Value::as_array);
    for message in given.into_iter().flatten() {
        let content = message.get("content").cloned().unwrap_or_default();
        match message.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => system.push(text_of(&content)),
            role => messages.push(json!({
                "role": if role == Some("assistant") { "assistant" } else { "user" },
                "content": content,
            })),
        }
    }
    if let Some(prefill) = call.prefill {
        // White space at the end of a begun answer is refused, and comes back by itself.
        let prefill = prefill.trim_end();
        messages.push(json!({ "role": "assistant", "content": prefill }));
    }
    if !system.is_empty() {
        request.insert("system".to_owned(), json!(system.join("\n\n")));
    }
    request.insert("messages".to_owned(), Value::Array(messages));
    request.insert("stream".to_owned(), json!(true));
    request
}

/// The text of a content that may be a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        _ => String::new(),
    }
}

fn understand(event: &SseEvent, host: &str) -> Result<Heard, BackendError> {
    let value: Value =
        serde_json::from_slice(&event.data).map_err(|error| BackendError::Malformed {
            host: host.to_owned(),
            reason: format!("an event is not JSON: {error}"),
        })?;
    let kind = value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or(&event.name);
    let events = match kind {
        "content_block_delta" => value["delta"]["text"]
            .as_str()
            .map(|text| Event::Text(text.to_owned()))
            .into_iter()
            .collect(),
        "message_delta" => ending(&value["delta"], &value["usage"]),
        "message_stop" => return Ok(Heard::Done),
        "error" => {
            return Err(BackendError::Status {
                host: host.to_owned(),
                status: 200,
                message: error_message(&event.data).unwrap_or_else(|| "an error".to_owned()),
                retry_after: None,
            });
        }
        // Beginnings, ends of blocks, pings, and whatever will be added.
        _ => Vec::new(),
    };
    Ok(Heard::Events(events))
}

fn whole(body: &[u8], host: &str) -> Result<Vec<Event>, BackendError> {
    let value: Value = serde_json::from_slice(body).map_err(|error| BackendError::Malformed {
        host: host.to_owned(),
        reason: error.to_string(),
    })?;
    let Some(content) = value.get("content") else {
        return Err(BackendError::Malformed {
            host: host.to_owned(),
            reason: "it has no `content`".to_owned(),
        });
    };
    let mut events = vec![Event::Text(text_of(content))];
    events.extend(ending(&value, &value["usage"]));
    Ok(events)
}

/// Why an answer ended, in OpenAI's words, and what it took.
fn ending(said: &Value, usage: &Value) -> Vec<Event> {
    let mut events = Vec::new();
    if let Some(reason) = said.get("stop_reason").and_then(Value::as_str) {
        let reason = match reason {
            "max_tokens" => "length",
            "end_turn" | "stop_sequence" => "stop",
            "tool_use" => "tool_calls",
            "refusal" => "content_filter",
            other => other,
        };
        events.push(Event::Finish(reason.to_owned()));
    }
    if let Some(output) = usage.get("output_tokens").and_then(Value::as_u64) {
        let input = usage.get("input_tokens").and_then(Value::as_u64);
        events.push(Event::Usage(Usage {
            input: input.unwrap_or_default(),
            output,
        }));
    }
    events
}
