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
mod events;
mod members;
mod object;
mod response;
mod usage;

pub use message::ChatMessage;
pub use request::ChatRequest;
pub use rewrite::rewrite_text;

pub(super) use event::{chunks, has_output, summary};
pub(super) use events::events_of;
pub(super) use response::ChatResponse;
pub(super) use usage::{add_usage, read_usage, usage_object};
