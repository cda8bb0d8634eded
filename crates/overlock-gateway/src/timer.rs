//! How long is the next request waited for?
//!
//! Every connection has one timer for that. It is not taken back when a request comes, but looked at
//! again when it rings: to set one anew for every request would keep waking the thread that sleeps
//! until the first of all of them rings.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::time;

/// The timer of one connection.
#[derive(Default)]
pub(crate) struct ConnectionTimer {
    /// What runs on while nobody waits.
    idle: Arc<Mutex<Option<Running>>>,
}

type Running = Pin<Box<time::Sleep>>;

/// Until a moment, for which what runs may ring too early.
struct Waiting {
    running: Option<Running>,
    until: time::Instant,
    idle: Arc<Mutex<Option<Running>>>,
}

impl Timer for ConnectionTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let until = deadline.into();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // One that rings too late is of no use.
        let running = idle.take().filter(|running| running.deadline() <= until);
        let running = running.unwrap_or_else(|| Box::pin(time::sleep_until(until)));
        Box::pin(Waiting {
            running: Some(running),
            until,
            idle: Arc::clone(&self.idle),
        })
    }
}

impl Sleep for Waiting {}

impl Future for Waiting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let until = self.until;
        let Some(running) = &mut self.running else {
            return Poll::Ready(());
        };
        loop {
            ready!(running.as_mut().poll(context));
            if running.deadline() >= until {
                return Poll::Ready(());
            }
            running.as_mut().reset(until);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = self.running.take();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn waits_as_long_as_it_should_however_often_it_was_waited_before() {
        let timer = ConnectionTimer::default();
        for times in [1, 3, 2, 0, 1] {
            let begun = Instant::now();
            let mut left = timer.sleep(SHORT);
            assert!(left.as_mut().now_or_never().is_none());
            drop(left);
            timer.sleep(SHORT * times).await;
            assert!(begun.elapsed() >= SHORT * times);
        }
    }

    #[tokio::test]
    async fn one_that_rings_too_late_is_not_waited_for() {
        let timer = ConnectionTimer::default();
        let mut left = timer.sleep(Duration::from_hours(1));
        assert!(left.as_mut().now_or_never().is_none());
        drop(left);
        let waited = time::timeout(Duration::from_mins(1), timer.sleep(SHORT));
        assert!(waited.await.is_ok());
    }

    #[tokio::test]
    async fn it_runs_on_between_two_requests() {
        let timer = ConnectionTimer::default();
        let running = || {
            let idle = timer.idle.lock().expect("nobody has panicked");
            idle.as_ref().map(|running| running.deadline())
        };
        drop(timer.sleep(SHORT));
        let first = running();
        assert!(first.is_some());
        drop(timer.sleep(SHORT * 2));
        assert_eq!(running(), first);
    }
}
