//! How is what is added to a request written down?
//!
//! As system messages. Memories stand together behind the system prompt, where they change least
//! often; each block of context is a message of its own just before the question, so that what
//! precedes it stays the same from turn to turn.

use serde_json::Value;

use super::options::{ContextBlock, Memory, MemoryOptions};
use crate::chat::{ChatMessage, ChatRole};

/// The places of the memories that are worth telling, the one that matters most first.
pub(super) fn choose_memories(memories: &[Memory], options: &MemoryOptions) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..memories.len())
        .filter(|&place| {
            let memory = &memories[place];
            memory.importance >= options.importance && memory.age_days <= options.days
        })
        .collect();
    chosen.sort_by(|&one, &other| {
        let (one, other) = (&memories[one], &memories[other]);
        other
            .importance
            .total_cmp(&one.importance)
            .then(one.age_days.total_cmp(&other.age_days))
    });
    chosen.truncate(options.count);
    chosen
}

pub(super) fn write_memories<'a>(memories: impl Iterator<Item = &'a Memory<'a>>) -> String {
    let mut text = "[Memories]".to_owned();
    for memory in memories {
        text.push_str("\n- ");
        text.push_str(memory.text.trim());
    }
    text
}

pub(super) fn write_context(block: &ContextBlock, text: &str) -> String {
    format!("[Context: {}]\n{text}", block.name)
}

/// What a summary says of a message.
pub(super) fn summary_line(message: ChatMessage<'_>) -> String {
    const SHORT: usize = 120;
    let texts = message.texts().flat_map(str::lines);
    let text = texts.map(str::trim).find(|line| !line.is_empty());
    let called = message.called_names().next();
    let text = text.or(called).unwrap_or_default();
    let end = text.char_indices().nth(SHORT).map(|(end, _)| end);
    let (text, dots) = match end {
        Some(end) => (&text[..end], "…"),
        None => (text, ""),
    };
    format!("{}: {text}{dots}", message.role().name())
}

pub(super) fn system_message(text: String) -> Value {
    let role = ChatRole::System.name();
    let members = [("role", Value::from(role)), ("content", Value::from(text))];
    members.into_iter().collect()
}
