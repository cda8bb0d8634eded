//! OpenAI's Responses.

mod answer;
mod calls;
mod events;
mod item;
mod object;
mod request;
mod writer;

pub(super) use answer::{ResponsesAnswer, error_in, has_output};
pub(super) use events::events_of;
pub(super) use object::{add_usage, events, read_usage, summary, usage_object};
pub use request::ResponsesRequest;
