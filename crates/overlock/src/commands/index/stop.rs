//! Lets an index be stopped without losing what it has read.

use std::process;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::thread;

use tokio::runtime::Builder;

use crate::signals::{Signal, Signals};

/// Whether somebody has asked to stop. Clones are about the same process.
#[derive(Clone, Default)]
pub(super) struct Stop {
    asked: Arc<OnceLock<Signal>>,
}

impl Stop {
    /// Listens from now on. Where nobody can, a signal simply ends the program: the store has every
    /// batch as a whole.
    pub(super) fn listen() -> Self {
        let stop = Self::default();
        let asked = Arc::clone(&stop.asked);
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
                let _ = asked.set(signals.next().await);
                // Whoever asks again does not want to wait.
                let again = signals.next().await;
                process::exit(again.exit_code().into());
            });
        });
        // It comes to an error, and that is all that is waited for.
        let _ = is_ready.recv();
        stop
    }

    /// The signal that asked to stop, if one has.
    pub(super) fn asked(&self) -> Option<Signal> {
        self.asked.get().copied()
    }
}
