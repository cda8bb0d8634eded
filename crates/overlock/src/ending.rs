//! How a command ends, with its exit code and messages.
//!
//! 0: done. 1: partial result or nothing found. 2: bad usage or unreadable input. 130 and 143:
//! stopped by Ctrl-C or SIGTERM, as shells report it.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use overlock_budget::{ChatTemplateError, PlanError, TokenizerFileError};
use overlock_json::NoJson;
use overlock_llm::wire::RequestError;
use overlock_llm::{BackendError, DriveError};
use overlock_pipeline::RepositoryError;
use overlock_runs::TracesError;
use overlock_store::{AddressError, RunId, StoreError};

use crate::config::ConfigError;
use crate::signals::Signal;

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    /// The result is partial or negative: still cut, rejected, not identical.
    Partial,
    Stopped(Signal),
}

impl Ending {
    pub(crate) fn done_if(is_done: bool) -> Self {
        if is_done { Self::Done } else { Self::Partial }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Done => Self::from(0),
            Ending::Partial => Self::from(1),
            Ending::Stopped(signal) => Self::from(signal.exit_code()),
        }
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no JSON in {name}: {source}")]
    NoJson { name: String, source: NoJson },
    #[error("no such file: `{}`", path.display())]
    Missing { path: PathBuf },
    #[error("no such folder: `{}`", path.display())]
    NoFolder { path: PathBuf },
    #[error("`{}` is a directory", path.display())]
    Directory { path: PathBuf },
    #[error("{name} is not text: it contains zero bytes and is not UTF-8")]
    NoText { name: String },
    #[error("could not read {name}: {source}")]
    Unreadable { name: String, source: io::Error },
    #[error("could not write the result: {0}")]
    Unwritable(#[from] io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("could not read the tokenizer `{}`: {source}", path.display())]
    TokenizerUnreadable { path: PathBuf, source: io::Error },
    #[error("`{}` is not a usable tokenizer: {}", path.display(), error_chain(source))]
    Tokenizer {
        path: PathBuf,
        source: TokenizerFileError,
    },
    #[error("the chat template in `{}` is not usable: {}", path.display(), error_chain(source))]
    Template {
        path: PathBuf,
        source: ChatTemplateError,
    },
    #[error("{name} is not a chat request: {source}")]
    Request { name: String, source: RequestError },
    #[error("the request does not fit: {source}")]
    Refused {
        source: Box<PlanError>,
        /// Each of these would help.
        help: Vec<String>,
    },
    #[error("could not write `{}`: {source}", path.display())]
    OutputUnwritable { path: PathBuf, source: io::Error },
    #[error("`{}` is not a usable JSON Schema: {reason}", path.display())]
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
    #[error("{}", error_chain(source))]
    Run { source: DriveError },
    #[error(transparent)]
    StoreAddress { source: AddressError },
    #[error("{}", error_chain(source))]
    Store { source: StoreError },
    #[error("{host} returned an unusable vector for the model `{model}`: {reason}")]
    Vectors {
        host: String,
        model: String,
        reason: String,
    },
    #[error("no such run: `{id}`")]
    NoRun { id: String },
    #[error("cannot read the record of run `{id}`: {reason}")]
    DamagedRun { id: String, reason: String },
    #[error("{message}")]
    Usage { message: String, hint: String },
    #[error("a worker thread stopped unexpectedly")]
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
    pub(crate) fn damaged_run(id: &RunId, error: &dyn Error) -> Self {
        Self::DamagedRun {
            id: id.to_string(),
            reason: error.to_string(),
        }
    }

    /// The exit code. A text without JSON and a request that cannot fit are negative results; all
    /// other failures mean unusable input.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::NoJson { .. } | Self::Refused { .. } => Ending::Partial.into(),
            _ => ExitCode::from(2),
        }
    }

    /// What the user can do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::NoJson { .. } => {
                "give a text that contains at least the beginning of a JSON value".into()
            }
            Self::Missing { .. } | Self::Directory { .. } => {
                "give the path of a file, or `-` to read standard input".into()
            }
            Self::NoText { .. } => {
                "give text in UTF-8, Windows-1252, or UTF-16 with a byte order mark".into()
            }
            Self::NoFolder { .. } => "give the path of a folder with source code".into(),
            Self::Unreadable { .. } => "check the permissions of the file".into(),
            Self::Request { .. } => {
                "give an OpenAI chat request: {\"model\": …, \"messages\": [{\"role\": \
                 \"user\", \"content\": …}]}"
                    .into()
            }
            Self::Refused { help, .. } => help.join(", or "),
            Self::OutputUnwritable { .. } => {
                "check that the folder exists and is writable".into()
            }
            Self::Unwritable(_) => "check the free space where the output goes".into(),
            Self::TokenizerUnreadable { .. } => {
                "check the path given with --tokenizer, or in overlock.toml".into()
            }
            Self::Template { .. } => {
                "give the tokenizer_config.json or the chat template of the model".into()
            }
            Self::Tokenizer { .. } => "give a tokenizer.json in the format of Hugging Face".into(),
            Self::Config(error) => error.hint().to_owned(),
            Self::Schema { .. } => "give a file that contains only a JSON Schema".into(),
            Self::Traces { .. } => "check `serve.traces_url` in overlock.toml, and the variables \
                 OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS"
                .into(),
            Self::Upstream {
                source: BackendError::Malformed { .. },
            } => "check that the server given with --upstream has an OpenAI-compatible API and a \
                  model with this name; --embed needs an embedding model"
                .into(),
            Self::Upstream { .. } => {
                "check the address given with --upstream, or in overlock.toml".into()
            }
            Self::Run { .. } => "check the request, and try again".into(),
            Self::Store { source } => store_hint(source),
            Self::Vectors { .. } => {
                "use the model that made the vectors of this store: check --embed MODEL and \
                 --upstream URL"
                    .into()
            }
            Self::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another program uses this port; choose another one with --listen 127.0.0.1:PORT"
                }
                _ => "choose another address with --listen, such as 127.0.0.1:8484",
            }
            .into(),
            Self::StoreAddress { .. } => CHECK_ADDRESS.into(),
            Self::NoRun { .. } => "`overlock inspect` lists the recorded runs".into(),
            Self::DamagedRun { .. } => {
                "it may have been recorded by another version of overlock".into()
            }
            Self::Usage { hint, .. } => hint.clone(),
            Self::WorkerStopped => {
                "this is a bug in overlock; the output so far is correct".into()
            }
        }
    }
}

