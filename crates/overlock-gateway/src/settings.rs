//! What a gateway is told when it starts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use overlock_budget::{ChatCounter, Found, Model, Models, PlanOptions};
use overlock_llm::{
    ContinuationOptions, Discovery, Kpi, PrefillStyle, RetryPolicy, Strategy, Timeouts,
};
use overlock_runs::{Record, Traces};

use crate::keys::Keys;

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who answers.
    pub upstream: Upstream,
    /// The keys that clients must show; without any, nobody is asked for one.
    pub keys: Keys,
    /// What is known of models.
    pub models: Models,
    /// What the prices of models are counted in.
    pub currency: String,
    /// Who counts for models whose tokenizer is not built in; without it there are estimates.
    pub counters: Option<Arc<dyn Counters>>,
    /// How a window is divided; what a model can take is not in it.
    pub plan: PlanOptions,
    /// How an answer is continued; how to ask follows from the model if there is none in it.
    pub continuation: ContinuationOptions,
    /// What all answers to one request may have together, in tokens.
    pub max_total_tokens: u64,
    /// Close the valid part of a document that could not be made whole, where it is not streamed.
    pub close_partial: bool,
    /// Refuse documents that violate the schema that came with the request.
    pub strict_schema: bool,
    /// What is kept of a run.
    pub record: Record,
    /// The address of the store as it may be shown, which is without a password, if it is not the
    /// one that commands take by themselves.
    pub store_shown: Option<String>,
    /// Who collects traces; without one there are none.
    pub traces: Option<Traces>,
    /// What the gateway bears.
    pub limits: Limits,
}

impl Settings {
    /// The usual settings for an upstream.
    pub fn new(upstream: Upstream) -> Self {
        Self {
            upstream,
            keys: Keys::default(),
            models: Models::default(),
            currency: "USD".to_owned(),
            counters: None,
            plan: PlanOptions::default(),
            continuation: ContinuationOptions {
                ways: Vec::new(),
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

    /// How an answer is continued with these strategies and so many tokens in all.
    pub(crate) fn continuation_with(&self, ways: &[Strategy], tokens: u64) -> ContinuationOptions {
        let mut options = ContinuationOptions {
            ways: ways.to_vec(),
            ..self.continuation.clone()
        };
        let most = options.max_output_tokens.unwrap_or(u64::MAX);
        options.max_output_tokens = Some(most.min(tokens));
        options
    }
}

/// Knows tokenizers that are not built in.
pub trait Counters: Send + Sync {
    /// The counter for a model that was found, if its tokenizer is known.
    fn for_model(&self, found: &Found) -> Option<ChatCounter<'static>>;
}

impl fmt::Debug for dyn Counters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Counters")
    }
}

/// A server that answers.
#[derive(Clone)]
pub struct Upstream {
    /// Its address up to the version, such as `http://127.0.0.1:11434/v1`; without one only the
    /// model that is built in answers.
    pub base: Option<String>,
    /// The key it is shown; without one it gets what the client shows.
    pub key: Option<String>,
    /// How it is told what the model has said already; nothing if that is to be found out.
    pub prefill: Option<PrefillStyle>,
    /// How far it is asked what it is.
    pub discovery: Discovery,
    /// How long it is waited for.
    pub timeouts: Timeouts,
    /// How often it is asked again.
    pub retries: RetryPolicy,
}

impl fmt::Debug for Upstream {
    /// Without the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Upstream")
            .field("base", &self.base)
            .field("has_key", &self.key.is_some())
            .field("prefill", &self.prefill)
            .field("discovery", &self.discovery)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .finish()
    }
}

impl Upstream {
    /// The server at an address, as it usually is.
    pub fn new(base: impl Into<String>) -> Self {
        Self {
            base: Some(base.into()),
            ..Self::none()
        }
    }

    /// Nobody.
    pub fn none() -> Self {
        Self {
            base: None,
            key: None,
            prefill: None,
            discovery: Discovery::Off,
            timeouts: Timeouts::default(),
            retries: RetryPolicy::default(),
        }
    }
}

/// What a gateway bears before it says no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of a request.
    pub body_bytes: usize,
    /// How long the head of a request may take.
    pub head_time: Duration,
    /// How long the body of a request may take.
    pub body_time: Duration,
    /// How long a client may take no bytes of a response before its connection is closed.
    pub write_time: Duration,
    /// How many requests are worked on at once.
    pub concurrent: usize,
    /// How many more wait.
    pub queue: usize,
    /// How long they wait.
    pub queue_time: Duration,
    /// How many connections are open at once.
    pub connections: usize,
    /// How many listen to events at once.
    pub readers: usize,
    /// How long the requests that are worked on have after the gateway is told to stop.
    pub shutdown_time: Duration,
    /// After how much silence a stream shows that it is alive.
    pub keep_alive: Duration,
    /// How long one request may take, from the time it is worked on to the end of its response.
    pub run_time: Duration,
    /// How many bytes of one answer are read.
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
    /// The same with no more connections than fit, where so many files may be open at once. Each
    /// request takes one for its client and at most two for the upstream, of which one is kept for
    /// the next; who is let in without those could only be told that the upstream is out of reach.
    #[must_use]
    pub fn within(self, open_files: u64) -> Self {
        /// The store, the log, the way to who collects traces, and what the system itself opens.
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
    fn nobody_is_let_in_who_could_not_be_passed_on() {
        check_connections(1 << 20, 8192);
        check_connections(u64::MAX, 8192);
        check_connections(4096, 4096 - 64 - 2048);
        check_connections(1024, 320);
        check_connections(256, 64);
        check_connections(10, 1);
    }
}
