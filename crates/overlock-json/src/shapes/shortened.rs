//! The ends of long texts, for those who show no more of them.

use serde::Serialize;
use serde_json::{Value, json};

use super::Refusal;

/// What may be as long as the text that was asked about, or longer.
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

/// An answer in which a text of more than so many characters, or a list of more than so many
/// entries, is told by its ends: `{"beginning", "ending", "length"}`.
pub fn shortened(answer: &impl Serialize, most: usize) -> Result<Value, Refusal> {
    // Every key of an answer is a string, so that this never fails.
    let told = serde_json::to_value(answer);
    let mut told = told.map_err(|error| Refusal::unusable(error.to_string()))?;
    for name in LONG {
        if let Some(value) = told.get_mut(name)
            && let Some(ends) = ends(value, most)
        {
            *value = ends;
        }
    }
    Ok(told)
}

fn ends(value: &Value, most: usize) -> Option<Value> {
    match value {
        Value::String(text) => {
            // A character has a byte at least.
            let length = (text.len() > most).then(|| text.chars().count())?;
            let place = |character| text.char_indices().nth(character).map(|(at, _)| at);
            let (to, from) = (place(most)?, place(length - most).unwrap_or(text.len()));
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
