//! Counts chats with a tokenizer file and the template that comes with it.

use serde_json::Value;

use super::count::CountChats;
use super::template::{ChatTemplate, RenderOptions};
use crate::count::TokenizerFile;

/// A model's own tokenizer with its own template.
#[derive(Clone, Copy, Debug)]
pub struct Rendered<'a> {
    /// What counts.
    pub tokenizer: &'a TokenizerFile,
    /// What writes.
    pub template: &'a ChatTemplate,
    /// The time by the user's clock, in seconds since 1970 began on it, for templates that tell it.
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
