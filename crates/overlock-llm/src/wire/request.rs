//! What a request of any protocol says about its answer, and the calls that are made of it.

use overlock_budget::{Plan, Request};
use serde_json::{Map, Value};

use super::error::RequestError;

/// The parameters of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolParameters<'a> {
    /// The name of the tool.
    pub name: &'a str,
    /// The schema of its arguments.
    pub schema: &'a Value,
    /// Whether the arguments have to match the schema.
    pub is_strict: bool,
}

/// A checked request. Each protocol implements this.
///
/// The methods named `with` and `for` return another request of the same protocol, whose plan keeps
/// the open turn of the client.
pub trait WireRequest: Request + Send + Sync {
    /// The model, if it names one.
    fn model(&self) -> Option<&str>;

    /// A copy of it.
    fn boxed(&self) -> Box<dyn WireRequest>;

    /// Whether the answer is streamed.
    fn is_streamed(&self) -> Result<bool, RequestError>;

    /// Whether a stream ends with a separate event for its usage.
    fn wants_usage(&self) -> bool;

    /// Whether the answer has to be JSON.
    fn wants_json(&self) -> bool;

    /// Whether later calls can continue its answer without side effects.
    fn may_be_continued(&self) -> bool {
        true
    }

    /// Whether messages may be dropped to make it fit.
    fn may_be_trimmed(&self) -> bool {
        true
    }

    /// Whether the model thinks before it answers, so that an answer cannot be prefilled.
    fn is_thinking(&self) -> bool {
        false
    }

    /// The schema of the requested document, and whether the request is strict about it.
    fn document_schema(&self) -> Option<(&Value, bool)>;

    /// The tools with parameters.
    fn tool_parameters(&self) -> Vec<ToolParameters<'_>>;

    /// The request as JSON.
    fn to_value(&self) -> Value;

    /// The text that a proxy forwards instead of `text`, the text of this request, or nothing if
    /// that is forwarded as it is. The length of the answer is limited only if the client limits it.
    fn forwarded(self: Box<Self>, text: &str, plan: &Plan) -> Option<String>;

    /// The members of a call according to a plan of this request.
    fn into_call(self: Box<Self>, plan: &Plan) -> Map<String, Value>;

    /// The request for one answer text: the content, or the arguments of a call of this tool. The
    /// rest of a text is requested with it.
    fn for_one_text(&self, tool: Option<&str>) -> Result<Box<dyn WireRequest>, RequestError>;

    /// The request with instructions at the end of its last message. If they ask for a fragment,
    /// the response format goes, because a model that is held to valid JSON cannot write one.
    fn with_words(
        &self,
        words: &str,
        keeps_format: bool,
    ) -> Result<Box<dyn WireRequest>, RequestError>;

    /// The request with an answer of the model and instructions for the next one.
    fn with_turn(&self, answer: &str, words: &str) -> Result<Box<dyn WireRequest>, RequestError>;

    /// The request with little reasoning, if it asks for more.
    fn with_less_reasoning(&self) -> Result<Box<dyn WireRequest>, RequestError> {
        Ok(self.boxed())
    }

    /// The request with an answer limit of at least this many tokens, if it has one.
    fn with_least_limit(&self, least: u64) -> Result<Box<dyn WireRequest>, RequestError>;
}

/// Lowers a member that says how much a model reasons.
pub(super) fn lower_effort(effort: &mut Value) {
    if let Value::String(effort) = effort
        && matches!(effort.as_str(), "medium" | "high" | "xhigh" | "max")
    {
        "low".clone_into(effort);
    }
}

/// The question for the arguments of a call of a tool, as text.
pub(super) fn tool_question(tool: &str) -> String {
    format!(
        "Call the tool `{tool}`: answer with the JSON object of its arguments, and nothing else."
    )
}
