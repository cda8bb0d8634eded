//! An HTTP gateway that completes truncated answers for any `OpenAI` client.
//!
//! A client's `base_url` points to the gateway instead of its provider. The gateway counts each
//! request and fits it into the model's window, continues an answer that was cut off until it is
//! complete, and returns one answer, streamed or not.

// Configuration and state.
mod clock;
mod discovery;
mod gateway;
mod joined_responses;
mod keys;
mod model_cache;
mod secrets;
mod settings;
mod strategies;

// HTTP: from the connection to the handler and back.
mod admission;
mod body;
mod error;
mod offload;
mod origin;
mod path;
mod reply;
mod routes;
mod server;
mod token_ratios;
mod upstream;
mod write_timeout;

// Records, events, metrics, logs and traces.
mod events;
mod metrics;
mod record;
mod request_guard;
mod request_stats;
mod totals;
mod trace;
mod unfinished_runs;

// Handlers and the chat path.
mod chat;
mod demo;
mod handlers;
mod schema;

#[cfg(test)]
#[path = "../tests/it/captured_log.rs"]
mod captured_log;

pub use gateway::{Gateway, GatewayError};
pub use keys::Keys;
pub use settings::{Counters, Limits, Settings, Upstream};
