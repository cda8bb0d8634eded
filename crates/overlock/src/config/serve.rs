//! Where the gateway listens, who may use it, and what it bears.

use std::path::PathBuf;
use std::time::Duration;

use overlock_gateway::{Limits, Record, Settings, Upstream};

use super::keys::AtLeastOne;
use super::run::Seconds;

/// The gateway.
#[derive(Clone, Debug)]
pub(crate) struct Serve {
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
    pub(super) body_bytes: AtLeastOne<usize>,
    pub(super) head_seconds: Seconds,
    pub(super) body_seconds: Seconds,
    pub(super) write_seconds: Seconds,
    pub(super) concurrent: AtLeastOne<usize>,
    pub(super) queue: usize,
    pub(super) queue_seconds: Seconds,
    pub(super) connections: AtLeastOne<usize>,
    pub(super) readers: usize,
    pub(super) shutdown_seconds: Seconds,
    pub(super) keep_alive_seconds: Seconds,
    pub(super) run_seconds: Seconds,
    pub(super) answer_bytes: AtLeastOne<usize>,
}

impl Default for Serve {
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
            body_bytes: AtLeastOne(limits.body_bytes),
            head_seconds: Seconds(limits.head_time.as_secs()),
            body_seconds: Seconds(limits.body_time.as_secs()),
            write_seconds: Seconds(limits.write_time.as_secs()),
            concurrent: AtLeastOne(limits.concurrent),
            queue: limits.queue,
            queue_seconds: Seconds(limits.queue_time.as_secs()),
            connections: AtLeastOne(limits.connections),
            readers: limits.readers,
            shutdown_seconds: Seconds(limits.shutdown_time.as_secs()),
            keep_alive_seconds: Seconds(limits.keep_alive.as_secs()),
            run_seconds: Seconds(limits.run_time.as_secs()),
            answer_bytes: AtLeastOne(limits.answer_bytes),
        }
    }
}

impl Serve {
    /// These settings over others.
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
            body_bytes: self.body_bytes.0,
            head_time: self.head_seconds.duration(),
            body_time: self.body_seconds.duration(),
            write_time: self.write_seconds.duration().max(Duration::from_secs(1)),
            concurrent: self.concurrent.0,
            queue: self.queue,
            queue_time: self.queue_seconds.duration(),
            connections: self.connections.0,
            readers: self.readers,
            shutdown_time: self.shutdown_seconds.duration(),
            keep_alive: self
                .keep_alive_seconds
                .duration()
                .max(Duration::from_secs(1)),
            run_time: self.run_seconds.duration().max(Duration::from_secs(1)),
            answer_bytes: self.answer_bytes.0,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_is_not_that_of_llama_cpp() {
        assert_eq!(Serve::default().listen, "127.0.0.1:8484");
    }
}
