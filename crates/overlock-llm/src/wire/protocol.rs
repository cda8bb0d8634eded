//! The protocols, by name.

use serde_json::{Map, Value, json};

use super::answer::{AnswerSummary, WireAnswer, frame};
use super::chat;
use super::error::{ErrorBody, RequestError};
use super::messages::{self, MessagesAnswer};
use super::request::WireRequest;
use super::responses::{self, ResponsesAnswer};
use crate::assembler::Assembler;
use crate::backend::{Event, Usage};

/// A wire protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions.
    #[default]
    ChatCompletions,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
}

/// The names of members of a request.
#[derive(Clone, Copy, Debug)]
pub struct MemberNames {
    /// The messages.
    pub messages: &'static str,
    /// The response format.
    pub format: &'static str,
}

impl Protocol {
    /// The path of its requests below a base address.
    pub fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/chat/completions",
            Self::Responses => "/responses",
            Self::Messages => "/messages",
        }
    }

    /// The names of members of a request.
    pub fn names(self) -> MemberNames {
        match self {
            Self::ChatCompletions => MemberNames {
                messages: "messages",
                format: "response_format",
            },
            Self::Responses => MemberNames {
                messages: "input",
                format: "text.format",
            },
            Self::Messages => MemberNames {
                messages: "messages",
                format: "output_config.format",
            },
        }
    }

    /// Parses a request.
    pub fn read_request(self, text: &str) -> Result<Box<dyn WireRequest>, RequestError> {
        match self {
            Self::ChatCompletions => Ok(Box::new(chat::ChatRequest::from_json(text)?)),
            Self::Responses => Ok(Box::new(responses::ResponsesRequest::from_json(text)?)),
            Self::Messages => Ok(Box::new(messages::MessagesRequest::from_json(text)?)),
        }
    }

    /// A request without text, for the record of a request whose text is not recorded.
    pub fn blank_request(self, model: &str) -> Value {
        match self {
            Self::ChatCompletions => {
                json!({ "model": model, "messages": [{ "role": "user", "content": "" }] })
            }
            Self::Responses => json!({ "model": model, "input": "" }),
            Self::Messages => json!({
                "model": model, "max_tokens": 1, "messages": [{ "role": "user", "content": "" }],
            }),
        }
    }

    /// A streamed answer of which nothing has arrived. If the upstream sends no id, it gets this
    /// id, time and model.
    pub fn streamed(
        self,
        id: &str,
        created: u64,
        model: &str,
        wants_usage: bool,
    ) -> Box<dyn WireAnswer> {
        match self {
            Self::ChatCompletions => Box::new(chat::ChatResponse::streamed(
                id,
                created,
                model,
                wants_usage,
            )),
            Self::Responses => Box::new(ResponsesAnswer::streamed(id, created, model)),
            Self::Messages => Box::new(MessagesAnswer::streamed(id, model)),
        }
    }

    /// An answer that was not streamed, after its [check](Self::check_answer).
    pub fn complete(self, object: Value, assembler: &mut Assembler) -> Box<dyn WireAnswer> {
        match self {
            Self::ChatCompletions => Box::new(chat::ChatResponse::complete(object, assembler)),
            Self::Responses => Box::new(ResponsesAnswer::complete(object, assembler)),
            Self::Messages => Box::new(MessagesAnswer::complete(object, assembler)),
        }
    }

    /// The answer as one object that the events of a stream make; `None` if the stream has no end,
    /// or if answers of this protocol are streamed only on request.
    pub fn joined(self, events: &[Value]) -> Option<Value> {
        match self {
            Self::ChatCompletions | Self::Responses => None,
            Self::Messages => messages::joined(events),
        }
    }

    /// Checks that an object is an answer of this protocol. An error says what it is not.
    pub fn check_answer(self, object: &Value) -> Result<(), &'static str> {
        let (is_answer, error) = match self {
            Self::ChatCompletions => (
                object.get("choices").is_some_and(Value::is_array),
                "it is no chat completion, and has no `choices`",
            ),
            Self::Responses => (
                object.get("output").is_some_and(Value::is_array),
                "it is no response, and has no `output`",
            ),
            Self::Messages => (
                object.get("content").is_some_and(Value::is_array),
                "it is no message, and has no `content`",
            ),
        };
        is_answer.then_some(()).ok_or(error)
    }

    /// The error in an event or in an answer, as an object with the member `error`.
    pub fn error_in(self, value: &Value) -> Option<Value> {
        match self {
            Self::ChatCompletions => {
                let error = value.get("error").filter(|error| !error.is_null())?;
                Some(json!({ "error": error }))
            }
            Self::Responses => responses::error_in(value),
            Self::Messages => messages::error_in(value),
        }
    }

    /// Whether an event has output of the model.
    pub fn has_output(self, event: &Value) -> bool {
        match self {
            Self::ChatCompletions => chat::has_output(event),
            Self::Responses => responses::has_output(event),
            Self::Messages => messages::has_output(event),
        }
    }

    /// The data of the events of a stream of this answer.
    pub fn events(self, object: &Value, wants_usage: bool) -> Vec<Value> {
        match self {
            Self::ChatCompletions => chat::chunks(object, wants_usage),
            Self::Responses => responses::events(object),
            Self::Messages => messages::events(object),
        }
    }

    /// The lines of an event.
    pub fn frame(self, event: &Value) -> Vec<u8> {
        match self {
            Self::ChatCompletions => frame(event.to_string().as_bytes()),
            Self::Responses | Self::Messages => {
                let kind = event.get("type").and_then(Value::as_str);
                let name = format!("event: {}\n", kind.unwrap_or_default());
                [name.as_bytes(), &frame(event.to_string().as_bytes())].concat()
            }
        }
    }

    /// The lines after the last event.
    pub fn end_of_stream(self) -> &'static str {
        match self {
            Self::ChatCompletions => "data: [DONE]\n\n",
            Self::Responses | Self::Messages => "",
        }
    }

    /// The body of an error.
    pub fn error(self, error: &ErrorBody<'_>) -> Value {
        match self {
            Self::ChatCompletions | Self::Responses => error.as_openai(),
            Self::Messages => messages::error(error),
        }
    }

    /// The figures of an answer.
    pub fn summary(self, object: &Value) -> AnswerSummary<'_> {
        match self {
            Self::ChatCompletions => chat::summary(object),
            Self::Responses => responses::summary(object),
            Self::Messages => messages::summary(object),
        }
    }

    /// A usage object.
    pub fn usage_object(self, usage: Usage) -> Value {
        match self {
            Self::ChatCompletions => chat::usage_object(usage),
            Self::Responses => responses::usage_object(usage),
            Self::Messages => messages::usage_object(usage),
        }
    }

    /// Reads a usage object.
    pub fn read_usage(self, usage: &Value) -> Option<Usage> {
        match self {
            Self::ChatCompletions => chat::read_usage(usage),
            Self::Responses => responses::read_usage(usage),
            Self::Messages => messages::read_usage(usage),
        }
    }

    /// The usage object of a first call with the tokens of later calls added. Its other members
    /// stay.
    pub fn add_usage(self, first: &Value, later: Usage) -> Value {
        match self {
            Self::ChatCompletions => chat::add_usage(first, later),
            Self::Responses => responses::add_usage(first, later),
            Self::Messages => messages::add_usage(first, later),
        }
    }
}

