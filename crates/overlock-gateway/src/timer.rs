//! The timer for the next request of a connection.
//!
//! Each connection has one running timer. A request does not cancel it; when it fires too early, it is
//! reset. A new timer per request would keep waking the thread of the timer wheel.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::time;

/// The timer of one connection.
#[derive(Default)]
pub(crate) struct ConnectionTimer {
    /// The running timer while no future waits for it.
    idle: Arc<Mutex<Option<Running>>>,
}

type Running = Pin<Box<time::Sleep>>;

/// Waits until a time. The running timer may fire earlier.
struct PendingSleep {
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
        // A running timer with a later deadline cannot be used.
        let running = idle.take().filter(|running| running.deadline() <= until);
        let running = running.unwrap_or_else(|| Box::pin(time::sleep_until(until)));
        Box::pin(PendingSleep {
            running: Some(running),
            until,
            idle: Arc::clone(&self.idle),
        })
    }
}

impl Sleep for PendingSleep {}

impl Future for PendingSleep {
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

impl Drop for PendingSleep {
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
    async fn waits_the_full_time_after_earlier_waits() {
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
    async fn does_not_reuse_a_timer_with_a_later_deadline() {
        let timer = ConnectionTimer::default();
        let mut left = timer.sleep(Duration::from_hours(1));
        assert!(left.as_mut().now_or_never().is_none());
        drop(left);
        let waited = time::timeout(Duration::from_mins(1), timer.sleep(SHORT));
        assert!(waited.await.is_ok());
    }

    #[tokio::test]
    async fn keeps_running_between_two_requests() {
        let timer = ConnectionTimer::default();
        let running = || {
            let idle = timer.idle.lock().expect("no panic");
            idle.as_ref().map(|running| running.deadline())
        };
        drop(timer.sleep(SHORT));
        let first = running();
        assert!(first.is_some());
        drop(timer.sleep(SHORT * 2));
        assert_eq!(running(), first);
    }
}
