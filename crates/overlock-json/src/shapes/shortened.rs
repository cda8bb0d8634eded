//! Replies with long texts reduced to their ends.

use serde::Serialize;
use serde_json::{Value, json};

use super::Refusal;

/// Fields that may be as long as the given text, or longer.
const LONG: [&str; 10] = [
    "json",
    "fixes",
    "rendered",
    "overlap_context",
    "hierarchy_context",
    "hierarchy_context_for_prompt",
    "complete_part",
    "cut_off_element",
    "element_before_cutoff",
    "delivered",
];

/// A reply in which a text of more than `most` characters, or a list of more than `most` entries, is
/// replaced by its ends: `{"beginning", "ending", "length"}`.
pub fn shortened(answer: &impl Serialize, most: usize) -> Result<Value, Refusal> {
    // This cannot fail, because all keys are strings.
    let reply = serde_json::to_value(answer);
    let mut reply = reply.map_err(|error| Refusal::unusable(error.to_string()))?;
    for name in LONG {
        if let Some(value) = reply.get_mut(name)
            && let Some(ends) = ends(value, most)
        {
            *value = ends;
        }
    }
    Ok(reply)
}

fn ends(value: &Value, most: usize) -> Option<Value> {
    match value {
        Value::String(text) => {
            // A character has at least one byte.
            let length = (text.len() > most).then(|| text.chars().count())?;
            let offset = |character| text.char_indices().nth(character).map(|(at, _)| at);
            let (to, from) = (offset(most)?, offset(length - most).unwrap_or(text.len()));
            Some(json!({ "beginning": text[..to], "ending": text[from..], "length": length }))
        }
        Value::Array(items) => {
            let (to, from) = (
                most,
                items.len().checked_sub(most).filter(|from| *from > 0)?,
            );
            Some(
                json!({ "beginning": items[..to], "ending": items[from..], "length": items.len() }),
            )
        }
        _ => None,
    }
}
