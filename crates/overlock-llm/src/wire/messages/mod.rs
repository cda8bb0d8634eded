//! Anthropic's Messages.

mod answer;
mod calls;
mod events;
mod message;
mod object;
mod request;
mod writer;

pub(super) use answer::MessagesAnswer;
pub(super) use calls::remove_format;
pub(super) use events::{error_in, events_of, has_output, joined};
pub(super) use object::{add_usage, error, events, read_usage, summary, usage_object};
pub use request::MessagesRequest;
