//! Counts records that could not be written, and reports each episode of failures once.

use std::fmt::{self, Display, Formatter};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::metrics::counter::Counter;
use serde::Serialize;

use crate::log;

/// A problem that concerns more than one request.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LogWarning {
    /// When it was noticed, as in RFC 3339.
    pub at: String,
    /// What the problem is.
    pub warning: String,
}

impl Display for LogWarning {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} warning: {}", self.at, self.warning)
    }
}

/// Is called for every warning.
pub(crate) type Warn = Box<dyn Fn(&LogWarning) + Send + Sync>;

/// The records that could not be written.
#[derive(Default)]
pub(crate) struct LostRecords {
    count: Counter,
    /// Whether the last write failed.
    is_failing: AtomicBool,
    pub(crate) warn: OnceLock<Warn>,
}

impl LostRecords {
    pub(crate) fn new(count: Counter) -> Self {
        Self {
            count,
            ..Self::default()
        }
    }

    /// Counts lost records. The first failure after a success is reported.
    pub(super) fn add(&self, count: usize, cause: &dyn std::error::Error) {
        self.count.inc_by(count as u64);
        let is_known = self.is_failing.swap(true, Ordering::Relaxed);
        let Some(warn) = self.warn.get().filter(|_| !is_known) else {
            return;
        };
        let mut warning = format!("records of runs cannot be written: {cause}");
        let mut source = cause.source();
        while let Some(error) = source {
            warning = format!("{warning}: {error}");
            source = error.source();
        }
        warn(&LogWarning {
            at: log::now(),
            warning,
        });
    }

    /// The number of lost records.
    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    /// Notes that a write succeeded: the next failure is reported again.
    pub(super) fn succeed(&self) {
        self.is_failing.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn reports_each_episode_once_and_counts_every_record() {
        let lost = LostRecords::default();
        let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&warnings);
        let warn = move |warning: &LogWarning| {
            let mut warnings = seen.lock().expect("no panic");
            warnings.push(warning.warning.clone());
        };
        assert!(lost.warn.set(Box::new(warn)).is_ok());
        for cause in ["one", "two"] {
            lost.add(2, &io::Error::other(cause));
            lost.add(1, &io::Error::other("still failing"));
            lost.succeed();
        }
        let expected = ["one", "two"].map(|it| format!("records of runs cannot be written: {it}"));
        assert_eq!(*warnings.lock().expect("no panic"), expected);
        assert_eq!(lost.count(), 6);
    }
}
