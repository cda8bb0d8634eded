//! OpenAI's chat completions.

// Requests.
mod calls;
mod checks;
mod message;
mod request;
mod rewrite;
mod tools;

// Responses.
mod delta_merge;
mod event;
mod members;
mod object;
mod response;
mod usage;

pub use message::ChatMessage;
pub use request::ChatRequest;
pub use rewrite::rewrite_text;

pub(crate) use event::has_output;
pub(super) use event::{chunks, summary};
pub(super) use response::ChatResponse;
pub(super) use usage::{add_usage, read_usage, usage_object};
