//! The signals that stop a program.

use std::{future, io};

#[cfg(unix)]
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: Stream,
    #[cfg(unix)]
    terminate: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has it"))]
    Terminate,
}

impl Signal {
    /// The exit code that shells report for this signal.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "Ctrl-C",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// Waits for a signal to stop; forever if signals cannot be received.
pub(crate) async fn stop_signal() -> Signal {
    match Signals::new() {
        Ok(mut signals) => signals.next().await,
        Err(_) => future::pending().await,
    }
}

impl Signals {
    /// Replaces the default handlers, so that these signals no longer end the process.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
        #[cfg(not(unix))]
        {
            if tokio::signal::ctrl_c().await.is_err() {
                future::pending::<()>().await;
            }
            Signal::Interrupt
        }
    }
}
