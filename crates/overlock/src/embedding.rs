//! Who makes vectors of texts.

use clap::Args;
use overlock_llm::{BackendError, Embeddings, Http};
use overlock_store::StoreError;
use tokio::runtime::{Builder, Runtime};

use crate::config::Config;
use crate::ending::Failure;
use crate::upstream;

/// The embedding model that is asked, if one is.
#[derive(Args, Debug)]
pub(crate) struct EmbeddingSource {
    /// The embedding model to ask, such as `text-embedding-3-small`
    #[arg(long, value_name = "MODEL")]
    pub(crate) embed: Option<String>,
    /// The server that has it, as in `http://127.0.0.1:11434/v1` [default: `upstream.url`]
    #[arg(long, value_name = "URL", requires = "embed")]
    upstream: Option<String>,
    /// The environment variable with the key for that server
    #[arg(long, value_name = "NAME", requires = "embed")]
    key_variable: Option<String>,
}

/// An embedding model, asked from a thread that waits.
pub(crate) struct Embedder {
    pub(crate) model: String,
    embeddings: Embeddings,
    runtime: Runtime,
}

impl EmbeddingSource {
    /// The model that is named, ready to be asked.
    pub(crate) fn open(&self, config: &Config) -> Result<Option<Embedder>, Failure> {
        let Some(model) = &self.embed else {
            return Ok(None);
        };
        let settings = &config.upstream;
        let Some(url) = self.upstream.as_deref().or(settings.url.as_deref()) else {
            return Err(Failure::Usage {
                message: "no upstream is named: who is to be asked for vectors?".into(),
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
        let failed = |source: BackendError| Failure::Upstream { source };
        let http = Http::new(settings.timeouts()).map_err(failed)?;
        let policy = settings.retry_policy();
        let embeddings =
            Embeddings::new(http, url, key.as_deref(), model, policy).map_err(failed)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Some(Embedder {
            model: model.clone(),
            embeddings,
            runtime,
        }))
    }
}

impl Embedder {
    /// What a store says of vectors of this model that it cannot keep or compare.
    pub(crate) fn unfit(&self, source: StoreError) -> Failure {
        match source {
            StoreError::UnfitVector { model, reason } => Failure::Vectors {
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
