//! Validates a chat request.
//!
//! Everything that later code relies on is checked here, once, and errors name the place in the
//! request. Other fields are not checked, because providers often add some.

use std::fmt;

use overlock_budget::ChatRole;
use serde_json::{Map, Number, Value};

use super::message::{ChatMessage, member};
use crate::wire::error::{RequestError, missing, quoted, wrong_at};

/// A place in a request, formatted only for an error.
#[derive(Clone, Copy)]
enum Location<'a> {
    Root(&'a str),
    Member(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl<'a> Location<'a> {
    fn member(&'a self, key: &'a str) -> Self {
        Self::Member(self, key)
    }

    fn item(&'a self, index: usize) -> Self {
        Self::Item(self, index)
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(key) => formatter.write_str(key),
            Self::Member(parent, key) => write!(formatter, "{parent}.{key}"),
            Self::Item(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

pub(super) fn list<'a>(members: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    match member(members, key) {
        Some(Value::Array(values)) => values,
        _ => &[],
    }
}

pub(super) fn check_model(whole: &Map<String, Value>) -> Result<(), RequestError> {
    match member(whole, "model") {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(wrong_at("model", other, "the name of a model")),
    }
}

pub(super) fn check_messages(
    whole: &Map<String, Value>,
) -> Result<Vec<ChatMessage<'_>>, RequestError> {
    const EXPECTED: &str = "an array of at least one message";
    let messages = match member(whole, "messages") {
        None => return Err(missing("messages", EXPECTED)),
        Some(Value::Array(messages)) if messages.is_empty() => {
            return Err(RequestError::Wrong {
                place: quoted("messages"),
                found: "empty".to_owned(),
                expected: EXPECTED.to_owned(),
            });
        }
        Some(Value::Array(messages)) => messages,
        Some(other) => return Err(wrong_at("messages", other, EXPECTED)),
    };
    let checked = messages.iter().enumerate();
    checked
        .map(|(index, message)| check_message(message, &Location::Root("messages").item(index)))
        .collect()
}

fn check_message<'a>(
    message: &'a Value,
    place: &Location<'_>,
) -> Result<ChatMessage<'a>, RequestError> {
    let Some(members) = message.as_object() else {
        return Err(wrong_at(place, message, "an object"));
    };
    let role = check_role(members, place)?;
    check_text_if_there(members, place, "name")?;
    let called = check_calls(members, place)?;
    check_content(members, place, role, called)?;
    if role == ChatRole::Tool {
        check_text(
            members,
            place,
            "tool_call_id",
            "the id of the tool call it answers",
        )?;
    }
    if role == ChatRole::Function {
        check_text(members, place, "name", "the name of the called function")?;
    }
    Ok(ChatMessage::new(role, members))
}

fn check_role(
    members: &Map<String, Value>,
    place: &Location<'_>,
) -> Result<ChatRole, RequestError> {
    let role = member(members, "role");
    if let Some(known) = role.and_then(Value::as_str).and_then(ChatRole::from_name) {
        return Ok(known);
    }
    let names = ChatRole::ALL.map(|role| quoted(role.name())).join(", ");
    let expected = format!("one of {names}");
    let place = place.member("role");
    Err(match role {
        Some(role) => wrong_at(place, role, &expected),
        None => missing(place, &expected),
    })
}

/// Whether the message has calls, which make its content optional.
fn check_calls(members: &Map<String, Value>, place: &Location<'_>) -> Result<bool, RequestError> {
    let older = match member(members, "function_call") {
        None | Some(Value::Null) => false,
        Some(call) => {
            check_call(call, &place.member("function_call"), "arguments")?;
            true
        }
    };
    let place = place.member("tool_calls");
    let calls = match member(members, "tool_calls") {
        None | Some(Value::Null) => return Ok(older),
        Some(Value::Array(calls)) => calls,
        Some(other) => return Err(wrong_at(place, other, "an array of tool calls")),
    };
    for (index, call) in calls.iter().enumerate() {
        let place = place.item(index);
        let Some(call) = call.as_object() else {
            return Err(wrong_at(place, call, "an object"));
        };
        check_text(call, &place, "id", "the id of the tool call")?;
        match (call.get("function"), call.get("custom")) {
            (Some(function), _) => {
                check_call(function, &place.member("function"), "arguments")?;
            }
            (None, Some(custom)) => check_call(custom, &place.member("custom"), "input")?,
            (None, None) => {
                let place = place.member("function");
                return Err(missing(place, "an object with `name` and `arguments`"));
            }
        }
    }
    Ok(older || !calls.is_empty())
}

fn check_call(function: &Value, place: &Location<'_>, arguments: &str) -> Result<(), RequestError> {
    let Some(members) = function.as_object() else {
        let expected = format!("an object with `name` and `{arguments}`");
        return Err(wrong_at(place, function, &expected));
    };
    check_text(members, place, "name", "the name of the function or tool")?;
    check_text(members, place, arguments, "the arguments as a string")
}

