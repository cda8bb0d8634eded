//! What is told of a chat request to whoever collects traces.
//!
//! A request is one span, and every call of the upstream for it is a span below, with the names of
//! OpenTelemetry's conventions for generative models. Nothing in it comes from a prompt, an answer
//! or a header: only names of models, figures, and how things ended.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::{HeaderMap, Uri};
use overlock_llm::{BackendError, Usage};
use overlock_runs::{Attributes, Exporter, FaultKind, Kind, Moment, Span, TraceContext, shortened};
use serde_json::Value;

use crate::demo;
use crate::metrics::CHAT;
use crate::totals::RequestTotals;

/// The trace of one request, while it is worked on.
pub(crate) struct RequestTrace {
    exporter: Arc<Exporter>,
    context: TraceContext,
    /// The span of the client, if it has one.
    parent: Option<u64>,
    begun: Moment,
    told: Mutex<Told>,
}

/// What is known so far.
#[derive(Default)]
struct Told {
    asked: Option<Asked>,
    answered: Option<Answered>,
    /// What went wrong after the head of the reply was sent.
    error: Option<&'static str>,
    calls: u64,
    call: Option<OpenCall>,
}

/// What was asked, of whom.
struct Asked {
    model: String,
    max_tokens: Option<u64>,
    provider: Option<&'static str>,
    host: Option<String>,
    port: Option<u16>,
}

/// What an answer says of itself.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    model: Option<String>,
    finishes: Vec<String>,
}

/// A call that is being made.
struct OpenCall {
    context: TraceContext,
    begun: Moment,
    number: u64,
    way: Option<&'static str>,
}

/// How a call ended.
#[derive(Debug, Default)]
pub(crate) struct Called {
    pub(crate) answered: Answered,
    pub(crate) usage: Option<Usage>,
    /// How what came was joined to what there was, or why not.
    pub(crate) seam: Option<String>,
    /// What went wrong.
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

/// The name of what went wrong with a call of the upstream.
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
    pub(crate) noted: &'a RequestTotals,
    pub(crate) run: Option<&'a str>,
    /// The name of the error that the client was told.
    pub(crate) error: Option<&'static str>,
    /// Whether the client left before the end.
    pub(crate) left: bool,
}

/// So many answers to one request are told of.
const MOST_FINISHES: usize = 16;

impl RequestTrace {
    /// Begins the trace of a request, or goes on with the client's. One that the client does not
    /// want to be kept is not.
    pub(crate) fn begin(exporter: &Arc<Exporter>, headers: &HeaderMap) -> Option<Self> {
        let client = TraceContext::of(headers);
        if client.is_some_and(|client| !client.is_sampled) {
            return None;
        }
        Some(Self {
            exporter: Arc::clone(exporter),
            context: client.map_or_else(TraceContext::new_trace, TraceContext::child),
            parent: client.map(|client| client.span),
            begun: Moment::now(),
            told: Mutex::default(),
        })
    }

