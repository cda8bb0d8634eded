//! The settings of a gateway.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use overlock_budget::{ChatCounter, Found, Model, Models, PlanOptions};
use overlock_llm::wire::Protocol;
use overlock_llm::{
    ContinuationOptions, Discovery, Kpi, PrefillStyle, RetryPolicy, Strategy, Timeouts,
};
use overlock_runs::{Record, Traces};

use crate::keys::Keys;

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server that answers.
    pub upstream: Upstream,
    /// The API keys that clients must send; without any, requests need no key.
    pub keys: Keys,
    /// The registry of models.
    pub models: Models,
    /// The currency of model prices.
    pub currency: String,
    /// Counters for models whose tokenizer is not built in; without them counts are estimates.
    pub counters: Option<Arc<dyn Counters>>,
    /// How a window is divided. The limits of a model are not part of it.
    pub plan: PlanOptions,
    /// How an answer is continued. Without strategies, they depend on the model.
    pub continuation: ContinuationOptions,
    /// The most output tokens of all calls for one request.
    pub max_total_tokens: u64,
    /// Close the valid part of a document that could not be completed, unless it is streamed.
    pub close_partial: bool,
    /// Reject documents that violate the schema of the request.
    pub strict_schema: bool,
    /// What is recorded of a run.
    pub record: Record,
    /// The address of the store without its password, for display; `None` if it is the default of the
    /// commands.
    pub store_shown: Option<String>,
    /// The trace collector, if traces are sent.
    pub traces: Option<Traces>,
    /// The limits of the gateway.
    pub limits: Limits,
}

impl Settings {
    /// The default settings for an upstream.
    pub fn new(upstream: Upstream) -> Self {
        Self {
            upstream,
            keys: Keys::default(),
            models: Models::default(),
            currency: "USD".to_owned(),
            counters: None,
            plan: PlanOptions::default(),
            continuation: ContinuationOptions {
                strategies: Vec::new(),
                kpi: Kpi::Off,
                ..ContinuationOptions::default()
            },
            max_total_tokens: 65_536,
            close_partial: true,
            strict_schema: false,
            record: Record::Metadata,
            store_shown: None,
            traces: None,
            limits: Limits::default(),
        }
    }

    /// How the window of this model is divided.
    pub(crate) fn plan_for(&self, model: &Model) -> PlanOptions {
        self.plan.clone().of_model(model)
    }

    /// The options to continue an answer with these strategies, up to a number of tokens.
    pub(crate) fn continuation_with(
        &self,
        strategies: &[Strategy],
        tokens: u64,
    ) -> ContinuationOptions {
        let mut options = ContinuationOptions {
            strategies: strategies.to_vec(),
            ..self.continuation.clone()
        };
        let most = options.max_output_tokens.unwrap_or(u64::MAX);
        options.max_output_tokens = Some(most.min(tokens));
        options
    }
}

/// Provides tokenizers that are not built in.
pub trait Counters: Send + Sync {
    /// The counter for a model, if its tokenizer is known.
    fn for_model(&self, found: &Found) -> Option<ChatCounter<'static>>;
}

impl fmt::Debug for dyn Counters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Counters")
    }
}

/// The upstream server.
#[derive(Clone)]
pub struct Upstream {
    /// Its base URL including the version, such as `http://127.0.0.1:11434/v1`; without one only the
    /// demo model is available.
    pub base: Option<String>,
    /// The protocol of its model calls.
    pub api: Protocol,
    /// Its API key; without one it gets the key of the client.
    pub key: Option<String>,
    /// The prefill style, or `None` to detect it.
    pub prefill: Option<PrefillStyle>,
    /// How its capabilities are detected.
    pub discovery: Discovery,
    /// The timeouts of calls.
    pub timeouts: Timeouts,
    /// The retry policy of calls.
    pub retries: RetryPolicy,
}

impl fmt::Debug for Upstream {
    /// Without the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Upstream")
            .field("base", &self.base)
            .field("api", &self.api)
            .field("has_key", &self.key.is_some())
            .field("prefill", &self.prefill)
            .field("discovery", &self.discovery)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .finish()
    }
}

impl Upstream {
    /// The server at an address, with default settings.
    pub fn new(base: impl Into<String>) -> Self {
        Self {
            base: Some(base.into()),
            ..Self::none()
        }
    }

    /// No upstream.
    pub fn none() -> Self {
        Self {
            base: None,
            api: Protocol::default(),
            key: None,
            prefill: None,
            discovery: Discovery::Off,
            timeouts: Timeouts::default(),
            retries: RetryPolicy::default(),
        }
    }
}

/// The limits of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a request body.
    pub body_bytes: usize,
    /// The time limit for the head of a request.
    pub head_time: Duration,
    /// The time limit for the body of a request.
    pub body_time: Duration,
    /// How long a client may read nothing before its connection is closed.
    pub write_time: Duration,
    /// The most concurrent requests.
    pub concurrent: usize,
    /// The most queued requests.
    pub queue: usize,
    /// The time limit in the queue.
    pub queue_time: Duration,
    /// The most open connections.
    pub connections: usize,
    /// The most event subscribers.
    pub readers: usize,
    /// The time limit for requests in progress at shutdown.
    pub shutdown_time: Duration,
    /// The time without data after which a stream sends a comment.
    pub keep_alive: Duration,
    /// The time limit for one request, from its admission to the end of its response.
    pub run_time: Duration,
    /// The most bytes of one upstream answer.
    pub answer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_mins(1),
            write_time: Duration::from_mins(1),
            concurrent: 1024,
            queue: 1024,
            queue_time: Duration::from_secs(10),
            connections: 8192,
            readers: 64,
            shutdown_time: Duration::from_secs(30),
            keep_alive: Duration::from_secs(10),
            run_time: Duration::from_mins(30),
            answer_bytes: 16 << 20,
        }
    }
}

impl Limits {
    /// The same with as many connections as the limit of open files allows. A request needs one file
    /// for its client and up to two for the upstream; without those, its upstream call would fail.
    #[must_use]
    pub fn within(self, open_files: u64) -> Self {
        /// For the store, the log, the trace exporter and the standard library.
        const OWN: usize = 64;
        let files = usize::try_from(open_files).unwrap_or(usize::MAX);
        let files = files.saturating_sub(OWN);
        let beside_all = files.saturating_sub(self.concurrent.saturating_mul(2));
        Self {
            connections: self.connections.min(beside_all.max(files / 3)).max(1),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_connections(open_files: u64, connections: usize) {
        let limits = Limits::default().within(open_files);
        assert_eq!(limits.connections, connections, "with {open_files} files");
    }

    #[test]
    fn connections_leave_files_for_upstream_calls() {
        check_connections(1 << 20, 8192);
        check_connections(u64::MAX, 8192);
        check_connections(4096, 4096 - 64 - 2048);
        check_connections(1024, 320);
        check_connections(256, 64);
        check_connections(10, 1);
    }
}
