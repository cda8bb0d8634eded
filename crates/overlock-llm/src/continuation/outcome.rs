//! How a run ended, and why.

use overlock_json::{Cut, Mismatch, NoJson, Outcome as Join};
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The document is whole.
    Complete,
    /// A valid part of the document is there.
    Partial {
        /// Why there is no more of it.
        reason: Reason,
        /// Where it stops.
        cut: Cut,
    },
    /// Nothing that came was JSON.
    Failed {
        /// Why nobody asked again.
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

    /// Why it is not whole, if it is not.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Complete => None,
            Self::Partial { reason, .. } | Self::Failed { reason } => Some(*reason),
        }
    }
}

/// Why a run ended before its document was whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Too many answers in a row could not be joined.
    #[error("too many answers in a row could not be joined")]
    MergeFailures,
    /// Too many answers in a row brought nothing new.
    #[error("too many answers in a row brought nothing new")]
    NoProgress,
    /// The model only repeated items that were already there.
    #[error("the model only repeated items that were already there")]
    Repeating,
    /// The share that was delivered did not rise any more.
    #[error("the share that was delivered did not rise any more")]
    KpiStalled,
    /// As many answers as were allowed.
    #[error("the model was asked as often as was allowed")]
    IterationLimit,
    /// As many tokens as were allowed.
    #[error("the answers have as many tokens as were allowed")]
    TokenLimit,
    /// The time is up.
    #[error("the time was up")]
    Deadline,
    /// The next call would not fit the model's window.
    #[error("the next call would not fit the model's window")]
    Window,
    /// Somebody called it off.
    #[error("it was cancelled")]
    Cancelled,
    /// The model, or the way to it, failed.
    #[error("the model could not be reached or gave an error")]
    ModelError,
    /// The provider's filter ended the answer.
    #[error("the provider's content filter ended the answer")]
    ContentFilter,
    /// The model declined to answer.
    #[error("the model declined to answer")]
    Refusal,
    /// A document was asked for, and the answer is none.
    #[error("a JSON document was asked for, and the answer is none")]
    NoJson,
    /// The answer was cut off at the limit of its call, and nobody was to ask for the rest.
    #[error("the answer was cut off at the limit of its call, and was not to be continued")]
    NotContinued,
    /// The provider did not say that the answer had ended, or in no word that is known.
    #[error("the provider did not say in a known word that the answer had ended")]
    NoFinish,
    /// The answer is whole, and violates a schema that it has to match.
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
    /// It was empty.
    #[error("the answer was empty")]
    Empty,
    /// It holds no JSON.
    #[error("the answer holds no JSON")]
    NoJson,
    /// It holds JSON, of which nobody can tell whether it is the document or a part of the talk.
    #[error("the answer holds JSON that is not clearly the document")]
    Unclear,
    /// All of it was there already.
    #[error("the answer repeats what was there already")]
    Repeat,
    /// It could be joined in two ways that differ.
    #[error("the answer could be joined in two ways")]
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
    /// Whoever asked went away while it came, and nobody joined it.
    #[error("whoever asked went away while it came")]
    Cancelled,
    /// There is none: the upstream will have none of this way to ask.
    #[error("the server does not take this way of asking: {message}")]
    Refused {
        /// What it says.
        message: String,
    },
    /// It does not correct the document, which violates its schema.
    #[error("the document was not corrected{}{message}", if message.is_empty() { "" } else { ": " })]
    Uncorrected {
        /// Why not; empty where only the story is told.
        message: String,
    },
    /// It names nothing that can be counted in the document.
    #[error("nothing will be counted: {message}")]
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

    /// The same without words of the model or of a schema: a violation names members of both.
    pub(crate) fn without_text(&self) -> Self {
        match self {
            Self::Uncorrected { .. } => Self::Uncorrected {
                message: String::new(),
            },
            failure => failure.clone(),
        }
    }

    /// Whether the answer had nothing to say, and not something that did not belong here.
    pub(crate) fn brought_nothing(&self) -> bool {
        matches!(self, Self::Empty | Self::Repeat)
    }

    /// What a join failed with; nothing if it did not.
    pub(crate) fn of(join: &Join) -> Option<Self> {
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
