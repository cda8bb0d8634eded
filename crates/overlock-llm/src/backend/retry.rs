//! When to repeat a failed call.
//!
//! A call is repeated only while nothing of the answer has arrived: a partial answer is kept,
//! because repeating the call would cost its tokens twice.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::BackendError;

/// How often failed calls are repeated, and after which waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// The maximum of retries.
    pub retries: u32,
    /// The wait before the first retry; it doubles each time.
    pub first_wait: Duration,
    /// The longest wait. If a server asks for more, the call is not repeated.
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
    /// The wait before a retry, counted from 0. `chance`, from 0 to 1, spreads the retries of
    /// clients that failed together. `None` if the server asks for more than the longest wait.
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

    /// The wait before a failed call is repeated; `None` if it is not.
    pub fn wait_after(&self, error: &BackendError, retry: u32, chance: f64) -> Option<Duration> {
        let helps = retry < self.retries && error.is_transient();
        let wait = self.wait(retry, error.retry_after(), chance);
        wait.filter(|_| helps)
    }
}

/// A failed call that will be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Why it failed.
    pub error: BackendError,
    /// The wait before the retry.
    pub wait: Duration,
}

/// The failed attempts of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retried {
    /// How many attempts failed.
    pub times: u32,
    /// The sum of the waits between them, in milliseconds.
    pub waited_ms: u64,
    /// The error of the last of them.
    pub error: String,
}

impl Retried {
    /// Adds an attempt.
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
            "retried {times}, with {seconds:.1} seconds of waiting: {}",
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
    fn waits_as_long_as_the_server_asks_up_to_the_limit() {
        check(0, Some(7), 1.0, 7.0);
        check(3, Some(1), 1.0, 4.0);
        check(0, Some(60), 1.0, 60.0);
        let asked_for = Some(Duration::from_hours(1));
        assert_eq!(RetryPolicy::default().wait(0, asked_for, 1.0), None);
    }
}
