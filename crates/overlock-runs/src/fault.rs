//! Why an upstream call failed.

use overlock_llm::{BackendError, Phase, Retried};
use serde::{Deserialize, Serialize};

use crate::secrets::Secrets;

/// Why an upstream call failed, with the upstream's message if it sent one. It contains no keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamFault {
    /// The status of the response, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What went wrong, if there was no status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FaultKind>,
    /// The upstream's message, or the connection error.
    pub message: String,
    /// The earlier attempts that failed too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<Retried>,
}

/// How a call failed that returned no error status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The upstream could not be reached.
    Unanswered,
    /// The response broke off.
    Broken,
    /// The response timed out.
    Late,
    /// The response cannot be used.
    Unusable,
}

impl FaultKind {
    /// The kind of failure of a call; nothing if it returned a status.
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
    /// Describes a failed call whose error contains no keys.
    pub fn of(error: &BackendError, retried: Option<&Retried>) -> Self {
        Self::without(&Secrets::default(), error, retried)
    }

    /// Describes a failed call without these keys.
    pub fn without(secrets: &Secrets, error: &BackendError, retried: Option<&Retried>) -> Self {
        let (status, message) = match error {
            BackendError::Status {
                status, message, ..
            } => (Some(*status), message.clone()),
            error => (None, error.to_string()),
        };
        Self {
            status,
            kind: FaultKind::of(error),
            message: secrets.scrub(&message),
            retried: retried.map(|it| Retried {
                error: secrets.scrub(&it.error),
                ..it.clone()
            }),
        }
    }
}
