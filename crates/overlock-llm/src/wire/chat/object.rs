//! Edits the JSON of a complete response.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::wire::answer::FinalChoice;

/// The choices of a completion with their index, or their position if it is missing or a duplicate.
pub(super) fn indexed(completion: &mut Value) -> Vec<(u64, &mut Value)> {
    let choices = completion.get_mut("choices").and_then(Value::as_array_mut);
    let mut taken = BTreeSet::new();
    let choices = (0..).zip(choices.into_iter().flatten());
    let choices = choices.map(|(place, choice)| {
        let index = choice.get("index").and_then(Value::as_u64);
        let index = index
            .filter(|index| !taken.contains(index))
            .unwrap_or(place);
        taken.insert(index);
        (index, choice)
    });
    choices.collect()
}

/// Writes the final texts into a choice. Returns whether that changes it.
pub(super) fn edit(choice: &mut Value, end: &FinalChoice) -> bool {
    let mut is_changed = false;
    let mut set = |place: Option<&mut Value>, text: &str| {
        if let Some(place) = place
            && place.as_str().unwrap_or_default() != text
        {
            *place = json!(text);
            is_changed = true;
        }
    };
    let mut message = choice.get_mut("message");
    let content = message.as_mut().and_then(|it| it.get_mut("content"));
    set(content, &end.content);
    let calls = message.and_then(|it| it.get_mut("tool_calls")?.as_array_mut());
    for (call, text) in calls.into_iter().flatten().zip(&end.calls) {
        if let Some(Value::Object(function)) = call.get_mut("function") {
            let is_text = matches!(
                function.get("arguments"),
                None | Some(Value::Null | Value::String(_))
            );
            if is_text && !text.is_empty() {
                set(
                    Some(function.entry("arguments").or_insert(Value::Null)),
                    text,
                );
            }
        }
    }
    if let (Some(finish), Some(members)) = (&end.finish, choice.as_object_mut()) {
        set(
            Some(members.entry("finish_reason").or_insert(Value::Null)),
            finish,
        );
    }
    is_changed
}

/// Replaces a text. Returns whether that changes it.
pub(super) fn replace(text: &mut String, stable: String) -> bool {
    let is_changed = *text != stable;
    *text = stable;
    is_changed
}
