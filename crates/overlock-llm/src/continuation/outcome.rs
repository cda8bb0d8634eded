//! How a run ended, and why.

use overlock_json::{Cut, Mismatch, NoJson, Outcome as Join};
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The document is complete.
    Complete,
    /// The document is incomplete, but its valid part is usable.
    Partial {
        /// Why the run stopped.
        reason: Reason,
        /// Where the document stops.
        cut: Cut,
    },
    /// No answer contained JSON.
    Failed {
        /// Why the run stopped.
        reason: Reason,
    },
}

impl Outcome {
    /// The name in messages and in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial { .. } => "partial",
            Self::Failed { .. } => "failed",
        }
    }

    /// Why the document is incomplete, if it is.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Complete => None,
            Self::Partial { reason, .. } | Self::Failed { reason } => Some(*reason),
        }
    }
}

/// Why a run ended before its document was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Too many answers in a row could not be joined.
    #[error("too many consecutive answers could not be joined")]
    MergeFailures,
    /// Too many answers in a row contained nothing new.
    #[error("too many consecutive answers contained nothing new")]
    NoProgress,
    /// The model kept repeating the same items.
    #[error("the model kept repeating the same items")]
    Repeating,
    /// Too many answers in a row brought no progress, or a counted value fell.
    #[error("progress stalled")]
    KpiStalled,
    /// The limit of calls is reached.
    #[error("the limit of calls was reached")]
    IterationLimit,
    /// The limit of output tokens is reached.
    #[error("the limit of output tokens was reached")]
    TokenLimit,
    /// The deadline has passed.
    #[error("the deadline passed")]
    Deadline,
    /// The next call would not fit the model's context window.
    #[error("the next call does not fit the model's context window")]
    Window,
    /// The user or the client cancelled it.
    #[error("it was cancelled")]
    Cancelled,
    /// The upstream could not be reached or returned an error.
    #[error("the upstream could not be reached or returned an error")]
    ModelError,
    /// The provider's filter ended the answer.
    #[error("the provider's content filter ended the answer")]
    ContentFilter,
    /// The model declined to answer.
    #[error("the model declined to answer")]
    Refusal,
    /// JSON was requested, and the answer contains none.
    #[error("the request asked for JSON, but the answer contains none")]
    NoJson,
    /// The answer was cut off at the limit of its call, and continuation is off for it.
    #[error("the answer was cut off at the limit of its call and was not to be continued")]
    NotContinued,
    /// The provider sent no finish reason, or an unknown one.
    #[error("the provider sent no known finish reason")]
    NoFinish,
    /// The answer is complete, but violates the schema of the request.
    #[error("the answer violates the schema of the request")]
    SchemaViolation,
}

impl Reason {
    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::MergeFailures => "merge-failures",
            Self::NoProgress => "no-progress",
            Self::Repeating => "repeating",
            Self::KpiStalled => "kpi-stalled",
            Self::IterationLimit => "iteration-limit",
            Self::TokenLimit => "token-limit",
            Self::Deadline => "deadline",
            Self::Window => "window",
            Self::Cancelled => "cancelled",
            Self::ModelError => "model-error",
            Self::ContentFilter => "content-filter",
            Self::Refusal => "refusal",
            Self::NoJson => "no-json",
            Self::NotContinued => "not-continued",
            Self::NoFinish => "no-finish",
            Self::SchemaViolation => "schema-violation",
        }
    }
}

/// Why an answer changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "failure", rename_all = "kebab-case")]
pub enum Failure {
    /// The answer is empty.
    #[error("the answer was empty")]
    Empty,
    /// The answer contains no JSON.
    #[error("the answer contains no JSON")]
    NoJson,
    /// It contains JSON that may be the document or part of the prose.
    #[error("the answer contains JSON that is not clearly the document")]
    Unclear,
    /// It contains nothing new.
    #[error("the answer only repeats the document")]
    Repeat,
    /// It could be joined in two different places.
    #[error("the answer could be joined in two places")]
    Ambiguous,
    /// It could not be joined.
    #[error("{message}")]
    NoMatch {
        /// Why not.
        message: String,
    },
    /// It contains a marker of the prompt.
    #[error("the answer contains a marker of the prompt")]
    MarkerInAnswer,
    /// The model declined to answer.
    #[error("the model declined to answer")]
    Declined,
    /// The client disconnected during the answer, which was not joined.
    #[error("the client disconnected during the answer")]
    Cancelled,
    /// There is no answer, because the upstream rejects this strategy.
    #[error("the server rejected this strategy: {message}")]
    Refused {
        /// The upstream's message.
        message: String,
    },
    /// It does not correct the document.
    #[error("the document was not corrected{}{message}", if message.is_empty() { "" } else { ": " })]
    Uncorrected {
        /// Why not; empty in reports without text.
        message: String,
    },
    /// It proposes no KPI that can be counted in the document.
    #[error("no progress will be measured: {message}")]
    NoKpis {
        /// Why not.
        message: String,
    },
}

impl Failure {
    /// The name in messages and in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NoJson => "no-json",
            Self::Unclear => "unclear",
            Self::Repeat => "repeat",
            Self::Ambiguous => "ambiguous",
            Self::NoMatch { .. } => "no-match",
            Self::MarkerInAnswer => "marker-in-answer",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::Refused { .. } => "refused",
            Self::Uncorrected { .. } => "uncorrected",
            Self::NoKpis { .. } => "no-kpis",
        }
    }

    /// The failure without text of the model or a schema: a violation names members of both.
    pub(crate) fn without_text(&self) -> Self {
        match self {
            Self::Uncorrected { .. } => Self::Uncorrected {
                message: String::new(),
            },
            failure => failure.clone(),
        }
    }

    /// Whether the answer contained nothing new, rather than something that does not fit.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Empty | Self::Repeat)
    }

    /// The failure of a join, if it failed.
    pub(crate) fn from_join(join: &Join) -> Option<Self> {
        match join {
            Join::Repeat => Some(Self::Repeat),
            Join::Ambiguous { .. } => Some(Self::Ambiguous),
            Join::NoMatch(mismatch) => Some(Self::from(mismatch)),
            _ => None,
        }
    }
}

impl From<&Mismatch> for Failure {
    fn from(mismatch: &Mismatch) -> Self {
        Self::NoMatch {
            message: mismatch.to_string(),
        }
    }
}

impl From<NoJson> for Failure {
    fn from(reason: NoJson) -> Self {
        match reason {
            NoJson::Empty => Self::Empty,
            NoJson::Absent => Self::NoJson,
        }
    }
}
