//! The interface to an upstream.
//!
//! A backend makes one call and returns a stream of events; an answer without streaming is a
//! collected stream, so that there is one code path. A call is a request of the protocol that its
//! run began with; a backend for another protocol translates.

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
pub use surrogate_buffer::{HighSurrogate, ReadEvent, SurrogateBuffer};

use std::ops::AddAssign;
use std::pin::Pin;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::wire::WireRequest;

/// One call to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The members of the request. The backend decides whether it streams.
    pub request: Map<String, Value>,
    /// The start of the model's answer: the answer continues exactly there.
    pub prefill: Option<String>,
}

/// An event of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The call failed and will be repeated.
    Retry(Retry),
    /// The next piece of the answer.
    Text(String),
    /// The next piece of the model's refusal.
    Refusal(String),
    /// The provider's finish reason, such as `stop` or `length`. It may be wrong: only the document
    /// shows whether it is complete.
    Finish(String),
    /// The usage that the provider reports.
    Usage(Usage),
}

/// The tokens of a call, as counted by the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The input tokens.
    pub input: u64,
    /// The output tokens.
    pub output: u64,
    /// The cached input tokens, if the provider reports them.
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
    /// Reads the usage of a chat completion or of the last chunk of a stream. Some builds of
    /// llama.cpp report the cached input tokens only in `timings`.
    pub fn of_completion(completion: &Value) -> Option<Self> {
        let usage = completion.get("usage")?;
        let cached = member(usage, ["prompt_tokens_details", "cached_tokens"]);
        let cached = cached.and_then(Value::as_u64);
        let in_timings = || member(completion, ["timings", "cache_n"])?.as_u64();
        Some(Self {
            input: usage.get("prompt_tokens")?.as_u64()?,
            output: usage.get("completion_tokens")?.as_u64()?,
            cached: cached.or_else(in_timings),
        })
    }
}

/// A member of a member. Unlike `Value::pointer` it allocates nothing, and every answer is read so.
pub(crate) fn member<'a>(value: &'a Value, [outer, inner]: [&str; 2]) -> Option<&'a Value> {
    value.get(outer)?.get(inner)
}

/// An answer as a stream. Dropping it cancels the call.
pub type Events<'a> = Pin<Box<dyn Stream<Item = Result<Event, BackendError>> + Send + 'a>>;

/// An upstream that answers calls.
pub trait Backend: Send + Sync {
    /// Makes a call. The returned stream may not have received anything yet.
    ///
    /// A backend that cannot continue a [`prefill`](Call::prefill) must reject it as
    /// [unsupported](BackendError::Unsupported): otherwise its answer would be appended to the
    /// prefill.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>>;

    /// Whether the server guarantees, for this request, that an answer starts at the end of a
    /// prefill. Text that repeats the document is then new text.
    fn starts_at_cut(&self, _request: &dyn WireRequest) -> bool {
        false
    }
}
