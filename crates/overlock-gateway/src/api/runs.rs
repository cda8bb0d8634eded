//! Recorded runs, as they are listed and shown.

use overlock_model::{Continuation, ContinuationOptions, Outcome, Step};
use overlock_store::{RunId, RunSummary, Store, StoreError};
use serde::Serialize;
use serde_json::Value;

/// A run in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListedRun<'a> {
    /// When it was, and with which model.
    #[serde(flatten)]
    pub summary: &'a RunSummary,
    /// How it ended, if it has.
    #[serde(flatten)]
    pub outcome: Option<Outcome>,
}

impl<'a> From<&'a RunSummary> for ListedRun<'a> {
    fn from(summary: &'a RunSummary) -> Self {
        let outcome = summary.outcome.as_deref();
        Self {
            outcome: outcome.and_then(|outcome| serde_json::from_str(outcome).ok()),
            summary,
        }
    }
}

/// A run as it was recorded.
#[derive(Debug)]
pub struct RecordedRun {
    /// When it was, and with which model.
    pub summary: RunSummary,
    /// What was asked.
    pub request: Value,
    /// How it may go on.
    pub options: ContinuationOptions,
    /// What became of each answer.
    pub steps: Vec<Step>,
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is not there.
    #[error("there is no run `{id}`")]
    Missing {
        /// The run.
        id: RunId,
    },
    /// Somebody else wrote it.
    #[error("run `{id}` was recorded in a form that cannot be read")]
    Damaged {
        /// The run.
        id: RunId,
        /// What is wrong.
        source: serde_json::Error,
    },
}

impl RecordedRun {
    /// Reads a run.
    pub fn read(store: &Store, id: &RunId) -> Result<Self, RunsError> {
        let Some(run) = store.run(id)? else {
            return Err(RunsError::Missing { id: id.clone() });
        };
        let damaged = |source| RunsError::Damaged {
            id: id.clone(),
            source,
        };
        let steps = run.steps.iter().map(|step| serde_json::from_str(step));
        Ok(Self {
            summary: run.summary,
            request: serde_json::from_str(&run.request).map_err(damaged)?,
            options: serde_json::from_str(&run.options).map_err(damaged)?,
            steps: steps.collect::<Result<_, _>>().map_err(damaged)?,
        })
    }

    /// The run as far as it has come.
    pub fn resumed(&self) -> Continuation {
        Continuation::resume(self.options.clone(), &self.steps)
    }

    /// The answer to machines.
    pub fn shown(&self) -> ShownRun<'_> {
        let run = self.resumed();
        ShownRun {
            listed: ListedRun::from(&self.summary),
            request: &self.request,
            output_tokens: run.output_tokens(),
            bytes: run.text().len(),
            iterations: self.steps.iter().map(Step::without_text).collect(),
        }
    }
}

/// One run.
#[derive(Debug, Serialize)]
pub struct ShownRun<'a> {
    #[serde(flatten)]
    listed: ListedRun<'a>,
    request: &'a Value,
    output_tokens: u64,
    bytes: usize,
    iterations: Vec<Step>,
}
