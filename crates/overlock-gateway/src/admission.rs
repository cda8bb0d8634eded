//! How many requests are worked on, and how many wait?

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::error::ApiError;
use crate::settings::Limits;

/// The places at which requests are worked on, and the queue before them.
pub(crate) struct Admission {
    places: Arc<Semaphore>,
    queue: Semaphore,
    queue_time: Duration,
    queued: Gauge,
    in_progress: Gauge,
}

/// A place, which is free again when this is dropped.
pub(crate) struct ConcurrencyPermit {
    _permit: OwnedSemaphorePermit,
    _counted: Counted,
}

impl Admission {
    /// Those who wait and those who have a place are counted.
    pub(crate) fn new(limits: &Limits, queued: Gauge, in_progress: Gauge) -> Self {
        let semaphore = |most: usize| Semaphore::new(most.min(Semaphore::MAX_PERMITS));
        Self {
            places: Arc::new(semaphore(limits.concurrent)),
            queue: semaphore(limits.queue),
            queue_time: limits.queue_time,
            queued,
            in_progress,
        }
    }

    /// Waits for a place, for as long as is allowed.
    pub(crate) async fn enter(&self) -> Result<ConcurrencyPermit, ApiError> {
        if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(self.place(permit));
        }
        let Ok(_waiting) = self.queue.try_acquire() else {
            let message = "the gateway works on as many requests as it can, and as many wait";
            return Err(self.come_again(StatusCode::TOO_MANY_REQUESTS, message));
        };
        let _counted = Counted::in_gauge(&self.queued);
        let entered = timeout(self.queue_time, Arc::clone(&self.places).acquire_owned()).await;
        // The places are never closed, so that only the time can be up.
        if let Ok(Ok(permit)) = entered {
            return Ok(self.place(permit));
        }
        let message = "no place became free in time";
        Err(self.come_again(StatusCode::SERVICE_UNAVAILABLE, message))
    }

    fn place(&self, permit: OwnedSemaphorePermit) -> ConcurrencyPermit {
        ConcurrencyPermit {
            _permit: permit,
            _counted: Counted::in_gauge(&self.in_progress),
        }
    }

    fn come_again(&self, status: StatusCode, message: &str) -> ApiError {
        let wait = self.queue_time.max(Duration::from_secs(1));
        ApiError::new(status, "rate_limit_error", message)
            .with_code("overloaded")
            .with_retry_after(wait)
    }
}

/// Something that is counted for as long as it lasts.
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
