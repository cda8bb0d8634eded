//! Who speaks for the models that a pipeline names.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use overlock_budget::Found;
use overlock_llm::{Backend, BackendError, Embeddings, Http, StrategyResults};
use overlock_pipeline::{Action, Embed, Models, Pipeline, Speaker};
use overlock_store::Store;

use crate::config::{Config, StrategySetting};
use crate::counter::{Counter, Templated};
use crate::ending::Failure;
use crate::strategies::{self, ServerModel};
use crate::upstream::{self, Connection, UpstreamSource};

/// The models of a pipeline.
pub(super) struct Voices<'a> {
    config: &'a Config,
    /// Knows which strategies have worked.
    store: &'a dyn Store,
    by_model: BTreeMap<String, Voice>,
}

struct Voice {
    found: Found,
    can_prefill: bool,
    /// What its server is known by.
    server: String,
    backend: Box<dyn Backend>,
    counter: Counter,
    template: Option<Templated>,
}

impl Voice {
    fn on_server<'a>(&'a self, model: &'a str) -> ServerModel<'a> {
        ServerModel {
            server: &self.server,
            model,
        }
    }
}

impl<'a> Voices<'a> {
    /// All models that steps ask. Where none does, no server has to be there.
    pub(super) fn open(
        pipeline: &Pipeline,
        model: Option<&str>,
        source: &UpstreamSource,
        recorded: Option<&str>,
        config: &'a Config,
        store: &'a dyn Store,
    ) -> Result<Self, Failure> {
        let asked = pipeline.steps.iter().filter_map(|step| match &step.action {
            Action::CallModel(call) => call.model.as_deref().or(model),
            _ => None,
        });
        let mut voices = BTreeMap::new();
        for name in asked {
            if voices.contains_key(name) {
                continue;
            }
            let address = upstream::address(source, config, recorded)?;
            let Connection {
                found,
                can_prefill,
                server,
                backend,
            } = Connection::open(&address, config, name)?;
            let counter = Counter::for_model(name, &found, config)?;
            let template = counter.template(config.template_files(found.entry.as_deref()))?;
            let voice = Voice {
                found,
                can_prefill,
                server,
                backend,
                counter,
                template,
            };
            voices.insert(name.to_owned(), voice);
        }
        Ok(Self {
            config,
            store,
            by_model: voices,
        })
    }
}

impl Models for Voices<'_> {
    fn speaker(&self, model: &str) -> Result<Speaker<'_>, String> {
        let Some(voice) = self.by_model.get(model) else {
            return Err("no step was known to ask it".to_owned());
        };
        let found = &voice.found;
        let complete = &self.config.complete;
        let mut continuation = complete.options(voice.can_prefill);
        if complete.strategy == StrategySetting::Auto {
            let of = voice.on_server(model);
            continuation.ways = strategies::order(self.store, of, &continuation.ways);
        }
        Ok(Speaker {
            backend: voice.backend.as_ref(),
            counter: voice.counter.of_requests(found, voice.template.as_ref()),
            plan: self.config.budget.plan_options(&found.model),
            continuation,
        })
    }

    fn learnt(&self, model: &str, results: &StrategyResults) {
        if let Some(voice) = self.by_model.get(model) {
            strategies::add(self.store, voice.on_server(model), results);
        }
    }
}

/// Makes vectors of queries.
pub(super) struct Embedder {
    model: String,
    embeddings: Embeddings,
}

impl Embedder {
    /// The embedding model that is named, if one is.
    pub(super) fn open(
        model: Option<&str>,
        source: &UpstreamSource,
        recorded: Option<&str>,
        config: &Config,
    ) -> Result<Option<Self>, Failure> {
        let Some(model) = model else {
            return Ok(None);
        };
        let address = upstream::address(source, config, recorded)?;
        let failed = |source: BackendError| Failure::Upstream { source };
        let settings = &config.upstream;
        let http = Http::new(settings.timeouts()).map_err(failed)?;
        let policy = settings.retry_policy();
        let key = address.key()?;
        let embeddings = Embeddings::new(http, address.url(), key.as_deref(), model, policy);
        Ok(Some(Self {
            model: model.to_owned(),
            embeddings: embeddings.map_err(failed)?,
        }))
    }
}

impl Embed for Embedder {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Vec<f32>, BackendError>> {
        async move {
            let vectors = self.embeddings.embed(&[text]).await?;
            Ok(vectors.into_iter().next().unwrap_or_default())
        }
        .boxed()
    }
}
