//! What does a chat request take of a model's window?
//!
//! A request is read once and checked once, and kept as it came: parameters nobody here knows,
//! the order of the keys and the digits of the numbers all survive. What it counts depends on how
//! the model's provider writes messages and tools down before the model sees them.

mod count;
mod depth;
mod image;
mod message;
#[cfg(feature = "tokenizer-files")]
mod rendered;
mod request;
mod scale;
#[cfg(feature = "tokenizer-files")]
mod template;
mod tools;

#[cfg(test)]
mod tests;

pub use count::{ChatCount, ChatCounter, CountChats};
pub use message::{ChatMessage, ChatRole};
#[cfg(feature = "tokenizer-files")]
pub use rendered::Rendered;
pub use request::{ChatRequest, RequestError};
pub use scale::Scale;
#[cfg(feature = "tokenizer-files")]
pub use template::{ChatTemplate, ChatTemplateError, RenderError, RenderOptions};

pub(crate) use count::has_system;
pub(crate) use tools::{chosen_names, tool_name};
