//! Reads the pipelines of recorded runs for showing them.

use overlock_runs::{Begun, Definitions, Graph, GraphStep, GraphTarget, State};
use serde_json::Value;

use crate::actions::Action;
use crate::file::{Measure, Measures, Pipeline, ReadOptions, read};

/// Reads the definitions stored with runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedDefinitions;

impl Definitions for RecordedDefinitions {
    fn graph(&self, begun: &Begun) -> Option<Graph> {
        let pipeline = pipeline(begun)?;
        let steps = pipeline.steps.iter().map(|step| GraphStep {
            id: step.id.clone(),
            action: step.action.name(),
            targets: step
                .transitions()
                .into_iter()
                .map(|(name, step)| GraphTarget {
                    name,
                    step: step.to_owned(),
                })
                .collect(),
        });
        Some(Graph {
            steps: steps.collect(),
            entry: pipeline.settings.entry_step_id,
        })
    }

    fn messages(&self, begun: &Begun, step_id: &str, state: &State) -> Option<Value> {
        let pipeline = pipeline(begun)?;
        let Action::CallModel(call) = &pipeline.step(step_id)?.action else {
            return None;
        };
        Some(call.messages(&begun.prompts, state).ok()?.list)
    }
}

/// The pipeline of a run. Prompts and windows are not checked again.
fn pipeline(begun: &Begun) -> Option<Pipeline> {
    let options = ReadOptions {
        settings: &begun.settings,
        model: Some(""),
        prompt: &|_, key| Ok(begun.prompts.get(key).cloned().unwrap_or_default()),
        measures: &Unmeasured,
    };
    read(&begun.file, &begun.text, &options).pipeline
}

/// Measures for showing a pipeline, without any models.
struct Unmeasured;

impl Measures for Unmeasured {
    fn measure(&self, _model: &str, _text: &str) -> Option<Measure> {
        None
    }

    fn is_counter(&self, _name: &str) -> bool {
        true
    }
}
