//! A chat completions request, checked when it is parsed.

use std::borrow::Cow;

use overlock_budget::{Content, Outline, Request, Tool, ToolChoice, Units};
use serde_json::{Map, Value};

use super::checks::{check_messages, check_model, check_tools, list, requested};
use super::message::{ChatMessage, member};
use super::tools;
use crate::wire::depth::{DEEPEST, DepthError, shallow_object};
use crate::wire::error::{RequestError, syntax, wrong};

/// The maximum length of a request.
const LARGEST: usize = 64 << 20;

/// A chat completions request as `OpenAI` defines it, checked but unchanged.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The request; `messages` is a non-empty array of objects.
    whole: Map<String, Value>,
    /// The outline of its messages.
    outline: Outline,
    /// The key of the answer limit.
    requested_key: Option<&'static str>,
}

impl ChatRequest {
    /// Parses a request.
    ///
    /// ```
    /// use overlock_llm::wire::chat::ChatRequest;
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
    /// # Ok::<(), overlock_llm::wire::RequestError>(())
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

    /// Checks a parsed request.
    pub fn from_value(value: Value) -> Result<Self, RequestError> {
        let whole = shallow_object(value).map_err(|error| match error {
            DepthError::TooDeep => RequestError::TooDeep { limit: DEEPEST },
            DepthError::NotAnObject(value) => wrong("the request", &value, "an object"),
        })?;
        check_model(&whole)?;
        let messages = check_messages(&whole)?;
        check_tools(&whole)?;
        let (requested_key, requested) = requested(&whole)?.unzip();
        let outline = Outline {
            messages: messages.iter().map(ChatMessage::kind).collect(),
            units: Units::of(&messages),
            requested,
        };
        Ok(Self {
            whole,
            outline,
            requested_key,
        })
    }

    /// The first message of the open turn, which is always sent: the last user message or one
    /// before it.
    pub fn open_turn(&self) -> usize {
        self.outline.units.open_start()
    }

    /// Makes the open turn start no later than at a message. Code that appends a question to a
    /// client's request keeps the client's open turn with it.
    ///
    /// ```
    /// use overlock_llm::wire::chat::ChatRequest;
    ///
    /// let request = r#"{"messages": [
    ///     {"role": "user", "content": "How warm is it?"},
    ///     {"role": "assistant", "content": "It is 2"},
    ///     {"role": "user", "content": "Continue."}
    /// ]}"#;
    /// let request = ChatRequest::from_json(request)?;
    /// assert_eq!(request.open_turn(), 2);
    /// assert_eq!(request.with_open_turn(0).open_turn(), 0);
    /// # Ok::<(), overlock_llm::wire::RequestError>(())
    /// ```
    #[must_use]
    pub fn with_open_turn(mut self, start: usize) -> Self {
        self.outline.units.open_from(start);
        self
    }

    /// The model, if it names one.
    pub fn model(&self) -> Option<&str> {
        member(&self.whole, "model")?.as_str()
    }

    /// Its messages, at least one.
    #[expect(clippy::missing_panics_doc, reason = "the messages were checked")]
    pub fn messages(&self) -> impl ExactSizeIterator<Item = ChatMessage<'_>> + Clone {
        let messages = list(&self.whole, "messages").iter();
        messages.zip(&self.outline.messages).map(|(message, kind)| {
            let members = message.as_object();
            ChatMessage::new(
                kind.role,
                members.expect("messages were checked to be objects"),
            )
        })
    }

    /// Its tools, or its functions in the older form.
    pub fn tools(&self) -> &[Value] {
        list(&self.whole, self.tools_key())
    }

    /// The answer limit in tokens, if there is one.
    pub fn requested(&self) -> Option<u64> {
        self.outline.requested
    }

    /// The members of the request.
    pub fn members(&self) -> &Map<String, Value> {
        &self.whole
    }

    /// The request as JSON.
    pub fn into_value(self) -> Value {
        Value::Object(self.whole)
    }

    /// The key of the answer limit.
    pub(super) fn requested_key(&self) -> Option<&'static str> {
        self.requested_key
    }

    /// The key of the tools; at most one of the two arrays has any.
    pub(super) fn tools_key(&self) -> &'static str {
        if list(&self.whole, "functions").is_empty() {
            "tools"
        } else {
            "functions"
        }
    }

    pub(super) fn into_members(self) -> Map<String, Value> {
        self.whole
    }
}

impl Request for ChatRequest {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn contents<'a>(&'a self, message: usize, each: &mut dyn FnMut(Content<'a>)) {
        let role = self.outline.messages[message].role;
        if let Some(members) = list(&self.whole, "messages")[message].as_object() {
            ChatMessage::new(role, members).contents(each);
        }
    }

    fn tools(&self) -> Vec<Tool<'_>> {
        tools::read(self.tools(), &self.whole)
    }

    fn tool_choice(&self) -> ToolChoice<'_> {
        tools::choice(&self.whole)
    }

    fn answer_schema(&self) -> Option<&Value> {
        self.whole.get("response_format")?.get("json_schema")
    }

    fn template_message(&self, message: usize) -> Cow<'_, Value> {
        Cow::Borrowed(&list(&self.whole, "messages")[message])
    }
}
