//! What does a chat look like to the model that is to answer it?

#[cfg(feature = "tokenizer-files")]
mod template;

#[cfg(feature = "tokenizer-files")]
pub use template::{ChatTemplate, ChatTemplateError, RenderError, RenderOptions};
