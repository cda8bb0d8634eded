//! Waits to be told to stop.

use std::{future, io};

#[cfg(unix)]
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// What a terminal or a service manager sends.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: Stream,
    #[cfg(unix)]
    terminate: Stream,
}

/// How a program is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// By Ctrl-C.
    Interrupt,
    /// By another program.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has it"))]
    Terminate,
}

impl Signal {
    /// What a shell reports of a program that this ended.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "Ctrl-C",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// Comes when somebody tells the program to stop. Where nobody can be heard, it never comes.
pub(crate) async fn called_off() -> Signal {
    match Signals::new() {
        Ok(mut signals) => signals.next().await,
        Err(_) => future::pending().await,
    }
}

impl Signals {
    /// From now on no signal ends the process by itself.
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
            // Where nobody can tell that it was pressed, it was not.
            if tokio::signal::ctrl_c().await.is_err() {
                future::pending::<()>().await;
            }
            Signal::Interrupt
        }
    }
}
