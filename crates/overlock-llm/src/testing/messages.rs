//! The scripted server's Messages.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::dialect::{CollectedAnswer, Heading};
use crate::backend::Event;
use crate::wire::Protocol;

/// The members that the API knows.
const KNOWN: [&str; 21] = [
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
];

/// How a request is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerForm {
    /// The tool that is called.
    pub(super) tool: Option<String>,
    /// Whether the model thinks first.
    pub(super) thinks: bool,
}

impl AnswerForm {
    /// How this request is answered. A model may have a tool that it calls whenever it can.
    pub(super) fn of(request: &Map<String, Value>, favourite: Option<&str>) -> Self {
        let choice = request.get("tool_choice").unwrap_or(&Value::Null);
        let tool = match choice["type"].as_str() {
            Some("tool") => choice["name"].as_str(),
            Some("none") => None,
            _ => favourite.filter(|name| has_tool(request, name) && !has_result(request)),
        };
        Self {
            tool: tool.map(str::to_owned),
            thinks: thinks(request),
        }
    }

    /// The answer without streaming.
    pub(super) fn object(&self, heading: &Heading, answer: &CollectedAnswer) -> Value {
        let is_cut = answer.finish == "length";
        let mut content = Vec::from_iter(self.thinking(heading));
        content.push(match &self.tool {
            None => json!({ "type": "text", "text": answer.text }),
            Some(name) => {
                // A provider closes an input that was cut, or leaves it out.
                let input: Option<Value> = serde_json::from_str(&answer.text).ok();
                let mut call = tool_use(heading, name);
                call["input"] = input.unwrap_or_else(|| json!({}));
                call
            }
        });
        let stop_reason = match answer.finish.as_str() {
            "length" => "max_tokens",
            "content_filter" => "refusal",
            _ if self.tool.is_some() && !is_cut => "tool_use",
            _ => "end_turn",
        };
        json!({
            "id": format!("msg_scripted_{}", heading.number), "type": "message",
            "role": "assistant", "model": heading.model, "content": content,
            "stop_reason": stop_reason, "stop_sequence": null,
            "usage": Protocol::Messages.usage_object(answer.usage),
        })
    }

    /// The answer as a stream, event by event.
    pub(super) fn stream(
        &self,
        heading: &Heading,
        events: &[Event],
        answer: &CollectedAnswer,
    ) -> Vec<String> {
        let mut message = self.object(heading, answer);
        let last = message["content"].as_array().map_or(0, |it| it.len() - 1);
        // The texts of the last block are those of the events.
        message["content"][last] = match &self.tool {
            None => json!({ "type": "text", "text": "" }),
            Some(name) => tool_use(heading, name),
        };
        let mut frames = Vec::new();
        for event in Protocol::Messages.events(&message, false) {
            let is_last_block = event["index"] == last;
            match event["type"].as_str() {
                Some("content_block_delta") if is_last_block => {
                    let texts = events.iter().filter(|event| text_of(event).is_some());
                    frames.extend(texts.map(|event| self.chunk(event)));
                }
                Some("content_block_start") if is_last_block => {
                    frames.push(frame(&event));
                    frames.push(frame(&json!({ "type": "ping" })));
                }
                _ => frames.push(frame(&event)),
            }
        }
        frames
    }

    /// A piece of the last block.
    pub(super) fn chunk(&self, event: &Event) -> String {
        let text = text_of(event).unwrap_or_default();
        let delta = match self.tool {
            None => json!({ "type": "text_delta", "text": text }),
            Some(_) => json!({ "type": "input_json_delta", "partial_json": text }),
        };
        frame(&json!({
            "type": "content_block_delta", "index": u8::from(self.thinks), "delta": delta,
        }))
    }

    fn thinking(&self, heading: &Heading) -> Option<Value> {
        let thinking = format!("I write answer {}.", heading.number);
        let signature = signature(&thinking);
        self.thinks
            .then(|| json!({ "type": "thinking", "thinking": thinking, "signature": signature }))
    }
}

fn text_of(event: &Event) -> Option<&str> {
    match event {
        Event::Text(text) | Event::Refusal(text) => Some(text),
        _ => None,
    }
}

fn tool_use(heading: &Heading, name: &str) -> Value {
    let id = format!("toolu_{}", heading.number);
    json!({ "type": "tool_use", "id": id, "name": name, "input": {} })
}

