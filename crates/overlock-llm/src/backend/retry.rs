//! Asks again when a call failed for a reason that may pass.
//!
//! Only as long as nothing of the answer has arrived: half an answer is worth keeping, and asking
//! again would pay for it twice.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::BackendError;

/// How often and after which waits a call is made again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How often at most.
    pub retries: u32,
    /// The wait before the first; it doubles each time.
    pub first_wait: Duration,
    /// No wait is longer: a server that asks for more is not asked again.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 4,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_mins(1),
        }
    }
}

impl RetryPolicy {
    /// How long to wait before a retry, counted from 0; `chance` lies between 0 and 1 and spreads
    /// the waits of clients that failed together. Nothing if the server asks for longer than is
    /// ever waited.
    pub fn wait(&self, retry: u32, asked_for: Option<Duration>, chance: f64) -> Option<Duration> {
        let doubled = self.first_wait.saturating_mul(2_u32.saturating_pow(retry));
        let own = doubled
            .min(self.longest_wait)
            .mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        match asked_for {
            Some(asked_for) if asked_for > self.longest_wait => None,
            Some(asked_for) => Some(asked_for.max(own)),
            None => Some(own),
        }
    }

    /// How long to wait after a call has failed before it is made again; nothing if it is not.
    pub fn wait_after(&self, error: &BackendError, retry: u32, chance: f64) -> Option<Duration> {
        let helps = retry < self.retries && error.is_passing();
        let wait = self.wait(retry, error.retry_after(), chance);
        wait.filter(|_| helps)
    }
}

/// A call that failed and is made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Why it failed.
    pub error: BackendError,
    /// How long the server is left alone before.
    pub wait: Duration,
}

/// The calls that failed before one was answered, or nobody asked any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// How many there were.
    pub times: u32,
    /// How long the server was left alone between them, in milliseconds.
    pub waited_ms: u64,
    /// Why the last of them failed.
    pub error: String,
}

impl Retried {
    /// One more.
    pub fn add(retried: &mut Option<Self>, retry: &Retry) {
        let (times, waited_ms) = match retried {
            Some(before) => (before.times, before.waited_ms),
            None => (0, 0),
        };
        let wait_ms = u64::try_from(retry.wait.as_millis()).unwrap_or(u64::MAX);
        *retried = Some(Self {
            times: times.saturating_add(1),
            waited_ms: waited_ms.saturating_add(wait_ms),
            error: retry.error.to_string(),
        });
    }
}

impl fmt::Display for Retried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = Duration::from_millis(self.waited_ms).as_secs_f32();
        let times = match self.times {
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        write!(
            formatter,
            "asked again {times}, after {seconds:.1} seconds of waiting: {}",
            self.error
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(retry: u32, asked_for: Option<u64>, chance: f64, expected: f64) {
        let asked_for = asked_for.map(Duration::from_secs);
        let wait = RetryPolicy::default().wait(retry, asked_for, chance);
        let wait = wait.expect("it is not too long").as_secs_f64();
        assert!((wait - expected).abs() < 1e-9, "{wait} is not {expected}");
    }

    #[test]
    fn waits_double_and_are_spread() {
        check(0, None, 1.0, 0.5);
        check(0, None, 0.0, 0.25);
        check(3, None, 1.0, 4.0);
        check(60, None, 1.0, 60.0);
    }

    #[test]
    fn waits_as_long_as_the_server_asks_within_reason() {
        check(0, Some(7), 1.0, 7.0);
        check(3, Some(1), 1.0, 4.0);
        check(0, Some(60), 1.0, 60.0);
        let asked_for = Some(Duration::from_hours(1));
        assert_eq!(RetryPolicy::default().wait(0, asked_for, 1.0), None);
    }
}
