//! The state shared by all requests.

use std::sync::Arc;

use hyper::HeaderMap;
use overlock_llm::wire::Protocol;
use overlock_llm::{
    BackendError, Discover, Discovery, Finding, LearntWindow, OpenAi, Prefill, Server, ServerInfo,
    Strategy, StrategyResults, strategies_for_prefill,
};
use overlock_store::Store;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::admission::Admission;
use crate::clock::now;
use crate::demo::{self, Demo};
use crate::discovery::KnownServer;
use crate::joined_responses::JoinedResponses;
use crate::metrics::Metrics;
use crate::model_cache::ModelCache;
use crate::record::{LostRecords, Recorder};
use crate::schema::Comparisons;
use crate::settings::Settings;
use crate::strategies::{KnownStrategies, PATIENCE};
use crate::token_ratios::TokenRatios;
use crate::unfinished_runs::UnfinishedRuns;
use crate::upstream::Client;
use overlock_runs::{Definitions, Exporter, Pricing, TracesError, stored_result};

/// A gateway, ready to serve.
pub struct Gateway {
    pub(crate) settings: Settings,
    /// Calls the upstream.
    pub(crate) client: Client,
    pub(crate) demo: Demo,
    pub(crate) model_cache: ModelCache,
    /// The detected properties of the upstream.
    pub(crate) server: KnownServer,
    /// Which strategies have worked for its models.
    pub(crate) strategies: KnownStrategies,
    /// The responses that the upstream stores otherwise than clients got them.
    pub(crate) joined_responses: JoinedResponses,
    /// How many tokens providers bill for a counted one.
    pub(crate) token_ratios: TokenRatios,
    /// Records runs, if there is a store.
    pub(crate) recorder: Option<Arc<Recorder>>,
    /// The usage of unfinished runs, for lists.
    pub(crate) unfinished_runs: Arc<UnfinishedRuns>,
    pub(crate) admission: Admission,
    pub(crate) comparisons: Comparisons,
    pub(crate) metrics: Metrics,
    /// Sends traces to a collector.
    pub(crate) exporter: Option<Arc<Exporter>>,
    /// Reads the pipelines of recorded runs.
    pub(crate) definitions: Arc<dyn Definitions>,
}

