//! What the upstream is and can do, asked once and again from time to time.
//!
//! The first request waits for it; later ones go on with what is known while it is asked again, so
//! that a server that was restarted with another model is noticed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use overlock_llm::{LearntWindow, ServerInfo};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// What is known is asked again after so long.
const FRESH: Duration = Duration::from_mins(1);

/// A server that could not be asked is asked again after so long.
const RETRY: Duration = Duration::from_secs(5);

/// What was found out about the upstream.
pub(crate) struct KnownServer {
    began: Instant,
    /// Until when it need not be asked again, in milliseconds from the beginning.
    until: AtomicU64,
    info: RwLock<Arc<ServerInfo>>,
    pub(crate) asking: Mutex<()>,
}

impl Default for KnownServer {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            until: AtomicU64::new(0),
            info: RwLock::default(),
            asking: Mutex::default(),
        }
    }
}

impl KnownServer {
    /// What is known.
    pub(crate) fn info(&self) -> Arc<ServerInfo> {
        let info = self.info.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&info)
    }

    /// Adds the window of a model that a refused request has taught.
    pub(crate) fn learn(&self, learnt: LearntWindow) -> Arc<ServerInfo> {
        let mut info = self.info.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut info).learn(learnt);
        Arc::clone(&info)
    }

    /// The next request asks again.
    pub(crate) fn expire(&self) {
        self.until.store(0, Ordering::Relaxed);
    }

    /// Whether it need not be asked now.
    pub(crate) fn is_fresh(&self) -> bool {
        self.began.elapsed() < Duration::from_millis(self.until.load(Ordering::Relaxed))
    }

    /// Keeps what was found out, or that the server could not be asked.
    pub(crate) fn keep(&self, info: Option<ServerInfo>) {
        let wait = match &info {
            Some(_) => FRESH,
            None => RETRY,
        };
        if let Some(mut info) = info {
            let mut kept = self.info.write().unwrap_or_else(PoisonError::into_inner);
            info.learn_from(&kept);
            if **kept != info {
                *kept = Arc::new(info);
            }
        }
        let until = (self.began.elapsed() + wait).as_millis();
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        self.until.store(until, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_found_out_is_asked_again_sooner() {
        let server = KnownServer::default();
        assert!(!server.is_fresh());
        server.keep(None);
        let soon = server.until.load(Ordering::Relaxed);
        server.keep(Some(ServerInfo::default()));
        assert!(server.until.load(Ordering::Relaxed) > soon);
    }
}
