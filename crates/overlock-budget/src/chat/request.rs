//! Is this a chat request, and if not, where is it wrong?
//!
//! Everything that later code relies on is checked here, once, and what is wrong is named by its
//! place. What nobody here needs is let through untouched: providers add parameters every month.

use std::fmt;

use serde_json::{Map, Number, Value};

use super::depth::{DEEPEST, Refused, shallow_object};
use super::message::{ChatMessage, ChatRole, Facts, member};
use crate::count::Provenance;
use crate::history::Units;

/// Larger texts are no requests.
const LARGEST: usize = 64 << 20;

/// A chat completions request as `OpenAI` defines it, checked and otherwise as it came.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The whole request; `messages` is a list of objects that is not empty.
    whole: Map<String, Value>,
    /// One for each message.
    facts: Vec<Facts>,
    /// What a count of all messages rests on at best.
    provenance: Provenance,
    /// Which messages stay or go together.
    units: Units,
    /// Where the length of the answer is asked for, and what is asked.
    requested: Option<(&'static str, u64)>,
}

/// Why something is no chat request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The text is not JSON.
    #[error("the request is not JSON: {reason} at line {line}, column {column}")]
    Syntax {
        /// What is wrong.
        reason: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The text is larger than any request.
    #[error("the request has {bytes} bytes, which is more than the limit of {limit}")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The value nests deeper than any request.
    #[error("the request nests deeper than {limit} levels")]
    TooDeep {
        /// How deep it may nest.
        limit: usize,
    },
    /// Something is there, but not what it must be.
    #[error("{place} is {found}, but must be {expected}")]
    Wrong {
        /// Where, such as `` `messages[3].role` ``; the request itself if it is no object.
        place: String,
        /// What is there.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// Something that must be there is not.
    #[error("{place} is missing: it must be {expected}")]
    Missing {
        /// Where.
        place: String,
        /// What would be right.
        expected: String,
    },
    /// The length of the answer is asked for twice.
    #[error("`max_tokens` and `max_completion_tokens` are both set, but only one of them may be")]
    TwoLengths,
    /// There are tools in the newer and in the older form.
    #[error("`tools` and `functions` are both set, but only one of them may be")]
    TwoToolLists,
}

impl ChatRequest {
    /// Reads a request.
    ///
    /// ```
    /// use overlock_budget::ChatRequest;
    ///
    /// let request = ChatRequest::from_json(r#"{"messages": [{"role": "user", "content": "Hi"}]}"#)?;
    /// assert_eq!(request.messages().len(), 1);
    ///
    /// let error = ChatRequest::from_json(r#"{"messages": [{"role": "robot"}]}"#).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "`messages[0].role` is `\"robot\"`, but must be one of `system`, `developer`, `user`, \
    ///      `assistant`, `tool`, `function`"
    /// );
    /// # Ok::<(), overlock_budget::RequestError>(())
    /// ```
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

    /// Takes a request that was read already.
    pub fn from_value(value: Value) -> Result<Self, RequestError> {
        let whole = shallow_object(value).map_err(|refused| match refused {
            Refused::Deep => RequestError::TooDeep { limit: DEEPEST },
            Refused::NoObject(value) => wrong("the request", &value, "an object"),
        })?;
        check_model(&whole)?;
        let facts = check_messages(&whole)?;
        check_tools(&whole)?;
        let requested = requested(&whole)?;
        let provenances = facts.iter().map(|facts| facts.provenance);
        let mut request = Self {
            whole,
            provenance: provenances.max().unwrap_or(Provenance::Exact),
            facts,
            units: Units::default(),
            requested,
        };
        let messages: Vec<ChatMessage> = request.messages().collect();
        request.units = Units::of(&messages);
        Ok(request)
    }

    /// Where the open turn begins, which is always sent: at the last user message, or before it.
    pub fn open_turn(&self) -> usize {
        self.units.open_start()
    }

    /// Has the open turn begin no later than at a message. Who adds a question to a request of
    /// somebody else keeps the turn that was open before.
    ///
    /// ```
    /// use overlock_budget::ChatRequest;
    ///
    /// let request = r#"{"messages": [
    ///     {"role": "user", "content": "How warm is it?"},
    ///     {"role": "assistant", "content": "It is 2"},
    ///     {"role": "user", "content": "Continue."}
    /// ]}"#;
    /// let request = ChatRequest::from_json(request)?;
    /// assert_eq!(request.open_turn(), 2);
    /// assert_eq!(request.with_open_turn(0).open_turn(), 0);
    /// # Ok::<(), overlock_budget::RequestError>(())
    /// ```
    #[must_use]
    pub fn with_open_turn(mut self, start: usize) -> Self {
        self.units.open_from(start);
        self
    }

    /// The model it is for, if it says so.
    pub fn model(&self) -> Option<&str> {
        member(&self.whole, "model")?.as_str()
    }

    /// Its messages, of which there is at least one.
    #[expect(clippy::missing_panics_doc, reason = "the messages were checked")]
    pub fn messages(&self) -> impl ExactSizeIterator<Item = ChatMessage<'_>> + Clone {
        let messages = list(&self.whole, "messages").iter();
        messages.zip(&self.facts).map(|(message, facts)| {
            let members = message.as_object();
            ChatMessage::new(
                *facts,
                members.expect("messages were checked to be objects"),
            )
        })
    }

    /// Its tools, or the older functions.
    pub fn tools(&self) -> &[Value] {
        list(&self.whole, self.tools_key())
    }

    /// The tokens the answer may have, if the request says so.
    pub fn requested(&self) -> Option<u64> {
        self.requested.map(|(_, tokens)| tokens)
    }

    /// The whole request as it came.
    pub fn members(&self) -> &Map<String, Value> {
        &self.whole
    }

    /// The whole request as it came, to be sent.
    pub fn into_value(self) -> Value {
        Value::Object(self.whole)
    }

    /// What a count of its messages rests on at best.
    pub(super) fn provenance(&self) -> Provenance {
        self.provenance
    }

    pub(crate) fn units(&self) -> &Units {
        &self.units
    }

    /// Where the length of the answer is asked for.
    pub(crate) fn requested_key(&self) -> Option<&'static str> {
        self.requested.map(|(key, _)| key)
    }

    /// Where the tools are; only one of the two lists has any.
    pub(crate) fn tools_key(&self) -> &'static str {
        if list(&self.whole, "functions").is_empty() {
            "tools"
        } else {
            "functions"
        }
    }

    pub(crate) fn into_members(self) -> Map<String, Value> {
        self.whole
    }
}

