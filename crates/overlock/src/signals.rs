//! How a person, or another program, says that this one is to stop.

use std::future;

use futures_util::FutureExt;
use futures_util::future::select;

/// Comes at Ctrl-C, and when the process is asked to end.
pub(crate) async fn called_off() {
    select(pressed().boxed(), asked_to_end().boxed()).await;
}

/// Comes when Ctrl-C is pressed. Where nobody can tell that it was, it was not.
async fn pressed() {
    if tokio::signal::ctrl_c().await.is_err() {
        future::pending::<()>().await;
    }
}

/// Comes when another program asks this one to end.
#[cfg(unix)]
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut asked) => {
            asked.recv().await;
        }
        Err(_) => future::pending().await,
    }
}

#[cfg(not(unix))]
async fn asked_to_end() {
    future::pending().await
}
