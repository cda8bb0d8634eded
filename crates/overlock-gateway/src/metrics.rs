//! What is counted, as Prometheus reads it.
//!
//! Every label has few values: routes, statuses and outcomes, never what a client writes.

use std::sync::OnceLock;
use std::time::Duration;

use hyper::StatusCode;
use overlock_model::Usage;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::account::Noted;
use crate::trace::CHAT;

/// How the text calls itself.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All that is counted.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram>,
    answers: Family<OutcomeLabels, Counter>,
    continuations: Counter,
    tokens: Family<TokenLabels, Counter>,
    cached_input_tokens: Counter,
    overhead_tokens: Counter,
    pub(crate) in_progress: Gauge,
    pub(crate) queued: Gauge,
    pub(crate) upstream_errors: UpstreamErrors,
    pub(crate) spans: Spans,
    /// Those of the usual request, once there was one, which need not be searched for.
    usual: OnceLock<Usual>,
}

/// What counts a chat request that was answered in whole.
struct Usual {
    requests: Counter,
    durations: Histogram,
    answers: Counter,
    input: Counter,
    output: Counter,
}

/// Calls to the upstream that failed.
#[derive(Clone, Default)]
pub(crate) struct UpstreamErrors(Family<ReasonLabels, Counter>);

/// What went wrong with a call to the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamError {
    Unreachable,
    Broken,
    Late,
    /// It answered with a status that says so.
    Status(StatusCode),
}

/// Spans for whoever collects traces.
#[derive(Clone, Default)]
pub(crate) struct Spans(Family<ResultLabels, Counter>);

