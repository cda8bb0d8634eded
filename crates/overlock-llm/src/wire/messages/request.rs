//! A Messages request, checked when it is parsed.

use std::borrow::Cow;

use overlock_budget::{Content, Function, Outline, Request, Tool, ToolChoice, Units};
use serde_json::{Map, Value, json};

use super::message::InputMessage;
use crate::wire::depth::{DEEPEST, DepthError, shallow_object};
use crate::wire::error::{RequestError, missing, syntax, wrong, wrong_at};

/// The maximum length of a request.
const LARGEST: usize = 64 << 20;

/// A Messages request as Anthropic defines it, checked but unchanged. Its messages are the system
/// prompt, if there is one, and the messages.
#[derive(Clone, Debug)]
pub struct MessagesRequest {
    /// The request; `messages` is a non-empty array of objects.
    pub(super) whole: Map<String, Value>,
    pub(super) outline: Outline,
}

impl MessagesRequest {
    /// Parses a request for an answer.
    pub fn from_json(text: &str) -> Result<Self, RequestError> {
        let request = Self::to_count(text)?;
        if request.outline.requested.is_none() {
            return Err(missing("max_tokens", LIMIT));
        }
        Ok(request)
    }

    /// Parses a request to count, which needs no answer limit.
    pub fn to_count(text: &str) -> Result<Self, RequestError> {
        if text.len() > LARGEST {
            return Err(RequestError::TooLong {
                bytes: text.len(),
                limit: LARGEST,
            });
        }
        let value = serde_json::from_str(text).map_err(|error| syntax(&error))?;
        Self::from_value(value)
    }

    /// Checks a parsed request.
    pub(super) fn from_value(value: Value) -> Result<Self, RequestError> {
        let whole = shallow_object(value).map_err(|error| match error {
            DepthError::TooDeep => RequestError::TooDeep { limit: DEEPEST },
            DepthError::NotAnObject(value) => wrong("the request", &value, "an object"),
        })?;
        if let Some(model) = whole.get("model").filter(|model| !model.is_string()) {
            return Err(wrong_at("model", model, "the name of a model"));
        }
        let messages = checked_messages(&whole)?;
        let requested = match whole.get("max_tokens") {
            None | Some(Value::Null) => None,
            Some(value) => {
                let limit = value.as_u64().filter(|limit| *limit > 0);
                Some(limit.ok_or_else(|| wrong_at("max_tokens", value, LIMIT))?)
            }
        };
        let outline = Outline {
            messages: messages.iter().map(InputMessage::kind).collect(),
            units: Units::of(&messages),
            requested,
        };
        Ok(Self { whole, outline })
    }

    /// The index of the first message after the system prompt.
    pub(super) fn first_message(&self) -> usize {
        usize::from(system(&self.whole).is_some())
    }

    /// The tools.
    pub(super) fn tool_values(&self) -> &[Value] {
        let tools = self.whole.get("tools").and_then(Value::as_array);
        tools.map_or(&[], Vec::as_slice)
    }

    /// The format of the answer. `output_format` is its older place.
    pub(super) fn format(&self) -> Option<&Value> {
        let config = self.whole.get("output_config");
        let format = config.and_then(|config| config.get("format"));
        let format = format.or_else(|| self.whole.get("output_format"));
        format.filter(|format| format.is_object())
    }

    fn message(&self, index: usize) -> InputMessage<'_> {
        let first = self.first_message();
        match system(&self.whole) {
            Some(system) if index < first => InputMessage::System(system),
            _ => InputMessage::Message(&self.whole["messages"][index - first]),
        }
    }
}

const LIMIT: &str = "a whole number from 1 on";

fn system(whole: &Map<String, Value>) -> Option<&Value> {
    whole.get("system").filter(|system| !system.is_null())
}

fn checked_messages(whole: &Map<String, Value>) -> Result<Vec<InputMessage<'_>>, RequestError> {
    const EXPECTED: &str = "an array of at least one message";
    let mut messages = Vec::new();
    if let Some(system) = system(whole) {
        if !system.is_string() && !system.is_array() {
            return Err(wrong_at("system", system, "a string or an array of blocks"));
        }
        messages.push(InputMessage::System(system));
    }
    match whole.get("messages") {
        None => return Err(missing("messages", EXPECTED)),
        Some(Value::Array(given)) if !given.is_empty() => {
            for (index, message) in given.iter().enumerate() {
                messages.push(InputMessage::checked(message, index)?);
            }
        }
        Some(other) => return Err(wrong_at("messages", other, EXPECTED)),
    }
    Ok(messages)
}

impl Request for MessagesRequest {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn contents<'a>(&'a self, message: usize, each: &mut dyn FnMut(Content<'a>)) {
        self.message(message).contents(each);
    }

    fn tools(&self) -> Vec<Tool<'_>> {
        let chosen = self.whole.get("tool_choice");
        let chosen = chosen.and_then(|chosen| chosen.get("name"));
        let tools = self.tool_values().iter().map(|tool| {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            // A tool of the provider has no schema.
            let parameters = tool.get("input_schema").and_then(Value::as_object);
            let description = tool.get("description").and_then(Value::as_str);
            Tool {
                name,
                is_required: chosen.is_some_and(|chosen| chosen == name),
                function: parameters.map(|parameters| Function {
                    name,
                    description,
                    parameters: Some(parameters),
                }),
                template: match parameters {
                    Some(parameters) => Cow::Owned(json!({ "type": "function", "function": {
                        "name": name, "description": description, "parameters": parameters,
                    } })),
                    None => Cow::Borrowed(tool),
                },
            }
        });
        tools.collect()
    }

    fn tool_choice(&self) -> ToolChoice<'_> {
        let choice = self.whole.get("tool_choice");
        let text = |name: &str| choice?.get(name)?.as_str();
        match text("type") {
            Some("any" | "none") => ToolChoice::Word,
            Some("tool") => ToolChoice::Named(text("name").unwrap_or_default()),
            _ => ToolChoice::Auto,
        }
    }

    fn answer_schema(&self) -> Option<&Value> {
        let format = self.format()?;
        (format.get("type")? == "json_schema").then_some(format)
    }

    fn template_message(&self, message: usize) -> Cow<'_, Value> {
        Cow::Owned(self.message(message).as_chat_message())
    }
}
