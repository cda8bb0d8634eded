//! Work that would keep others waiting is done aside.

use tokio::task::spawn_blocking;

use crate::error::ApiError;

/// A text from this length on is long: reading and counting it takes a millisecond.
const LONG: usize = 64 << 10;

/// Does something with a text: at once if it is short, and else where nobody waits for it.
pub(crate) async fn with_text<S, T>(
    text: S,
    work: impl FnOnce(S) -> T + Send + 'static,
) -> Result<T, ApiError>
where
    S: AsRef<[u8]> + Send + 'static,
    T: Send + 'static,
{
    if text.as_ref().len() < LONG {
        return Ok(work(text));
    }
    let done = spawn_blocking(move || work(text)).await;
    done.map_err(|_| ApiError::defect())
}