/// Where something is in a request, which is written out only if something is wrong there.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root(&'a str),
    Member(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl<'a> Place<'a> {
    fn member(&'a self, key: &'a str) -> Self {
        Self::Member(self, key)
    }

    fn item(&'a self, index: usize) -> Self {
        Self::Item(self, index)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(key) => formatter.write_str(key),
            Self::Member(of, key) => write!(formatter, "{of}.{key}"),
            Self::Item(of, index) => write!(formatter, "{of}[{index}]"),
        }
    }
}

fn list<'a>(members: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    match member(members, key) {
        Some(Value::Array(values)) => values,
        _ => &[],
    }
}

fn check_model(whole: &Map<String, Value>) -> Result<(), RequestError> {
    match member(whole, "model") {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(wrong_at("model", other, "the name of a model")),
    }
}

fn check_messages(whole: &Map<String, Value>) -> Result<Vec<Facts>, RequestError> {
    const EXPECTED: &str = "a list of messages, at least one";
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
        .map(|(index, message)| check_message(message, &Place::Root("messages").item(index)))
        .collect()
}

fn check_message(message: &Value, place: &Place<'_>) -> Result<Facts, RequestError> {
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
            "the id of the call it answers",
        )?;
    }
    if role == ChatRole::Function {
        check_text(
            members,
            place,
            "name",
            "the name of the function it answers for",
        )?;
    }
    Ok(Facts::of(role, members))
}

fn check_role(members: &Map<String, Value>, place: &Place<'_>) -> Result<ChatRole, RequestError> {
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

/// Whether the message calls anything, which makes content optional.
fn check_calls(members: &Map<String, Value>, place: &Place<'_>) -> Result<bool, RequestError> {
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
        Some(other) => return Err(wrong_at(place, other, "a list of tool calls")),
    };
    for (index, call) in calls.iter().enumerate() {
        let place = place.item(index);
        let Some(call) = call.as_object() else {
            return Err(wrong_at(place, call, "an object"));
        };
        check_text(call, &place, "id", "the id that its result names")?;
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

fn check_call(function: &Value, place: &Place<'_>, arguments: &str) -> Result<(), RequestError> {
    let Some(members) = function.as_object() else {
        let expected = format!("an object with `name` and `{arguments}`");
        return Err(wrong_at(place, function, &expected));
    };
    check_text(members, place, "name", "the name of what is called")?;
    check_text(members, place, arguments, "the arguments as a text")
}

fn check_content(
    members: &Map<String, Value>,
    place: &Place<'_>,
    role: ChatRole,
    called: bool,
) -> Result<(), RequestError> {
    let place = place.member("content");
    let expected = "a text or a list of parts";
    // A model that calls a tool, refuses or speaks aloud says nothing else.
    let says_otherwise = ["refusal", "audio"]
        .iter()
        .any(|key| member(members, key).is_some_and(|value| !value.is_null()));
    let optional = role == ChatRole::Assistant && (called || says_otherwise);
    match member(members, "content") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => {
            let mut parts = parts.iter().enumerate();
            parts.try_for_each(|(index, part)| check_part(part, &place.item(index)))
        }
        None | Some(Value::Null) if optional => Ok(()),
        // Results of functions may be nothing.
        Some(Value::Null) if role == ChatRole::Function => Ok(()),
        None => Err(missing(place, expected)),
        Some(other) => Err(wrong_at(place, other, expected)),
    }
}

fn check_part(part: &Value, place: &Place<'_>) -> Result<(), RequestError> {
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
        Some("text") => return check_text(members, place, "text", "a text"),
        Some("refusal") => return check_text(members, place, "refusal", "a text"),
        Some("image_url") => ("image_url", Some("url")),
        Some("input_audio") => ("input_audio", Some("data")),
        Some("file") => ("file", None),
        // Providers have parts of their own.
        _ => return Ok(()),
    };
    let place = place.member(key);
    match (member(members, key), inner) {
        (Some(Value::Object(members)), Some(inner)) => check_text(members, &place, inner, "a text"),
        (Some(Value::Object(_)), None) => Ok(()),
        (Some(other), _) => Err(wrong_at(place, other, "an object")),
        (None, _) => Err(missing(place, "an object")),
    }
}

