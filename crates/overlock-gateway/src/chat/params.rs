//! Reads a chat request and plans it into the window of its model.

use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName};
use overlock_budget::{
    ChatCounter, Extras, FlexError, PlanError, PlanOptions, Scale, Trim, plan, plan_least,
};
use overlock_json::{BoundedSchema, Comparison, required_members};
use overlock_llm::wire::{Protocol, ToolParameters, WireRequest};
use overlock_llm::{CallFailure, ContinuationOptions, Prefill, PrefillStyle, Strategy};
use overlock_runs::{AnswerLimit, Basis, CallBudget, Least, Unfit};
use serde_json::Value;

use crate::body::text_of;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::model_cache::CachedModel;

/// What a chat request and its headers ask for.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent property of the request"
)]
pub(crate) struct ChatParams {
    pub(super) protocol: Protocol,
    /// The original request. It is parsed again where its members are needed, because the parsed
    /// form takes several times the memory while the upstream answers.
    pub(super) text: Bytes,
    pub(super) model: String,
    pub(super) known: Arc<CachedModel>,
    pub(super) is_streamed: bool,
    /// Whether a stream ends with its usage.
    pub(super) wants_usage: bool,
    /// Whether the model thinks first, so that its answer cannot be prefilled.
    is_thinking: bool,
    /// Whether the answer has to be JSON.
    pub(super) is_json: bool,
    pub(super) schema: Option<DocumentSchema>,
    pub(super) tools: Vec<Arc<ToolRules>>,
    pub(super) continues: Continues,
    /// The limit of the answer in tokens, if the client sets one.
    pub(super) requested: Option<u64>,
    /// The limit of all answers together.
    pub(super) max_total_tokens: u64,
    /// The strategies of later calls, chosen once: a run is recorded with what it does, even if
    /// another order is learnt meanwhile.
    strategies: OnceLock<Vec<Strategy>>,
    /// The counter for this request, if the server counts differently from the model's counter.
    scaled: Option<Box<ChatCounter<'static>>>,
    /// The factor that earlier answers of the model suggest.
    learnt_scale: Option<Scale>,
}

/// How much of a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// As much as fits.
    Most,
    /// Only what must stay.
    Least,
}

/// The schema of the requested document.
#[derive(Clone)]
pub(super) struct DocumentSchema {
    pub(super) bounded: Arc<BoundedSchema>,
    /// Whether the document has to match, by the request or by the settings.
    pub(super) is_strict: bool,
}

/// What the arguments of a tool have to match: all of the parameters' schema if the tool is strict,
/// else only its required members.
pub(super) struct ToolRules {
    pub(super) name: String,
    schema: Value,
    pub(super) is_strict: bool,
}

impl ToolRules {
    fn of(tool: &ToolParameters<'_>) -> Option<Arc<Self>> {
        let schema = if tool.is_strict {
            tool.schema.clone()
        } else {
            required_members(tool.schema)?
        };
        Some(Arc::new(Self {
            name: tool.name.to_owned(),
            schema,
            is_strict: tool.is_strict,
        }))
    }

    pub(super) fn compare(&self, arguments: &str) -> Comparison {
        let name = &self.name;
        let violates = format!("the arguments of a call of `{name}` violate the tool's parameters");
        match BoundedSchema::new(self.schema.clone()) {
            Ok(schema) => schema.compare(arguments, &violates),
            Err(error) => Comparison::undecided(error),
        }
    }
}

/// Which answers are continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continues {
    Nothing,
    Json,
    /// JSON, and any text that was cut off at its limit.
    Text,
}

/// A request that fits the window.
pub(super) struct PlannedRequest {
    pub(super) budget: CallBudget,
    /// How many messages were dropped.
    pub(super) dropped: usize,
    /// The request for the upstream.
    pub(super) body: Bytes,
}

/// Why a request gets no answer.
pub(super) enum Unanswered {
    /// It does not fit the window of its model.
    TooLarge(Box<Unfit>),
    /// The first call failed.
    Failed(Box<CallFailure>),
    Error(Box<ApiError>),
}

impl From<ApiError> for Unanswered {
    fn from(error: ApiError) -> Self {
        Self::Error(Box::new(error))
    }
}

impl ChatParams {
    /// Reads a request.
    pub(super) fn read(
        gateway: &Gateway,
        headers: &HeaderMap,
        text: Bytes,
        protocol: Protocol,
    ) -> Result<(Self, Box<dyn WireRequest>), ApiError> {
        let settings = &gateway.settings;
        let request = protocol.read_request(text_of(&text)?)?;
        let Some(model) = request.model().map(str::to_owned) else {
            return Err(ApiError::invalid("`model` is missing: it must be a string")
                .with_param("model")
                .with_code("missing_required_parameter"));
        };
        let schema = match request.document_schema() {
            None => None,
            Some((schema, is_strict)) => {
                let bounded = BoundedSchema::new(schema.clone()).map_err(|error| {
                    ApiError::invalid(error.to_string())
                        .with_code("schema_too_large")
                        .with_param(protocol.names().format)
                })?;
                Some(DocumentSchema {
                    bounded: Arc::new(bounded),
                    is_strict: is_strict || settings.strict_schema,
                })
            }
        };
        let mut params = Self {
            protocol,
            text,
            known: gateway.model_cache.get(settings, &model),
            learnt_scale: gateway.token_ratios.factor(&model),
            model,
            is_streamed: request.is_streamed()?,
            wants_usage: request.wants_usage(),
            is_thinking: request.is_thinking(),
            is_json: request.wants_json(),
            schema,
            tools: request
                .tool_parameters()
                .iter()
                .filter_map(ToolRules::of)
                .collect(),
            continues: continues(headers, &*request)?,
            requested: request.outline().requested,
            max_total_tokens: max_total_tokens(headers, settings.max_total_tokens)?,
            strategies: OnceLock::new(),
            scaled: None,
        };
        params.reset_scale();
        Ok((params, request))
    }

