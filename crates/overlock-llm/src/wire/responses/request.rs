//! A Responses request, checked when it is parsed.

use std::borrow::Cow;

use overlock_budget::{Content, Function, Outline, Request, Tool, ToolChoice, Units};
use serde_json::{Map, Value, json};

use super::item::InputItem;
use crate::wire::depth::{DEEPEST, DepthError, shallow_object};
use crate::wire::error::{RequestError, missing, syntax, wrong, wrong_at};

/// The maximum length of a request.
const LARGEST: usize = 64 << 20;

/// A Responses request as `OpenAI` defines it, checked but unchanged. Its messages are the
/// instructions, if there are any, and the items of the input.
#[derive(Clone, Debug)]
pub struct ResponsesRequest {
    /// The request; `input` is a string or a non-empty array of objects.
    pub(super) whole: Map<String, Value>,
    pub(super) outline: Outline,
}

impl ResponsesRequest {
    /// Parses a request.
    pub fn from_json(text: &str) -> Result<Self, RequestError> {
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
        for (key, expected) in [
            ("model", "the name of a model"),
            ("instructions", "a string"),
        ] {
            if let Some(value) = whole.get(key).filter(|it| !it.is_null() && !it.is_string()) {
                return Err(wrong_at(key, value, expected));
            }
        }
        let items = checked_items(&whole)?;
        let requested = match whole.get("max_output_tokens") {
            None | Some(Value::Null) => None,
            Some(value) => Some(value.as_u64().ok_or_else(|| {
                let expected = format!("a whole number from 0 to {}", u64::MAX);
                wrong_at("max_output_tokens", value, &expected)
            })?),
        };
        let outline = Outline {
            messages: items.iter().map(InputItem::kind).collect(),
            units: Units::of(&items),
            requested,
        };
        Ok(Self { whole, outline })
    }

    /// The index of the message that is the first item of the input.
    pub(super) fn first_item(&self) -> usize {
        usize::from(instructions(&self.whole).is_some())
    }

    /// The tools.
    pub(super) fn tool_values(&self) -> &[Value] {
        let tools = self.whole.get("tools").and_then(Value::as_array);
        tools.map_or(&[], Vec::as_slice)
    }

    /// The format of the answer.
    pub(super) fn format(&self) -> Option<&Value> {
        self.whole.get("text")?.get("format")
    }

    fn message(&self, index: usize) -> InputItem<'_> {
        let first = self.first_item();
        match (&self.whole["input"], instructions(&self.whole)) {
            (_, Some(text)) if index < first => InputItem::Instructions(text),
            (Value::Array(items), _) => match &items[index - first] {
                Value::Object(members) => InputItem::Item(members),
                _ => InputItem::Text(""),
            },
            (input, _) => InputItem::Text(input.as_str().unwrap_or_default()),
        }
    }
}

fn instructions(whole: &Map<String, Value>) -> Option<&str> {
    whole.get("instructions")?.as_str()
}

fn checked_items(whole: &Map<String, Value>) -> Result<Vec<InputItem<'_>>, RequestError> {
    const EXPECTED: &str = "a string or an array of at least one item";
    let mut messages = Vec::new();
    messages.extend(instructions(whole).map(InputItem::Instructions));
    match whole.get("input") {
        None => return Err(missing("input", EXPECTED)),
        Some(Value::String(text)) => messages.push(InputItem::Text(text)),
        Some(Value::Array(items)) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                messages.push(InputItem::checked(item, index)?);
            }
        }
        Some(other) => return Err(wrong_at("input", other, EXPECTED)),
    }
    Ok(messages)
}

impl Request for ResponsesRequest {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn contents<'a>(&'a self, message: usize, each: &mut dyn FnMut(Content<'a>)) {
        self.message(message).contents(each);
    }

    fn tools(&self) -> Vec<Tool<'_>> {
        let chosen = self.whole.get("tool_choice");
        let tools = self.tool_values().iter().map(|tool| {
            let name = tool.get("name").or_else(|| tool.get("type"));
            let name = name.and_then(Value::as_str).unwrap_or_default();
            let is_function = tool.get("type").and_then(Value::as_str) == Some("function");
            Tool {
                name,
                is_required: chosen.is_some_and(|chosen| is_chosen(chosen, name)),
                function: is_function.then(|| Function {
                    name,
                    description: tool.get("description").and_then(Value::as_str),
                    parameters: tool.get("parameters").and_then(Value::as_object),
                }),
                template: if is_function {
                    Cow::Owned(json!({ "type": "function", "function": tool }))
                } else {
                    Cow::Borrowed(tool)
                },
            }
        });
        tools.collect()
    }

    fn tool_choice(&self) -> ToolChoice<'_> {
        match self.whole.get("tool_choice") {
            Some(Value::String(word)) if word != "auto" => ToolChoice::Word,
            Some(choice @ Value::Object(_)) => {
                let name = choice.get("name").or_else(|| choice.get("type"));
                ToolChoice::Named(name.and_then(Value::as_str).unwrap_or_default())
            }
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

/// Whether a tool choice requires this tool.
fn is_chosen(choice: &Value, name: &str) -> bool {
    let is_named =
        |value: &Value| value.get("name").or_else(|| value.get("type")) == Some(&json!(name));
    match choice.get("tools").and_then(Value::as_array) {
        Some(tools) => tools.iter().any(is_named),
        None => is_named(choice),
    }
}
