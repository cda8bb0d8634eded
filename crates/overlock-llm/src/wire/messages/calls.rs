//! What a Messages request says about its answer, and the calls that are made of it.

use overlock_budget::{Plan, Request, SentMessage};
use serde_json::{Map, Value, json};

use super::request::MessagesRequest;
use crate::wire::error::{RequestError, wrong_at};
use crate::wire::pieces::Pieces;
use crate::wire::request::{ToolParameters, WireRequest, lower_effort, tool_question};

/// Members that are invalid without tools.
const WITH_TOOLS: [&str; 2] = ["tools", "tool_choice"];

/// The least budget of thinking that the API accepts.
const LEAST_THINKING: u64 = 1024;

impl WireRequest for MessagesRequest {
    fn model(&self) -> Option<&str> {
        self.whole.get("model")?.as_str()
    }

    fn boxed(&self) -> Box<dyn WireRequest> {
        Box::new(self.clone())
    }

    fn is_streamed(&self) -> Result<bool, RequestError> {
        match self.whole.get("stream") {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(is_streamed)) => Ok(*is_streamed),
            Some(other) => Err(wrong_at("stream", other, "true or false")),
        }
    }

    /// The last events have the usage.
    fn wants_usage(&self) -> bool {
        false
    }

    fn wants_json(&self) -> bool {
        self.answer_schema().is_some()
    }

    /// After a prefill of the client, the answer is only the rest of a text.
    fn may_be_continued(&self) -> bool {
        let messages = self.whole["messages"].as_array();
        let last = messages.and_then(|messages| messages.last());
        last.is_none_or(|last| last["role"] != "assistant")
    }

    fn is_thinking(&self) -> bool {
        let kind = self.whole.get("thinking").and_then(|it| it.get("type"));
        kind.is_some_and(|kind| kind != "disabled")
    }

    /// The upstream holds its answer to the schema.
    fn document_schema(&self) -> Option<(&Value, bool)> {
        Some((self.answer_schema()?.get("schema")?, true))
    }

    fn tool_parameters(&self) -> Vec<ToolParameters<'_>> {
        let tools = self.tool_values().iter().filter_map(|tool| {
            Some(ToolParameters {
                name: tool.get("name")?.as_str()?,
                schema: tool.get("input_schema").filter(|it| it.is_object())?,
                is_strict: tool.get("strict") == Some(&Value::Bool(true)),
            })
        });
        tools.collect()
    }

    fn to_value(&self) -> Value {
        Value::Object(self.whole.clone())
    }

    /// Only a stream has the text of an input that is cut, so an answer that may call tools is
    /// always streamed.
    fn forwarded(self: Box<Self>, text: &str, plan: &Plan) -> Option<String> {
        let is_same_limit = self.outline.requested == Some(plan.adjusted_max_tokens);
        let has_all_tools = plan.kept_tools.len() == self.tool_values().len();
        if is_same_limit && has_all_tools && !plan.changes_messages() && !self.needs_stream() {
            return None;
        }
        if let Some(text) = self.edited_text(text, plan) {
            return Some(text);
        }
        // A text with a duplicate key is written again, since only one of the values was counted.
        let needs_stream = self.needs_stream();
        let mut members = self.into_call(plan);
        if needs_stream {
            members.insert("stream".to_owned(), json!(true));
        }
        Some(Value::Object(members).to_string())
    }

    fn into_call(self: Box<Self>, plan: &Plan) -> Map<String, Value> {
        let first = self.first_message();
        let thinking = self.fitted_thinking(plan.adjusted_max_tokens);
        let mut members = self.whole;
        if plan.changes_messages() {
            let mut added = Vec::new();
            if let Some(Value::Array(messages)) = members.get_mut("messages") {
                let sent = plan.messages().filter_map(|message| match message {
                    SentMessage::Kept(place) => {
                        place.checked_sub(first).map(|at| messages[at].take())
                    }
                    SentMessage::Shortened(place, text) => {
                        let message = place.checked_sub(first).map(|at| messages[at].take());
                        message.map(|message| shortened(message, text))
                    }
                    SentMessage::Inserted(text) => {
                        added.push(text);
                        None
                    }
                });
                *messages = sent.collect();
            }
            for text in added {
                let system = members.remove("system");
                members.insert("system".to_owned(), with_text(system.as_ref(), text));
            }
        }
        if let Some(Value::Array(tools)) = members.get_mut("tools")
            && plan.kept_tools.len() < tools.len()
        {
            *tools = plan.kept_tools.iter().map(|at| tools[*at].take()).collect();
            if tools.is_empty() {
                for key in WITH_TOOLS {
                    members.shift_remove(key);
                }
            }
        }
        if let Some(thinking) = thinking {
            members.insert("thinking".to_owned(), thinking);
        }
        let limit = plan.adjusted_max_tokens.into();
        members.insert("max_tokens".to_owned(), limit);
        members
    }

    /// The rest of a text needs no thinking. Without it the whole limit is left for the rest, and
    /// no thinking of this call has to be hidden from the client.
    fn for_one_text(&self, tool: Option<&str>) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            for name in ["stream", "thinking"] {
                members.remove(name);
            }
            remove_thinking_edits(members);
            if tool.is_some() {
                // It describes the content, and not the input of a call.
                remove_format(members);
            }
            if members.contains_key("tools") {
                // The answer is text, even if it is the input of a call.
                members.insert("tool_choice".to_owned(), json!({ "type": "none" }));
            }
            if let Some(tool) = tool {
                push_text(members, "user", &tool_question(tool));
            }
        })
    }

    fn with_words(
        &self,
        words: &str,
        keeps_format: bool,
    ) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            if !keeps_format {
                remove_format(members);
            }
            push_text(members, "user", words);
        })
    }

    fn with_turn(&self, answer: &str, words: &str) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            // The API rejects an empty text.
            if !answer.trim().is_empty() {
                push_text(members, "assistant", answer);
            }
            push_text(members, "user", words);
        })
    }

    /// Thinking is off already, but the effort counts for the text too.
    fn with_less_reasoning(&self) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            let config = members.get_mut("output_config");
            if let Some(effort) = config.and_then(|config| config.get_mut("effort")) {
                lower_effort(effort);
            }
        })
    }

    fn with_least_limit(&self, least: u64) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            if let Some(limit) = members.get_mut("max_tokens")
                && limit.as_u64().is_some_and(|limit| limit < least)
            {
                *limit = json!(least);
            }
        })
    }
}

