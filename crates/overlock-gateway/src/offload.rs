//! Work that would keep others waiting is done aside.

use futures_util::FutureExt;
use futures_util::future::{Either, ready};
use tokio::task::spawn_blocking;

use crate::error::ApiError;

/// A text from this length on is long: reading and counting it takes a millisecond.
const LONG: usize = 64 << 10;

/// Does something with a text of a length: at once if it is short, and else where nobody waits for
/// it.
pub(crate) fn with_text<T: Send + 'static>(
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, ApiError>> + Send {
    // An `async fn` would take the space of what it works on.
    if length < LONG {
        return Either::Left(ready(Ok(work())));
    }
    Either::Right(spawn_blocking(work).map(|done| done.map_err(|_| ApiError::defect())))
}
