//! Recorded runs of pipelines, as they are shown.

use overlock_pipeline::{Outcome, Pipeline, ReadError, State, Taken, TraceEvent, used};
use overlock_store::Run;
use serde::Serialize;
use serde_json::{Map, Value};

use super::runs::{ListedRun, RunsError, Text};

/// One run of a pipeline.
#[derive(Debug, Serialize)]
pub struct ShownPipelineRun<'a> {
    /// What a list shows of it.
    #[serde(flatten)]
    pub listed: ListedRun<'a>,
    /// What kind of run it is: `pipeline`.
    pub kind: &'static str,
    /// The file it was read from, as it was then.
    pub definition: Definition,
    /// What the user asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// How its steps lead on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<Graph>,
    /// The step that failed, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// Why it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the run knew after its last step; left out with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// What its steps told.
    pub trace: Vec<TraceEvent>,
}

/// A pipeline as it was run.
#[derive(Debug, Serialize)]
pub struct Definition {
    /// The file it was read from.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// How the steps of a pipeline lead on.
#[derive(Debug, Serialize)]
pub struct Graph {
    /// The step a run begins with.
    pub entry: String,
    /// The steps, in the order of the file.
    pub steps: Vec<GraphStep>,
}

/// A step of a pipeline.
#[derive(Debug, Serialize)]
pub struct GraphStep {
    /// What it is called.
    pub id: String,
    /// What it does.
    pub action: &'static str,
    /// Where it may lead.
    pub targets: Vec<GraphTarget>,
}

/// A way from one step to another.
#[derive(Debug, Serialize)]
pub struct GraphTarget {
    /// What the way is called.
    pub name: String,
    /// The step it leads to.
    pub step: String,
}

impl Graph {
    fn of(pipeline: &Pipeline) -> Self {
        let steps = pipeline.steps.iter().map(|step| GraphStep {
            id: step.id.clone(),
            action: step.action.name(),
            targets: step
                .ways()
                .into_iter()
                .map(|(name, step)| GraphTarget {
                    name,
                    step: step.to_owned(),
                })
                .collect(),
        });
        Self {
            entry: pipeline.settings.entry_step_id.clone(),
            steps: steps.collect(),
        }
    }
}

/// What of an event is in the words of a user or of a model.
const TEXTS: [&str; 2] = ["query", "said"];

/// What of the state a reader of the trace wants to see change.
const SHOWN_CHANGE: &str = "context_blocks";

impl<'a> ShownPipelineRun<'a> {
    /// The run, if it is one of a pipeline.
    pub fn of(run: &'a Run, text: Text) -> Option<Result<Self, RunsError>> {
        Taken::pipeline_name(&run.summary.options)?;
        let taken = match Taken::read(run) {
            Ok(taken) => taken,
            Err(ReadError::Damaged { id, source }) => {
                return Some(Err(RunsError::Damaged { id, source }));
            }
            Err(ReadError::Store(source)) => return Some(Err(RunsError::Store(source))),
            Err(ReadError::Other { .. } | ReadError::Busy { .. }) => return None,
        };
        let outcome = run.summary.outcome.as_deref();
        let outcome = outcome.and_then(|outcome| serde_json::from_str(outcome).ok());
        let (step_id, error) = match outcome {
            Some(Outcome::Failed { step_id, error, .. }) => (Some(step_id), Some(error)),
            Some(Outcome::Cancelled { step_id }) => (Some(step_id), None),
            Some(Outcome::Complete) | None => (None, None),
        };
        let graph = taken.pipeline().as_ref().map(Graph::of);
        let is_shown = text == Text::Shown;
        let used = used(&taken.trace);
        let trace = taken.trace.into_iter().zip(taken.changes);
        let trace = trace.map(|(event, changed)| shown_event(event, changed, text));
        let trace = trace.collect();
        Some(Ok(Self {
            listed: ListedRun {
                used: Some(used),
                ..ListedRun::from(&run.summary)
            },
            kind: "pipeline",
            question: is_shown.then(|| taken.state.user_question.clone()),
            graph,
            definition: Definition {
                file: taken.begun.file,
                text: taken.begun.text,
            },
            step_id,
            error,
            state: is_shown.then_some(taken.state),
            trace,
        }))
    }
}

/// What a step told, with what a reader wants to see change, or without any text.
pub(crate) fn shown_event(
    mut event: TraceEvent,
    mut changed: Map<String, Value>,
    text: Text,
) -> TraceEvent {
    match text {
        Text::Shown => {
            changed.retain(|field, _| field == SHOWN_CHANGE);
            if !changed.is_empty() {
                event.insert("changed".to_owned(), Value::Object(changed));
            }
        }
        Text::LeftOut => event.retain(|key, _| !TEXTS.contains(&key.as_str())),
    }
    event
}