fn frame(event: &Value) -> String {
    String::from_utf8_lossy(&Protocol::Messages.frame(event)).into_owned()
}

fn has_tool(request: &Map<String, Value>, name: &str) -> bool {
    let tools = request.get("tools").and_then(Value::as_array);
    tools.into_iter().flatten().any(|tool| tool["name"] == name)
}

fn has_result(request: &Map<String, Value>) -> bool {
    let messages = request.get("messages").and_then(Value::as_array);
    let mut blocks = messages.into_iter().flatten().flat_map(blocks);
    blocks.any(|block| block["type"] == "tool_result")
}

fn thinks(request: &Map<String, Value>) -> bool {
    let thinking = request.get("thinking").unwrap_or(&Value::Null);
    matches!(thinking["type"].as_str(), Some("enabled" | "adaptive"))
}

/// The signature of a thinking block.
fn signature(thinking: &str) -> String {
    let digest = thinking
        .bytes()
        .fold(17_u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    format!("scripted-{digest:x}")
}

/// Validates a request like Anthropic.
pub(super) fn check(request: &Map<String, Value>) -> Result<(), String> {
    let is_known = |name: &&String| name.as_str() == "top_p" || KNOWN.contains(&name.as_str());
    if let Some(name) = request.keys().find(|name| !is_known(name)) {
        return Err(format!("{name}: Extra inputs are not permitted"));
    }
    let Some(limit) = request.get("max_tokens").and_then(Value::as_u64) else {
        return Err("max_tokens: Field required".to_owned());
    };
    if request.contains_key("tool_choice") && !request.contains_key("tools") {
        return Err("tool_choice may only be specified while providing tools".to_owned());
    }
    if thinks(request) {
        check_thinking(request, limit)?;
    }
    let messages = request.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or("messages: Field required")?;
    if messages.first().is_none_or(|first| first["role"] != "user") {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    for (index, message) in messages.iter().enumerate() {
        check_message(message).map_err(|error| format!("messages.{index}.{error}"))?;
        check_results(
            index.checked_sub(1).map(|before| &messages[before]),
            message,
        )
        .map_err(|error| format!("messages.{index}: {error}"))?;
    }
    let last = messages.last().filter(|last| last["role"] == "assistant");
    if last.is_some() && thinks(request) {
        return Err("a prefilled answer is not supported while thinking is enabled".to_owned());
    }
    let begun = last.and_then(|last| last["content"].as_str());
    if begun.is_some_and(|begun| begun.ends_with(char::is_whitespace)) {
        return Err(
            "messages: final assistant content cannot end with trailing whitespace".to_owned(),
        );
    }
    Ok(())
}

fn check_thinking(request: &Map<String, Value>, limit: u64) -> Result<(), String> {
    let budget = request["thinking"]["budget_tokens"].as_u64();
    if budget.is_some_and(|budget| budget < 1024) {
        return Err("thinking.enabled.budget_tokens: at least 1024".to_owned());
    }
    if budget.is_some_and(|budget| budget >= limit) {
        return Err("`max_tokens` must be greater than `thinking.budget_tokens`".to_owned());
    }
    let choice = request.get("tool_choice").unwrap_or(&Value::Null);
    if matches!(choice["type"].as_str(), Some("any" | "tool")) {
        return Err("Thinking may not be enabled when tool_choice forces tool use.".to_owned());
    }
    Ok(())
}

fn check_message(message: &Value) -> Result<(), String> {
    let role = message["role"].as_str().unwrap_or_default();
    if !matches!(role, "user" | "assistant") {
        return Err(format!("role: Unexpected role \"{role}\""));
    }
    if message["content"] == "" {
        return Err("content: text must be non-empty".to_owned());
    }
    if !message["content"].is_string() && !message["content"].is_array() {
        return Err("content: Field required".to_owned());
    }
    let mut is_after_thinking = false;
    for block in blocks(message) {
        let kind = block["type"].as_str().unwrap_or_default();
        let is_thinking = matches!(kind, "thinking" | "redacted_thinking");
        if is_thinking && is_after_thinking {
            return Err("content: two signed blocks are neighbours".to_owned());
        }
        is_after_thinking = is_thinking;
        let is_valid = match kind {
            "text" => block["text"].as_str().is_some_and(|text| !text.is_empty()),
            "image" | "document" => role == "user" && block["source"]["type"].is_string(),
            "tool_result" => role == "user" && block["tool_use_id"].is_string(),
            "tool_use" => role == "assistant" && block["input"].is_object(),
            "thinking" => {
                let thinking = block["thinking"].as_str().unwrap_or_default();
                role == "assistant" && block["signature"] == signature(thinking)
            }
            _ => false,
        };
        if !is_valid {
            return Err(format!("content: Invalid `{kind}` block"));
        }
    }
    Ok(())
}

/// Checks that calls are answered in the next message, and that results answer a call.
fn check_results(before: Option<&Value>, message: &Value) -> Result<(), String> {
    let ids = |message: &Value, kind: &str, name: &str| -> BTreeSet<String> {
        let found = blocks(message).iter().filter(|block| block["type"] == kind);
        found
            .filter_map(|block| block[name].as_str().map(str::to_owned))
            .collect()
    };
    let calls = before.map_or_else(BTreeSet::new, |before| ids(before, "tool_use", "id"));
    let results = ids(message, "tool_result", "tool_use_id");
    if let Some(id) = results.difference(&calls).next() {
        return Err(format!(
            "unexpected `tool_use_id` found in `tool_result` blocks: {id}"
        ));
    }
    match calls.difference(&results).next() {
        Some(id) => Err(format!(
            "`tool_use` ids were found without `tool_result` blocks: {id}"
        )),
        None => Ok(()),
    }
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(members: &Value) -> Result<(), String> {
        let mut request = json!({
            "model": "claude", "max_tokens": 2000,
            "tools": [{ "name": "write", "input_schema": {} }],
            "messages": [{ "role": "user", "content": "Hello" }],
        });
        for (name, value) in members.as_object().expect("an object") {
            request[name] = value.clone();
        }
        check(request.as_object().expect("an object"))
    }

    #[track_caller]
    fn check_rejected(members: &Value, error: &str) {
        let found = checked(members).expect_err("it is rejected");
        assert!(found.contains(error), "{found}");
    }

    /// A turn of the model with these blocks, and its continuation.
    fn turn(blocks: &Value, next: &Value) -> Value {
        json!({ "messages": [
            { "role": "user", "content": "Hello" },
            { "role": "assistant", "content": blocks },
            { "role": "user", "content": next },
        ] })
    }

    #[test]
    fn accepts_a_conversation_with_thinking_and_tools() {
        let thinking = json!({ "type": "thinking", "thinking": "a", "signature": signature("a") });
        let call = json!({ "type": "tool_use", "id": "t1", "name": "write", "input": {} });
        let result = json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "ok" }]);
        assert_eq!(checked(&turn(&json!([thinking, call]), &result)), Ok(()));
    }

    #[test]
    fn rejects_what_the_provider_rejects() {
        let thinking = json!({ "type": "thinking", "thinking": "a", "signature": signature("a") });
        let changed = json!({ "type": "thinking", "thinking": "b", "signature": signature("a") });
        let call = json!({ "type": "tool_use", "id": "t1", "name": "write", "input": {} });
        let result = json!([{ "type": "tool_result", "tool_use_id": "t2", "content": "ok" }]);
        let next = json!("Go on.");
        check_rejected(&turn(&json!([changed]), &next), "Invalid `thinking`");
        check_rejected(&turn(&json!([thinking, thinking]), &next), "neighbours");
        check_rejected(&turn(&json!([call]), &next), "without `tool_result`");
        check_rejected(&turn(&json!([call]), &result), "unexpected `tool_use_id`");
        check_rejected(&json!({ "max_tokens": null }), "max_tokens");
        check_rejected(&json!({ "response_format": {} }), "Extra inputs");
        let assistant = |text: &str| json!({ "role": "assistant", "content": text });
        let user = json!({ "role": "user", "content": "Hello" });
        check_rejected(&json!({ "messages": [assistant("a")] }), "first message");
        let prefilled = json!([user, assistant("{ ")]);
        check_rejected(&json!({ "messages": prefilled }), "trailing whitespace");
        let enabled = |budget: u64| json!({ "type": "enabled", "budget_tokens": budget });
        let prefilled = json!([user, assistant("{")]);
        check_rejected(
            &json!({ "messages": prefilled, "thinking": enabled(1024) }),
            "prefilled",
        );
        check_rejected(&json!({ "thinking": enabled(2000) }), "greater than");
        let forced = json!({ "type": "tool", "name": "write" });
        check_rejected(
            &json!({ "thinking": enabled(1024), "tool_choice": forced }),
            "forces tool use",
        );
    }
}
