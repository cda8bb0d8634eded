//! Who speaks for the models that a pipeline names.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use overlock_budget::Found;
use overlock_model::{Backend, BackendError, Embeddings, Http};
use overlock_pipeline::{Action, Embed, Models, Pipeline, Speaker};

use crate::config::Config;
use crate::counter::{Counter, Templated};
use crate::ending::Failure;
use crate::upstream::{self, Connection, UpstreamSource};

/// The models of a pipeline.
pub(super) struct Voices<'a> {
    config: &'a Config,
    by_model: BTreeMap<String, Voice>,
}

struct Voice {
    found: Found,
    can_prefill: bool,
    backend: Box<dyn Backend>,
    counter: Counter,
    template: Option<Templated>,
}

impl<'a> Voices<'a> {
    /// All models that steps ask. Where none does, no server has to be there.
    pub(super) fn open(
        pipeline: &Pipeline,
        model: Option<&str>,
        source: &UpstreamSource,
        recorded: Option<&str>,
        config: &'a Config,
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
                backend,
            } = Connection::open(&address, config, name)?;
            let counter = Counter::for_model(name, &found, config)?;
            let template = counter.template(config.template_files(found.entry.as_deref()))?;
            let voice = Voice {
                found,
                can_prefill,
                backend,
                counter,
                template,
            };
            voices.insert(name.to_owned(), voice);
        }
        Ok(Self {
            config,
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
        Ok(Speaker {
            backend: voice.backend.as_ref(),
            counter: voice.counter.of_requests(found, voice.template.as_ref()),
            plan: self.config.budget.plan_options(&found.model),
            continuation: self.config.complete.options(voice.can_prefill),
        })
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
