//! The wire protocols of requests and answers.
//!
//! Each protocol is one module of pure functions behind [`WireRequest`] and [`WireAnswer`]. No other
//! code knows the names of its members.
//!
//! Finish reasons are translated to `stop`, `tool_calls`, `length` and `content_filter`; other words
//! stay as the upstream sends them.

mod answer;
pub mod chat;
mod choices;
mod depth;
mod error;
pub mod messages;
mod pieces;
mod protocol;
mod request;
pub mod responses;

pub use answer::{AnswerSummary, FinalChoice, Forwarded, WireAnswer, WireEncoder, WireEvent};
pub use error::{ErrorBody, RequestError};
pub use protocol::{MemberNames, Protocol, is_normal_end};
pub use request::{ToolParameters, WireRequest};
