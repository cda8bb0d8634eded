//! A client for OpenAI's chat completions API, which most servers offer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use hyper::HeaderMap;
use serde_json::{Map, Value, json};

use super::address::Endpoint;
use super::events::{EventContent, ServerEvent, event_stream};
use super::response::{LONGEST_ANSWER, Shape, error_in};
use super::{Http, Peer, Response};
use crate::backend::{
    Backend, BackendError, Call, Event, Events, Prefill, PrefillStyle, SurrogateBuffer, Usage,
};
use crate::wire::chat::has_output;

/// A server at a base URL such as `http://127.0.0.1:11434/v1`.
pub struct OpenAi {
    http: Http,
    chat: Endpoint,
    raw: Endpoint,
    prefill: Prefill,
    streams: bool,
}

impl OpenAi {
    /// The server at a base URL, with an optional key.
    pub fn new(
        http: Http,
        base: &str,
        key: Option<&str>,
        prefill: Prefill,
    ) -> Result<Self, BackendError> {
        Ok(Self {
            http,
            chat: Endpoint::with_bearer(base, "/chat/completions", key)?,
            raw: Endpoint::with_bearer(base, "/completions", key)?,
            prefill,
            streams: true,
        })
    }

    /// Disables streaming, for servers without it.
    #[must_use]
    pub fn without_streaming(self) -> Self {
        Self {
            streams: false,
            ..self
        }
    }

    /// Adds headers to every call, such as those of the client it is made for, and reports errors
    /// through `peer`.
    #[must_use]
    pub fn on_behalf_of(mut self, headers: &HeaderMap, peer: &Arc<Peer>) -> Self {
        for endpoint in [&mut self.chat, &mut self.raw] {
            endpoint.add_headers(headers);
            endpoint.peer = Arc::clone(peer);
        }
        self
    }

    /// Makes a call. The returned stream does not borrow from `self`.
    pub async fn ask(&self, call: Call) -> Result<Events<'static>, BackendError> {
        let endpoint = match (&call.prefill, self.prefill.style) {
            // A server without support would answer the message.
            (Some(_), PrefillStyle::None) => {
                return Err(BackendError::Unsupported {
                    host: self.chat.host().to_owned(),
                    what: "a prefilled answer".to_owned(),
                });
            }
            (Some(_), PrefillStyle::RawCompletion) => &self.raw,
            _ => &self.chat,
        };
        let request = self.request(call);
        let body = Value::Object(request).to_string().into_bytes();
        let mut answer = self.http.ask(endpoint, body).await?;
        // Some servers ignore `stream` or send a wrong content type.
        match answer.shape().await? {
            Shape::Stream => Ok(event_stream(answer, interpret)),
            Shape::Json => complete_answer(answer).await,
        }
    }

    fn request(&self, call: Call) -> Map<String, Value> {
        let mut request = call.request;
        if self.streams {
            request.insert("stream".to_owned(), json!(true));
            request.insert(
                "stream_options".to_owned(),
                json!({ "include_usage": true }),
            );
        } else {
            request.remove("stream");
            request.remove("stream_options");
        }
        // A run continues one answer.
        if let Some(count) = request.get_mut("n") {
            *count = json!(1);
        }
        let Some(prefill) = call.prefill else {
            return request;
        };
        if !self.prefill.keeps_format {
            request.remove("response_format");
        }
        if self.prefill.style == PrefillStyle::RawCompletion {
            let messages = request.remove("messages");
            let prompt = raw_prompt(messages.as_ref(), &prefill);
            request.insert("prompt".to_owned(), json!(prompt));
            // Raw completions know only the older name.
            if let Some(most) = request.remove("max_completion_tokens") {
                request.entry("max_tokens").or_insert(most);
            }
            return request;
        }
        let mut message = json!({ "role": "assistant", "content": prefill });
        match self.prefill.style {
            PrefillStyle::PrefixMessage => message["prefix"] = json!(true),
            PrefillStyle::ContinueFinalMessage => {
                request.insert("continue_final_message".to_owned(), json!(true));
                request.insert("add_generation_prompt".to_owned(), json!(false));
            }
            PrefillStyle::None | PrefillStyle::LastMessage | PrefillStyle::RawCompletion => {}
        }
        if let Some(Value::Array(messages)) = request.get_mut("messages") {
            messages.push(message);
        }
        request
    }
}

impl Backend for OpenAi {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        async { self.ask(call).await }.boxed()
    }

    fn starts_at_cut(&self, call: &Call) -> bool {
        self.prefill.carries_grammar(call)
    }
}

/// A plain prompt of a conversation, for models that only complete text.
fn raw_prompt(messages: Option<&Value>, prefill: &str) -> String {
    let mut prompt = String::new();
    for message in messages.and_then(Value::as_array).into_iter().flatten() {
        let texts = match &message["content"] {
            Value::String(text) => vec![text.as_str()],
            Value::Array(parts) => parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect(),
            _ => Vec::new(),
        };
        for text in texts {
            prompt.push_str(text);
            prompt.push_str("\n\n");
        }
    }
    prompt + prefill
}