impl MessagesRequest {
    /// The request with changes to its members. The open turn stays marked as open.
    fn edited(
        &self,
        edit: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<Box<dyn WireRequest>, RequestError> {
        let mut members = self.whole.clone();
        edit(&mut members);
        let mut request = Self::from_value(Value::Object(members))?;
        let open = self.outline.units.open_start();
        request.outline.units.open_from(open);
        Ok(Box::new(request))
    }

    fn needs_stream(&self) -> bool {
        let is_streamed = self.whole.get("stream") == Some(&Value::Bool(true));
        !is_streamed && !self.tool_values().is_empty()
    }

    /// The thinking of an answer with this limit, if it has to change: its budget is part of the
    /// limit.
    fn fitted_thinking(&self, limit: u64) -> Option<Value> {
        let thinking = self.whole.get("thinking")?;
        let budget = thinking.get("budget_tokens")?.as_u64()?;
        if budget < limit {
            return None;
        }
        if limit <= LEAST_THINKING {
            return Some(json!({ "type": "disabled" }));
        }
        let mut thinking = thinking.clone();
        thinking["budget_tokens"] = json!((limit / 2).max(LEAST_THINKING));
        Some(thinking)
    }

    /// The text with the edits of a plan. What is not edited stays as it is.
    fn edited_text(&self, text: &str, plan: &Plan) -> Option<String> {
        let first = self.first_message();
        let mut members = Pieces::of_object(text)?;
        if plan.changes_messages() {
            let messages = members.value("messages")?;
            let original = messages.clone();
            let mut kept = Pieces::of_list(&original)?;
            let mut added = Vec::new();
            let sent = plan.messages().filter_map(|message| match message {
                SentMessage::Kept(place) => {
                    place.checked_sub(first).map(|at| kept.items[at].clone())
                }
                SentMessage::Shortened(place, text) => {
                    let at = place.checked_sub(first)?;
                    let message = shortened(self.whole["messages"][at].clone(), text);
                    Some(kept.items[at].new_sibling(None, message.to_string()))
                }
                SentMessage::Inserted(text) => {
                    added.push(text);
                    None
                }
            });
            kept.items = sent.collect();
            *messages = kept.text().into();
            for text in added {
                let system = self.whole.get("system");
                members.set("system", with_text(system, text).to_string());
            }
        }
        if plan.kept_tools.len() < self.tool_values().len() {
            let tools = members.value("tools")?;
            let original = tools.clone();
            let mut kept = Pieces::of_list(&original)?;
            kept.items = plan
                .kept_tools
                .iter()
                .map(|at| kept.items[*at].clone())
                .collect();
            *tools = kept.text().into();
            if plan.kept_tools.is_empty() {
                for key in WITH_TOOLS {
                    members.remove(key);
                }
            }
        }
        if self.needs_stream() {
            members.set("stream", "true".to_owned());
        }
        if let Some(thinking) = self.fitted_thinking(plan.adjusted_max_tokens) {
            members.set("thinking", thinking.to_string());
        }
        if self.outline.requested != Some(plan.adjusted_max_tokens) {
            members.set("max_tokens", plan.adjusted_max_tokens.to_string());
        }
        Some(members.text())
    }
}

/// A message of one tool result, with another text.
fn shortened(mut message: Value, text: &str) -> Value {
    if let Some(result) = message.pointer_mut("/content/0") {
        result["content"] = json!(text);
    }
    message
}

/// A system prompt with a text at its end.
fn with_text(system: Option<&Value>, text: &str) -> Value {
    match system {
        Some(Value::Array(blocks)) => {
            let block = json!({ "type": "text", "text": text });
            blocks.iter().cloned().chain([block]).collect()
        }
        Some(Value::String(system)) if !system.is_empty() => json!(format!("{system}\n\n{text}")),
        _ => json!(text),
    }
}

/// Adds a text to the last message if it has this role, or else as another message.
fn push_text(members: &mut Map<String, Value>, role: &str, text: &str) {
    let Some(Value::Array(messages)) = members.get_mut("messages") else {
        return;
    };
    let last = messages.last_mut().filter(|last| last["role"] == role);
    match last.and_then(|last| last.get_mut("content")) {
        Some(Value::String(content)) if !content.is_empty() => {
            content.push_str("\n\n");
            content.push_str(text);
        }
        Some(Value::Array(blocks)) => blocks.push(json!({ "type": "text", "text": text })),
        _ => messages.push(json!({ "role": role, "content": text })),
    }
}

/// Removes the format of the answer.
pub(in crate::wire) fn remove_format(members: &mut Map<String, Value>) {
    members.shift_remove("output_format");
    if let Some(Value::Object(config)) = members.get_mut("output_config") {
        config.shift_remove("format");
        if config.is_empty() {
            members.shift_remove("output_config");
        }
    }
}

/// Removes the context edits that the API accepts only with thinking.
fn remove_thinking_edits(members: &mut Map<String, Value>) {
    let edits = members.get_mut("context_management");
    let edits = edits.and_then(|edits| edits.get_mut("edits")?.as_array_mut());
    let Some(edits) = edits else {
        return;
    };
    edits.retain(|edit| {
        let kind = edit["type"].as_str().unwrap_or_default();
        !kind.starts_with("clear_thinking")
    });
    if edits.is_empty() {
        members.shift_remove("context_management");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(members: &Value) -> MessagesRequest {
        let mut request = json!({
            "model": "claude", "max_tokens": 4000,
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Hello" }] }],
        });
        for (name, value) in members.as_object().expect("an object") {
            request[name] = value.clone();
        }
        MessagesRequest::from_json(&request.to_string()).expect("a request")
    }

    #[test]
    fn the_budget_of_thinking_stays_below_the_limit() {
        let thinking = json!({ "type": "enabled", "budget_tokens": 3000 });
        let request = request(&json!({ "thinking": thinking }));
        for (limit, expected) in [
            (4000, None),
            (
                3000,
                Some(json!({ "type": "enabled", "budget_tokens": 1500 })),
            ),
            (
                1200,
                Some(json!({ "type": "enabled", "budget_tokens": 1024 })),
            ),
            (1024, Some(json!({ "type": "disabled" }))),
        ] {
            assert_eq!(request.fitted_thinking(limit), expected, "{limit}");
        }
    }

    #[test]
    fn the_rest_of_a_text_is_requested_without_thinking() {
        let edits = json!([{ "type": "clear_thinking_20251015" }, { "type": "clear_tool_uses" }]);
        let request = request(&json!({
            "thinking": { "type": "adaptive" }, "stream": true,
            "context_management": { "edits": edits },
            "tools": [{ "name": "write", "input_schema": {} }],
        }));
        assert!(request.is_thinking());
        let rest = request.for_one_text(Some("write")).expect("a request");
        let rest = rest
            .with_words("Go on.", false)
            .expect("a request")
            .to_value();
        assert_eq!(rest.get("thinking"), None);
        assert_eq!(rest.get("stream"), None);
        assert_eq!(
            rest["context_management"],
            json!({ "edits": [{ "type": "clear_tool_uses" }] })
        );
        let messages = rest["messages"].as_array().expect("messages");
        assert_eq!(messages.len(), 1);
        let blocks = messages[0]["content"].as_array().expect("blocks");
        assert_eq!(blocks[0]["text"], "Hello");
        assert_eq!(blocks.last().expect("a block")["text"], "Go on.");
    }

    #[test]
    fn an_answer_to_a_prefill_of_the_client_is_not_continued() {
        let messages = json!([
            { "role": "user", "content": "Hello" }, { "role": "assistant", "content": "{" },
        ]);
        assert!(!request(&json!({ "messages": messages })).may_be_continued());
        assert!(request(&json!({})).may_be_continued());
    }
}
