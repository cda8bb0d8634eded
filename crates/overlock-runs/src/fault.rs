//! Why did an upstream not answer?

use overlock_llm::{BackendError, Phase, Retried};
use serde::{Deserialize, Serialize};

use crate::secrets::Secrets;

/// Why an upstream did not answer, in its own words as far as it had any. No key is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamFault {
    /// The status it answered with, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What became of its answer, if it gave no status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FaultKind>,
    /// What it said, or what happened on the way to it.
    pub message: String,
    /// The calls before that it did not answer either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<Retried>,
}

/// What became of an answer that nobody got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// There was none: nobody is there, or nobody who answers.
    Unanswered,
    /// It broke off.
    Broken,
    /// It was not there in time.
    Late,
    /// It is none that can be used.
    Unusable,
}

impl FaultKind {
    /// What became of the answer to a call that failed; nothing if it has a status.
    pub fn of(error: &BackendError) -> Option<Self> {
        Some(match error {
            BackendError::Status { .. } => return None,
            BackendError::Address { .. }
            | BackendError::Unreachable { .. }
            | BackendError::Certificate { .. }
            | BackendError::TimedOut {
                phase: Phase::Connect,
                ..
            } => Self::Unanswered,
            BackendError::TimedOut { .. } | BackendError::Deadline { .. } => Self::Late,
            BackendError::Broken { .. } => Self::Broken,
            BackendError::Unsupported { .. }
            | BackendError::Malformed { .. }
            | BackendError::TooLong { .. } => Self::Unusable,
        })
    }
}

impl UpstreamFault {
    /// What stopped a call, and those before, from whoever hides the key they showed.
    pub fn of(error: &BackendError, retried: Option<&Retried>) -> Self {
        Self::without(&Secrets::default(), error, retried)
    }

    /// What stopped a call, and those before, without these.
    pub fn without(secrets: &Secrets, error: &BackendError, retried: Option<&Retried>) -> Self {
        let (status, said) = match error {
            BackendError::Status {
                status, message, ..
            } => (Some(*status), message.clone()),
            error => (None, error.to_string()),
        };
        Self {
            status,
            kind: FaultKind::of(error),
            message: secrets.scrub(&said),
            retried: retried.map(|it| Retried {
                error: secrets.scrub(&it.error),
                ..it.clone()
            }),
        }
    }
}
