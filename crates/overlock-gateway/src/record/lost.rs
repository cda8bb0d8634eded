//! Counts records that could not be written, and reports each episode of failures once.

use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::metrics::counter::Counter;

/// The records that could not be written.
#[derive(Default)]
pub(crate) struct LostRecords {
    count: Counter,
    /// Whether the last write failed.
    is_failing: AtomicBool,
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
        if self.is_failing.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut warning = format!("records of runs cannot be written: {cause}");
        let mut source = cause.source();
        while let Some(error) = source {
            warning = format!("{warning}: {error}");
            source = error.source();
        }
        tracing::warn!("{warning}");
    }

    /// Notes that a write succeeded: the next failure is reported again.
    pub(super) fn succeed(&self) {
        self.is_failing.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::captured_log::CapturedLog;

    #[test]
    fn reports_each_episode_once_and_counts_every_record() {
        let lost = LostRecords::default();
        let log = CapturedLog::start();
        for cause in ["one", "two"] {
            lost.add(2, &io::Error::other(cause));
            lost.add(1, &io::Error::other("still failing"));
            lost.succeed();
        }
        let expected = ["one", "two"].map(|it| format!("records of runs cannot be written: {it}"));
        let warnings: Vec<_> = log.lines().iter().map(|it| it["message"].clone()).collect();
        assert_eq!(warnings, expected);
        assert_eq!(lost.count.get(), 6);
    }
}
