//! Moves long computations off the event loop.

use futures_util::FutureExt;
use futures_util::future::{Either, ready};
use tokio::task::spawn_blocking;

use crate::error::ApiError;

/// From this length on, reading and counting a text takes a millisecond or more.
const LONG: usize = 64 << 10;

/// Runs work on a text of a length: directly if it is short, otherwise on a blocking thread.
pub(crate) fn with_text<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, ApiError>> + Send {
    // An `async fn` would store `work` in its future.
    if length < LONG {
        return Either::Left(ready(Ok(work())));
    }
    Either::Right(spawn_blocking(work).map(|done| done.map_err(|_| ApiError::defect())))
}
