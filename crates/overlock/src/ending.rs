//! How a command ends, and the exit code that tells it.
//!
//! 0: done. 1: an honest partial or negative result. 2: bad usage or unreadable input. 130, 143: as
//! shells have it, stopped by Ctrl-C or by another program.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use overlock_budget::{ChatTemplateError, PlanError, TokenizerFileError};
use overlock_json::NoJson;
use overlock_llm::wire::chat::RequestError;
use overlock_llm::{BackendError, DriveError};
use overlock_pipeline::RepositoryError;
use overlock_runs::TracesError;
use overlock_store::{AddressError, RunId, StoreError};

use crate::config::ConfigError;
use crate::signals::Signal;

/// How a command that could do its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// What was asked for is there, whole.
    Whole,
    /// The answer is honest, but partial or negative: still cut, refused, not identical.
    Partial,
    /// Somebody asked to stop before all was done.
    Stopped(Signal),
}

impl Ending {
    /// [`Ending::Whole`] if `whole` holds.
    pub(crate) fn whole_if(whole: bool) -> Self {
        if whole { Self::Whole } else { Self::Partial }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Whole => Self::from(0),
            Ending::Partial => Self::from(1),
            Ending::Stopped(signal) => Self::from(signal.exit_code()),
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no JSON in {name}: {source}")]
    NoJson { name: String, source: NoJson },
    #[error("there is no file `{}`", path.display())]
    Missing { path: PathBuf },
    #[error("there is no folder `{}`", path.display())]
    NoFolder { path: PathBuf },
    #[error("`{}` is a directory", path.display())]
    Directory { path: PathBuf },
    #[error("there is no text in {name}: it has bytes of value 0, and is no UTF-8")]
    NoText { name: String },
    #[error("could not read {name}: {source}")]
    Unreadable { name: String, source: io::Error },
    #[error("could not write the result: {0}")]
    Unwritable(#[from] io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("could not read the tokenizer `{}`: {source}", path.display())]
    TokenizerUnreadable { path: PathBuf, source: io::Error },
    #[error("`{}` is no tokenizer that can be used: {}", path.display(), chain(source))]
    Tokenizer {
        path: PathBuf,
        source: TokenizerFileError,
    },
    #[error("the chat template in `{}` cannot be used: {}", path.display(), chain(source))]
    Template {
        path: PathBuf,
        source: ChatTemplateError,
    },
    #[error("{name} is no chat request: {source}")]
    Request { name: String, source: RequestError },
    #[error("the request does not fit: {source}")]
    Refused {
        source: Box<PlanError>,
        /// What would help, each on its own.
        help: Vec<String>,
    },
    #[error("could not write `{}`: {source}", path.display())]
    OutputUnwritable { path: PathBuf, source: io::Error },
    #[error("`{}` is no JSON Schema that can be used: {reason}", path.display())]
    Schema { path: PathBuf, reason: String },
    #[error(transparent)]
    Upstream { source: BackendError },
    #[error(transparent)]
    Traces { source: TracesError },
    #[error("could not listen on `{address}`: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("{}", chain(source))]
    Run { source: DriveError },
    #[error(transparent)]
    StoreAddress { source: AddressError },
    #[error("{}", chain(source))]
    Store { source: StoreError },
    #[error("{host} answered with a vector that cannot be used for the model `{model}`: {reason}")]
    Vectors {
        host: String,
        model: String,
        reason: String,
    },
    #[error("there is no run `{id}`")]
    NoRun { id: String },
    #[error("run `{id}` was recorded in a form that cannot be read: {reason}")]
    DamagedRun { id: String, reason: String },
    #[error("{message}")]
    Usage { message: String, hint: String },
    #[error("a worker stopped before its lines were answered")]
    WorkerStopped,
}

impl From<RepositoryError> for Failure {
    fn from(error: RepositoryError) -> Self {
        let (message, hint) = (error.to_string(), error.hint().unwrap_or_default());
        match error {
            RepositoryError::Store(source) => Self::Store { source },
            _ => Self::Usage { message, hint },
        }
    }
}

impl Failure {
    /// Why a recorded run cannot be taken up.
    pub(crate) fn damaged_run(id: &RunId, error: &dyn Error) -> Self {
        Self::DamagedRun {
            id: id.to_string(),
            reason: error.to_string(),
        }
    }

    /// The exit code: a text without JSON and a request that cannot fit are negative results, all
    /// else is unusable input.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::NoJson { .. } | Self::Refused { .. } => Ending::Partial.into(),
            _ => ExitCode::from(2),
        }
    }

