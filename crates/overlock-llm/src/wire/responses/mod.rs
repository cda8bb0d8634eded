//! OpenAI's Responses.

mod answer;
mod calls;
mod events;
mod item;
mod object;
mod request;
mod turn;
mod writer;

pub(super) use answer::ResponsesAnswer;
pub(super) use calls::remove_format;
pub(super) use events::{error_in, events_of, has_output};
pub(super) use object::{add_usage, assistant_message, events, read_usage, summary, usage_object};
pub use request::ResponsesRequest;
pub use turn::{ResponsesTurn, may_have_been_joined, previous_response_id, stored_id};
