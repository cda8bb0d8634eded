//! What does a chat request take of a model's window?
//!
//! A request is read once and checked once, and kept as it came: parameters nobody here knows,
//! the order of the keys and the digits of the numbers all survive. What it counts depends on how
//! the model's provider writes messages and tools down before the model sees them.

mod count;
mod depth;
mod image;
mod message;
mod request;
mod tools;

#[cfg(test)]
mod tests;

pub use count::{ChatCount, ChatCounter};
pub use message::{ChatMessage, ChatRole};
pub use request::{ChatRequest, RequestError};

pub(crate) use count::has_system;
pub(crate) use tools::{chosen_names, tool_name};
