//! Stops an index without losing what it has read.

use std::process;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::runtime::Builder;

use crate::signals::{Signal, Signals};

/// The signal to stop, once it was received.
#[derive(Default)]
pub(super) struct StopRequest {
    signal: Arc<OnceLock<Signal>>,
}

impl StopRequest {
    /// Starts to listen for signals. If that fails, a signal ends the process at once, which is
    /// safe, because the store commits whole batches.
    pub(super) fn listen() -> Self {
        let stop = Self::default();
        let received = Arc::clone(&stop.signal);
        let (ready, is_ready) = sync_channel::<()>(1);
        thread::spawn(move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                let Ok(mut signals) = Signals::new() else {
                    return;
                };
                drop(ready);
                let _ = received.set(signals.next().await);
                let second = signals.next().await;
                process::exit(second.exit_code().into());
            });
        });
        // Returns an error as soon as `ready` is dropped.
        let _ = is_ready.recv();
        stop
    }

    pub(super) fn signal(&self) -> Option<Signal> {
        self.signal.get().copied()
    }
}
