//! A client for OpenAI's chat completions API, which most servers offer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use hyper::HeaderMap;
use serde_json::{Map, Value, json};

use super::address::Endpoint;
use super::events::{EventContent, event_stream};
use super::response::{LONGEST_ANSWER, Shape, error_in};
use super::{Http, Peer, Response};
use crate::backend::{Backend, BackendError, Call, Events, Prefill, PrefillStyle, Usage};
use crate::wire::{Protocol, WireRequest};

/// A server at a base URL such as `http://127.0.0.1:11434/v1`.
pub struct OpenAi {
    http: Http,
    protocol: Protocol,
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
        Self::speaking(Protocol::ChatCompletions, http, base, key, prefill)
    }

    /// The same, for calls of another protocol.
    pub fn speaking(
        protocol: Protocol,
        http: Http,
        base: &str,
        key: Option<&str>,
        prefill: Prefill,
    ) -> Result<Self, BackendError> {
        Ok(Self {
            raw: Endpoint::with_bearer(base, "/completions", key)?,
            prefill,
            ..Self::at(
                protocol,
                http,
                Endpoint::with_bearer(base, protocol.path(), key)?,
            )
        })
    }

    /// A server at one endpoint, without prefills.
    pub(super) fn at(protocol: Protocol, http: Http, chat: Endpoint) -> Self {
        Self {
            http,
            protocol,
            raw: chat.clone(),
            chat,
            prefill: Prefill::default(),
            streams: true,
        }
    }

    pub(super) fn host(&self) -> &str {
        self.chat.host()
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
                    host: self.host().to_owned(),
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
            Shape::Stream => {
                let protocol = self.protocol;
                let mut started = Usage::default();
                let interpret =
                    move |event: &Value, host: &str| interpret(protocol, event, &mut started, host);
                Ok(event_stream(answer, interpret))
            }
            Shape::Json => complete_answer(self.protocol, answer).await,
        }
    }

    fn request(&self, call: Call) -> Map<String, Value> {
        let mut request = call.request;
        self.protocol.with_stream(&mut request, self.streams);
        // A run continues one answer.
        if let Some(count) = request.get_mut("n") {
            *count = json!(1);
        }
        let Some(prefill) = call.prefill else {
            return request;
        };
        if !self.prefill.keeps_format {
            self.protocol.without_format(&mut request);
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
        let mut message = self.protocol.assistant_message(&prefill);
        match self.prefill.style {
            PrefillStyle::PrefixMessage => message["prefix"] = json!(true),
            PrefillStyle::ContinueFinalMessage => {
                request.insert("continue_final_message".to_owned(), json!(true));
                request.insert("add_generation_prompt".to_owned(), json!(false));
            }
            PrefillStyle::None | PrefillStyle::LastMessage | PrefillStyle::RawCompletion => {}
        }
        let messages = self.protocol.names().messages;
        if let Some(Value::Array(messages)) = request.get_mut(messages) {
            messages.push(message);
        }
        request
    }
}

impl Backend for OpenAi {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        async { self.ask(call).await }.boxed()
    }

    fn starts_at_cut(&self, request: &dyn WireRequest) -> bool {
        self.prefill.carries_grammar(request)
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
async fn complete_answer(
    protocol: Protocol,
    mut answer: Response,
) -> Result<Events<'static>, BackendError> {
    let (value, _) = answer.answer_object(protocol, LONGEST_ANSWER).await?;
    let events = protocol.events_of(&value, &mut Usage::default());
    Ok(stream::iter(events.into_iter().map(Ok)).boxed())
}

/// Interprets a chunk of a stream. Unknown events, such as pings, contain nothing.
fn interpret(
    protocol: Protocol,
    event: &Value,
    started: &mut Usage,
    host: &str,
) -> Result<EventContent, BackendError> {
    let error = protocol.error_in(event);
    if let Some(error) = error.and_then(|error| error_in(&error, host)) {
        return Err(error);
    }
    if protocol.ends_stream(event) {
        return Ok(EventContent::Done);
    }
    let events = protocol.events_of(event, started);
    if events.is_empty() && protocol.has_output(event) {
        return Ok(EventContent::Activity);
    }
    Ok(EventContent::Events(events))
}

#[cfg(test)]
mod tests {
    use super::*;

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