    /// What would be right, or what a person can do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::NoJson { .. } => {
                "a text holds JSON once an object, an array or another value has begun in it".into()
            }
            Self::Missing { .. } | Self::Directory { .. } => {
                "give the path of a file, or `-` to read standard input".into()
            }
            Self::NoText { .. } => {
                "give text in UTF-8, in Windows-1252, or in UTF-16 with its mark".into()
            }
            Self::NoFolder { .. } => "give the path of a folder with sources".into(),
            Self::Unreadable { .. } => "check that the file may be read, and try again".into(),
            Self::Request { .. } => {
                "give a chat request as OpenAI has it: {\"model\": …, \"messages\": [{\"role\": \
                 \"user\", \"content\": …}]}"
                    .into()
            }
            Self::Refused { help, .. } => help.join(", or "),
            Self::OutputUnwritable { .. } => {
                "check that the folder is there and may be written".into()
            }
            Self::Unwritable(_) => "check that there is room where the output goes".into(),
            Self::TokenizerUnreadable { .. } => {
                "check the path given with --tokenizer, or in overlock.toml".into()
            }
            Self::Template { .. } => {
                "give the tokenizer_config.json or the chat template of the model".into()
            }
            Self::Tokenizer { .. } => "give a tokenizer.json as Hugging Face has it".into(),
            Self::Config(error) => error.hint().to_owned(),
            Self::Schema { .. } => "give a JSON Schema in a file of its own".into(),
            Self::Traces { .. } => "check `serve.traces_url` in overlock.toml, and the variables \
                 OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS"
                .into(),
            Self::Upstream {
                source: BackendError::Malformed { .. },
            } => "check that the server given with --upstream speaks OpenAI's protocol, and has a \
                  model of this name for what is asked: --embed takes an embedding model"
                .into(),
            Self::Upstream { .. } => {
                "check the address given with --upstream, or in overlock.toml".into()
            }
            Self::Run { .. } => "check what is asked, and try again".into(),
            Self::Store { source } => store_hint(source),
            Self::Vectors { .. } => {
                "ask the model that made the vectors of this store: check --embed MODEL and \
                 --upstream URL"
                    .into()
            }
            Self::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another program has this port: give another with --listen 127.0.0.1:PORT"
                }
                _ => "give another address with --listen, such as 127.0.0.1:8484",
            }
            .into(),
            Self::StoreAddress { .. } => CHECK_ADDRESS.into(),
            Self::NoRun { .. } => "`overlock inspect` lists the runs that are recorded".into(),
            Self::DamagedRun { .. } => {
                "it may have been recorded by another version of overlock".into()
            }
            Self::Usage { hint, .. } => hint.clone(),
            Self::WorkerStopped => {
                "this is a defect of overlock; the lines before it were answered".into()
            }
        }
    }
}

const CHECK_ADDRESS: &str = "check the address given with --store, or in overlock.toml";

/// What a person can do about a store that cannot be used.
fn store_hint(error: &StoreError) -> String {
    match error {
        StoreError::Superseded { .. } => "`overlock inspect` shows how far it has come",
        StoreError::Missing { .. } => {
            "check the address given with --store, or in overlock.toml; what keeps something makes \
             a store, as `overlock index DIR` does"
        }
        StoreError::Open { .. } => {
            "check the address given with --store, or in overlock.toml: whether it is a store, and \
             whether this user may open it"
        }
        StoreError::Hidden { .. } | StoreError::Folder { .. } | StoreError::Make { .. } => {
            "check that it and every folder on the way to it may be used, or name another file with \
             --store sqlite://FILE"
        }
        StoreError::IsFolder { path } => {
            let file = path.join("runs.db");
            return format!("name a file in it, as in --store sqlite://{}", file.display());
        }
        StoreError::Forbidden { .. } => {
            "have the owner of the database grant this user USAGE and CREATE on the schema and \
             rights to its tables, or give another user or ?schema=NAME with --store"
        }
        StoreError::Full { .. } => {
            "what was kept is whole: the same command goes on once there is room"
        }
        StoreError::ReadOnly { .. } => "name another store with --store, or in overlock.toml",
        StoreError::Damaged { .. } => {
            "name another store with --store; `sqlite3 FILE .recover` may save what is left in it"
        }
        StoreError::Newer { .. } => "use the version of overlock that wrote it, or a later one",
        StoreError::Foreign { .. } => {
            "name another file, or another ?schema=NAME, with --store or in overlock.toml"
        }
        StoreError::NoVectors { .. } => "search with --type keyword",
        _ => CHECK_ADDRESS,
    }
    .into()
}

/// What went wrong, and what made it go wrong.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    told
}
