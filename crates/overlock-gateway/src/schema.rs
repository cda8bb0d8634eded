//! Validates documents against the JSON Schemas of clients, outside of the event loop.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use overlock_json::{BoundedSchema, Comparison, STACK_BYTES};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// The longest that a document waits until it can be compared.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Validates documents on separate threads, with a limit on their number.
pub(crate) struct Comparisons {
    permits: Arc<Semaphore>,
    longest_wait: Duration,
}

impl Default for Comparisons {
    /// Half of the cores, so that the others serve the event loop.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::at_once((cores / 2).max(1))
    }
}

impl Comparisons {
    fn at_once(most: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(most)),
            longest_wait: LONGEST_WAIT,
        }
    }

    /// Validates a document against a schema.
    pub(crate) async fn compare(
        &self,
        schema: Arc<BoundedSchema>,
        document: String,
        deadline: Instant,
    ) -> Comparison {
        let violates = "the document violates the schema of the request";
        self.decide(move || schema.compare(&document, violates), deadline)
            .await
    }

    /// Runs a comparison. A waiting comparison is not started after the deadline or once this future
    /// is dropped.
    pub(crate) async fn decide(
        &self,
        compare: impl FnOnce() -> Comparison + Send + 'static,
        deadline: Instant,
    ) -> Comparison {
        match timeout_at(deadline, self.run(compare)).await {
            Ok(Ok(comparison)) => comparison,
            Ok(Err(why)) => Comparison::undecided(why),
            Err(_) => Comparison::undecided("the deadline has passed"),
        }
    }

    /// Runs work on a separate thread, or returns why not.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, &'static str> {
        let permit = Arc::clone(&self.permits).acquire_owned();
        let Ok(permit) = timeout(self.longest_wait, permit).await else {
            return Err("too many other validations are running");
        };
        let failed = "the validation failed";
        let permit = permit.map_err(|_| failed)?;
        let (sender, done) = oneshot::channel();
        let work = move || {
            let result = work();
            drop(permit);
            // The client may have disconnected.
            let _ = sender.send(result);
        };
        let thread = thread::Builder::new().name("schema".to_owned());
        let thread = thread.stack_size(STACK_BYTES).spawn(work);
        thread.map_err(|_| failed)?;
        done.await.map_err(|_| failed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_document_does_not_wait_long_for_others() {
        let mut comparisons = Comparisons::at_once(1);
        comparisons.longest_wait = Duration::ZERO;
        let (release, blocked) = mpsc::channel::<()>();
        let mut running = Box::pin(comparisons.run(move || blocked.recv()));
        assert!(running.as_mut().now_or_never().is_none());
        let schema = Arc::new(BoundedSchema::new(json!({})).expect("it is small"));
        let deadline = Instant::now() + Duration::from_hours(1);
        let compared = comparisons.compare(schema, "1".to_owned(), deadline).await;
        assert_eq!(compared.name(), Some("unchecked"));
        drop(release);
        assert!(running.await.is_ok());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_comparison_does_not_block_the_event_loop() {
        let comparisons = Comparisons::at_once(1);
        let (release, blocked) = mpsc::channel();
        let compared = comparisons.run(move || blocked.recv());
        // The comparison ends only because this future is polled meanwhile.
        let (done, sent) = tokio::join!(compared, async { release.send(()) });
        assert_eq!((done, sent), (Ok(Ok(())), Ok(())));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_waiting_comparison_is_not_started_after_a_disconnect() {
        let comparisons = Comparisons::at_once(1);
        let (release, blocked) = mpsc::channel::<()>();
        let mut running = Box::pin(comparisons.run(move || blocked.recv()));
        assert!(running.as_mut().now_or_never().is_none());
        let has_run = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&has_run);
        let mut waiting = Box::pin(comparisons.run(move || flag.store(true, Ordering::SeqCst)));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        drop(release);
        assert!(running.await.is_ok());
        assert_eq!(comparisons.run(|| 1).await, Ok(1));
        assert!(!has_run.load(Ordering::SeqCst));
    }
}
