//! The interface to pipeline definitions, which this crate cannot read.

use serde::Serialize;
use serde_json::Value;

use crate::pipelines::Begun;
use crate::state::State;

/// Reads the definitions of recorded pipelines. The pipeline engine implements it, so a program
/// that only shows records does not depend on the engine.
pub trait Definitions: Send + Sync {
    /// The graph of the steps; nothing if the definition cannot be read.
    fn graph(&self, begun: &Begun) -> Option<Graph>;

    /// The messages that a step sends to its model in this state; nothing if it sends none.
    fn messages(&self, begun: &Begun, step_id: &str, state: &State) -> Option<Value>;
}

/// Reads no definitions.
impl Definitions for () {
    fn graph(&self, _begun: &Begun) -> Option<Graph> {
        None
    }

    fn messages(&self, _begun: &Begun, _step_id: &str, _state: &State) -> Option<Value> {
        None
    }
}

/// The graph of a pipeline's steps.
#[derive(Debug, Serialize)]
pub struct Graph {
    /// The first step.
    pub entry: String,
    /// The steps, in the order of the file.
    pub steps: Vec<GraphStep>,
}

/// A step of a pipeline.
#[derive(Debug, Serialize)]
pub struct GraphStep {
    /// Its id.
    pub id: String,
    /// Its action.
    pub action: &'static str,
    /// The steps that can follow.
    pub targets: Vec<GraphTarget>,
}

/// An edge from one step to another.
#[derive(Debug, Serialize)]
pub struct GraphTarget {
    /// The name of the edge.
    pub name: String,
    /// The step it leads to.
    pub step: String,
}
