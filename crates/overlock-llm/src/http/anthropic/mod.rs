//! A client for Anthropic's messages API.

mod request;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::Value;

use super::Http;
use super::address::Endpoint;
use super::events::{EventContent, ServerEvent, event_stream};
use super::response::{LONGEST_ANSWER, Shape, error_message};
use crate::backend::{Backend, BackendError, Call, Event, Events, SurrogateBuffer, Usage};

/// The version of the API.
const VERSION: &str = "2023-06-01";

/// A server at a base URL such as `https://api.anthropic.com/v1`.
///
/// Calls are translated: system messages become the system prompt, images become Anthropic's, and a
/// JSON Schema in `response_format` becomes an output format. There is no plain JSON mode, so
/// `json_object` is dropped: the document is found in the answer either way. Tools, audio and files
/// are rejected before anything is sent.
pub struct Anthropic {
    http: Http,
    messages: Endpoint,
    can_prefill: bool,
}

impl Anthropic {
    /// The server at a base URL. Newer models reject prefills: `can_prefill` says whether this one
    /// accepts them.
    pub fn new(http: Http, base: &str, key: &str, can_prefill: bool) -> Result<Self, BackendError> {
        let headers = [
            ("x-api-key", key.trim().to_owned()),
            ("anthropic-version", VERSION.to_owned()),
        ];
        Ok(Self {
            http,
            messages: Endpoint::new(base, "/messages", &headers, Some(key))?,
            can_prefill,
        })
    }

    async fn ask(&self, call: Call) -> Result<Events<'static>, BackendError> {
        let host = self.messages.host().to_owned();
        if call.prefill.is_some() && !self.can_prefill {
            return Err(BackendError::Unsupported {
                host,
                what: "a prefilled answer".to_owned(),
            });
        }
        let request = request::translate(call).map_err(|what| BackendError::Unsupported {
            host: host.clone(),
            what,
        })?;
        let body = Value::Object(request).to_string().into_bytes();
        let mut answer = self.http.ask(&self.messages, body).await?;
        // Some servers ignore `stream` or send a wrong content type.
        if answer.shape().await? == Shape::Stream {
            let mut input = 0;
            return Ok(event_stream(answer, move |event, host| {
                interpret(event, &mut input, host)
            }));
        }
        let body = answer.read_whole(LONGEST_ANSWER).await?;
        let events = complete_answer(&body, &host).map_err(|error| answer.failed(error))?;
        Ok(stream::iter(events.into_iter().map(Ok)).boxed())
    }
}

impl Backend for Anthropic {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        async { self.ask(call).await }.boxed()
    }
}

/// Interprets an event of a stream. The first one has the input tokens, which are reported with the
/// last.
fn interpret(
    event: &ServerEvent<'_>,
    input: &mut u64,
    host: &str,
) -> Result<EventContent, BackendError> {
    let value = event.value;
    let kind = value.get("type").and_then(Value::as_str);
    let events = match kind.unwrap_or(event.name) {
        "message_start" => {
            *input = input_tokens(&value["message"]["usage"]).unwrap_or_default();
            Vec::new()
        }
        // A block may start with some of its text.
        "content_block_start" => text_event(&value["content_block"]["text"]),
        "content_block_delta" => match value["delta"]["type"].as_str() {
            Some("thinking_delta" | "signature_delta" | "input_json_delta") => {
                return Ok(EventContent::Activity);
            }
            _ => text_event(&value["delta"]["text"]),
        },
        "message_delta" => ending(&value["delta"], &value["usage"], *input),
        "message_stop" => return Ok(EventContent::Done),
        "error" => return Err(error(value, event.raw, host)),
        // The end of a block, pings and unknown events.
        _ => Vec::new(),
    };
    Ok(EventContent::Events(events))
}

fn text_event(text: &Value) -> Vec<Event> {
    let text = text.as_str().filter(|text| !text.is_empty());
    text.map(|text| Event::Text(text.to_owned()))
        .into_iter()
        .collect()
}

/// The events of an answer without streaming.
fn complete_answer(body: &[u8], host: &str) -> Result<Vec<Event>, BackendError> {
    let malformed = |reason: String| BackendError::Malformed {
        host: host.to_owned(),
        reason,
    };
    let read = SurrogateBuffer::default().read(body);
    let value = read.map_err(|error| malformed(error.to_string()))?.value;
    if value["type"] == "error" {
        return Err(error(&value, body, host));
    }
    let Some(content) = value.get("content").and_then(Value::as_array) else {
        return Err(malformed("no `content`".to_owned()));
    };
    let mut events: Vec<Event> = content
        .iter()
        .flat_map(|block| text_event(&block["text"]))
        .collect();
    events.extend(ending(&value, &value["usage"], 0));
    Ok(events)
}

/// An error in place of an answer, with the HTTP status for its type.
fn error(value: &Value, raw: &[u8], host: &str) -> BackendError {
    let status = match value["error"]["type"].as_str() {
        Some("invalid_request_error") => 400,
        Some("authentication_error") => 401,
        Some("permission_error") => 403,
        Some("not_found_error") => 404,
        Some("request_too_large") => 413,
        Some("rate_limit_error") => 429,
        Some("api_error") => 500,
        Some("timeout_error") => 504,
        Some("overloaded_error") => 529,
        _ => 200,
    };
    BackendError::Status {
        host: host.to_owned(),
        status,
        message: error_message(raw).unwrap_or_else(|| "an error".to_owned()),
        retry_after: None,
        size: None,
    }
}

/// The finish reason, translated to OpenAI's, and the usage.
fn ending(message: &Value, usage: &Value, input: u64) -> Vec<Event> {
    let mut events = Vec::new();
    if let Some(reason) = message.get("stop_reason").and_then(Value::as_str) {
        let reason = match reason {
            "max_tokens" | "model_context_window_exceeded" => "length",
            "end_turn" | "stop_sequence" => "stop",
            "tool_use" => "tool_calls",
            "refusal" => "content_filter",
            other => other,
        };
        events.push(Event::Finish(reason.to_owned()));
    }
    if let Some(output) = usage.get("output_tokens").and_then(Value::as_u64) {
        let input = input_tokens(usage).unwrap_or(input);
        let cached = usage.get("cache_read_input_tokens");
        events.push(Event::Usage(Usage {
            input,
            output,
            cached: cached.and_then(Value::as_u64),
        }));
    }
    events
}

/// All input tokens, cached or not, as OpenAI counts them.
fn input_tokens(usage: &Value) -> Option<u64> {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
    let new = count("input_tokens")?;
    Some(
        cached
            .into_iter()
            .filter_map(count)
            .fold(new, u64::saturating_add),
    )
}
