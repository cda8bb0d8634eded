//! What is asked: a prompt, or a whole chat request.

use std::path::Path;

use overlock_json::clean_encoding;
use overlock_llm::wire::chat::ChatRequest;
use serde_json::{Value, json};

use super::Complete;
use super::schema::Schema;
use crate::config::{Api, Config};
use crate::ending::Failure;
use crate::input;
use crate::output::Notes;
use crate::suggest::nearest;

/// The model and the request.
pub(super) fn read(
    complete: &Complete,
    config: &Config,
    schema: Option<&Schema>,
    notes: &mut Notes,
) -> Result<(String, ChatRequest), Failure> {
    let (text, name) = text(complete, notes)?;
    let given = request(&text, &name)?;
    let is_prompt = given.is_none();
    let mut request =
        given.unwrap_or_else(|| json!({ "messages": [{ "role": "user", "content": text }] }));
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
    if model.trim().is_empty() || complete.max_tokens == Some(0) {
        return Err(Failure::Usage {
            message: "an empty name is no model, and an answer of 0 tokens is no answer".into(),
            hint: "leave --model or --max-tokens out, or give a value".into(),
        });
    }
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
    let is_anthropic = config.upstream.api == Api::Messages;
    let can_be_held = config.models().find(&model).model.json && !is_anthropic;
    if is_anthropic && schema.is_some() {
        notes.note("the model is not held to the schema, but its document is checked against it");
    }
    if request.get("response_format").is_none() && can_be_held {
        match schema {
            Some(schema) => request["response_format"] = schema.response_format(),
            None => hold_to_json(&mut request, is_prompt),
        }
    }
    let request =
        ChatRequest::from_value(request).map_err(|source| Failure::Request { name, source })?;
    Ok((model, request))
}

/// The request that a text is meant as; nothing if it is a prompt.
fn request(text: &str, name: &str) -> Result<Option<Value>, Failure> {
    match serde_json::from_str(text) {
        // Only an object with messages is meant as a request; any other text is a prompt.
        Ok(request @ Value::Object(_)) if request.get("messages").is_some() => Ok(Some(request)),
        Ok(Value::Object(other)) if other.contains_key("model") => {
            let near = nearest("messages", other.keys().map(String::as_str));
            let hint = match near {
                Some(near) => format!("is `{near}` meant to be `messages`?"),
                None => "give it a list of `messages`; a prompt that looks like this needs a word \
                         before it"
                    .to_owned(),
            };
            Err(Failure::Usage {
                message: format!("{name} looks like a chat request, but has no `messages`"),
                hint,
            })
        }
        Err(error) if text.trim_start().starts_with('{') && text.contains("\"messages\"") => {
            Err(Failure::Usage {
                message: format!("{name} looks like a chat request, but is not JSON: {error}"),
                hint: "put it right; a prompt that looks like this needs a word before it".into(),
            })
        }
        _ => Ok(None),
    }
}

/// Asks for any JSON. Providers refuse that where no message has the word: to a prompt it is added;
/// the messages of a request are its author's.
fn hold_to_json(request: &mut Value, is_prompt: bool) {
    let says_json = request["messages"]
        .to_string()
        .to_lowercase()
        .contains("json");
    if !says_json && !is_prompt {
        return;
    }
    if let (false, Some(messages)) = (says_json, request["messages"].as_array_mut()) {
        let line = "Answer with one JSON document.";
        messages.insert(0, json!({ "role": "system", "content": line }));
    }
    request["response_format"] = json!({ "type": "json_object" });
}

/// What was given to ask, and how messages call it.
fn text(complete: &Complete, notes: &mut Notes) -> Result<(String, String), Failure> {
    let (text, name) = match (&complete.prompt, &complete.file) {
        (Some(prompt), _) if prompt != "-" => (prompt.clone(), "the prompt".to_owned()),
        (_, file) => {
            let path = file.as_deref().unwrap_or(Path::new("-"));
            let text = input::read(path, notes)?;
            let cleaned = clean_encoding(&text.bytes).text.into_owned();
            (cleaned, text.name)
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::Usage {
            message: format!("there is nothing to ask in {name}"),
            hint: "give the prompt as an argument, with -f FILE, or on standard input".into(),
        });
    }
    Ok((text, name))
}
