//! What a chat request says about its answer, and the requests that a proxy makes of it.

use overlock_budget::Plan;
use serde_json::{Map, Value, json};

use super::error::RequestError;
use super::request::ChatRequest;

impl ChatRequest {
    /// Whether the answer is streamed.
    pub fn is_streamed(&self) -> bool {
        self.members().get("stream") == Some(&Value::Bool(true))
    }

    /// Whether the answer is a stream that ends with its usage.
    pub fn wants_usage(&self) -> bool {
        let options = self.members().get("stream_options");
        let usage = options.and_then(|options| options.get("include_usage"));
        self.is_streamed() && usage == Some(&Value::Bool(true))
    }

    /// Whether the answer has to be JSON.
    pub fn wants_json(&self) -> bool {
        matches!(self.format(), Some("json_object" | "json_schema"))
    }

    /// The schema of the requested document, and whether the request is strict about it.
    pub fn document_schema(&self) -> Option<(&Value, bool)> {
        let format = self.members().get("response_format")?.get("json_schema")?;
        let is_strict = format.get("strict") == Some(&Value::Bool(true));
        let schema = format.get("schema")?;
        (self.format() == Some("json_schema")).then_some((schema, is_strict))
    }

    /// The tools with parameters: their names, the schemas of their parameters, and whether they
    /// are strict.
    pub fn tool_parameters(&self) -> impl Iterator<Item = (&str, &Value, bool)> {
        self.tools().iter().filter_map(|tool| {
            // The older form is the function itself.
            let function = tool.get("function").unwrap_or(tool);
            let name = function.get("name")?.as_str()?;
            let parameters = function.get("parameters").filter(|it| it.is_object())?;
            let is_strict = function.get("strict") == Some(&Value::Bool(true));
            Some((name, parameters, is_strict))
        })
    }

    fn format(&self) -> Option<&str> {
        self.members().get("response_format")?.get("type")?.as_str()
    }

    /// The request as a proxy forwards it, or nothing if it forwards the original text. The length
    /// of the answer is limited only if the client limits it, and a stream ends with its usage.
    #[must_use]
    pub fn forwarded(self, plan: &Plan) -> Option<Value> {
        let requested = self.requested();
        let is_same_limit = requested.is_none_or(|limit| limit == plan.adjusted_max_tokens);
        let adds_usage = self.is_streamed() && !self.wants_usage();
        if is_same_limit && plan.dropped_messages.is_empty() && !adds_usage {
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
        Some(request)
    }

    /// The request that asks for one answer text: the content, or the arguments of a call of this
    /// tool. The rest of a text is requested with it.
    pub fn for_one_text(self, tool: Option<&str>) -> Result<Self, RequestError> {
        let open_turn = self.open_turn();
        let mut members: Map<String, Value> = self.into_members();
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
            let question = format!(
                "Call the tool `{tool}`: answer with the JSON object of its arguments, and \
                 nothing else."
            );
            if let Some(Value::Array(messages)) = members.get_mut("messages") {
                messages.push(json!({ "role": "user", "content": question }));
            }
        }
        Ok(Self::from_value(Value::Object(members))?.with_open_turn(open_turn))
    }
}
