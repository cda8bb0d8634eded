//! The embedding model that computes vectors of texts.

use clap::Args;
use overlock_llm::{BackendError, Embeddings, Http};
use overlock_store::StoreError;
use tokio::runtime::{Builder, Runtime};

use crate::config::Config;
use crate::ending::Failure;
use crate::upstream;

#[derive(Args, Debug)]
pub(crate) struct EmbeddingSource {
    /// The embedding model, such as `text-embedding-3-small`
    #[arg(long, value_name = "MODEL")]
    pub(crate) embed: Option<String>,
    /// The base URL of its server, such as `http://127.0.0.1:11434/v1` [default: `upstream.url`]
    #[arg(long, value_name = "URL", requires = "embed")]
    upstream: Option<String>,
    /// The environment variable with the API key of that server [default: `upstream.key_variable`]
    #[arg(long, value_name = "NAME", requires = "embed")]
    key_variable: Option<String>,
}

/// An embedding model with a blocking interface.
pub(crate) struct Embedder {
    pub(crate) model: String,
    embeddings: Embeddings,
    runtime: Runtime,
}

impl EmbeddingSource {
    /// Opens the embedding model, if one is given.
    pub(crate) fn open(&self, config: &Config) -> Result<Option<Embedder>, Failure> {
        let Some(model) = &self.embed else {
            return Ok(None);
        };
        let settings = &config.upstream;
        let Some(url) = self.upstream.as_deref().or(settings.url.as_deref()) else {
            return Err(Failure::Usage {
                message: "no upstream configured for embeddings".into(),
                hint: "give --upstream URL, such as http://127.0.0.1:11434/v1, or set \
                       `upstream.url` in overlock.toml"
                    .into(),
            });
        };
        let variable = self
            .key_variable
            .as_deref()
            .or(settings.key_variable.as_deref());
        let key = upstream::key(variable, url)?;
        Ok(Some(Embedder {
            model: model.clone(),
            embeddings: embeddings(url, key.as_deref(), model, config)?,
            runtime: Builder::new_current_thread().enable_all().build()?,
        }))
    }
}

/// The client of an embedding model.
pub(crate) fn embeddings(
    url: &str,
    key: Option<&str>,
    model: &str,
    config: &Config,
) -> Result<Embeddings, Failure> {
    let failed = |source: BackendError| Failure::Upstream { source };
    let http = Http::new(config.upstream.timeouts()).map_err(failed)?;
    let policy = config.upstream.retry_policy();
    Embeddings::new(http, url, key, model, policy).map_err(failed)
}

impl Embedder {
    /// Adds the host to an error about the vectors of this model.
    pub(crate) fn store_failure(&self, source: StoreError) -> Failure {
        match source {
            StoreError::InvalidVector { model, reason } => Failure::Vectors {
                host: self.embeddings.host().to_owned(),
                model,
                reason,
            },
            source => Failure::Store { source },
        }
    }

    pub(crate) fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BackendError> {
        self.runtime.block_on(self.embeddings.embed(texts))
    }
}
