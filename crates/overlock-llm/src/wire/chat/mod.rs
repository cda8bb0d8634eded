//! OpenAI's chat completions.

// Requests.
mod answer;
mod checks;
mod depth;
mod error;
mod message;
mod pieces;
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

pub use error::RequestError;
pub use event::{ChatEncoder, chunks, has_output, is_normal_end};
pub use message::ChatMessage;
pub use object::FinalChoice;
pub use request::ChatRequest;
pub use response::{ChatEvent, ChatResponse, Forwarded};
pub use rewrite::rewrite_text;
pub use usage::{add_usage, read_usage, usage_object};
