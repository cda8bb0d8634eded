//! What all requests share.

use overlock_model::{BackendError, Http};
use overlock_store::Store;

use crate::demo::Demo;
use crate::settings::Settings;
use crate::upstream::Client;

/// A gateway, ready to serve.
pub struct Gateway {
    pub(crate) settings: Settings,
    /// Makes the calls for the rest of an answer.
    pub(crate) http: Http,
    /// Passes requests on.
    pub(crate) client: Client,
    pub(crate) demo: Demo,
    pub(crate) store: Option<Store>,
}

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The upstream cannot be used.
    #[error(transparent)]
    Upstream(#[from] BackendError),
}

impl Gateway {
    /// A gateway with these settings that records its runs in a store.
    pub fn new(settings: Settings, store: Option<Store>) -> Result<Self, GatewayError> {
        Ok(Self {
            http: Http::new(settings.upstream.timeouts)?,
            client: Client::new(&settings.upstream)?,
            demo: Demo::default(),
            settings,
            store,
        })
    }
}