/// The events of an answer without streaming.
async fn complete_answer(mut answer: Response) -> Result<Events<'static>, BackendError> {
    let body = answer.read_whole(LONGEST_ANSWER).await?;
    let read = SurrogateBuffer::default().read(&body);
    let value = read
        .map_err(|error| answer.malformed(&error.to_string()))?
        .value;
    if let Some(error) = answer.error_in(&value) {
        return Err(error);
    }
    if !value["choices"].is_array() {
        return Err(answer.malformed("no `choices`"));
    }
    let events = events_of(&value);
    Ok(stream::iter(events.into_iter().map(Ok)).boxed())
}

/// Interprets a chunk of a stream. Unknown events, such as pings, contain nothing.
fn interpret(event: &ServerEvent<'_>, host: &str) -> Result<EventContent, BackendError> {
    if let Some(error) = error_in(event.value, host) {
        return Err(error);
    }
    let events = events_of(event.value);
    if events.is_empty() && has_output(event.value) {
        return Ok(EventContent::Activity);
    }
    Ok(EventContent::Events(events))
}

/// The first choice of a chunk or a complete answer.
fn first_choice(value: &Value) -> Option<&Value> {
    let is_first = |choice: &&Value| {
        let index = choice.get("index").and_then(Value::as_u64);
        index.is_none_or(|index| index == 0)
    };
    value.get("choices")?.as_array()?.iter().find(is_first)
}

/// The delta or message of a choice; a raw completion has neither.
fn message_in(choice: &Value) -> &Value {
    let message = choice.get("delta").or(choice.get("message"));
    message.unwrap_or(choice)
}

/// The events in a chunk or a complete answer.
fn events_of(value: &Value) -> Vec<Event> {
    let mut events = Vec::new();
    if let Some(choice) = first_choice(value) {
        let message = message_in(choice);
        let text_of = |value: Option<&Value>| {
            let text = value.and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        events.extend(text_of(message.get("content").or(choice.get("text"))).map(Event::Text));
        events.extend(text_of(message.get("refusal")).map(Event::Refusal));
        events.extend(text_of(choice.get("finish_reason")).map(Event::Finish));
    }
    events.extend(Usage::of_completion(value).map(Event::Usage));
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &Value, expected: &[Event]) {
        assert_eq!(events_of(value), expected, "{value}");
    }

    fn text(text: &str) -> Event {
        Event::Text(text.to_owned())
    }

    #[test]
    fn reads_only_the_first_choice() {
        let choice =
            |index: u64, text: &str| json!({ "index": index, "delta": { "content": text } });
        check(&json!({ "choices": [choice(1, "b")] }), &[]);
        check(
            &json!({ "choices": [choice(1, "b"), choice(0, "a")] }),
            &[text("a")],
        );
        check(
            &json!({ "choices": [{ "message": { "content": "a" } }] }),
            &[text("a")],
        );
    }

    #[test]
    fn cached_tokens_are_read_from_usage_or_timings_and_never_guessed() {
        let usage = json!({ "prompt_tokens": 50, "completion_tokens": 7 });
        let check_cached = |value: Value, cached| {
            let usage = Usage {
                input: 50,
                output: 7,
                cached,
            };
            check(&value, &[Event::Usage(usage)]);
        };
        check_cached(json!({ "usage": usage }), None);
        check_cached(
            json!({ "usage": usage, "timings": { "cache_n": 40 } }),
            Some(40),
        );
        let mut usage = usage;
        usage["prompt_tokens_details"] = json!({ "cached_tokens": 0 });
        check_cached(json!({ "usage": usage }), Some(0));
    }

    #[test]
    fn reads_a_refusal() {
        let refusal = Event::Refusal("No.".to_owned());
        let finish = Event::Finish("content_filter".to_owned());
        let said = json!({ "content": null, "refusal": "No." });
        check(
            &json!({ "choices": [{ "delta": said, "finish_reason": "content_filter" }] }),
            &[refusal.clone(), finish],
        );
        check(&json!({ "choices": [{ "message": said }] }), &[refusal]);
    }

    #[test]
    fn reasoning_is_activity_and_empty_pieces_are_not() {
        let chunk = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
        assert!(has_output(&chunk(json!({ "reasoning_content": "Hm." }))));
        assert!(has_output(&chunk(json!({ "tool_calls": [{}] }))));
        assert!(!has_output(&chunk(
            json!({ "content": "", "reasoning": "" })
        )));
        assert!(!has_output(&json!({ "type": "ping" })));
    }

    #[test]
    fn a_raw_prompt_has_the_text_of_all_messages() {
        let messages = json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "Rivers." }, { "type": "image_url" }] },
        ]);
        let http = Http::new(crate::Timeouts::default()).expect("a client");
        let server = OpenAi::new(
            http,
            "http://h/v1",
            None,
            Prefill::of_style(PrefillStyle::RawCompletion),
        );
        let Value::Object(request) =
            json!({ "messages": messages, "max_completion_tokens": 9, "n": 3 })
        else {
            panic!("it is an object");
        };
        let prefill = Some("[1".to_owned());
        let request = server
            .expect("an address")
            .request(Call { request, prefill });
        assert_eq!(request["prompt"], "Be brief.\n\nRivers.\n\n[1");
        assert_eq!(
            (&request["max_tokens"], &request["n"]),
            (&json!(9), &json!(1))
        );
        assert_eq!(request.get("max_completion_tokens"), None);
    }
}
