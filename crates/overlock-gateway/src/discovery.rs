//! What the upstream is and supports, detected at the first request and refreshed regularly.
//!
//! The first request waits for it. Later requests use the known result during a refresh, which
//! notices a server that was restarted with another model.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use overlock_llm::{LearntWindow, ServerInfo};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The time until a refresh.
const FRESH: Duration = Duration::from_mins(1);

/// The time until a retry if the server could not be reached.
const RETRY: Duration = Duration::from_secs(5);

/// The state of detection.
pub(crate) struct KnownServer {
    began: Instant,
    /// The time of the next refresh, in milliseconds after `began`.
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
    /// The current result.
    pub(crate) fn info(&self) -> Arc<ServerInfo> {
        let info = self.info.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&info)
    }

    /// Adds the window of a model that the error of a rejected request reports.
    pub(crate) fn learn(&self, learnt: LearntWindow) -> Arc<ServerInfo> {
        let mut info = self.info.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut info).learn(learnt);
        Arc::clone(&info)
    }

    /// Has the next request refresh.
    pub(crate) fn expire(&self) {
        self.until.store(0, Ordering::Relaxed);
    }

    /// Whether no refresh is due.
    pub(crate) fn is_fresh(&self) -> bool {
        self.began.elapsed() < Duration::from_millis(self.until.load(Ordering::Relaxed))
    }

    /// Stores a result; `None` if the server could not be reached.
    pub(crate) fn keep(&self, info: Option<ServerInfo>) {
        let wait = match &info {
            Some(_) => FRESH,
            None => RETRY,
        };
        if let Some(mut info) = info {
            let mut current = self.info.write().unwrap_or_else(PoisonError::into_inner);
            info.learn_from(&current);
            if **current != info {
                *current = Arc::new(info);
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
    fn retries_an_unreachable_server_sooner_than_it_refreshes() {
        let server = KnownServer::default();
        assert!(!server.is_fresh());
        server.keep(None);
        let soon = server.until.load(Ordering::Relaxed);
        server.keep(Some(ServerInfo::default()));
        assert!(server.until.load(Ordering::Relaxed) > soon);
    }
}
