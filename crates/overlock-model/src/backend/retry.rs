//! Asks again when a call failed for a reason that may pass.
//!
//! Only as long as nothing of the answer has arrived: half an answer is worth keeping, and asking
//! again would pay for it twice.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, future, stream};

use serde::{Deserialize, Serialize};

use super::{Backend, BackendError, Call, Event, Events};

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

/// An answer with so many bytes was worth its call.
const MUCH: usize = 500;

/// A backend that is asked again when it fails.
pub struct Retrying<B> {
    backend: B,
    policy: RetryPolicy,
    /// How many answers in a row have broken off after they had begun.
    broken: Arc<AtomicU32>,
    /// Draws a number between 0 and 1.
    chance: fn() -> f64,
}

impl<B: Backend> Retrying<B> {
    /// Asks this backend, by this policy.
    pub fn new(backend: B, policy: RetryPolicy) -> Self {
        Self {
            backend,
            policy,
            broken: Arc::default(),
            chance: random_share,
        }
    }

    /// Goes on with a call until something happens that is worth telling.
    async fn next_event<'a>(&'a self, mut turn: Turn<'a>) -> Option<(Told, Turn<'a>)> {
        loop {
            turn = match turn {
                Turn::Resting { call, wait, retry } => {
                    tokio::time::sleep(wait).await;
                    Turn::Asking { call, retry }
                }
                Turn::Asking { call, retry } => match self.first_event(call.clone()).await {
                    Ok(events) => Turn::Answering(events),
                    Err(error) => {
                        let Some(wait) = self.wait_after(&error, retry) else {
                            return Some((Err(error), Turn::Over));
                        };
                        let told = Event::Retry(Retry { error, wait });
                        let retry = retry + 1;
                        return Some((Ok(told), Turn::Resting { call, wait, retry }));
                    }
                },
                Turn::Answering(mut events) => {
                    let event = events.next().await?;
                    return Some((event, Turn::Answering(events)));
                }
                Turn::Over => return None,
            }
        }
    }

    /// How long to wait before a call is made again; nothing if it is not.
    fn wait_after(&self, error: &BackendError, retry: u32) -> Option<Duration> {
        if retry >= self.policy.retries || !error.is_passing() {
            return None;
        }
        let chance = (self.chance)();
        self.policy.wait(retry, error.retry_after(), chance)
    }

    /// The wait before a call that is no retry: what broke off was kept, but the server may need
    /// as much rest.
    fn rest(&self) -> Duration {
        let broken = self.broken.load(Ordering::Relaxed);
        let wait = broken.checked_sub(1).and_then(|times| {
            let chance = (self.chance)();
            self.policy.wait(times, None, chance)
        });
        wait.unwrap_or_default()
    }

    /// Makes the call and waits for the first event, which is given back to the stream.
    async fn first_event(&self, call: Call) -> Result<Events<'_>, BackendError> {
        let mut events = self.backend.call(call).await?;
        match events.next().await {
            None => Ok(stream::empty().boxed()),
            Some(Err(error)) => Err(error),
            Some(Ok(first)) => {
                let all = stream::iter([Ok(first)]).chain(events);
                Ok(self.counting_breaks(all.boxed()))
            }
        }
    }

    /// The same events; whether they break off is counted. An answer that had much to say before
    /// counts from the beginning: it is not the server's strength that fails.
    fn counting_breaks<'a>(&self, events: Events<'a>) -> Events<'a> {
        let broken = Arc::clone(&self.broken);
        let mut said = 0;
        let counted = events.inspect(move |event| match event {
            Err(_) if said >= MUCH => broken.store(1, Ordering::Relaxed),
            Err(_) => {
                broken.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Event::Finish(_)) => broken.store(0, Ordering::Relaxed),
            Ok(Event::Text(text)) => said += text.len(),
            Ok(_) => {}
        });
        counted.boxed()
    }
}

impl<B: Backend> Backend for Retrying<B> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let wait = self.rest();
        let retry = 0;
        let begun = match wait {
            Duration::ZERO => Turn::Asking { call, retry },
            wait => Turn::Resting { call, wait, retry },
        };
        let events = stream::unfold(begun, |turn| self.next_event(turn));
        future::ready(Ok(events.boxed())).boxed()
    }

    fn starts_at_cut(&self, call: &Call) -> bool {
        self.backend.starts_at_cut(call)
    }
}

/// Where a call is.
enum Turn<'a> {
    /// It is to be made, after so many that failed.
    Asking {
        call: Call,
        retry: u32,
    },
    /// It is to be made after a wait.
    Resting {
        call: Call,
        wait: Duration,
        retry: u32,
    },
    Answering(Events<'a>),
    Over,
}

type Told = Result<Event, BackendError>;

/// A number between 0 and 1, from the randomness that every hash map begins with.
pub(super) fn random_share() -> f64 {
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
        let wait = RetryPolicy::default().wait(retry, asked_for, chance);
        let wait = wait.expect("it is not too long").as_secs_f64();
        assert!((wait - expected).abs() < 1e-9, "{wait} is not {expected}");
    }

    /// Answers with a word, and then breaks off or ends as the script says, the last one first.
    struct Breaking(std::sync::Mutex<Vec<bool>>);

    impl Backend for Breaking {
        fn call(&self, _call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
            let breaks = self.0.lock().ok().and_then(|mut script| script.pop());
            let end = match breaks {
                Some(true) => Err(BackendError::TooLong { most_bytes: 1 }),
                _ => Ok(Event::Finish("stop".to_owned())),
            };
            let events = [Ok(Event::Text("[".to_owned())), end];
            async { Ok(stream::iter(events).boxed()) }.boxed()
        }
    }

    #[test]
    fn an_answer_that_broke_off_is_followed_by_a_wait() {
        static DRAWN: AtomicU32 = AtomicU32::new(0);
        let script = [false, false, true, true, false].into();
        let policy = RetryPolicy {
            first_wait: Duration::from_millis(1),
            ..RetryPolicy::default()
        };
        let mut backend = Retrying::new(Breaking(std::sync::Mutex::new(script)), policy);
        backend.chance = || f64::from(DRAWN.fetch_add(1, Ordering::Relaxed)) * 0.0;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let waits = [(); 5].map(|()| {
            let call = Call {
                request: serde_json::Map::new(),
                prefill: None,
            };
            runtime.block_on(async {
                let events = backend.call(call).await.expect("it begins");
                events.collect::<Vec<_>>().await
            });
            DRAWN.load(Ordering::Relaxed)
        });
        assert_eq!(waits, [0, 0, 1, 2, 2]);
    }

    #[tokio::test]
    async fn answers_that_break_off_late_are_followed_by_the_same_wait() {
        let backend = Retrying::new(
            Breaking(std::sync::Mutex::default()),
            RetryPolicy::default(),
        );
        let broken = || stream::iter([Err(BackendError::TooLong { most_bytes: 1 })]);
        let text = |length| stream::iter([Ok(Event::Text("x".repeat(length)))]);
        for (length, counted) in [(1, 1), (1, 2), (MUCH, 1), (MUCH, 1), (1, 2)] {
            let events = backend.counting_breaks(text(length).chain(broken()).boxed());
            events.collect::<Vec<_>>().await;
            assert_eq!(backend.broken.load(Ordering::Relaxed), counted);
        }
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
