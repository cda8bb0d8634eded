//! The settings of the gateway.

use std::path::PathBuf;

use overlock_gateway::{Limits, Settings, Upstream};
use overlock_runs::Record;

use super::keys::AtLeastOne;
use super::run::{DurationSetting, TimeLimit, Wait};

#[derive(Clone, Debug)]
pub(crate) struct ServeSettings {
    pub(crate) listen: String,
    pub(crate) keys_variable: Option<String>,
    pub(crate) keys_file: Option<PathBuf>,
    pub(crate) log: Log,
    pub(crate) record: Record,
    pub(crate) currency: String,
    pub(crate) traces_url: Option<String>,
    pub(super) max_total_tokens: AtLeastOne<u64>,
    pub(super) close_partial: bool,
    pub(super) strict_schema: bool,
    pub(super) max_body_bytes: AtLeastOne<usize>,
    pub(super) head_timeout: TimeLimit,
    pub(super) body_timeout: TimeLimit,
    pub(super) write_timeout: TimeLimit,
    pub(super) max_concurrent_requests: AtLeastOne<usize>,
    pub(super) max_queued_requests: usize,
    pub(super) queue_timeout: Wait,
    pub(super) max_connections: AtLeastOne<usize>,
    pub(super) max_event_subscribers: usize,
    pub(super) shutdown_timeout: Wait,
    pub(super) keep_alive: TimeLimit,
    pub(super) run_timeout: TimeLimit,
    pub(super) max_answer_bytes: AtLeastOne<usize>,
}

impl Default for ServeSettings {
    fn default() -> Self {
        let settings = Settings::new(Upstream::none());
        let limits = settings.limits;
        Self {
            listen: "127.0.0.1:8484".to_owned(),
            keys_variable: None,
            keys_file: None,
            log: Log::Text,
            record: settings.record,
            currency: settings.currency,
            traces_url: None,
            max_total_tokens: AtLeastOne(settings.max_total_tokens),
            close_partial: settings.close_partial,
            strict_schema: settings.strict_schema,
            max_body_bytes: AtLeastOne(limits.body_bytes),
            head_timeout: DurationSetting::of(limits.head_time),
            body_timeout: DurationSetting::of(limits.body_time),
            write_timeout: DurationSetting::of(limits.write_time),
            max_concurrent_requests: AtLeastOne(limits.concurrent),
            max_queued_requests: limits.queue,
            queue_timeout: DurationSetting::of(limits.queue_time),
            max_connections: AtLeastOne(limits.connections),
            max_event_subscribers: limits.readers,
            shutdown_timeout: DurationSetting::of(limits.shutdown_time),
            keep_alive: DurationSetting::of(limits.keep_alive),
            run_timeout: DurationSetting::of(limits.run_time),
            max_answer_bytes: AtLeastOne(limits.answer_bytes),
        }
    }
}

impl ServeSettings {
    /// Overrides the settings of the gateway library.
    pub(crate) fn over(&self, settings: Settings) -> Settings {
        Settings {
            max_total_tokens: self.max_total_tokens.0,
            close_partial: self.close_partial,
            strict_schema: self.strict_schema,
            record: self.record,
            currency: self.currency.clone(),
            limits: self.limits(),
            ..settings
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            body_bytes: self.max_body_bytes.0,
            head_time: self.head_timeout.duration(),
            body_time: self.body_timeout.duration(),
            write_time: self.write_timeout.duration(),
            concurrent: self.max_concurrent_requests.0,
            queue: self.max_queued_requests,
            queue_time: self.queue_timeout.duration(),
            connections: self.max_connections.0,
            readers: self.max_event_subscribers,
            shutdown_time: self.shutdown_timeout.duration(),
            keep_alive: self.keep_alive.duration(),
            run_time: self.run_timeout.duration(),
            answer_bytes: self.max_answer_bytes.0,
        }
    }
}

/// The format of the request log.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_is_not_that_of_llama_cpp() {
        assert_eq!(ServeSettings::default().listen, "127.0.0.1:8484");
    }
}
