//! What a chat request says about its answer, and the calls that are made of it.

use overlock_budget::Plan;
use serde_json::{Map, Value, json};

use super::request::ChatRequest;
use crate::wire::error::{RequestError, wrong_at};
use crate::wire::request::{ToolParameters, WireRequest, lower_effort, tool_question};

impl WireRequest for ChatRequest {
    fn model(&self) -> Option<&str> {
        self.model()
    }

    fn boxed(&self) -> Box<dyn WireRequest> {
        Box::new(self.clone())
    }

    fn is_streamed(&self) -> Result<bool, RequestError> {
        match self.members().get("stream") {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(is_streamed)) => Ok(*is_streamed),
            Some(other) => Err(wrong_at("stream", other, "true or false")),
        }
    }

    fn wants_usage(&self) -> bool {
        let options = self.members().get("stream_options");
        let usage = options.and_then(|options| options.get("include_usage"));
        self.streams() && usage == Some(&Value::Bool(true))
    }

    fn wants_json(&self) -> bool {
        matches!(self.format(), Some("json_object" | "json_schema"))
    }

    fn document_schema(&self) -> Option<(&Value, bool)> {
        let format = self.members().get("response_format")?.get("json_schema")?;
        let is_strict = format.get("strict") == Some(&Value::Bool(true));
        let schema = format.get("schema")?;
        (self.format() == Some("json_schema")).then_some((schema, is_strict))
    }

    fn tool_parameters(&self) -> Vec<ToolParameters<'_>> {
        let tools = self.tools().iter().filter_map(|tool| {
            // The older form is the function itself.
            let function = tool.get("function").unwrap_or(tool);
            Some(ToolParameters {
                name: function.get("name")?.as_str()?,
                schema: function.get("parameters").filter(|it| it.is_object())?,
                is_strict: function.get("strict") == Some(&Value::Bool(true)),
            })
        });
        tools.collect()
    }

    fn to_value(&self) -> Value {
        self.clone().into_value()
    }

    /// A stream ends with its usage, even if the client does not ask for it.
    fn forwarded(self: Box<Self>, _text: &str, plan: &Plan) -> Option<String> {
        let requested = self.requested();
        let is_same_limit = requested.is_none_or(|limit| limit == plan.adjusted_max_tokens);
        let adds_usage = self.streams() && !self.wants_usage();
        if is_same_limit && !plan.changes_messages() && !adds_usage {
            return None;
        }
        let mut request = self.rewrite(plan);
        let members = request.as_object_mut()?;
        if requested.is_none() {
            members.remove("max_tokens");
            members.remove("max_completion_tokens");
        }
        if adds_usage {
            let options = members.entry("stream_options").or_insert(json!({}));
            if !options.is_object() {
                *options = json!({});
            }
            options["include_usage"] = json!(true);
        }
        Some(request.to_string())
    }

    fn into_call(self: Box<Self>, plan: &Plan) -> Map<String, Value> {
        match self.rewrite(plan) {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }

    fn for_one_text(&self, tool: Option<&str>) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            for name in ["n", "logprobs", "top_logprobs", "stream", "stream_options"] {
                members.remove(name);
            }
            if tool.is_some() {
                // It describes the content, and not the arguments of a call.
                members.remove("response_format");
            }
            for (tools, choice) in [("tools", "tool_choice"), ("functions", "function_call")] {
                if members.contains_key(tools) {
                    // The answer is text, even if it is the arguments of a call.
                    members.insert(choice.to_owned(), json!("none"));
                }
            }
            if let Some(tool) = tool {
                push_message(members, "user", &tool_question(tool));
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
                members.remove("response_format");
            }
            let messages = members.get_mut("messages").and_then(Value::as_array_mut);
            let last = messages.and_then(|messages| messages.last_mut());
            let last = last.filter(|message| message["role"] == "user");
            match last.and_then(|message| message.get_mut("content")) {
                Some(Value::String(content)) => {
                    content.push_str("\n\n");
                    content.push_str(words);
                }
                Some(Value::Array(parts)) => parts.push(json!({ "type": "text", "text": words })),
                _ => push_message(members, "user", words),
            }
        })
    }

    fn with_turn(&self, answer: &str, words: &str) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            push_message(members, "assistant", answer);
            push_message(members, "user", words);
        })
    }

    fn with_less_reasoning(&self) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            if let Some(effort) = members.get_mut("reasoning_effort") {
                lower_effort(effort);
            }
        })
    }

    fn with_least_limit(&self, least: u64) -> Result<Box<dyn WireRequest>, RequestError> {
        self.edited(|members| {
            for name in ["max_tokens", "max_completion_tokens"] {
                if let Some(limit) = members.get_mut(name)
                    && limit.as_u64().is_some_and(|limit| limit < least)
                {
                    *limit = json!(least);
                }
            }
        })
    }
}

impl ChatRequest {
    fn streams(&self) -> bool {
        self.members().get("stream") == Some(&Value::Bool(true))
    }

    fn format(&self) -> Option<&str> {
        self.members().get("response_format")?.get("type")?.as_str()
    }

    /// The request with changes to its members. The open turn stays marked as open.
    fn edited(
        &self,
        edit: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<Box<dyn WireRequest>, RequestError> {
        let mut members = self.members().clone();
        edit(&mut members);
        let request = Self::from_value(Value::Object(members))?;
        Ok(Box::new(request.with_open_turn(self.open_turn())))
    }
}

fn push_message(members: &mut Map<String, Value>, role: &str, content: &str) {
    if let Some(Value::Array(messages)) = members.get_mut("messages") {
        messages.push(json!({ "role": role, "content": content }));
    }
}