    pub(super) fn continuation(&self, gateway: &Gateway) -> ContinuationOptions {
        let strategies = self.strategies(gateway);
        let settings = &gateway.settings;
        settings.continuation_with(strategies, self.max_total_tokens)
    }

    /// How later calls can prefill the answer.
    pub(super) fn prefill(&self) -> Prefill {
        let is_last_message = self.known.prefill.style == PrefillStyle::LastMessage;
        match self.protocol {
            Protocol::Responses if !is_last_message => Prefill::default(),
            Protocol::Messages if self.is_thinking => Prefill::default(),
            _ => self.known.prefill,
        }
    }

    /// The strategies of later calls.
    pub(super) fn strategies(&self, gateway: &Gateway) -> &[Strategy] {
        let strategies = || gateway.strategies_for(&self.model, self.prefill());
        self.strategies.get_or_init(strategies)
    }

    /// Whether a document that violates its schema is not complete.
    pub(super) fn is_strict(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.is_strict)
    }

    /// The parsed request.
    pub(super) fn request(&self) -> Result<Box<dyn WireRequest>, ApiError> {
        Ok(self.protocol.read_request(text_of(&self.text)?)?)
    }

    /// Counts this request and the calls for the rest of its answer.
    pub(super) fn counter(&self) -> &ChatCounter<'static> {
        self.scaled.as_deref().unwrap_or(&self.known.counter)
    }

    pub(super) fn set_scale(&mut self, scale: Scale) {
        let counter = &self.known.counter;
        let is_other = counter.scale() != scale;
        self.scaled = is_other.then(|| Box::new(counter.scaled(scale)));
    }

    /// Counts as before the server has counted this request.
    pub(super) fn reset_scale(&mut self) {
        let counter = &self.known.counter;
        let learnt = self.learnt_scale.filter(|_| counter.is_estimate());
        self.set_scale(learnt.unwrap_or(counter.scale()));
    }

    /// Replaces the properties of the model.
    pub(super) fn set_known(&mut self, known: Arc<CachedModel>) {
        self.known = known;
        self.reset_scale();
    }

    /// How the request and later calls for its answer are planned.
    pub(super) fn plan_options(&self, request: &dyn WireRequest) -> PlanOptions {
        let mut options = self.known.plan.clone();
        if !request.may_be_trimmed() {
            options.trim = Trim::Off;
        }
        options
    }

    /// Plans the request into the window of its model.
    pub(super) fn fit(
        &self,
        request: Box<dyn WireRequest>,
        share: Share,
    ) -> Result<PlannedRequest, Unanswered> {
        let (options, found) = (&self.plan_options(&*request), &self.known.found);
        let (counter, extras) = (self.counter(), Extras::default());
        let planned = match share {
            Share::Most => plan(&*request, &extras, counter, options),
            Share::Least => plan_least(&*request, &extras, counter, options),
        };
        let error = match planned {
            Ok(plan) => {
                let limit = AnswerLimit::of(self.requested, &plan);
                let forwarded = request.forwarded(text_of(&self.text)?, &plan);
                return Ok(PlannedRequest {
                    budget: CallBudget::of(&plan, found).with_limit(limit),
                    dropped: plan.dropped_messages.len(),
                    body: forwarded.map_or(self.text.clone(), Bytes::from),
                });
            }
            Err(error) => error,
        };
        let PlanError::Refused(FlexError::TooLarge { over, gap, .. }) = &error else {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            return Err(ApiError::new(status, "server_error", error.to_string()).into());
        };
        let basis = Basis::of(counter.name(), counter.provenance(&*request), found);
        let least = Least::of(&*request, &extras, counter, options, *gap);
        let limit = AnswerLimit {
            asked: self.requested,
            sent: None,
        };
        Err(Unanswered::TooLarge(Box::new(Unfit {
            message: does_not_fit(options, &error, *over),
            overflow: *over,
            budget: CallBudget::least(options.window, &least, basis).with_limit(limit),
        })))
    }
}

/// The error for a request that does not fit. Clients recognise its first words.
fn does_not_fit(options: &PlanOptions, error: &PlanError, over: u64) -> String {
    let window = options.window;
    let needed = window.saturating_add(over);
    let mut message = format!(
        "This model's maximum context length is {window} tokens. However, your messages, the \
         least useful answer and the margin need {needed} tokens, {over} more than there are."
    );
    for (place, help) in error.help().iter().enumerate() {
        let either = if place == 0 { "Either" } else { "Or" };
        let _ = write!(message, " {either} {help}."); // writing to a string never fails
    }
    if options.trim == Trim::Off {
        message
            .push_str(" Older messages are not dropped (`trim: off` or `truncation: disabled`).");
    }
    message
}

fn continues(headers: &HeaderMap, request: &dyn WireRequest) -> Result<Continues, ApiError> {
    static CONTINUE: HeaderName = HeaderName::from_static("x-overlock-continue");
    match header(headers, &CONTINUE)? {
        None | Some("json" | "text") if !request.may_be_continued() => Ok(Continues::Nothing),
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
    let text = headers.get(name).map(|value| value.to_str().map(str::trim));
    let error = |_| ApiError::invalid(format!("the header `{name}` is not plain text"));
    text.transpose().map_err(error)
}
