//! Counts requests.
//!
//! All protocols read their requests into the same items. Their tokens depend on how the provider
//! writes messages and tools for the model.

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
