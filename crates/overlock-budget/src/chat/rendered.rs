//! Counts chats with a tokenizer file and the template that comes with it.

use serde_json::Value;

use super::count::CountChats;
use super::template::{ChatTemplate, RenderOptions};
use crate::count::TokenizerFile;

/// A model's own tokenizer with its own template.
#[derive(Clone, Copy, Debug)]
pub struct Rendered<'a> {
    /// The tokenizer.
    pub tokenizer: &'a TokenizerFile,
    /// The template.
    pub template: &'a ChatTemplate,
    /// The user's local time, in seconds since 1970, for templates that write the date.
    pub now: Option<i64>,
}

impl CountChats for Rendered<'_> {
    fn count_chat(&self, messages: &Value, tools: Option<&Value>) -> Option<u64> {
        let options = RenderOptions {
            tools,
            add_generation_prompt: true,
            now: self.now,
        };
        let counted = self.template.count(self.tokenizer, messages, &options);
        counted.ok()
    }
}