/// Why a gateway cannot be created.
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
        let token_ratios = TokenRatios::default();
        let metrics = Metrics::new(token_ratios.gauge.clone());
        let client = Client::new(&settings.upstream, metrics.upstream_errors.clone())?;
        if let Some(base) = &settings.upstream.base {
            // Reports an invalid address now and not to the first client.
            OpenAi::new(client.http.clone(), base, None, Prefill::default())?;
        }
        let traces = settings.traces.as_ref();
        let exporter = traces.map(|traces| {
            let spans = metrics.spans.clone();
            Exporter::new(traces, move |end, count| spans.add(end, count))
        });
        let record = settings.record;
        Ok(Self {
            client,
            demo: Demo::default(),
            model_cache: ModelCache::default(),
            server: KnownServer::default(),
            strategies: KnownStrategies::default(),
            joined_responses: JoinedResponses::default(),
            token_ratios,
            recorder: store.map(|store| {
                let pricing = Pricing::new(settings.models.clone(), &*settings.currency);
                let lost = LostRecords::new(metrics.lost_records.clone());
                Arc::new(Recorder::start(store, record, pricing, lost))
            }),
            unfinished_runs: Arc::default(),
            admission: Admission::new(
                &settings.limits,
                metrics.queued.clone(),
                metrics.in_progress.clone(),
            ),
            comparisons: Comparisons::default(),
            metrics,
            exporter: exporter.transpose()?.map(Arc::new),
            definitions: Arc::new(()),
            settings,
        })
    }

    /// The same, with the graph and the prompts of recorded pipelines.
    #[must_use]
    pub fn with_definitions(self, definitions: impl Definitions + 'static) -> Self {
        Self {
            definitions: Arc::new(definitions),
            ..self
        }
    }

    /// Stores the window of a model that the error of a rejected request reports.
    pub(crate) fn learn(&self, learnt: LearntWindow) {
        self.model_cache.serve(&self.server.learn(learnt));
    }

    /// Detects what the upstream supports, with the headers of a client.
    pub(crate) async fn discover(self: &Arc<Self>, headers: &HeaderMap) {
        let info = self.server.info();
        if *info != ServerInfo::default() && !info.is_prefill_open {
            let (gateway, headers) = (Arc::clone(self), headers.clone());
            tokio::spawn(async move { gateway.ask_server(&headers, Discovery::Probe).await });
        } else {
            // If the server cannot be reached, the call will report it.
            let _ = self.ask_server(headers, Discovery::Probe).await;
        }
    }

    /// Detects what the upstream supports, with the gateway's own key and without generating
    /// tokens. An error means that the upstream could not be reached.
    pub async fn ask_upstream(&self) -> Result<Arc<ServerInfo>, BackendError> {
        let asked = self.ask_server(&HeaderMap::new(), Discovery::Ask).await;
        // The first request may detect more.
        self.server.expire();
        asked.map(|()| self.server.info())
    }

    async fn ask_server(&self, shown: &HeaderMap, most: Discovery) -> Result<(), BackendError> {
        let Some(base) = self.settings.upstream.base.as_deref() else {
            self.server.keep(Some(ServerInfo::default()));
            return Ok(());
        };
        let Ok(_asking) = self.server.asking.try_lock() else {
            // Another request is asking already; wait for its result.
            drop(self.server.asking.lock().await);
            return Ok(());
        };
        let headers = self.client.headers(shown, !self.settings.keys.is_empty());
        let server = Server::new(&self.client.http, base, &headers);
        let before = self.server.info();
        // The probe for prefills is a chat completion.
        let most = match self.settings.upstream.api {
            Protocol::Messages => most.min(Discovery::Ask),
            Protocol::ChatCompletions | Protocol::Responses => most,
        };
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
        self.model_cache.serve(&self.server.info());
        self.load_strategies(base).await;
        asked
    }

    /// The strategies for a model: the configured ones, or else those that it supports, in the order
    /// of their success.
    pub(crate) fn strategies_for(&self, model: &str, prefill: Prefill) -> Vec<Strategy> {
        let set = &self.settings.continuation.strategies;
        if !set.is_empty() {
            return set.clone();
        }
        let prior = strategies_for_prefill(prefill.is_possible());
        if model == demo::MODEL {
            return prior;
        }
        self.strategies.order(model, prior, now())
    }

    /// Records the results of strategies in a run, without waiting for the store.
    pub(crate) fn learn_strategies(&self, model: &str, results: StrategyResults) {
        let at = now();
        let stored = stored_result(model, at, &results);
        let server = self.strategies.add(model, at, results);
        if let Some(recorder) = &self.recorder {
            recorder.note_strategies(server, stored);
        }
    }

    /// Reads the strategy results for the models of the upstream from the store.
    pub(crate) async fn load_strategies(&self, base: &str) {
        let server = self.server.info().identity(base);
        self.strategies.merge(&server, &[]);
        let Some(recorder) = &self.recorder else {
            return;
        };
        let (store, own) = (Arc::clone(recorder.store()), server.clone());
        let stored = spawn_blocking(move || store.strategy_results(&own));
        if let Ok(Ok(Ok(stored))) = timeout(PATIENCE, stored).await {
            self.strategies.merge(&server, &stored);
        }
    }

    /// The models whose strategies have an unusual order, and why.
    pub(crate) fn strategy_findings(&self) -> Vec<Finding> {
        if !self.settings.continuation.strategies.is_empty() {
            return Vec::new();
        }
        let prefill = match self.settings.upstream.prefill {
            Some(style) => Prefill::of_style(style),
            None => self.server.info().prefill,
        };
        let prior = strategies_for_prefill(prefill.is_possible());
        self.strategies.findings(&prior, now())
    }
}
