//! Translates a chat request to Anthropic's format.
//!
//! Fields with the same name are copied. OpenAI's other sampling parameters, such as `seed` or
//! `presence_penalty`, are dropped; fields that would change the meaning of the answer are rejected
//! by name.

use serde_json::{Map, Value, json};

use crate::backend::Call;

/// The request, or the name of an unsupported feature.
pub(super) fn translate(call: Call) -> Result<Map<String, Value>, String> {
    let Call {
        request: given,
        prefill,
    } = call;
    let given_value = |name: &str| given.get(name).filter(|value| !value.is_null());
    reject_unsupported(&given)?;
    let mut request = Map::new();
    // The plan of a call sets its answer limit, which the API requires.
    for name in ["model", "max_tokens", "temperature", "top_p", "top_k"] {
        if let Some(value) = given_value(name) {
            request.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(limit) = given_value("max_completion_tokens") {
        request.insert("max_tokens".to_owned(), limit.clone());
    }
    if let Some(stop) = given_value("stop") {
        let stops = match stop {
            Value::String(_) => json!([stop]),
            other => other.clone(),
        };
        request.insert("stop_sequences".to_owned(), stops);
    }
    // The grammar of a schema starts at the beginning of the document, but a prefill is in its
    // middle.
    let format = given_value("response_format").filter(|_| prefill.is_none());
    if let Some(format) = format.and_then(schema_of) {
        let config = json!({ "format": { "type": "json_schema", "schema": format } });
        request.insert("output_config".to_owned(), config);
    }

    let mut system = Vec::new();
    let mut messages = Vec::new();
    let all = given.get("messages").and_then(Value::as_array);
    for message in all.into_iter().flatten() {
        let content = message.get("content").unwrap_or(&Value::Null);
        let role = message.get("role").and_then(Value::as_str);
        match role.unwrap_or("user") {
            "system" | "developer" => system.push(plain_text(content)?),
            role @ ("user" | "assistant") => {
                if message
                    .get("tool_calls")
                    .is_some_and(|calls| !calls.is_null())
                {
                    return Err("a tool call".to_owned());
                }
                // The API rejects empty messages.
                if let Some(content) = translated(content)? {
                    messages.push(json!({ "role": role, "content": content }));
                }
            }
            role => return Err(format!("a message of the role `{role}`")),
        }
    }
    if let Some(prefill) = prefill {
        messages.push(json!({ "role": "assistant", "content": prefill }));
    }
    if !system.is_empty() {
        request.insert("system".to_owned(), json!(system.join("\n\n")));
    }
    request.insert("messages".to_owned(), Value::Array(messages));
    Ok(request)
}

fn reject_unsupported(request: &Map<String, Value>) -> Result<(), String> {
    for (name, what) in [("tools", "a tool"), ("functions", "a function")] {
        let is_given = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
        if request.get(name).is_some_and(is_given) {
            return Err(what.to_owned());
        }
    }
    let is_several = |count: &Value| count.as_u64().is_some_and(|count| count > 1);
    if request.get("n").is_some_and(is_several) {
        return Err("more than one answer at once (`n`)".to_owned());
    }
    Ok(())
}

/// The JSON Schema of a response format, if it has one.
fn schema_of(format: &Value) -> Option<&Value> {
    if format.get("type")?.as_str()? != "json_schema" {
        return None;
    }
    format.get("json_schema")?.get("schema")
}

/// The content of a message; `None` if it is empty.
fn translated(content: &Value) -> Result<Option<Value>, String> {
    let parts = match content {
        Value::Array(parts) => parts,
        Value::Null => return Ok(None),
        Value::String(text) => return Ok((!text.is_empty()).then(|| json!(text))),
        _ => return Err("a content that is neither text nor a list of parts".to_owned()),
    };
    let mut blocks = Vec::new();
    for part in parts {
        match part.get("type").and_then(Value::as_str).unwrap_or("text") {
            "text" | "refusal" => {
                let text = part_text(part)?;
                if !text.is_empty() {
                    blocks.push(json!({ "type": "text", "text": text }));
                }
            }
            "image_url" => blocks.push(image(part)?),
            other => return Err(format!("a part of the type `{other}`")),
        }
    }
    Ok((!blocks.is_empty()).then_some(Value::Array(blocks)))
}

fn part_text(part: &Value) -> Result<&str, String> {
    let text = match part {
        Value::String(text) => return Ok(text),
        part => part.get("text").or(part.get("refusal")),
    };
    text.and_then(Value::as_str)
        .ok_or_else(|| "a text part without text".to_owned())
}

/// An image by URL or inline.
fn image(part: &Value) -> Result<Value, String> {
    let image = &part["image_url"];
    let address = image.get("url").unwrap_or(image).as_str();
    let address = address.ok_or("an image without a URL")?;
    let source = match address.strip_prefix("data:") {
        Some(data) => {
            let (media_type, data) = data
                .split_once(";base64,")
                .ok_or("an inline image that is not base64")?;
            json!({ "type": "base64", "media_type": media_type, "data": data })
        }
        None if address.starts_with("https://") || address.starts_with("http://") => {
            json!({ "type": "url", "url": address })
        }
        None => return Err("an image that is neither a web URL nor inline".into()),
    };
    Ok(json!({ "type": "image", "source": source }))
}

/// The text of a text-only message.
fn plain_text(content: &Value) -> Result<String, String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let is_text = |part: &&Value| part.get("type").is_none_or(|kind| kind == "text");
            let texts = parts.iter().map(|part| {
                let part = Some(part).filter(is_text);
                part_text(part.ok_or("a system message that is not text")?)
            });
            texts.collect()
        }
        _ => Err("a system message that is not text".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate_value(request: Value, prefill: Option<&str>) -> Result<Value, String> {
        let Value::Object(request) = request else {
            panic!("a request is an object");
        };
        let prefill = prefill.map(str::to_owned);
        translate(Call { request, prefill }).map(Value::Object)
    }

    #[track_caller]
    fn check(request: Value, prefill: Option<&str>, expected: &Value) {
        assert_eq!(translate_value(request, prefill).as_ref(), Ok(expected));
    }

    #[track_caller]
    fn check_rejected(request: Value, what: &str) {
        assert_eq!(translate_value(request, None), Err(what.to_owned()));
    }

    fn asking(content: &Value) -> Value {
        json!({ "messages": [{ "role": "user", "content": content }] })
    }

    #[test]
    fn translates_messages_and_parameters() {
        check(
            json!({
                "model": "claude", "max_completion_tokens": 100, "max_tokens": null, "stop": "END",
                "temperature": 0.5, "seed": 3, "response_format": { "type": "json_object" },
                "messages": [
                    { "role": "system", "content": "Be brief." },
                    { "role": "developer", "content": [{ "type": "text", "text": "Write JSON." }] },
                    { "role": "user", "content": "Rivers." },
                    { "role": "assistant", "content": null },
                ],
            }),
            Some("{\"a\":"),
            &json!({
                "model": "claude", "temperature": 0.5, "max_tokens": 100, "stop_sequences": ["END"],
                "system": "Be brief.\n\nWrite JSON.",
                "messages": [
                    { "role": "user", "content": "Rivers." },
                    { "role": "assistant", "content": "{\"a\":" },
                ],
            }),
        );
        let stops = translate_value(json!({ "stop": ["a", "b"] }), None).expect("it is supported");
        assert_eq!(stops["stop_sequences"], json!(["a", "b"]));
    }

    #[test]
    fn a_schema_becomes_an_output_format() {
        let schema = json!({ "type": "object" });
        let format =
            json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema } });
        let request = translate_value(json!({ "response_format": format }), None);
        assert_eq!(
            request.expect("it is supported")["output_config"],
            json!({ "format": { "type": "json_schema", "schema": schema } })
        );
    }

    #[test]
    fn images_are_translated() {
        let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
        let content = json!([
            { "type": "text", "text": "What is this?" }, { "type": "text", "text": "" },
            image("data:image/png;base64,AAAA"), image("https://example.org/a.png"),
        ]);
        let request = translate_value(asking(&content), None).expect("it is supported");
        assert_eq!(
            request["messages"][0]["content"],
            json!([
                { "type": "text", "text": "What is this?" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                { "type": "image", "source": { "type": "url", "url": "https://example.org/a.png" } },
            ])
        );
        check_rejected(
            asking(&json!([image("data:image/svg+xml,<svg/>")])),
            "an inline image that is not base64",
        );
        check_rejected(
            asking(&json!([image("file:///etc/passwd")])),
            "an image that is neither a web URL nor inline",
        );
    }

    #[test]
    fn rejects_unsupported_features_by_name() {
        check_rejected(json!({ "tools": [{ "type": "function" }] }), "a tool");
        check_rejected(json!({ "n": 2 }), "more than one answer at once (`n`)");
        check_rejected(
            json!({ "messages": [{ "role": "tool", "content": "3" }] }),
            "a message of the role `tool`",
        );
        check_rejected(
            json!({ "messages": [{ "role": "assistant", "tool_calls": [{}] }] }),
            "a tool call",
        );
        check_rejected(
            asking(&json!([{ "type": "input_audio" }])),
            "a part of the type `input_audio`",
        );
        check_rejected(
            asking(&json!([{ "type": "text" }])),
            "a text part without text",
        );
        check_rejected(
            asking(&json!(3)),
            "a content that is neither text nor a list of parts",
        );
        check_rejected(
            json!({ "messages": [{ "role": "system", "content": [{ "type": "image_url" }] }] }),
            "a system message that is not text",
        );
        check(
            json!({ "tools": [], "n": 1 }),
            None,
            &json!({ "messages": [] }),
        );
    }
}