/// What became of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanEnd {
    Exported,
    /// The collector did not take it.
    Failed,
    /// Too many were waiting.
    Dropped,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RequestLabels {
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RouteLabels {
    route: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct TokenLabels {
    direction: &'static str,
    /// Whether the call was the first for an answer or one for its rest.
    call: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ResultLabels {
    result: &'static str,
}

/// From a quick refusal to a long document.
const SECONDS: [f64; 13] = [
    0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0,
];

/// How the usual answer ended: the name of `Outcome::Complete`.
const WHOLE: &str = "complete";

impl Metrics {
    pub(crate) fn new() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            answers: Family::default(),
            continuations: Counter::default(),
            tokens: Family::default(),
            cached_input_tokens: Counter::default(),
            overhead_tokens: Counter::default(),
            in_progress: Gauge::default(),
            queued: Gauge::default(),
            upstream_errors: UpstreamErrors::default(),
            spans: Spans::default(),
            usual: OnceLock::new(),
        };
        let mut registry = Registry::with_prefix("overlock");
        registry.register(
            "requests",
            "Requests that are done, by route and status",
            metrics.requests.clone(),
        );
        registry.register(
            "request_duration_seconds",
            "Time from the head of a request to the end of its answer",
            metrics.durations.clone(),
        );
        registry.register(
            "answers",
            "Answers to chat requests, by how they ended",
            metrics.answers.clone(),
        );
        registry.register(
            "continuations",
            "Calls made for the rest of cut answers",
            metrics.continuations.clone(),
        );
        registry.register(
            "tokens",
            "Tokens of all calls for chat requests, by direction, first calls and continuations",
            metrics.tokens.clone(),
        );
        registry.register(
            "cached_input_tokens",
            "Input tokens that providers report to have read from their prompt cache",
            metrics.cached_input_tokens.clone(),
        );
        registry.register(
            "overhead_tokens",
            "Tokens of continuations that uncut answers would not have taken",
            metrics.overhead_tokens.clone(),
        );
        registry.register(
            "requests_in_progress",
            "Requests that are worked on",
            metrics.in_progress.clone(),
        );
        registry.register(
            "requests_queued",
            "Requests that wait for a place",
            metrics.queued.clone(),
        );
        registry.register(
            "upstream_errors",
            "Calls to the upstream that failed, by reason",
            metrics.upstream_errors.0.clone(),
        );
        registry.register(
            "spans",
            "Spans for the collector of traces, by what became of them",
            metrics.spans.0.clone(),
        );
        Self {
            registry,
            ..metrics
        }
    }

    /// A request is done.
    pub(crate) fn request(&self, route: &'static str, status: u16, took: Duration, noted: &Noted) {
        let is_usual = (route, status) == (CHAT, 200) && noted.outcome == Some(WHOLE);
        if !is_usual {
            self.any_request(route, status, took, noted);
            return;
        }
        let usual = self.usual.get_or_init(|| self.usual());
        usual.requests.inc();
        usual.durations.observe(took.as_secs_f64());
        usual.answers.inc();
        let first = first_call(noted);
        usual.input.inc_by(first.input);
        usual.output.inc_by(first.output);
        self.continued(noted);
    }

    fn usual(&self) -> Usual {
        let call = "first";
        let tokens = |direction| {
            self.tokens
                .get_or_create_owned(&TokenLabels { direction, call })
        };
        let (route, status, outcome) = (CHAT, 200, WHOLE);
        Usual {
            requests: self
                .requests
                .get_or_create_owned(&RequestLabels { route, status }),
            durations: self.durations.get_or_create_owned(&RouteLabels { route }),
            answers: self.answers.get_or_create_owned(&OutcomeLabels { outcome }),
            input: tokens("input"),
            output: tokens("output"),
        }
    }

    /// Any request is done.
    fn any_request(&self, route: &'static str, status: u16, took: Duration, noted: &Noted) {
        self.requests
            .get_or_create(&RequestLabels { route, status })
            .inc();
        self.durations
            .get_or_create(&RouteLabels { route })
            .observe(took.as_secs_f64());
        let Some(outcome) = noted.outcome else {
            return;
        };
        self.answers.get_or_create(&OutcomeLabels { outcome }).inc();
        self.tokens("first", first_call(noted));
        self.continued(noted);
    }

    /// What an answer took besides its first call.
    fn continued(&self, noted: &Noted) {
        self.cached_input_tokens
            .inc_by(noted.usage.cached.unwrap_or_default());
        let continued = &noted.continued;
        if continued.calls > 0 {
            self.continuations.inc_by(continued.calls.into());
            self.overhead_tokens.inc_by(continued.overhead_tokens);
            self.tokens("continuation", continued.usage);
        }
    }

    fn tokens(&self, call: &'static str, usage: Usage) {
        for (direction, tokens) in [("input", usage.input), ("output", usage.output)] {
            self.tokens
                .get_or_create(&TokenLabels { direction, call })
                .inc_by(tokens);
        }
    }

    /// Everything as text.
    pub(crate) fn told(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes every text");
        text
    }
}

/// The tokens of the first call for an answer.
fn first_call(noted: &Noted) -> Usage {
    let (all, continued) = (noted.usage, noted.continued.usage);
    Usage {
        input: all.input.saturating_sub(continued.input),
        output: all.output.saturating_sub(continued.output),
        cached: None,
    }
}

impl UpstreamErrors {
    pub(crate) fn add(&self, error: UpstreamError) {
        let reason = match error {
            UpstreamError::Unreachable => "unreachable",
            UpstreamError::Broken => "broken",
            UpstreamError::Late => "late",
            UpstreamError::Status(StatusCode::TOO_MANY_REQUESTS) => "rate_limited",
            UpstreamError::Status(status) if status.is_server_error() => "server_error",
            UpstreamError::Status(_) => "refused",
        };
        self.0.get_or_create(&ReasonLabels { reason }).inc();
    }
}

impl Spans {
    pub(crate) fn add(&self, end: SpanEnd, count: u64) {
        let result = match end {
            SpanEnd::Exported => "exported",
            SpanEnd::Failed => "failed",
            SpanEnd::Dropped => "dropped",
        };
        self.0.get_or_create(&ResultLabels { result }).inc_by(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Taken;

    /// An answer of which a continuation took half.
    fn noted(input: u64, output: u64, outcome: &'static str) -> Noted {
        let half = Usage {
            input: input / 2,
            output: output / 2,
            cached: None,
        };
        Noted {
            usage: Usage {
                input,
                output,
                cached: Some(input / 4),
            },
            continued: Taken {
                calls: 2,
                usage: half,
                overhead_tokens: half.input,
                ..Taken::default()
            },
            outcome: Some(outcome),
            ..Noted::default()
        }
    }

    #[test]
    fn usual_requests_are_counted_as_any_others() {
        let (usual, any) = (Metrics::new(), Metrics::new());
        for (tokens, outcome) in [(1, "complete"), (30, "partial"), (7, "complete")] {
            let noted = noted(tokens, 2 * tokens, outcome);
            usual.request(CHAT, 200, Duration::from_millis(tokens), &noted);
            any.any_request(CHAT, 200, Duration::from_millis(tokens), &noted);
            usual.request(CHAT, 500, Duration::ZERO, &noted);
            any.any_request(CHAT, 500, Duration::ZERO, &noted);
        }
        let lines = |metrics: &Metrics| {
            let told = metrics.told();
            let mut lines: Vec<String> = told.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(lines(&usual), lines(&any));
    }

    #[test]
    fn what_happened_is_counted() {
        let metrics = Metrics::new();
        let noted = noted(100, 30, "complete");
        metrics.request("/v1/chat/completions", 200, Duration::from_secs(1), &noted);
        metrics.request("/health", 200, Duration::ZERO, &Noted::default());
        metrics.upstream_errors.add(UpstreamError::Late);
        let told = metrics.told();
        for line in [
            "overlock_requests_total{route=\"/v1/chat/completions\",status=\"200\"} 1",
            "overlock_requests_total{route=\"/health\",status=\"200\"} 1",
            "overlock_request_duration_seconds_count{route=\"/health\"} 1",
            "overlock_answers_total{outcome=\"complete\"} 1",
            "overlock_continuations_total 2",
            "overlock_tokens_total{direction=\"input\",call=\"first\"} 50",
            "overlock_tokens_total{direction=\"output\",call=\"first\"} 15",
            "overlock_tokens_total{direction=\"input\",call=\"continuation\"} 50",
            "overlock_tokens_total{direction=\"output\",call=\"continuation\"} 15",
            "overlock_cached_input_tokens_total 25",
            "overlock_overhead_tokens_total 50",
            "overlock_upstream_errors_total{reason=\"late\"} 1",
            "overlock_requests_queued 0",
            "# EOF",
        ] {
            assert!(told.lines().any(|told| told == line), "{line}\n{told}");
        }
    }
}
