//! Recorded runs of pipelines, as they are shown.

use overlock_pipeline::{Outcome, ReadError, State, Taken, TraceEvent};
use overlock_store::Run;
use serde::Serialize;

use super::runs::{ListedRun, RunsError};

/// One run of a pipeline.
#[derive(Debug, Serialize)]
pub struct ShownPipelineRun<'a> {
    /// What a list shows of it.
    #[serde(flatten)]
    pub listed: ListedRun<'a>,
    /// The pipeline.
    pub pipeline: ShownPipeline,
    /// The step that failed, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// Why it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the run knew after its last step.
    pub state: State,
    /// What its steps told.
    pub trace: Vec<TraceEvent>,
}

/// A pipeline as it was run.
#[derive(Debug, Serialize)]
pub struct ShownPipeline {
    /// What it is called.
    pub name: String,
    /// The file it was read from.
    pub file: String,
    /// Its text.
    pub text: String,
}

impl<'a> ShownPipelineRun<'a> {
    /// The run, if it is one of a pipeline.
    pub fn of(run: &'a Run) -> Option<Result<Self, RunsError>> {
        if !Taken::is_pipeline(run) {
            return None;
        }
        let taken = match Taken::read(run) {
            Ok(taken) => taken,
            Err(ReadError::Damaged { id, source }) => {
                return Some(Err(RunsError::Damaged { id, source }));
            }
            Err(ReadError::Store(source)) => return Some(Err(RunsError::Store(source))),
            Err(ReadError::Other { .. }) => return None,
        };
        let outcome = run.summary.outcome.as_deref();
        let outcome = outcome.and_then(|outcome| serde_json::from_str(outcome).ok());
        let (step_id, error) = match outcome {
            Some(Outcome::Failed { step_id, error, .. }) => (Some(step_id), Some(error)),
            Some(Outcome::Cancelled { step_id }) => (Some(step_id), None),
            Some(Outcome::Complete) | None => (None, None),
        };
        Some(Ok(Self {
            listed: ListedRun::from(&run.summary),
            pipeline: ShownPipeline {
                name: taken.begun.name,
                file: taken.begun.file,
                text: taken.begun.text,
            },
            step_id,
            error,
            state: taken.state,
            trace: taken.trace,
        }))
    }
}