    /// A model was asked for, of the upstream at this address.
    pub(crate) fn asked(&self, model: &str, max_tokens: Option<u64>, base: Option<&str>) {
        let uri: Option<Uri> = base.and_then(|base| base.trim().parse().ok());
        let is_demo = model == demo::MODEL;
        let uri = uri.filter(|_| !is_demo);
        let host = uri.as_ref().and_then(Uri::host);
        self.told().asked = Some(Asked {
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
    pub(crate) fn calling(&self, way: Option<&'static str>) {
        let mut told = self.told();
        told.calls += 1;
        told.call = Some(OpenCall {
            context: self.context.child(),
            begun: Moment::now(),
            number: told.calls,
            way,
        });
    }

    /// Says to the upstream which call of which trace this is.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        let call = self.told().call.as_ref().map(|call| call.context);
        call.unwrap_or(self.context).tell(headers);
    }

    /// The call that was being made has ended, if there was one.
    pub(crate) fn called(&self, called: Called) {
        let mut told = self.told();
        let Some(call) = told.call.take() else {
            return;
        };
        let mut attributes = asked_attributes(told.asked.as_ref());
        if let Some(asked) = &told.asked {
            attributes.maybe("server.address", asked.host.as_deref());
            if let Some(port) = asked.port {
                attributes.number("server.port", port.into());
            }
        }
        let name = name(told.asked.as_ref());
        drop(told);
        answered_attributes(&mut attributes, &called.answered);
        if let Some(usage) = called.usage {
            usage_attributes(&mut attributes, usage);
        }
        attributes.number("overlock.call", call.number);
        attributes.maybe("overlock.way", call.way);
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

    /// The client has this answer.
    pub(crate) fn answered(&self, answer: &Value) {
        self.told().answered = Some(Answered::of(answer));
    }

    /// Something went wrong after the head of the reply was sent.
    pub(crate) fn failed(&self, error: &'static str) {
        self.told().error = Some(error);
    }

    /// The request is done.
    pub(crate) fn done(&self, done: &Done<'_>) {
        self.called(Called {
            error: Some(if done.left { LEFT } else { "unfinished" }.into()),
            ..Called::default()
        });
        let told = self.told();
        let mut attributes = asked_attributes(told.asked.as_ref());
        if let Some(answered) = &told.answered {
            answered_attributes(&mut attributes, answered);
        }
        attributes.text("http.request.method", "POST");
        attributes.text("http.route", CHAT);
        attributes.number("http.response.status_code", done.status.into());
        let noted = done.noted;
        if let Some(outcome) = noted.outcome {
            usage_attributes(&mut attributes, noted.usage);
            attributes.text("overlock.outcome", outcome);
            attributes.number("overlock.continuations", noted.continued.calls.into());
        }
        attributes.maybe("overlock.run", done.run);
        let error = told.error.or(done.error).map(Cow::Borrowed);
        let error = error.or(done.left.then_some(Cow::Borrowed(LEFT)));
        let error = error.or((done.status >= 400).then(|| done.status.to_string().into()));
        attributes.maybe("error.type", error.as_deref());
        self.exporter.take(Span {
            context: self.context,
            parent: self.parent,
            name: name(told.asked.as_ref()),
            kind: Kind::Server,
            begun: self.begun,
            took: self.begun.elapsed(),
            attributes,
            // What a client does wrong is no failure of a server.
            has_failed: done.status >= 500 || told.error.is_some(),
        });
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How it is called that nobody waited for the end.
const LEFT: &str = "client_left";

impl Answered {
    /// What a completion says.
    pub(crate) fn of(answer: &Value) -> Self {
        let choices = answer.get("choices").and_then(Value::as_array);
        let finishes = choices.into_iter().flatten();
        Self::new(
            answer.get("model").and_then(Value::as_str),
            finishes.filter_map(|choice| choice.get("finish_reason")?.as_str()),
        )
    }

    /// The name of a model, and the words with which its answers ended.
    pub(crate) fn new<'a>(model: Option<&str>, finishes: impl Iterator<Item = &'a str>) -> Self {
        let finishes = finishes.take(MOST_FINISHES);
        Self {
            model: model.map(|model| shortened(model).into_owned()),
            finishes: finishes.map(|word| shortened(word).into_owned()).collect(),
        }
    }
}

fn name(asked: Option<&Asked>) -> String {
    asked.map_or_else(
        || "chat".to_owned(),
        |asked| format!("chat {}", asked.model),
    )
}

fn asked_attributes(asked: Option<&Asked>) -> Attributes {
    let mut attributes = Attributes::default();
    attributes.text("gen_ai.operation.name", "chat");
    if let Some(asked) = asked {
        attributes.maybe("gen_ai.provider.name", asked.provider);
        attributes.text("gen_ai.request.model", &asked.model);
        if let Some(tokens) = asked.max_tokens {
            attributes.number("gen_ai.request.max_tokens", tokens);
        }
    }
    attributes
}

fn answered_attributes(attributes: &mut Attributes, answered: &Answered) {
    attributes.maybe("gen_ai.response.model", answered.model.as_deref());
    if !answered.finishes.is_empty() {
        attributes.texts("gen_ai.response.finish_reasons", &answered.finishes);
    }
}

fn usage_attributes(attributes: &mut Attributes, usage: Usage) {
    attributes.number("gen_ai.usage.input_tokens", usage.input);
    attributes.number("gen_ai.usage.output_tokens", usage.output);
}

/// The provider at a host, by the names of the conventions. Who is not known speaks as `OpenAI`
/// does.
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
    let known = KNOWN.iter().find(|(domain, _)| is_at(domain));
    known.map_or("openai", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::provider;

    #[test]
    fn providers_are_known_by_their_hosts() {
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