fn check_tools(whole: &Map<String, Value>) -> Result<(), RequestError> {
    for (key, inner) in [("tools", Some("function")), ("functions", None)] {
        let tools = match member(whole, key) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(tools)) => tools,
            Some(other) => return Err(wrong_at(key, other, "a list of tools")),
        };
        for (index, tool) in tools.iter().enumerate() {
            check_tool(tool, &Place::Root(key).item(index), inner)?;
        }
    }
    if !list(whole, "tools").is_empty() && !list(whole, "functions").is_empty() {
        return Err(RequestError::TwoToolLists);
    }
    Ok(())
}

fn check_tool(tool: &Value, place: &Place<'_>, inner: Option<&str>) -> Result<(), RequestError> {
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
    // Providers have tools of their own, of which nothing is known.
    if member(members, "type").and_then(Value::as_str) != Some(inner) {
        return Ok(());
    }
    let place = place.member(inner);
    match member(members, inner) {
        Some(function) => check_function(function, &place),
        None => Err(missing(place, "an object with a `name`")),
    }
}

fn check_function(function: &Value, place: &Place<'_>) -> Result<(), RequestError> {
    let Some(members) = function.as_object() else {
        return Err(wrong_at(place, function, "an object with a `name`"));
    };
    check_text(members, place, "name", "the name of the function")?;
    check_text_if_there(members, place, "description")?;
    match member(members, "parameters") {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(other) => {
            let place = place.member("parameters");
            Err(wrong_at(place, other, "a JSON schema"))
        }
    }
}

fn requested(whole: &Map<String, Value>) -> Result<Option<(&'static str, u64)>, RequestError> {
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

/// A number that is whole, however it is written: some programs know no others than `100.0`.
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
    place: &Place<'_>,
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
    place: &Place<'_>,
    key: &str,
) -> Result<(), RequestError> {
    match member(members, key) {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(wrong_at(place.member(key), other, "a text")),
    }
}

fn syntax(error: &serde_json::Error) -> RequestError {
    let (line, column) = (error.line(), error.column());
    let whole = error.to_string();
    // The place is a field of its own.
    let reason = whole.strip_suffix(&format!(" at line {line} column {column}"));
    let reason = reason.unwrap_or(&whole);
    if reason == "recursion limit exceeded" {
        return RequestError::TooDeep { limit: DEEPEST };
    }
    RequestError::Syntax {
        reason: reason.to_owned(),
        line,
        column,
    }
}

fn missing(place: impl fmt::Display, expected: &str) -> RequestError {
    RequestError::Missing {
        place: quoted(place),
        expected: expected.to_owned(),
    }
}

fn wrong_at(place: impl fmt::Display, found: &Value, expected: &str) -> RequestError {
    wrong(&quoted(place), found, expected)
}

fn wrong(place: &str, found: &Value, expected: &str) -> RequestError {
    RequestError::Wrong {
        place: place.to_owned(),
        found: describe(found),
        expected: expected.to_owned(),
    }
}

fn quoted(place: impl fmt::Display) -> String {
    format!("`{place}`")
}

/// What a value is, in a few words.
fn describe(value: &Value) -> String {
    const SHORT: usize = 40;
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().nth(SHORT).is_some() => "a text".to_owned(),
        Value::Number(number) if number.to_string().len() > SHORT => "a number".to_owned(),
        short => quoted(short),
    }
}
