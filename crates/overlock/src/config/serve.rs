//! Where the gateway listens, who may use it, and what it bears.

use std::path::PathBuf;
use std::time::Duration;

use overlock_gateway::{Limits, Record, Settings, Upstream};

/// The gateway.
#[derive(Clone, Debug)]
pub(crate) struct Serve {
    pub(crate) listen: String,
    pub(crate) keys_variable: Option<String>,
    pub(crate) keys_file: Option<PathBuf>,
    pub(crate) log: Log,
    pub(crate) record: Record,
    pub(super) max_total_tokens: u64,
    pub(super) close_partial: bool,
    pub(super) strict_schema: bool,
    pub(super) body_bytes: usize,
    pub(super) head_seconds: u64,
    pub(super) body_seconds: u64,
    pub(super) concurrent: usize,
    pub(super) queue: usize,
    pub(super) queue_seconds: u64,
    pub(super) connections: usize,
    pub(super) shutdown_seconds: u64,
    pub(super) keep_alive_seconds: u64,
    pub(super) run_seconds: u64,
    pub(super) answer_bytes: usize,
}

impl Default for Serve {
    fn default() -> Self {
        let settings = Settings::new(Upstream::none());
        let limits = settings.limits;
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            keys_variable: None,
            keys_file: None,
            log: Log::Text,
            record: settings.record,
            max_total_tokens: settings.max_total_tokens,
            close_partial: settings.close_partial,
            strict_schema: settings.strict_schema,
            body_bytes: limits.body_bytes,
            head_seconds: limits.head_time.as_secs(),
            body_seconds: limits.body_time.as_secs(),
            concurrent: limits.concurrent,
            queue: limits.queue,
            queue_seconds: limits.queue_time.as_secs(),
            connections: limits.connections,
            shutdown_seconds: limits.shutdown_time.as_secs(),
            keep_alive_seconds: limits.keep_alive.as_secs(),
            run_seconds: limits.run_time.as_secs(),
            answer_bytes: limits.answer_bytes,
        }
    }
}

impl Serve {
    /// These settings over others.
    pub(crate) fn over(&self, settings: Settings) -> Settings {
        Settings {
            max_total_tokens: self.max_total_tokens,
            close_partial: self.close_partial,
            strict_schema: self.strict_schema,
            record: self.record,
            limits: self.limits(),
            ..settings
        }
    }

    fn limits(&self) -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            body_bytes: self.body_bytes,
            head_time: seconds(self.head_seconds),
            body_time: seconds(self.body_seconds),
            // None at all would answer nobody.
            concurrent: self.concurrent.max(1),
            queue: self.queue,
            queue_time: seconds(self.queue_seconds),
            connections: self.connections.max(1),
            shutdown_time: seconds(self.shutdown_seconds),
            keep_alive: seconds(self.keep_alive_seconds.max(1)),
            run_time: seconds(self.run_seconds),
            answer_bytes: self.answer_bytes,
        }
    }
}

/// How a request is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    Text,
    Json,
    Off,
}

impl Log {
    pub(crate) const ALL: [Self; 3] = [Self::Text, Self::Json, Self::Off];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Off => "off",
        }
    }
}
