//! What does a client want, and does it fit?

use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName};
use overlock_budget::{
    ChatCounter, Extras, FlexError, Plan, PlanError, PlanOptions, Scale, Trim, plan, plan_least,
};
use overlock_llm::wire::chat::{ChatRequest, RequestError};
use overlock_llm::{ContinuationOptions, Strategy};
use serde_json::{Map, Value, json};

use super::tool_rules::ToolRules;
use crate::body::text_of;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::model_cache::CachedModel;
use overlock_json::BoundedSchema;
use overlock_runs::{AnswerLimit, Basis, CallBudget, Least, Unfit};

/// A chat request with all that was said around it.
#[derive(Clone)]
pub(crate) struct Wish {
    /// The request as it came. What it says is read again where that is needed: it takes several
    /// times the space of its text, for as long as the upstream takes to answer.
    pub(crate) text: Bytes,
    pub(crate) model: String,
    pub(crate) known: Arc<CachedModel>,
    pub(crate) streams: bool,
    /// Whether a stream is to tell what it took.
    pub(crate) wants_usage: bool,
    /// Whether the answer is asked to be JSON.
    pub(crate) is_json: bool,
    /// What the document is held to.
    pub(crate) schema: Option<DocumentSchema>,
    /// What the arguments of tool calls are held to.
    pub(crate) tools: Vec<Arc<ToolRules>>,
    pub(crate) continues: Continues,
    /// How long the answer may be, if that is said.
    pub(crate) requested: Option<u64>,
    /// What all answers may have together.
    pub(crate) max_total_tokens: u64,
    /// The strategies to continue its answer with, once they are needed: what is recorded of the
    /// run is what it does, whatever is learnt meanwhile.
    strategies: OnceLock<Vec<Strategy>>,
    /// Counts this request, where the server counts it otherwise than the counter of the model.
    scaled: Option<Box<ChatCounter<'static>>>,
}

/// How much of a request is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// As much as fits.
    Most,
    /// Only what must stay.
    Least,
}

/// The schema of the document that a client asks for.
#[derive(Clone)]
pub(crate) struct DocumentSchema {
    pub(crate) bounded: Arc<BoundedSchema>,
    /// Whether the document has to match, by the request or by the settings.
    pub(crate) is_strict: bool,
}

/// Which answers are continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continues {
    /// None.
    Nothing,
    /// Those that are JSON.
    Json,
    /// Those that are JSON, and all others that were cut off at their limit.
    Text,
}

/// A request that fits.
pub(crate) struct Fitted {
    pub(crate) plan: Plan,
    /// How long the answer is said to be at most.
    pub(crate) limit: AnswerLimit,
    /// The request as it goes to the upstream.
    pub(crate) body: Bytes,
}

impl Wish {
    /// Reads what a client sent.
    pub(crate) fn read(
        gateway: &Gateway,
        headers: &HeaderMap,
        text: Bytes,
    ) -> Result<(Self, ChatRequest), ApiError> {
        let settings = &gateway.settings;
        let request = read(&text)?;
        let members = request.members();
        let Some(model) = request.model().map(str::to_owned) else {
            return Err(ApiError::invalid("`model` is missing: it must be a string")
                .with_param("model")
                .with_code("missing_required_parameter"));
        };
        if !matches!(
            members.get("stream"),
            None | Some(Value::Null | Value::Bool(_))
        ) {
            return Err(ApiError::invalid("`stream` must be true or false").with_param("stream"));
        }
        let format = members.get("response_format");
        let kind = format.and_then(|format| format.get("type"));
        let kind = kind.and_then(Value::as_str);
        let schema = format
            .and_then(|format| format.get("json_schema")?.get("schema"))
            .filter(|_| kind == Some("json_schema"));
        let schema = schema.map(|schema| BoundedSchema::new(schema.clone()));
        let schema = schema.transpose().map_err(|error| {
            ApiError::invalid(error.to_string())
                .with_code("schema_too_large")
                .with_param("response_format")
        })?;
        let strict = format.and_then(|format| format.get("json_schema")?.get("strict"));
        let wish = Self {
            text,
            known: gateway.model_cache.get(settings, &model),
            model,
            streams: streams(members),
            wants_usage: wants_usage(members),
            is_json: matches!(kind, Some("json_object" | "json_schema")),
            schema: schema.map(|schema| DocumentSchema {
                bounded: Arc::new(schema),
                is_strict: strict == Some(&Value::Bool(true)) || settings.strict_schema,
            }),
            tools: ToolRules::of(members),
            continues: continues(headers)?,
            requested: request.requested(),
            max_total_tokens: max_total_tokens(headers, settings.max_total_tokens)?,
            strategies: OnceLock::new(),
            scaled: None,
        };
        Ok((wish, request))
    }

