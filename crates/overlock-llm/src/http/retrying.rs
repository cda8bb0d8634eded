//! Retries calls after transient failures.

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, future, stream};
use tokio::time::{Instant, sleep};

use crate::backend::{Backend, BackendError, Call, Event, Events, Retry, RetryPolicy};
use crate::wire::WireRequest;

/// Makes a call and retries it while the policy and the deadline allow. Returns the answer or the
/// last failure.
pub async fn retried<T, E: Borrow<BackendError>, F: Future<Output = Result<T, E>>>(
    policy: &RetryPolicy,
    deadline: Option<Instant>,
    call: impl Fn() -> F,
    mut retrying: impl FnMut(&Retry),
) -> Result<T, E> {
    let mut retry = 0;
    loop {
        let failure = match call().await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        let error = failure.borrow();
        let wait = policy.wait_after(error, retry, random_share());
        let in_time = |wait: &Duration| deadline.is_none_or(|it| Instant::now() + *wait < it);
        let Some(wait) = wait.filter(in_time) else {
            return Err(failure);
        };
        let error = error.clone();
        retrying(&Retry { error, wait });
        sleep(wait).await;
        retry += 1;
    }
}

/// An interrupted answer with at least this many bytes does not count as a sign of overload.
const LONG_ANSWER: usize = 500;

/// A backend with retries.
pub struct Retrying<B> {
    backend: B,
    policy: RetryPolicy,
    /// How many answers in a row were interrupted.
    broken: Arc<AtomicU32>,
    /// Draws a number between 0 and 1.
    chance: fn() -> f64,
}

impl<B: Backend> Retrying<B> {
    /// Retries the calls of a backend by a policy.
    pub fn new(backend: B, policy: RetryPolicy) -> Self {
        Self {
            backend,
            policy,
            broken: Arc::default(),
            chance: random_share,
        }
    }

    /// Advances a call to its next event.
    async fn next_event<'a>(
        &'a self,
        mut state: CallState<'a>,
    ) -> Option<(Result<Event, BackendError>, CallState<'a>)> {
        loop {
            state = match state {
                CallState::Waiting { call, wait, retry } => {
                    sleep(wait).await;
                    CallState::Calling { call, retry }
                }
                CallState::Calling { call, retry } => match self.first_event(call.clone()).await {
                    Ok(events) => CallState::Streaming(events),
                    Err(error) => {
                        let chance = self.chance;
                        let Some(wait) = self.policy.wait_after(&error, retry, chance()) else {
                            return Some((Err(error), CallState::Done));
                        };
                        let event = Event::Retry(Retry { error, wait });
                        let retry = retry + 1;
                        return Some((Ok(event), CallState::Waiting { call, wait, retry }));
                    }
                },
                CallState::Streaming(mut events) => {
                    let event = events.next().await?;
                    return Some((event, CallState::Streaming(events)));
                }
                CallState::Done => return None,
            }
        }
    }

    /// The wait before a new call: after interrupted answers, the server may need as much rest as
    /// after failed calls.
    fn rest(&self) -> Duration {
        let broken = self.broken.load(Ordering::Relaxed);
        let wait = broken.checked_sub(1).and_then(|times| {
            let chance = (self.chance)();
            self.policy.wait(times, None, chance)
        });
        wait.unwrap_or_default()
    }

    /// Makes the call and waits for the first event, which stays in the stream.
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

    /// Counts interrupted answers. A long answer restarts the count: an overloaded server would not
    /// have sent it.
    fn counting_breaks<'a>(&self, events: Events<'a>) -> Events<'a> {
        let broken = Arc::clone(&self.broken);
        let mut len = 0;
        let counted = events.inspect(move |event| match event {
            Err(_) if len >= LONG_ANSWER => broken.store(1, Ordering::Relaxed),
            Err(_) => {
                broken.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Event::Finish(_)) => broken.store(0, Ordering::Relaxed),
            Ok(Event::Text(text)) => len += text.len(),
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
            Duration::ZERO => CallState::Calling { call, retry },
            wait => CallState::Waiting { call, wait, retry },
        };
        let events = stream::unfold(begun, |state| self.next_event(state));
        future::ready(Ok(events.boxed())).boxed()
    }

    fn starts_at_cut(&self, request: &dyn WireRequest) -> bool {
        self.backend.starts_at_cut(request)
    }
}

/// The state of a call. `retry` counts the failed attempts.
enum CallState<'a> {
    Calling {
        call: Call,
        retry: u32,
    },
    Waiting {
        call: Call,
        wait: Duration,
        retry: u32,
    },
    Streaming(Events<'a>),
    Done,
}

/// A number between 0 and 1, from the random seed of the standard library's hash maps.
fn random_share() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let drawn = RandomState::new().hash_one(0);
    f64::from((drawn >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with some text and is then interrupted or ends, as the script says from its end.
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
    fn waits_after_an_interrupted_answer() {
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
    async fn long_interrupted_answers_do_not_increase_the_wait() {
        let backend = Retrying::new(
            Breaking(std::sync::Mutex::default()),
            RetryPolicy::default(),
        );
        let broken = || stream::iter([Err(BackendError::TooLong { most_bytes: 1 })]);
        let text = |length| stream::iter([Ok(Event::Text("x".repeat(length)))]);
        for (length, counted) in [(1, 1), (1, 2), (LONG_ANSWER, 1), (LONG_ANSWER, 1), (1, 2)] {
            let events = backend.counting_breaks(text(length).chain(broken()).boxed());
            events.collect::<Vec<_>>().await;
            assert_eq!(backend.broken.load(Ordering::Relaxed), counted);
        }
    }
}
