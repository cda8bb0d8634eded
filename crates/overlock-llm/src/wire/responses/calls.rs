//! What a Responses request says about its answer, and the calls that are made of it.

use overlock_budget::{Plan, Request, SentMessage};
use serde_json::{Map, Value, json};

use super::object::assistant_message;
use super::request::ResponsesRequest;
use crate::wire::error::{RequestError, wrong_at};
use crate::wire::pieces::Pieces;
use crate::wire::request::{ToolParameters, WireRequest, lower_effort, tool_question};

/// Members that are invalid without tools.
const WITH_TOOLS: [&str; 4] = [
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tool_calls",
];

impl WireRequest for ResponsesRequest {
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

    /// The last event has the usage.
    fn wants_usage(&self) -> bool {
        false
    }

    fn wants_json(&self) -> bool {
        let kind = self
            .format()
            .and_then(|format| format.get("type")?.as_str());
        matches!(kind, Some("json_object" | "json_schema"))
    }

    /// A conversation would record the later calls, and a background response has no answer yet.
    fn may_be_continued(&self) -> bool {
        let is_set = |name: &str| {
            let value = self.whole.get(name);
            value.is_some_and(|it| !it.is_null() && it != false)
        };
        !is_set("conversation") && !is_set("background")
    }

    fn may_be_trimmed(&self) -> bool {
        self.whole
            .get("truncation")
            .is_none_or(|it| it != "disabled")
    }

    fn document_schema(&self) -> Option<(&Value, bool)> {
        let format = self.answer_schema()?;
        let is_strict = format.get("strict") == Some(&Value::Bool(true));
        Some((format.get("schema")?, is_strict))
    }

    fn tool_parameters(&self) -> Vec<ToolParameters<'_>> {
        let tools = self.tool_values().iter().filter_map(|tool| {
            Some(ToolParameters {
                name: tool.get("name")?.as_str()?,
                schema: tool.get("parameters").filter(|it| it.is_object())?,
                is_strict: tool.get("strict") == Some(&Value::Bool(true)),
            })
        });
        tools.collect()
    }

    fn to_value(&self) -> Value {
        Value::Object(self.whole.clone())
    }

    fn forwarded(self: Box<Self>, text: &str, plan: &Plan) -> Option<String> {
        let requested = self.outline.requested;
        let is_same_limit = requested.is_none_or(|limit| limit == plan.adjusted_max_tokens);
        let has_all_tools = plan.kept_tools.len() == self.tool_values().len();
        if is_same_limit && has_all_tools && !plan.changes_messages() {
            return None;
        }
        if let Some(text) = self.edited_text(text, plan) {
            return Some(text);
        }
        // A text with a duplicate key is written again, since only one of the values was counted.
        let mut members = self.into_call(plan);
        if requested.is_none() {
            members.remove("max_output_tokens");
        }
        Some(Value::Object(members).to_string())
    }

    fn into_call(self: Box<Self>, plan: &Plan) -> Map<String, Value> {
        let first = self.first_item();
        let mut members = self.whole;
        if plan.changes_messages()
            && let Some(Value::Array(items)) = members.get_mut("input")
        {
            let sent = plan.messages().filter_map(|message| match message {
                SentMessage::Kept(place) => place.checked_sub(first).map(|at| items[at].take()),
                SentMessage::Shortened(place, text) => place.checked_sub(first).map(|at| {
                    let mut item = items[at].take();
                    item["output"] = text.into();
                    item
                }),
                SentMessage::Inserted(text) => Some(inserted(text)),
            });
            *items = sent.collect();
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
        let limit = plan.adjusted_max_tokens.into();
        members.insert("max_output_tokens".to_owned(), limit);
        members
    }

    fn for_one_text(&self, tool: Option<&str>) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            // A prefill is another item.
            list_input(members);
            for name in ["stream", "stream_options", "top_logprobs", "include"] {
                members.remove(name);
            }
            // The upstream keeps only the client's own responses.
            members.insert("store".to_owned(), json!(false));
            if tool.is_some() {
                // It describes the content, and not the arguments of a call.
                remove_format(members);
            }
            if members.contains_key("tools") {
                // The answer is text, even if it is the arguments of a call.
                members.insert("tool_choice".to_owned(), json!("none"));
            }
            if let Some(tool) = tool {
                push_message(members, user_message(&tool_question(tool)));
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
            let last = match members.get_mut("input") {
                Some(Value::Array(items)) => items.last_mut(),
                _ => None,
            };
            let last = last.filter(|item| item["role"] == "user");
            match last.and_then(|item| item.get_mut("content")) {
                Some(Value::String(content)) => {
                    content.push_str("\n\n");
                    content.push_str(words);
                }
                Some(Value::Array(parts)) => {
                    parts.push(json!({ "type": "input_text", "text": words }));
                }
                _ => push_message(members, user_message(words)),
            }
        })
    }

    fn with_turn(&self, answer: &str, words: &str) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            push_message(members, assistant_message(answer));
            push_message(members, user_message(words));
        })
    }

    fn with_less_reasoning(&self) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            let reasoning = members.get_mut("reasoning").and_then(Value::as_object_mut);
            if let Some(effort) = reasoning.and_then(|reasoning| reasoning.get_mut("effort")) {
                lower_effort(effort);
            }
        })
    }

    fn with_least_limit(&self, least: u64) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            if let Some(limit) = members.get_mut("max_output_tokens")
                && limit.as_u64().is_some_and(|limit| limit < least)
            {
                *limit = json!(least);
            }
        })
    }
}

impl ResponsesRequest {
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

    /// The text with the edits of a plan. What is not edited stays as it is.
    fn edited_text(&self, text: &str, plan: &Plan) -> Option<String> {
        let first = self.first_item();
        let mut members = Pieces::of_object(text)?;
        if plan.changes_messages() {
            let input = members.value("input")?;
            let original = input.clone();
            let mut items = Pieces::of_list(&original)?;
            let like = items.items.first()?;
            let mut sent = Vec::new();
            for message in plan.messages() {
                let item = |place: usize| place.checked_sub(first).map(|at| &items.items[at]);
                match message {
                    SentMessage::Kept(place) => sent.extend(item(place).cloned()),
                    SentMessage::Shortened(place, text) => {
                        if let Some(item) = item(place) {
                            sent.push(item.with_text("output", text)?);
                        }
                    }
                    SentMessage::Inserted(text) => {
                        sent.push(like.new_sibling(None, inserted(text).to_string()));
                    }
                }
            }
            items.items = sent;
            *input = items.text().into();
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
        if self.outline.requested.is_some() {
            *members.value("max_output_tokens")? = plan.adjusted_max_tokens.to_string().into();
        }
        Some(members.text())
    }
}

fn inserted(text: &str) -> Value {
    json!({ "role": "system", "content": text })
}

fn user_message(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// Adds a message; an input that is a text becomes a list.
fn push_message(members: &mut Map<String, Value>, message: Value) {
    list_input(members);
    if let Some(Value::Array(items)) = members.get_mut("input") {
        items.push(message);
    }
}

fn list_input(members: &mut Map<String, Value>) {
    if let Some(input @ Value::String(_)) = members.get_mut("input") {
        *input = json!([{ "role": "user", "content": input.take() }]);
    }
}

/// Removes the format of the answer.
pub(in crate::wire) fn remove_format(members: &mut Map<String, Value>) {
    if let Some(Value::Object(text)) = members.get_mut("text") {
        text.shift_remove("format");
    }
}
