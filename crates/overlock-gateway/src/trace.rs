//! OpenTelemetry spans of chat requests.
//!
//! A request is one span, and each of its upstream calls is a child span, with the names of
//! OpenTelemetry's conventions for generative models. Spans contain model names, figures and
//! outcomes, but nothing of prompts, answers or headers.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::{HeaderMap, Uri};
use overlock_llm::wire::AnswerSummary;
use overlock_llm::{BackendError, Usage};
use overlock_runs::{Attributes, Exporter, FaultKind, Kind, Moment, Span, TraceContext, shortened};

use crate::demo;
use crate::totals::RequestTotals;

/// The trace of one request, while it is worked on.
pub(crate) struct RequestTrace {
    exporter: Arc<Exporter>,
    route: &'static str,
    context: TraceContext,
    /// The span of the client, if it has one.
    parent: Option<u64>,
    begun: Moment,
    state: Mutex<TraceState>,
}

/// The state so far.
#[derive(Default)]
struct TraceState {
    request: Option<RequestInfo>,
    answer: Option<AnswerInfo>,
    /// The error after the head of the reply was sent.
    error: Option<&'static str>,
    calls: u64,
    call: Option<OpenCall>,
}

/// The request and its upstream.
struct RequestInfo {
    model: String,
    max_tokens: Option<u64>,
    provider: Option<&'static str>,
    host: Option<String>,
    port: Option<u16>,
}

/// The model and the finish reasons of an answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerInfo {
    model: Option<String>,
    finishes: Vec<String>,
}

/// A call in progress.
struct OpenCall {
    context: TraceContext,
    begun: Moment,
    number: u64,
    strategy: Option<&'static str>,
}

/// How a call ended.
#[derive(Debug, Default)]
pub(crate) struct Called {
    pub(crate) answered: AnswerInfo,
    pub(crate) usage: Option<Usage>,
    /// How the answer was joined, or why not.
    pub(crate) seam: Option<String>,
    /// The error.
    pub(crate) error: Option<Cow<'static, str>>,
}

impl Called {
    /// A call without an answer.
    pub(crate) fn failed(error: &BackendError) -> Self {
        Self {
            error: Some(error_type(error)),
            ..Self::default()
        }
    }
}

/// The name of the error of an upstream call.
pub(crate) fn error_type(error: &BackendError) -> Cow<'static, str> {
    Cow::Borrowed(match (FaultKind::of(error), error.status()) {
        (None, Some(status)) if !(200..300).contains(&status) => {
            return status.to_string().into();
        }
        (Some(FaultKind::Unanswered), _) => "unreachable",
        (Some(FaultKind::Late), _) => "timeout",
        (Some(FaultKind::Broken), _) => "broken",
        (Some(FaultKind::Unusable) | None, _) => "upstream_error",
    })
}

/// How a request ended.
pub(crate) struct Done<'a> {
    pub(crate) status: u16,
    pub(crate) totals: &'a RequestTotals,
    pub(crate) run: Option<&'a str>,
    /// The name of the error sent to the client.
    pub(crate) error: Option<&'static str>,
    /// Whether the client disconnected before the end.
    pub(crate) left: bool,
}

/// The most finish reasons in a span.
const MOST_FINISHES: usize = 16;

impl RequestTrace {
    /// Begins the trace of a request, or continues that of the client, unless it is not sampled.
    pub(crate) fn begin(
        exporter: &Arc<Exporter>,
        route: &'static str,
        headers: &HeaderMap,
    ) -> Option<Self> {
        let client = TraceContext::of(headers);
        if client.is_some_and(|client| !client.is_sampled) {
            return None;
        }
        Some(Self {
            exporter: Arc::clone(exporter),
            route,
            context: client.map_or_else(TraceContext::new_trace, TraceContext::child),
            parent: client.map(|client| client.span),
            begun: Moment::now(),
            state: Mutex::default(),
        })
    }

    /// Sets the requested model and the upstream.
    pub(crate) fn set_request(&self, model: &str, max_tokens: Option<u64>, base: Option<&str>) {
        let uri: Option<Uri> = base.and_then(|base| base.trim().parse().ok());
        let is_demo = model == demo::MODEL;
        let uri = uri.filter(|_| !is_demo);
        let host = uri.as_ref().and_then(Uri::host);
        self.state().request = Some(RequestInfo {
            model: shortened(model).into_owned(),
            max_tokens,
            provider: if is_demo {
                Some("overlock")
            } else {
                host.map(provider)
            },
            host: host.map(str::to_owned),
            port: uri.as_ref().and_then(Uri::port_u16),
        });
    }

    /// A call is about to be made.
    pub(crate) fn calling(&self, strategy: Option<&'static str>) {
        let mut state = self.state();
        state.calls += 1;
        state.call = Some(OpenCall {
            context: self.context.child(),
            begun: Moment::now(),
            number: state.calls,
            strategy,
        });
    }

