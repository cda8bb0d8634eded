//! Limits the concurrent and the queued requests.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::ApiError;
use crate::settings::Limits;

/// The concurrency limit and the queue in front of it.
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    queue: Semaphore,
    queue_time: Duration,
    queued: Gauge,
    in_progress: Gauge,
}

/// A permit to work on a request, released on drop.
pub(crate) struct ConcurrencyPermit {
    _permit: OwnedSemaphorePermit,
    _counted: Counted,
}

impl Admission {
    /// The gauges count the queued and the running requests.
    pub(crate) fn new(limits: &Limits, queued: Gauge, in_progress: Gauge) -> Self {
        let semaphore = |most: usize| Semaphore::new(most.min(Semaphore::MAX_PERMITS));
        Self {
            permits: Arc::new(semaphore(limits.concurrent)),
            queue: semaphore(limits.queue),
            queue_time: limits.queue_time,
            queued,
            in_progress,
        }
    }

    /// Waits for a permit, up to the limit.
    pub(crate) async fn acquire(&self) -> Result<ConcurrencyPermit, ApiError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(self.permit(permit));
        }
        let Ok(_waiting) = self.queue.try_acquire() else {
            let message = "too many requests: the queue of the gateway is full";
            return Err(self.overloaded(StatusCode::TOO_MANY_REQUESTS, message));
        };
        let _counted = Counted::in_gauge(&self.queued);
        let entered = timeout(self.queue_time, Arc::clone(&self.permits).acquire_owned()).await;
        // The semaphore is never closed, so an error can only be a timeout.
        if let Ok(Ok(permit)) = entered {
            return Ok(self.permit(permit));
        }
        let message = "the request timed out in the queue of the gateway";
        Err(self.overloaded(StatusCode::SERVICE_UNAVAILABLE, message))
    }

    fn permit(&self, permit: OwnedSemaphorePermit) -> ConcurrencyPermit {
        ConcurrencyPermit {
            _permit: permit,
            _counted: Counted::in_gauge(&self.in_progress),
        }
    }

    fn overloaded(&self, status: StatusCode, message: &str) -> ApiError {
        let wait = self.queue_time.max(Duration::from_secs(1));
        ApiError::new(status, "rate_limit_error", message)
            .with_code("overloaded")
            .with_retry_after(wait)
    }
}

/// Counts itself in a gauge until it is dropped.
struct Counted(Gauge);

impl Counted {
    fn in_gauge(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}
