//! Whole answers for any `OpenAI` client.
//!
//! A client's `base_url` points here instead of at its provider. What it asks is counted and made
//! to fit the model's window; an answer that was cut is continued until it is whole; and the
//! client sees one answer, streamed or not, as if the model had never stopped.
//!
//! The spine is three calls in one order: plan, complete, append.

// What it is told, and what it keeps.
mod clock;
mod discovery;
mod gateway;
mod keys;
mod model_cache;
mod secrets;
mod settings;
mod strategies;

// From the wire and back.
mod admission;
mod body;
mod error;
mod offload;
mod origin;
mod path;
mod reply;
mod routes;
mod server;
mod timer;
mod upstream;
mod write_timeout;

// What came of it.
mod events;
mod log;
mod metrics;
mod record;
mod request_guard;
mod request_stats;
mod totals;
mod trace;
mod unfinished_runs;

// One answer.
mod chat;
mod demo;
mod handlers;
mod schema;

pub use gateway::{Gateway, GatewayError};
pub use keys::Keys;
pub use log::LogEntry;
pub use settings::{Counters, Limits, Settings, Upstream};