const CHECK_ADDRESS: &str = "check the address given with --store, or in overlock.toml";

/// What the user can do about a store that cannot be used.
fn store_hint(error: &StoreError) -> String {
    match error {
        StoreError::Superseded { .. } => "`overlock inspect` shows the progress of the run",
        StoreError::Missing { .. } => {
            "check the address given with --store, or in overlock.toml, or run `overlock index DIR` \
             first"
        }
        StoreError::Open { .. } => {
            "check that the address given with --store, or in overlock.toml, is a store, and that \
             this user may open it"
        }
        StoreError::Inaccessible { .. } | StoreError::CreateFolder { .. } | StoreError::CreateFile { .. } => {
            "check the permissions of the file and its folders, or choose another file with --store \
             sqlite://FILE"
        }
        StoreError::IsFolder { path } => {
            let file = path.join("runs.db");
            return format!("choose a file in it, as in --store sqlite://{}", file.display());
        }
        StoreError::Forbidden { .. } => {
            "ask the owner of the database to grant this user USAGE and CREATE on the schema and \
             rights to its tables, or choose another user or ?schema=NAME with --store"
        }
        StoreError::Full { .. } => {
            "the stored data is intact; free some space and repeat the command"
        }
        StoreError::ReadOnly { .. } => "choose another store with --store, or in overlock.toml",
        StoreError::Damaged { .. } => {
            "choose another store with --store; `sqlite3 FILE .recover` may restore its data"
        }
        StoreError::Newer { .. } => "use the version of overlock that wrote it, or a later one",
        StoreError::Foreign { .. } => {
            "choose another file or another ?schema=NAME with --store, or in overlock.toml"
        }
        StoreError::NoVectors { .. } => "search with --type keyword",
        _ => CHECK_ADDRESS,
    }
    .into()
}

/// An error and its causes.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}