    /// How the answer is continued.
    pub(crate) fn continuation(&self, gateway: &Gateway) -> ContinuationOptions {
        let settings = &gateway.settings;
        settings.continuation_with(self.strategies(gateway), self.max_total_tokens)
    }

    /// The strategies that the answer is continued with.
    pub(crate) fn strategies(&self, gateway: &Gateway) -> &[Strategy] {
        let strategies = || gateway.strategies_for(&self.model, self.known.prefill);
        self.strategies.get_or_init(strategies)
    }

    /// Whether a document that violates the schema of the request is not complete.
    pub(crate) fn is_strict(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.is_strict)
    }

    /// The request once more.
    pub(crate) fn request(&self) -> Result<ChatRequest, ApiError> {
        read(&self.text)
    }

    /// Counts this request and those for the rest of its answer.
    pub(crate) fn counter(&self) -> &ChatCounter<'static> {
        self.scaled.as_deref().unwrap_or(&self.known.counter)
    }

    /// Counts this request with this scale from now on.
    pub(crate) fn set_scale(&mut self, scale: Scale) {
        let counter = &self.known.counter;
        let is_other = counter.scale() != scale;
        self.scaled = is_other.then(|| Box::new(counter.scaled(scale)));
    }

    /// Takes what is known of the model now.
    pub(crate) fn set_known(&mut self, known: Arc<CachedModel>) {
        self.known = known;
        self.scaled = None;
    }

    /// Makes the request fit the window of its model, or says why it cannot be. An error is told
    /// as it is where the settings contradict themselves.
    pub(crate) fn fit(
        &self,
        request: ChatRequest,
        share: Share,
    ) -> Result<Result<Fitted, Unfit>, ApiError> {
        let CachedModel {
            plan: options,
            found,
            ..
        } = &*self.known;
        let (counter, extras) = (self.counter(), Extras::default());
        let planned = match share {
            Share::Most => plan(&request, &extras, counter, options),
            Share::Least => plan_least(&request, &extras, counter, options),
        };
        let error = match planned {
            Ok(plan) => {
                let limit = limit(&request, &plan);
                let body = body(&self.text, request, &plan);
                return Ok(Ok(Fitted { plan, limit, body }));
            }
            Err(error) => error,
        };
        let PlanError::Refused(FlexError::TooLarge { over, gap, .. }) = &error else {
            return Err(ApiError::new(
                hyper::StatusCode::INTERNAL_SERVER_ERROR,
                "server_error",
                error.to_string(),
            ));
        };
        let basis = Basis::of(counter.name(), counter.provenance(&request), found);
        let least = Least::of(&request, &extras, counter, options, *gap);
        Ok(Err(Unfit {
            message: does_not_fit(options, &error, *over),
            overflow: *over,
            budget: CallBudget::least(options.window, &least, basis).with_limit(AnswerLimit {
                asked: self.requested,
                sent: None,
            }),
        }))
    }
}

/// How long an answer is said to be at most. Who sets no limit wants none but the model's own.
pub(crate) fn limit(request: &ChatRequest, plan: &Plan) -> AnswerLimit {
    let asked = request.requested();
    AnswerLimit {
        asked,
        sent: asked.map(|_| plan.adjusted_max_tokens),
    }
}

