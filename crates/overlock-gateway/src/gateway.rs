//! What all requests share.

use std::sync::Arc;

use overlock_model::{BackendError, Http, OpenAi, Prefill};
use overlock_store::Store;

use crate::admission::Admission;
use crate::api::Pricing;
use crate::demo::Demo;
use crate::discovery::KnownServer;
use crate::handlers::runs::TakingOfRuns;
use crate::known::KnownModels;
use crate::log::LogEntry;
use crate::metrics::Metrics;
use crate::record::Recorder;
use crate::schema::Comparisons;
use crate::settings::Settings;
use crate::strategies::KnownStrategies;
use crate::trace::{Exporter, TracesError};
use crate::upstream::Client;

/// A gateway, ready to serve.
pub struct Gateway {
    pub(crate) settings: Settings,
    /// Makes the calls for the rest of an answer.
    pub(crate) http: Http,
    /// Passes requests on.
    pub(crate) client: Client,
    pub(crate) demo: Demo,
    pub(crate) known: KnownModels,
    /// What is known of the upstream.
    pub(crate) server: KnownServer,
    /// Which strategies have worked for its models.
    pub(crate) strategies: KnownStrategies,
    /// Keeps what happens.
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// What runs took that have not ended, as lists tell it.
    pub(crate) taking: Arc<TakingOfRuns>,
    pub(crate) admission: Admission,
    pub(crate) comparisons: Comparisons,
    pub(crate) metrics: Metrics,
    /// Brings what happened to a collector.
    pub(crate) exporter: Option<Arc<Exporter>>,
    pub(crate) log: Option<Log>,
}

/// Is told of every request that is done.
type Log = Box<dyn Fn(&LogEntry) + Send + Sync>;

/// Why there is no gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The upstream cannot be used.
    #[error(transparent)]
    Upstream(#[from] BackendError),
    /// Traces cannot be sent.
    #[error(transparent)]
    Traces(#[from] TracesError),
}

impl Gateway {
    /// A gateway with these settings that records its runs in a store.
    pub fn new(settings: Settings, store: Option<Arc<dyn Store>>) -> Result<Self, GatewayError> {
        let http = Http::new(settings.upstream.timeouts)?;
        if let Some(base) = &settings.upstream.base {
            // A wrong address is told now, and not to the first client.
            OpenAi::new(http.clone(), base, None, Prefill::default())?;
        }
        let metrics = Metrics::new();
        let traces = settings.traces.as_ref();
        let exporter = traces.map(|traces| Exporter::new(traces, metrics.spans.clone()));
        let record = settings.record;
        Ok(Self {
            http,
            client: Client::new(&settings.upstream, metrics.upstream_errors.clone())?,
            demo: Demo::default(),
            known: KnownModels::default(),
            server: KnownServer::default(),
            strategies: KnownStrategies::default(),
            recorder: store.map(|store| {
                let pricing = Pricing::new(settings.models.clone(), &*settings.currency);
                Arc::new(Recorder::start(store, record, pricing))
            }),
            taking: Arc::default(),
            admission: Admission::new(
                &settings.limits,
                metrics.queued.clone(),
                metrics.in_progress.clone(),
            ),
            comparisons: Comparisons::default(),
            metrics,
            exporter: exporter.transpose()?.map(Arc::new),
            log: None,
            settings,
        })
    }

    /// The same, telling of every request when it is done. Whoever is told must not wait.
    #[must_use]
    pub fn with_log(self, log: impl Fn(&LogEntry) + Send + Sync + 'static) -> Self {
        Self {
            log: Some(Box::new(log)),
            ..self
        }
    }
}
