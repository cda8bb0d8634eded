//! Lets an index be stopped without losing what it has read.

use std::future;
use std::pin::pin;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use tokio::runtime::Builder;

/// Whether somebody has pressed Ctrl-C. Clones are about the same keyboard.
#[derive(Clone, Default)]
pub(super) struct Stop {
    is_pressed: Arc<AtomicBool>,
}

impl Stop {
    /// Listens from now on. Where nobody can tell that it was pressed, the program simply ends: the
    /// store has every batch as a whole.
    pub(super) fn on_ctrl_c() -> Self {
        /// What a shell reports of a program that Ctrl-C ended.
        const ENDED_BY_CTRL_C: i32 = 130;
        let stop = Self::default();
        let is_pressed = Arc::clone(&stop.is_pressed);
        let (ready, is_ready) = sync_channel::<()>(1);
        thread::spawn(move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
                return;
            };
            runtime.block_on(async {
                let mut pressed = pin!(tokio::signal::ctrl_c());
                // Nobody listens before it is asked for the first time.
                let at_once = tokio::select! {
                    biased;
                    pressed = pressed.as_mut() => Some(pressed),
                    () = future::ready(()) => None,
                };
                drop(ready);
                let pressed = match at_once {
                    Some(pressed) => pressed,
                    None => pressed.await,
                };
                if pressed.is_ok() {
                    is_pressed.store(true, Ordering::Relaxed);
                    // Whoever presses it again does not want to wait.
                    if tokio::signal::ctrl_c().await.is_ok() {
                        process::exit(ENDED_BY_CTRL_C);
                    }
                }
            });
        });
        // It comes to an error, and that is all that is waited for.
        let _ = is_ready.recv();
        stop
    }

    pub(super) fn is_pressed(&self) -> bool {
        self.is_pressed.load(Ordering::Relaxed)
    }
}
