//! What the upstream is and can do, asked once and again from time to time.
//!
//! The first request waits for it; later ones go on with what is known while it is asked again, so
//! that a server that was restarted with another model is noticed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::HeaderMap;
use overlock_model::{Discover, Server, ServerInfo};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::gateway::Gateway;

/// What is known is asked again after so long.
const FRESH: Duration = Duration::from_mins(1);

/// A server that could not be asked is asked again after so long.
const RETRY: Duration = Duration::from_secs(5);

/// What was found out about the upstream.
pub(crate) struct Discovery {
    began: Instant,
    /// Until when it need not be asked again, in milliseconds from the beginning.
    until: AtomicU64,
    info: RwLock<Arc<ServerInfo>>,
    asking: Mutex<()>,
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            until: AtomicU64::new(0),
            info: RwLock::default(),
            asking: Mutex::default(),
        }
    }
}

impl Discovery {
    /// What is known.
    pub(crate) fn info(&self) -> Arc<ServerInfo> {
        let info = self.info.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&info)
    }

    /// Whether it need not be asked now.
    pub(crate) fn is_fresh(&self) -> bool {
        self.began.elapsed() < Duration::from_millis(self.until.load(Ordering::Relaxed))
    }

    fn keep(&self, info: Option<ServerInfo>) {
        let wait = match &info {
            Some(_) => FRESH,
            None => RETRY,
        };
        if let Some(info) = info {
            let mut kept = self.info.write().unwrap_or_else(PoisonError::into_inner);
            if **kept != info {
                *kept = Arc::new(info);
            }
        }
        let until = (self.began.elapsed() + wait).as_millis();
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        self.until.store(until, Ordering::Relaxed);
    }
}

/// What may be asked of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Only what generates nothing.
    Facts,
    /// A few tokens too, where nothing else tells what it can do.
    Probe,
}

impl Gateway {
    /// Sees to it that the upstream is known, as far as it can be found out with these headers.
    pub(crate) async fn discover(self: &Arc<Self>, headers: &HeaderMap) {
        let is_known = *self.discovery.info() != ServerInfo::default();
        if is_known {
            let (gateway, headers) = (Arc::clone(self), headers.clone());
            tokio::spawn(async move { gateway.ask_server(&headers, Asks::Probe).await });
        } else {
            self.ask_server(headers, Asks::Probe).await;
        }
    }

    /// Asks the upstream what it is, with the gateway's own key, and generates nothing.
    pub async fn ask_upstream(&self) -> Arc<ServerInfo> {
        self.ask_server(&HeaderMap::new(), Asks::Facts).await;
        // The first request may still find out more.
        self.discovery.until.store(0, Ordering::Relaxed);
        self.discovery.info()
    }

    async fn ask_server(&self, shown: &HeaderMap, asks: Asks) {
        let Some(base) = self.settings.upstream.base.as_deref() else {
            return;
        };
        let Ok(_asking) = self.discovery.asking.try_lock() else {
            // Somebody else is asking: the first requests wait for that.
            drop(self.discovery.asking.lock().await);
            return;
        };
        let headers = self.client.headers(shown, !self.settings.keys.is_empty());
        let server = Server::new(&self.http, base, &headers);
        let before = self.discovery.info();
        let options = Discover {
            prefill: self.settings.upstream.prefill,
            probe: asks == Asks::Probe && self.settings.upstream.probe,
            before: Some(&before),
        };
        self.discovery.keep(server.discover(&options).await.ok());
        self.known.serve(&self.discovery.info());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_found_out_is_asked_again_sooner() {
        let discovery = Discovery::default();
        assert!(!discovery.is_fresh());
        discovery.keep(None);
        let soon = discovery.until.load(Ordering::Relaxed);
        discovery.keep(Some(ServerInfo::default()));
        assert!(discovery.until.load(Ordering::Relaxed) > soon);
    }
}