/// A request as it goes to the upstream: as it came, where nothing has to change.
pub(crate) fn body(text: &Bytes, request: ChatRequest, plan: &Plan) -> Bytes {
    let limit = limit(&request, plan);
    let adds_usage = streams(request.members()) && !wants_usage(request.members());
    if limit.asked == limit.sent && plan.dropped_messages.is_empty() && !adds_usage {
        return text.clone();
    }
    let Value::Object(mut members) = request.rewrite(plan) else {
        return text.clone();
    };
    if limit.sent.is_none() {
        members.remove("max_tokens");
        members.remove("max_completion_tokens");
    }
    if adds_usage {
        let options = members.entry("stream_options").or_insert(json!({}));
        if let Some(options) = options.as_object_mut() {
            options.insert("include_usage".to_owned(), json!(true));
        } else {
            *options = json!({ "include_usage": true });
        }
    }
    Value::Object(members).to_string().into()
}

fn streams(members: &Map<String, Value>) -> bool {
    members.get("stream") == Some(&Value::Bool(true))
}

/// Whether a stream is to tell what it took. No other answer is asked whether it tells.
fn wants_usage(members: &Map<String, Value>) -> bool {
    let options = members.get("stream_options").filter(|_| streams(members));
    options.and_then(|options| options.get("include_usage")) == Some(&Value::Bool(true))
}

fn read(text: &[u8]) -> Result<ChatRequest, ApiError> {
    ChatRequest::from_json(text_of(text)?).map_err(|error| malformed(&error))
}

/// What whoever asks for what does not fit is told, in the words that clients know.
fn does_not_fit(options: &PlanOptions, error: &PlanError, over: u64) -> String {
    let window = options.window;
    let needed = window.saturating_add(over);
    let mut message = format!(
        "This model's maximum context length is {window} tokens. However, your messages, the \
         least useful answer and the margin need {needed} tokens, {over} more than there are."
    );
    for (place, help) in error.help().iter().enumerate() {
        let either = if place == 0 { "Either" } else { "Or" };
        let _ = write!(message, " {either} {help}."); // a string takes everything
    }
    if options.trim == Trim::Off {
        message.push_str(" The gateway is set not to drop older messages (`trim: off`).");
    }
    message
}

fn continues(headers: &HeaderMap) -> Result<Continues, ApiError> {
    static CONTINUE: HeaderName = HeaderName::from_static("x-overlock-continue");
    match header(headers, &CONTINUE)? {
        None | Some("json") => Ok(Continues::Json),
        Some("text") => Ok(Continues::Text),
        Some("off") => Ok(Continues::Nothing),
        Some(other) => Err(ApiError::invalid(format!(
            "the header `x-overlock-continue` is `{other}`, but must be `json`, `text` or `off`"
        ))),
    }
}

fn max_total_tokens(headers: &HeaderMap, most: u64) -> Result<u64, ApiError> {
    static MOST: HeaderName = HeaderName::from_static("x-overlock-max-total-tokens");
    let Some(given) = header(headers, &MOST)? else {
        return Ok(most);
    };
    match given.parse::<u64>() {
        Ok(tokens) if tokens > 0 => Ok(tokens.min(most)),
        _ => Err(ApiError::invalid(format!(
            "the header `x-overlock-max-total-tokens` is `{given}`, but must be a whole number \
             from 1 on"
        ))),
    }
}

/// A header as text.
fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(text) => Ok(Some(text.trim())),
        Err(_) => Err(ApiError::invalid(format!(
            "the header `{name}` is not plain text"
        ))),
    }
}

fn malformed(error: &RequestError) -> ApiError {
    let told = ApiError::invalid(error.to_string());
    match error {
        RequestError::Wrong { place, .. } | RequestError::Missing { place, .. } => {
            match place.strip_prefix('`') {
                Some(parameter) => told.with_param(parameter.trim_end_matches('`')),
                None => told,
            }
        }
        RequestError::TooLong { .. } => ApiError::new(
            hyper::StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            error.to_string(),
        ),
        _ => told,
    }
}
