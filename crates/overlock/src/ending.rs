//! How a command ends, and the exit code that tells it.
//!
//! 0: done. 1: an honest partial or negative result. 2: bad usage or unreadable input.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use overlock_json::NoJson;

/// How a command that could do its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// What was asked for is there, whole.
    Whole,
    /// The answer is honest, but partial or negative: still cut, refused, not identical.
    Partial,
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
    #[error("`{}` is a directory", path.display())]
    Directory { path: PathBuf },
    #[error("could not read {name}: {source}")]
    Unreadable { name: String, source: io::Error },
    #[error("could not write the result: {0}")]
    Unwritable(#[from] io::Error),
    #[error("{message}")]
    Usage { message: String, hint: String },
    #[error("a worker stopped before its lines were answered")]
    WorkerStopped,
}

impl Failure {
    /// The exit code: a text without JSON is a negative result, all else is unusable input.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::NoJson { .. } => Ending::Partial.into(),
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
            Self::Unreadable { .. } => "check that the file may be read, and try again".into(),
            Self::Unwritable(_) => "check that there is room where the output goes".into(),
            Self::Usage { hint, .. } => hint.clone(),
            Self::WorkerStopped => {
                "this is a defect of overlock; the lines before it were answered".into()
            }
        }
    }
}
