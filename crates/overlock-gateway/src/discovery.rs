//! What the upstream is and can do, asked once and again from time to time.
//!
//! The first request waits for it; later ones go on with what is known while it is asked again, so
//! that a server that was restarted with another model is noticed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::HeaderMap;
use overlock_model::{BackendError, Discover, Discovery, LearntWindow, Server, ServerInfo};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::gateway::Gateway;

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
    asking: Mutex<()>,
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

    /// Whether it need not be asked now.
    pub(crate) fn is_fresh(&self) -> bool {
        self.began.elapsed() < Duration::from_millis(self.until.load(Ordering::Relaxed))
    }

    fn keep(&self, info: Option<ServerInfo>) {
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

impl Gateway {
    /// Remembers the window of a model that a refused request has taught.
    pub(crate) fn learn(&self, learnt: LearntWindow) {
        let info = {
            let info = self.server.info.write();
            let mut info = info.unwrap_or_else(PoisonError::into_inner);
            Arc::make_mut(&mut info).learn(learnt);
            Arc::clone(&info)
        };
        self.known.serve(&info);
    }

    /// Sees to it that the upstream is known, as far as it can be found out with these headers.
    pub(crate) async fn discover(self: &Arc<Self>, headers: &HeaderMap) {
        let info = self.server.info();
        if *info != ServerInfo::default() && !info.is_prefill_open {
            let (gateway, headers) = (Arc::clone(self), headers.clone());
            tokio::spawn(async move { gateway.ask_server(&headers, Discovery::Probe).await });
        } else {
            // A call to a server that cannot be reached says so itself.
            let _ = self.ask_server(headers, Discovery::Probe).await;
        }
    }

    /// Asks the upstream what it is, with the gateway's own key, and generates nothing.
    /// An error means that it could not be reached.
    pub async fn ask_upstream(&self) -> Result<Arc<ServerInfo>, BackendError> {
        let asked = self.ask_server(&HeaderMap::new(), Discovery::Ask).await;
        // The first request may still find out more.
        self.server.until.store(0, Ordering::Relaxed);
        asked.map(|()| self.server.info())
    }

    async fn ask_server(&self, shown: &HeaderMap, most: Discovery) -> Result<(), BackendError> {
        let Some(base) = self.settings.upstream.base.as_deref() else {
            self.server.keep(Some(ServerInfo::default()));
            return Ok(());
        };
        let Ok(_asking) = self.server.asking.try_lock() else {
            // Somebody else is asking: the first requests wait for that.
            drop(self.server.asking.lock().await);
            return Ok(());
        };
        let headers = self.client.headers(shown, !self.settings.keys.is_empty());
        let server = Server::new(&self.http, base, &headers);
        let before = self.server.info();
        let options = Discover {
            prefill: self.settings.upstream.prefill,
            discovery: self.settings.upstream.discovery.min(most),
            before: Some(&before),
        };
        let (info, asked) = match server.discover(&options).await {
            Ok(info) => (Some(info), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.server.keep(info);
        self.known.serve(&self.server.info());
        self.load_strategies(base).await;
        asked
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