fn check_content(
    members: &Map<String, Value>,
    place: &Location<'_>,
    role: ChatRole,
    called: bool,
) -> Result<(), RequestError> {
    let place = place.member("content");
    let expected = "a string or an array of content parts";
    // A message with tool calls, a refusal or audio needs no content.
    let has_other_content = ["refusal", "audio"]
        .iter()
        .any(|key| member(members, key).is_some_and(|value| !value.is_null()));
    let optional = role == ChatRole::Assistant && (called || has_other_content);
    match member(members, "content") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => {
            let mut parts = parts.iter().enumerate();
            parts.try_for_each(|(index, part)| check_part(part, &place.item(index)))
        }
        None | Some(Value::Null) if optional => Ok(()),
        // Function results may be null.
        Some(Value::Null) if role == ChatRole::Function => Ok(()),
        None => Err(missing(place, expected)),
        Some(other) => Err(wrong_at(place, other, expected)),
    }
}

fn check_part(part: &Value, place: &Location<'_>) -> Result<(), RequestError> {
    let Some(members) = part.as_object() else {
        return Err(wrong_at(place, part, "an object with a `type`"));
    };
    check_text(
        members,
        place,
        "type",
        "the type of the part, such as `text`",
    )?;
    let (key, inner) = match member(members, "type").and_then(Value::as_str) {
        Some("text") => return check_text(members, place, "text", "a string"),
        Some("refusal") => return check_text(members, place, "refusal", "a string"),
        Some("image_url") => ("image_url", Some("url")),
        Some("input_audio") => ("input_audio", Some("data")),
        Some("file") => ("file", None),
        // Other types are specific to a provider.
        _ => return Ok(()),
    };
    let place = place.member(key);
    match (member(members, key), inner) {
        (Some(Value::Object(members)), Some(inner)) => {
            check_text(members, &place, inner, "a string")
        }
        (Some(Value::Object(_)), None) => Ok(()),
        (Some(other), _) => Err(wrong_at(place, other, "an object")),
        (None, _) => Err(missing(place, "an object")),
    }
}

pub(super) fn check_tools(whole: &Map<String, Value>) -> Result<(), RequestError> {
    for (key, inner) in [("tools", Some("function")), ("functions", None)] {
        let tools = match member(whole, key) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(tools)) => tools,
            Some(other) => return Err(wrong_at(key, other, "an array of tools")),
        };
        for (index, tool) in tools.iter().enumerate() {
            check_tool(tool, &Location::Root(key).item(index), inner)?;
        }
    }
    if !list(whole, "tools").is_empty() && !list(whole, "functions").is_empty() {
        return Err(RequestError::TwoToolLists);
    }
    Ok(())
}

fn check_tool(tool: &Value, place: &Location<'_>, inner: Option<&str>) -> Result<(), RequestError> {
    let Some(members) = tool.as_object() else {
        return Err(wrong_at(place, tool, "an object"));
    };
    let Some(inner) = inner else {
        return check_function(tool, place);
    };
    check_text(
        members,
        place,
        "type",
        "the type of the tool, such as `function`",
    )?;
    // Other types are specific to a provider.
    if member(members, "type").and_then(Value::as_str) != Some(inner) {
        return Ok(());
    }
    let place = place.member(inner);
    match member(members, inner) {
        Some(function) => check_function(function, &place),
        None => Err(missing(place, "an object with a `name`")),
    }
}

fn check_function(function: &Value, place: &Location<'_>) -> Result<(), RequestError> {
    let Some(members) = function.as_object() else {
        return Err(wrong_at(place, function, "an object with a `name`"));
    };
    check_text(members, place, "name", "the name of the function")?;
    check_text_if_there(members, place, "description")?;
    match member(members, "parameters") {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(other) => {
            let place = place.member("parameters");
            Err(wrong_at(place, other, "a JSON Schema"))
        }
    }
}

pub(super) fn requested(
    whole: &Map<String, Value>,
) -> Result<Option<(&'static str, u64)>, RequestError> {
    let read = |key: &'static str| match member(whole, key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => tokens(value, key).map(|tokens| Some((key, tokens))),
    };
    match (read("max_completion_tokens")?, read("max_tokens")?) {
        (Some(_), Some(_)) => Err(RequestError::TwoLengths),
        (newer, older) => Ok(newer.or(older)),
    }
}

fn tokens(value: &Value, key: &str) -> Result<u64, RequestError> {
    value.as_number().and_then(whole_number).ok_or_else(|| {
        let expected = format!("a whole number from 0 to {}", u64::MAX);
        wrong_at(key, value, &expected)
    })
}

/// A whole number, also in the form `100.0`, as some clients write it.
fn whole_number(number: &Number) -> Option<u64> {
    let rounded = || {
        let float = number.as_f64()?;
        let is_whole = float.fract() == 0.0;
        is_whole.then(|| format!("{float:.0}"))?.parse().ok()
    };
    number.as_u64().or_else(rounded)
}

fn check_text(
    members: &Map<String, Value>,
    place: &Location<'_>,
    key: &str,
    expected: &str,
) -> Result<(), RequestError> {
    match member(members, key) {
        Some(Value::String(_)) => Ok(()),
        Some(other) => Err(wrong_at(place.member(key), other, expected)),
        None => Err(missing(place.member(key), expected)),
    }
}

fn check_text_if_there(
    members: &Map<String, Value>,
    place: &Location<'_>,
    key: &str,
) -> Result<(), RequestError> {
    match member(members, key) {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(wrong_at(place.member(key), other, "a string")),
    }
}
