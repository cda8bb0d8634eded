//! Speaks with servers of OpenAI's chat completions, which most others imitate.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use hyper::HeaderMap;
use serde_json::{Map, Value, json};

use super::events::{Heard, Said, streamed};
use super::halves::Halves;
use super::http::{Answer, Endpoint, Http, error_message};
use super::{Backend, BackendError, Call, Event, Events, Usage};

/// How a server is told what the model has said already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefillStyle {
    /// It cannot be told.
    #[default]
    None,
    /// By a last message of the assistant with `prefix: true`, as Mistral and DeepSeek's beta do.
    PrefixMessage,
    /// By a last message of the assistant and `continue_final_message`, as vLLM does.
    ContinueFinalMessage,
    /// By a last message of the assistant and nothing else, as llama.cpp does.
    LastMessage,
    /// By raw completions of a prompt that ends with it.
    RawCompletion,
}

/// A server at an address such as `http://127.0.0.1:11434/v1`.
pub struct OpenAi {
    http: Http,
    chat: Endpoint,
    raw: Endpoint,
    prefill: PrefillStyle,
    streams: bool,
}

impl OpenAi {
    /// The server at a base address, asked with a key if it wants one.
    pub fn new(
        http: Http,
        base: &str,
        key: Option<&str>,
        prefill: PrefillStyle,
    ) -> Result<Self, BackendError> {
        let headers: Vec<_> = key
            .map(|key| ("authorization", format!("Bearer {}", key.trim())))
            .into_iter()
            .collect();
        Ok(Self {
            http,
            chat: Endpoint::new(base, "/chat/completions", &headers, key)?,
            raw: Endpoint::new(base, "/completions", &headers, key)?,
            prefill,
            streams: true,
        })
    }

    /// Asks for whole answers instead of streams, for servers that have none.
    #[must_use]
    pub fn without_streaming(self) -> Self {
        Self {
            streams: false,
            ..self
        }
    }

    /// Sends these headers along with every call, such as those of whoever it is made for.
    #[must_use]
    pub fn with_headers(mut self, headers: &HeaderMap) -> Self {
        for endpoint in [&mut self.chat, &mut self.raw] {
            endpoint.add_headers(headers);
        }
        self
    }

    async fn ask(&self, call: Call) -> Result<Events, BackendError> {
        let endpoint = match (&call.prefill, self.prefill) {
            // A server that does not know what it is told here would answer the message.
            (Some(_), PrefillStyle::None) => {
                return Err(BackendError::Unsupported {
                    host: self.chat.host().to_owned(),
                    what: "an answer that goes on from a given beginning".to_owned(),
                });
            }
            (Some(_), PrefillStyle::RawCompletion) => &self.raw,
            _ => &self.chat,
        };
        let request = self.request(call);
        let body = Value::Object(request).to_string().into_bytes();
        let answer = self.http.post(endpoint, body).await?;
        let host = endpoint.host().to_owned();
        // What was asked for is not always what is given, nor called by its name.
        if answer.is_event_stream() || self.streams && !answer.is_json() {
            Ok(streamed(answer, host, understand))
        } else {
            whole(answer, host).await
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
        let Some(prefill) = call.prefill else {
            return request;
        };
        if self.prefill == PrefillStyle::RawCompletion {
            let messages = request.remove("messages");
            let prompt = raw_prompt(messages.as_ref(), &prefill);
            request.insert("prompt".to_owned(), json!(prompt));
            return request;
        }
        let mut message = json!({ "role": "assistant", "content": prefill });
        match self.prefill {
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
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events, BackendError>> {
        async { self.chat.guarded(self.ask(call).await) }.boxed()
    }

    fn can_prefill(&self) -> bool {
        self.prefill != PrefillStyle::None
    }
}

/// A plain prompt of a conversation, for models that only complete text.
fn raw_prompt(messages: Option<&Value>, prefill: &str) -> String {
    let mut prompt = String::new();
    for message in messages.and_then(Value::as_array).into_iter().flatten() {
        if let Some(content) = message["content"].as_str() {
            prompt.push_str(content);
            prompt.push_str("\n\n");
        }
    }
    prompt + prefill
}

/// An answer that came in one piece.
async fn whole(mut answer: Answer, host: String) -> Result<Events, BackendError> {
    let body = answer.read_whole().await?;
    let read = Halves::default().read(&body);
    let read = read.map_err(|error| BackendError::Malformed {
        host: host.clone(),
        reason: error.to_string(),
    })?;
    let events = events_of(&read.value, &host, &body)?;
    Ok(stream::iter(events.into_iter().map(Ok)).boxed())
}

/// What an event of a stream says.
fn understand(said: &Said<'_>, host: &str) -> Result<Heard, BackendError> {
    events_of(said.value, host, said.raw).map(Heard::Events)
}

/// What a chunk of a stream, or a whole answer, says.
fn events_of(value: &Value, host: &str, raw: &[u8]) -> Result<Vec<Event>, BackendError> {
    if value.get("error").is_some_and(|error| !error.is_null()) {
        return Err(BackendError::Status {
            host: host.to_owned(),
            status: 200,
            message: error_message(raw).unwrap_or_else(|| "an error".to_owned()),
            retry_after: None,
        });
    }
    let choices = value.get("choices").and_then(Value::as_array);
    let usage = value.get("usage").and_then(usage);
    if choices.is_none() && usage.is_none() {
        return Err(BackendError::Malformed {
            host: host.to_owned(),
            reason: "it has no `choices`".to_owned(),
        });
    }
    let mut events = Vec::new();
    if let Some(choice) = choices.and_then(|choices| choices.first()) {
        let said = choice
            .get("delta")
            .or(choice.get("message"))
            .unwrap_or(choice);
        let text = said
            .get("content")
            .or(choice.get("text"))
            .and_then(Value::as_str);
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            events.push(Event::Text(text.to_owned()));
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            events.push(Event::Finish(reason.to_owned()));
        }
    }
    events.extend(usage.map(Event::Usage));
    Ok(events)
}

fn usage(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input: usage.get("prompt_tokens")?.as_u64()?,
        output: usage.get("completion_tokens")?.as_u64()?,
    })
}
