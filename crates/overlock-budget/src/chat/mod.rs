//! What does a request take of a model's window?
//!
//! Protocols differ in how they write a request; they read it into the same items. What these count
//! depends on how the model's provider writes messages and tools down before the model sees them.

mod count;
mod image;
#[cfg(feature = "tokenizer-files")]
mod rendered;
mod request;
mod scale;
#[cfg(feature = "tokenizer-files")]
mod template;
mod tools;

pub use count::{ChatCount, ChatCounter, CountChats};
#[cfg(feature = "tokenizer-files")]
pub use rendered::Rendered;
pub use request::{
    ChatRole, Content, Function, MessageKind, Outline, Request, SentMessage, Tool, ToolChoice,
};
pub use scale::Scale;
#[cfg(feature = "tokenizer-files")]
pub use template::{ChatTemplate, ChatTemplateError, RenderError, RenderOptions};
