//! Reads the input: a prompt, or a chat request.

use std::path::Path;

use overlock_json::clean_encoding;
use overlock_llm::wire::chat::ChatRequest;
use serde_json::{Value, json};

use super::Complete;
use super::schema::DocumentSchema;
use crate::config::{Api, Config};
use crate::ending::Failure;
use crate::input;
use crate::output::Notes;
use crate::suggest::nearest;

/// The model and the request.
pub(super) fn read(
    complete: &Complete,
    config: &Config,
    schema: Option<&DocumentSchema>,
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
            message: "no model given".into(),
            hint: "give one with --model NAME, or set `budget.model` in overlock.toml".into(),
        });
    };
    if model.trim().is_empty() || complete.max_tokens == Some(0) {
        return Err(Failure::Usage {
            message: "the model name is empty, or --max-tokens is 0".into(),
            hint: "give another value, or remove --model or --max-tokens".into(),
        });
    }
    request["model"] = json!(model);
    if let Some(tokens) = complete.max_tokens {
        let key = match request.get("max_completion_tokens") {
            Some(value) if !value.is_null() => "max_completion_tokens",
            _ => "max_tokens",
        };
        request[key] = json!(tokens);
    }
    // Anthropic accepts few schemas and has no JSON mode, so no format is requested by default.
    let is_anthropic = config.upstream.api == Api::Messages;
    let has_json_mode = config.models().find(&model).model.json && !is_anthropic;
    if is_anthropic && schema.is_some() {
        notes.note("the schema is not sent to the model, but the document is checked against it");
    }
    if request.get("response_format").is_none() && has_json_mode {
        match schema {
            Some(schema) => request["response_format"] = schema.response_format(),
            None => request_json_mode(&mut request, is_prompt),
        }
    }
    let request =
        ChatRequest::from_value(request).map_err(|source| Failure::Request { name, source })?;
    Ok((model, request))
}

/// The text as a request, or `None` if it is a prompt.
fn request(text: &str, name: &str) -> Result<Option<Value>, Failure> {
    match serde_json::from_str(text) {
        Ok(request @ Value::Object(_)) if request.get("messages").is_some() => Ok(Some(request)),
        Ok(Value::Object(other)) if other.contains_key("model") => {
            let near = nearest("messages", other.keys().map(String::as_str));
            let hint = match near {
                Some(near) => format!("rename `{near}` to `messages`?"),
                None => "add `messages`; if it is a prompt, put a word before the JSON".to_owned(),
            };
            Err(Failure::Usage {
                message: format!("{name} looks like a chat request, but has no `messages`"),
                hint,
            })
        }
        Err(error) if text.trim_start().starts_with('{') && text.contains("\"messages\"") => {
            Err(Failure::Usage {
                message: format!("{name} looks like a chat request, but is not JSON: {error}"),
                hint: "correct the JSON; if it is a prompt, put a word before it".into(),
            })
        }
        _ => Ok(None),
    }
}

/// Requests JSON mode. Providers refuse it unless a message contains the word JSON. The word is
/// added to a prompt; the messages of a request stay unchanged.
fn request_json_mode(request: &mut Value, is_prompt: bool) {
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

/// The input, and its name for messages.
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
            message: format!("{name} is empty"),
            hint: "give the prompt as an argument, with -f FILE, or on standard input".into(),
        });
    }
    Ok((text, name))
}