impl Protocol {
    /// The members of a call whose answer is streamed or not.
    pub fn with_stream(self, request: &mut Map<String, Value>, is_streamed: bool) {
        for name in ["stream", "stream_options"] {
            request.remove(name);
        }
        if is_streamed {
            request.insert("stream".to_owned(), json!(true));
            if self == Self::ChatCompletions {
                let options = json!({ "include_usage": true });
                request.insert("stream_options".to_owned(), options);
            }
        }
    }

    /// A message of the model in a request.
    pub fn assistant_message(self, text: &str) -> Value {
        match self {
            Self::ChatCompletions | Self::Messages => {
                json!({ "role": "assistant", "content": text })
            }
            Self::Responses => responses::assistant_message(text),
        }
    }

    /// Removes the format of the answer from a call.
    pub fn without_format(self, request: &mut Map<String, Value>) {
        match self {
            Self::ChatCompletions => {
                request.remove("response_format");
            }
            Self::Responses => responses::remove_format(request),
            Self::Messages => messages::remove_format(request),
        }
    }

    /// Whether an event is the last one of a stream, even if the connection stays open.
    pub fn ends_stream(self, event: &Value) -> bool {
        self == Self::Messages && event["type"] == "message_stop"
    }

    /// The events in an event of a stream or in an answer. `started` is the usage in the first event
    /// of a stream.
    pub fn events_of(self, value: &Value, started: &mut Usage) -> Vec<Event> {
        match self {
            Self::ChatCompletions => chat::events_of(value),
            Self::Responses => responses::events_of(value),
            Self::Messages => messages::events_of(value, started),
        }
    }
}

/// Whether an answer with this finish reason ended normally, in the words of `OpenAI` and of other
/// servers.
pub fn is_normal_end(finish: &str) -> bool {
    matches!(
        finish,
        "stop"
            | "tool_calls"
            | "function_call"
            | "eos"
            | "eos_token"
            | "end_turn"
            | "stop_sequence"
            // The client continues the turn.
            | "pause_turn"
    )
}
