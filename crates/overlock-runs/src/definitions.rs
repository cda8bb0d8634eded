//! What records need of pipeline definitions, which this crate cannot read.

use serde::Serialize;
use serde_json::Value;

use crate::pipelines::Begun;
use crate::state::State;

/// Reads the definitions of recorded pipelines. Whatever runs pipelines implements it, so that
/// those who only show records need not be able to.
pub trait Definitions: Send + Sync {
    /// How the steps lead on; nothing if the definition cannot be read.
    fn graph(&self, begun: &Begun) -> Option<Graph>;

    /// The messages that a step sends to its model in this state; nothing if it sends none.
    fn messages(&self, begun: &Begun, step_id: &str, state: &State) -> Option<Value>;
}

/// Definitions are not read.
impl Definitions for () {
    fn graph(&self, _begun: &Begun) -> Option<Graph> {
        None
    }

    fn messages(&self, _begun: &Begun, _step_id: &str, _state: &State) -> Option<Value> {
        None
    }
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
