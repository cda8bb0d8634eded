//! Writes memories and context blocks as system messages.
//!
//! Memories share one message after the system prompt, because they change rarely. Each context block
//! is a separate message directly before the last user message, so that the messages before it stay the same
//! from turn to turn.

use super::options::{ContextBlock, Memory, MemoryOptions};
use crate::chat::{Content, Request};

/// The indices of the memories to include, the most important first.
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

/// The line of a message in a summary.
pub(super) fn summary_line(request: &dyn Request, place: usize) -> String {
    const SHORT: usize = 120;
    let (mut text, mut called) = (None, None);
    request.contents(place, &mut |content| match content {
        Content::Text(lines) if text.is_none() => {
            text = lines.lines().map(str::trim).find(|line| !line.is_empty());
        }
        Content::Call { name, .. } if called.is_none() => called = Some(name),
        _ => {}
    });
    let text = text.or(called).unwrap_or_default();
    let end = text.char_indices().nth(SHORT).map(|(end, _)| end);
    let (text, dots) = match end {
        Some(end) => (&text[..end], "…"),
        None => (text, ""),
    };
    let role = request.outline().messages[place].role;
    format!("{}: {text}{dots}", role.name())
}
