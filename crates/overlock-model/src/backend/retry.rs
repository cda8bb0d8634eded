//! Asks again when a call failed for a reason that may pass.
//!
//! Only as long as nothing of the answer has arrived: half an answer is worth keeping, and asking
//! again would pay for it twice.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};

use super::{Backend, BackendError, Call, Events};

/// How often and after which waits a call is made again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How often at most.
    pub retries: u32,
    /// The wait before the first; it doubles each time.
    pub first_wait: Duration,
    /// No wait is longer, not even if the server asks for it.
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
    /// the waits of clients that failed together.
    pub fn wait(&self, retry: u32, asked_for: Option<Duration>, chance: f64) -> Duration {
        let doubled = self.first_wait.saturating_mul(2_u32.saturating_pow(retry));
        let own = doubled
            .min(self.longest_wait)
            .mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        asked_for
            .map_or(own, |asked_for| asked_for.max(own))
            .min(self.longest_wait)
    }
}

/// A backend that is asked again when it fails.
pub struct Retrying<B> {
    backend: B,
    policy: RetryPolicy,
    /// Draws a number between 0 and 1.
    chance: fn() -> f64,
}

impl<B: Backend> Retrying<B> {
    /// Asks this backend, by this policy.
    pub fn new(backend: B, policy: RetryPolicy) -> Self {
        Self {
            backend,
            policy,
            chance: random_share,
        }
    }

    async fn call_until_it_begins(&self, call: Call) -> Result<Events, BackendError> {
        let mut retry = 0;
        loop {
            let error = match self.first_event(call.clone()).await {
                Ok(events) => return Ok(events),
                Err(error) if retry < self.policy.retries && error.is_passing() => error,
                Err(error) => return Err(error),
            };
            let wait = self
                .policy
                .wait(retry, error.retry_after(), (self.chance)());
            tokio::time::sleep(wait).await;
            retry += 1;
        }
    }

    /// Makes the call and waits for the first event, which is given back to the stream.
    async fn first_event(&self, call: Call) -> Result<Events, BackendError> {
        let mut events = self.backend.call(call).await?;
        match events.next().await {
            None => Ok(stream::empty().boxed()),
            Some(Err(error)) => Err(error),
            Some(Ok(first)) => Ok(stream::iter([Ok(first)]).chain(events).boxed()),
        }
    }
}

impl<B: Backend> Backend for Retrying<B> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events, BackendError>> {
        self.call_until_it_begins(call).boxed()
    }

    fn can_prefill(&self) -> bool {
        self.backend.can_prefill()
    }
}

/// A number between 0 and 1, from the randomness that every hash map begins with.
fn random_share() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let drawn = RandomState::new().hash_one(0);
    f64::from((drawn >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(retry: u32, asked_for: Option<u64>, chance: f64, expected: f64) {
        let asked_for = asked_for.map(Duration::from_secs);
        let wait = RetryPolicy::default()
            .wait(retry, asked_for, chance)
            .as_secs_f64();
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
        check(0, Some(86_400), 1.0, 60.0);
    }
}
