//! Prometheus metrics.
//!
//! Labels are routes, statuses and outcomes, so each has few values. Only the ratios of tokens are
//! labelled with models, of which there are at most 64.

use std::time::Duration;

use overlock_llm::{BackendError, Usage};
use overlock_runs::{FaultKind, SpanEnd};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::token_ratios::RatioGauge;
use crate::totals::RequestTotals;

/// The content type of the metrics.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics.
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
    pub(crate) lost_records: Counter,
    pub(crate) upstream_errors: UpstreamErrors,
    pub(crate) spans: Spans,
}

/// Calls to the upstream that failed.
#[derive(Clone, Default)]
pub(crate) struct UpstreamErrors(Family<ReasonLabels, Counter>);

/// Spans for the trace collector.
#[derive(Clone, Default)]
pub(crate) struct Spans(Family<ResultLabels, Counter>);

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
    /// `first` or `continuation`.
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

/// Buckets from a quick rejection to a long document.
const SECONDS: [f64; 13] = [
    0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0,
];

impl Metrics {
    pub(crate) fn new(token_ratios: RatioGauge) -> Self {
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
            lost_records: Counter::default(),
            upstream_errors: UpstreamErrors::default(),
            spans: Spans::default(),
        };
        let mut registry = Registry::with_prefix("overlock");
        registry.register(
            "requests",
            "Completed requests, by route and status",
            metrics.requests.clone(),
        );
        registry.register(
            "request_duration_seconds",
            "Time from the request headers to the end of the answer",
            metrics.durations.clone(),
        );
        registry.register(
            "answers",
            "Answers to chat requests, by outcome",
            metrics.answers.clone(),
        );
        registry.register(
            "continuations",
            "Calls that continue cut answers",
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
            "billed_token_ratio",
            "Billed input tokens for each counted one, the largest of the latest answers, by model",
            token_ratios,
        );
        registry.register(
            "overhead_tokens",
            "Extra tokens of continuations compared with uncut answers",
            metrics.overhead_tokens.clone(),
        );
        registry.register(
            "requests_in_progress",
            "Requests in progress",
            metrics.in_progress.clone(),
        );
        registry.register(
            "requests_queued",
            "Requests in the queue",
            metrics.queued.clone(),
        );
        registry.register(
            "lost_records",
            "Records of runs that could not be written to the store",
            metrics.lost_records.clone(),
        );
        registry.register(
            "upstream_errors",
            "Failed calls to the upstream, by reason",
            metrics.upstream_errors.0.clone(),
        );
        registry.register(
            "spans",
            "Spans for the trace collector, by result",
            metrics.spans.0.clone(),
        );
        Self {
            registry,
            ..metrics
        }
    }

    /// Counts a completed request.
    pub(crate) fn request(
        &self,
        route: &'static str,
        status: u16,
        took: Duration,
        totals: &RequestTotals,
    ) {
        self.requests
            .get_or_create(&RequestLabels { route, status })
            .inc();
        self.durations
            .get_or_create(&RouteLabels { route })
            .observe(took.as_secs_f64());
        let Some(outcome) = totals.outcome else {
            return;
        };
        self.answers.get_or_create(&OutcomeLabels { outcome }).inc();
        self.tokens("first", first_call(totals));
        self.cached_input_tokens
            .inc_by(totals.usage.cached.unwrap_or_default());
        let continued = &totals.continued;
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

    /// All metrics as text.
    pub(crate) fn encoded(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

/// The tokens of the first call for an answer.
fn first_call(stats: &RequestTotals) -> Usage {
    let (all, continued) = (stats.usage, stats.continued.usage);
    Usage {
        input: all.input.saturating_sub(continued.input),
        output: all.output.saturating_sub(continued.output),
        cached: None,
    }
}

impl UpstreamErrors {
    /// Counts a call that failed.
    pub(crate) fn add(&self, error: &BackendError) {
        let reason = match (FaultKind::of(error), error.status().unwrap_or_default()) {
            (Some(FaultKind::Unanswered), _) => "unreachable",
            (Some(FaultKind::Late), _) => "late",
            // A stream with an error event began with a success status.
            (Some(FaultKind::Broken | FaultKind::Unusable), _) | (None, 200..=299) => "broken",
            (None, 429) => "rate_limited",
            (None, 500..=599) => "server_error",
            (None, _) => "refused",
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
    use crate::totals::UsageTotals;

    /// An answer with half of its tokens in a continuation.
    fn stats(input: u64, output: u64, outcome: &'static str) -> RequestTotals {
        let half = Usage {
            input: input / 2,
            output: output / 2,
            cached: None,
        };
        RequestTotals {
            usage: Usage {
                input,
                output,
                cached: Some(input / 4),
            },
            continued: UsageTotals {
                calls: 2,
                usage: half,
                overhead_tokens: half.input,
                ..UsageTotals::default()
            },
            outcome: Some(outcome),
            ..RequestTotals::default()
        }
    }

    #[test]
    fn counts_requests_and_errors() {
        let metrics = Metrics::new(RatioGauge::default());
        let stats = stats(100, 30, "complete");
        metrics.request("/v1/chat/completions", 200, Duration::from_secs(1), &stats);
        metrics.request("/health", 200, Duration::ZERO, &RequestTotals::default());
        metrics.upstream_errors.add(&BackendError::TimedOut {
            host: String::new(),
            phase: overlock_llm::Phase::FirstByte,
            after: Duration::ZERO,
        });
        let text = metrics.encoded();
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
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
