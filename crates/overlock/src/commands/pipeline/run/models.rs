//! The models that the steps of a pipeline call.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use overlock_budget::Found;
use overlock_llm::{Backend, BackendError, Embeddings, StrategyResults};
use overlock_pipeline::{Action, Embed, ModelClient, Models, Pipeline};
use overlock_store::Store;

use crate::config::{Config, StrategySetting};
use crate::counter::{Counter, Templated};
use crate::embedding::embeddings;
use crate::ending::Failure;
use crate::strategies::{self, ServerModel};
use crate::upstream::{self, Connection, UpstreamSource};

pub(super) struct PipelineModels<'a> {
    config: &'a Config,
    /// Has the results of earlier continuation strategies.
    store: &'a dyn Store,
    by_model: BTreeMap<String, PipelineModel>,
}

struct PipelineModel {
    found: Found,
    can_prefill: bool,
    /// The identity of its server.
    server: String,
    backend: Box<dyn Backend>,
    counter: Counter,
    template: Option<Templated>,
}

impl PipelineModel {
    fn on_server<'a>(&'a self, model: &'a str) -> ServerModel<'a> {
        ServerModel {
            server: &self.server,
            model,
        }
    }
}

impl<'a> PipelineModels<'a> {
    /// Opens all models that steps call. Without such a step no upstream is needed.
    pub(super) fn open(
        pipeline: &Pipeline,
        model: Option<&str>,
        source: &UpstreamSource,
        recorded: Option<&str>,
        config: &'a Config,
        store: &'a dyn Store,
    ) -> Result<Self, Failure> {
        let names = pipeline.steps.iter().filter_map(|step| match &step.action {
            Action::CallModel(call) => call.model.as_deref().or(model),
            _ => None,
        });
        let mut by_model = BTreeMap::new();
        for name in names {
            if by_model.contains_key(name) {
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
            let model = PipelineModel {
                found,
                can_prefill,
                server,
                backend,
                counter,
                template,
            };
            by_model.insert(name.to_owned(), model);
        }
        Ok(Self {
            config,
            store,
            by_model,
        })
    }
}

impl Models for PipelineModels<'_> {
    fn client(&self, model: &str) -> Result<ModelClient<'_>, String> {
        let Some(pipeline_model) = self.by_model.get(model) else {
            return Err("no step calls it".to_owned());
        };
        let found = &pipeline_model.found;
        let complete = &self.config.complete;
        let mut continuation = complete.options(pipeline_model.can_prefill);
        if complete.strategy == StrategySetting::Auto {
            let server_model = pipeline_model.on_server(model);
            continuation.strategies =
                strategies::order(self.store, server_model, &continuation.strategies);
        }
        Ok(ModelClient {
            backend: pipeline_model.backend.as_ref(),
            counter: pipeline_model
                .counter
                .of_requests(found, pipeline_model.template.as_ref()),
            plan: self.config.budget.plan_options(&found.model),
            continuation,
        })
    }

    fn learnt(&self, model: &str, results: &StrategyResults) {
        if let Some(pipeline_model) = self.by_model.get(model) {
            strategies::add(self.store, pipeline_model.on_server(model), results);
        }
    }
}

/// Computes the vectors of queries.
pub(super) struct QueryEmbedder {
    model: String,
    embeddings: Embeddings,
}

impl QueryEmbedder {
    /// Opens the embedding model, if one is given.
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
        let key = address.key()?;
        Ok(Some(Self {
            model: model.to_owned(),
            embeddings: embeddings(address.url(), key.as_deref(), model, config)?,
        }))
    }
}

impl Embed for QueryEmbedder {
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
