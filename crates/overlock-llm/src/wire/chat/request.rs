//! A chat completions request, checked when it is read.

use std::borrow::Cow;

use overlock_budget::{Content, Outline, Request, Tool, ToolChoice, Units};
use serde_json::{Map, Value};

use super::checks::{check_messages, check_model, check_tools, list, requested};
use super::depth::{DEEPEST, Refused, shallow_object};
use super::error::{RequestError, syntax, wrong};
use super::message::{ChatMessage, member};
use super::tools;

/// Larger texts are no requests.
const LARGEST: usize = 64 << 20;

/// A chat completions request as `OpenAI` defines it, checked and otherwise as it came.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    /// The whole request; `messages` is a list of objects that is not empty.
    whole: Map<String, Value>,
    /// Of these messages.
    outline: Outline,
    /// Where the length of the answer is asked for.
    requested_key: Option<&'static str>,
}

impl ChatRequest {
    /// Reads a request.
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
    /// # Ok::<(), overlock_llm::wire::chat::RequestError>(())
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

    /// Where the open turn begins, which is always sent: at the last user message, or before it.
    pub fn open_turn(&self) -> usize {
        self.outline.units.open_start()
    }

    /// Has the open turn begin no later than at a message. Who adds a question to a request of
    /// somebody else keeps the turn that was open before.
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
    /// # Ok::<(), overlock_llm::wire::chat::RequestError>(())
    /// ```
    #[must_use]
    pub fn with_open_turn(mut self, start: usize) -> Self {
        self.outline.units.open_from(start);
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
        messages.zip(&self.outline.messages).map(|(message, kind)| {
            let members = message.as_object();
            ChatMessage::new(
                kind.role,
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
        self.outline.requested
    }

    /// The whole request as it came.
    pub fn members(&self) -> &Map<String, Value> {
        &self.whole
    }

    /// The whole request as it came, to be sent.
    pub fn into_value(self) -> Value {
        Value::Object(self.whole)
    }

    /// Where the length of the answer is asked for.
    pub(super) fn requested_key(&self) -> Option<&'static str> {
        self.requested_key
    }

    /// Where the tools are; only one of the two lists has any.
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
