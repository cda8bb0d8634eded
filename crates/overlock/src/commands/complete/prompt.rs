//! What is asked: a prompt, or a whole chat request.

use std::path::Path;

use overlock_budget::ChatRequest;
use overlock_json::clean_encoding;
use serde_json::{Value, json};

use super::Complete;
use super::schema::Schema;
use crate::config::{Config, Speech};
use crate::ending::Failure;
use crate::input;
use crate::output::Notes;

/// The model and the request.
pub(super) fn read(
    complete: &Complete,
    config: &Config,
    schema: Option<&Schema>,
    notes: &mut Notes,
) -> Result<(String, ChatRequest), Failure> {
    let (text, name) = text(complete, notes)?;
    let mut request = match serde_json::from_str(&text) {
        // Only an object with messages is meant as a request; any other text is a prompt.
        Ok(request @ Value::Object(_)) if request.get("messages").is_some() => request,
        _ => json!({ "messages": [{ "role": "user", "content": text }] }),
    };
    let named = request.get("model").and_then(Value::as_str);
    let model = complete
        .model
        .as_deref()
        .or(named)
        .or(config.budget.model.as_deref());
    let Some(model) = model.map(str::to_owned) else {
        return Err(Failure::Usage {
            message: "no model is named".into(),
            hint: "give one with --model NAME, or set `budget.model` in overlock.toml".into(),
        });
    };
    request["model"] = json!(model);
    if let Some(tokens) = complete.max_tokens {
        let has_new_name = request
            .get("max_completion_tokens")
            .is_some_and(|value| !value.is_null());
        let key = if has_new_name {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        request[key] = json!(tokens);
    }
    // Anthropic takes few schemas and has no other way to hold a model to JSON: what is not
    // asked for by name is not risked.
    let is_anthropic = config.upstream.speech == Speech::Anthropic;
    let can_be_held = config.models().find(&model).model.json && !is_anthropic;
    if is_anthropic && schema.is_some() {
        notes.note("the model is not held to the schema, but its document is checked against it");
    }
    if request.get("response_format").is_none() && can_be_held {
        request["response_format"] = match schema {
            Some(schema) => schema.response_format(),
            None => json!({ "type": "json_object" }),
        };
    }
    let request =
        ChatRequest::from_value(request).map_err(|source| Failure::Request { name, source })?;
    Ok((model, request))
}

/// What was given to ask, and how messages call it.
fn text(complete: &Complete, notes: &mut Notes) -> Result<(String, String), Failure> {
    let path = match (&complete.prompt, &complete.file) {
        (Some(prompt), _) if prompt != "-" => return Ok((prompt.clone(), "the prompt".into())),
        (_, Some(file)) => file.as_path(),
        _ => Path::new("-"),
    };
    let text = input::read(path, notes)?;
    let cleaned = clean_encoding(&text.bytes).text.into_owned();
    if cleaned.trim().is_empty() {
        return Err(Failure::Usage {
            message: format!("there is nothing to ask in {}", text.name),
            hint: "give the prompt as an argument, with -f FILE, or on standard input".into(),
        });
    }
    Ok((cleaned, text.name))
}