    /// Adds the trace context of the current call to its headers.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        let call = self.state().call.as_ref().map(|call| call.context);
        call.unwrap_or(self.context).inject(headers);
    }

    /// Ends the call in progress, if there is one.
    pub(crate) fn called(&self, called: Called) {
        let mut state = self.state();
        let Some(call) = state.call.take() else {
            return;
        };
        let mut attributes = request_attributes(state.request.as_ref());
        if let Some(request) = &state.request {
            attributes.maybe("server.address", request.host.as_deref());
            if let Some(port) = request.port {
                attributes.number("server.port", port.into());
            }
        }
        let name = name(state.request.as_ref());
        drop(state);
        answer_attributes(&mut attributes, &called.answered);
        if let Some(usage) = called.usage {
            usage_attributes(&mut attributes, usage);
        }
        attributes.number("overlock.call", call.number);
        attributes.maybe("overlock.strategy", call.strategy);
        attributes.maybe("overlock.seam", called.seam);
        attributes.maybe("error.type", called.error.as_deref());
        self.exporter.take(Span {
            context: call.context,
            parent: Some(self.context.span),
            name,
            kind: Kind::Client,
            begun: call.begun,
            took: call.begun.elapsed(),
            attributes,
            has_failed: called.error.is_some(),
        });
    }

    /// Sets the answer that the client got.
    pub(crate) fn answered(&self, answer: &AnswerSummary<'_>) {
        let info = AnswerInfo::new(answer.model, answer.finishes.iter().copied());
        self.state().answer = Some(info);
    }

    /// Sets the error that occurred after the head of the reply was sent.
    pub(crate) fn failed(&self, error: &'static str) {
        self.state().error = Some(error);
    }

    /// Ends the trace.
    pub(crate) fn done(&self, done: &Done<'_>) {
        self.called(Called {
            error: Some(if done.left { LEFT } else { "unfinished" }.into()),
            ..Called::default()
        });
        let state = self.state();
        let mut attributes = request_attributes(state.request.as_ref());
        if let Some(answer) = &state.answer {
            answer_attributes(&mut attributes, answer);
        }
        attributes.text("http.request.method", "POST");
        attributes.text("http.route", self.route);
        attributes.number("http.response.status_code", done.status.into());
        let totals = done.totals;
        if let Some(outcome) = totals.outcome {
            usage_attributes(&mut attributes, totals.usage);
            attributes.text("overlock.outcome", outcome);
            attributes.number("overlock.continuations", totals.continued.calls.into());
        }
        attributes.maybe("overlock.run", done.run);
        let error = state.error.or(done.error).map(Cow::Borrowed);
        let error = error.or(done.left.then_some(Cow::Borrowed(LEFT)));
        let error = error.or((done.status >= 400).then(|| done.status.to_string().into()));
        attributes.maybe("error.type", error.as_deref());
        self.exporter.take(Span {
            context: self.context,
            parent: self.parent,
            name: name(state.request.as_ref()),
            kind: Kind::Server,
            begun: self.begun,
            took: self.begun.elapsed(),
            attributes,
            // An error of the client is not a failure of the server.
            has_failed: done.status >= 500 || state.error.is_some(),
        });
    }

    fn state(&self) -> MutexGuard<'_, TraceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of a request whose client disconnected.
const LEFT: &str = "client_left";

impl AnswerInfo {
    /// The name of a model, and the finish reasons of its choices.
    pub(crate) fn new<'a>(model: Option<&str>, finishes: impl Iterator<Item = &'a str>) -> Self {
        let finishes = finishes.take(MOST_FINISHES);
        Self {
            model: model.map(|model| shortened(model).into_owned()),
            finishes: finishes.map(|word| shortened(word).into_owned()).collect(),
        }
    }
}

fn name(request: Option<&RequestInfo>) -> String {
    request.map_or_else(
        || "chat".to_owned(),
        |request| format!("chat {}", request.model),
    )
}

fn request_attributes(request: Option<&RequestInfo>) -> Attributes {
    let mut attributes = Attributes::default();
    attributes.text("gen_ai.operation.name", "chat");
    if let Some(request) = request {
        attributes.maybe("gen_ai.provider.name", request.provider);
        attributes.text("gen_ai.request.model", &request.model);
        if let Some(tokens) = request.max_tokens {
            attributes.number("gen_ai.request.max_tokens", tokens);
        }
    }
    attributes
}

fn answer_attributes(attributes: &mut Attributes, answer: &AnswerInfo) {
    attributes.maybe("gen_ai.response.model", answer.model.as_deref());
    if !answer.finishes.is_empty() {
        attributes.texts("gen_ai.response.finish_reasons", &answer.finishes);
    }
}

fn usage_attributes(attributes: &mut Attributes, usage: Usage) {
    attributes.number("gen_ai.usage.input_tokens", usage.input);
    attributes.number("gen_ai.usage.output_tokens", usage.output);
}

/// The provider at a host, by the names of the conventions; `openai` if it is unknown.
fn provider(host: &str) -> &'static str {
    const KNOWN: [(&str, &str); 9] = [
        ("openai.azure.com", "azure.ai.openai"),
        ("anthropic.com", "anthropic"),
        ("cohere.com", "cohere"),
        ("deepseek.com", "deepseek"),
        ("generativelanguage.googleapis.com", "gcp.gemini"),
        ("groq.com", "groq"),
        ("mistral.ai", "mistral_ai"),
        ("perplexity.ai", "perplexity"),
        ("x.ai", "x_ai"),
    ];
    let is_at = |domain: &str| {
        let before = host.strip_suffix(domain);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let entry = KNOWN.iter().find(|(domain, _)| is_at(domain));
    entry.map_or("openai", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::provider;

    #[test]
    fn detects_providers_by_their_hosts() {
        for (host, name) in [
            ("api.openai.com", "openai"),
            ("mine.openai.azure.com", "azure.ai.openai"),
            ("api.x.ai", "x_ai"),
            ("x.ai", "x_ai"),
            ("notx.ai", "openai"),
            ("127.0.0.1", "openai"),
        ] {
            assert_eq!(provider(host), name, "{host}");
        }
    }
}
