//! Who answers?
//!
//! A backend takes one call and gives back a stream of what the model writes; a whole answer is a
//! collected stream, so that there is one path for both. A call is told in the words of OpenAI's
//! chat completions, which most servers speak; a backend that speaks another language translates.

mod error;
mod finding;
mod prefill;
mod refused_size;
mod retry;
mod sse;
mod surrogate_buffer;

pub use error::{BackendError, Phase};
pub use finding::Finding;
pub use prefill::{Prefill, PrefillStyle};
pub use refused_size::RefusedSize;
pub use retry::{Retried, Retry, RetryPolicy};
pub use sse::{SseEvent, SseReader, TooLongEvent};
pub use surrogate_buffer::{Half, ReadEvent, SurrogateBuffer};

use std::ops::AddAssign;
use std::pin::Pin;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One call of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The request as a client of OpenAI's chat completions writes it: `model`, `messages`,
    /// `max_tokens` and the rest. Whether it streams is up to the backend.
    pub request: Map<String, Value>,
    /// What the model has said already: its answer goes on exactly there.
    pub prefill: Option<String>,
}

/// What a model says while it answers, and what happens before it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing was answered, and the call will be made again.
    Retry(Retry),
    /// The next piece of the answer.
    Text(String),
    /// The next piece of what the model says instead of an answer.
    Refusal(String),
    /// Why the provider says the answer ended, such as `stop` or `length`. Only the document
    /// itself tells whether that is so.
    Finish(String),
    /// What the call took, as the provider counts.
    Usage(Usage),
}

/// The tokens of a call, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// What the model read.
    pub input: u64,
    /// What it wrote.
    pub output: u64,
    /// The cached input tokens; nothing where the provider does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = match (self.cached, other.cached) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
    }
}

impl Usage {
    /// What a chat completion, or the last chunk of a stream, reports. Some builds of llama.cpp
    /// report the cached input tokens only among their timings.
    pub fn of_completion(completion: &Value) -> Option<Self> {
        let usage = completion.get("usage")?;
        let cached = usage.pointer("/prompt_tokens_details/cached_tokens");
        let cached = cached.and_then(Value::as_u64);
        let in_timings = || completion.pointer("/timings/cache_n")?.as_u64();
        Some(Self {
            input: usage.get("prompt_tokens")?.as_u64()?,
            output: usage.get("completion_tokens")?.as_u64()?,
            cached: cached.or_else(in_timings),
        })
    }
}

/// An answer as it comes. Dropping it ends the call.
pub type Events<'a> = Pin<Box<dyn Stream<Item = Result<Event, BackendError>> + Send + 'a>>;

/// Somebody who answers calls.
pub trait Backend: Send + Sync {
    /// Makes a call. What comes back is ready to be read; nothing of it may have arrived yet.
    ///
    /// Who cannot go on from a [`prefill`](Call::prefill) must refuse it as
    /// [unsupported](BackendError::Unsupported): an answer to it would be taken for its rest.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>>;

    /// Whether the server makes sure that the answer starts at the end of the prefill, so that text
    /// that stands in the document already is new text.
    fn starts_at_cut(&self, _call: &Call) -> bool {
        false
    }
}
