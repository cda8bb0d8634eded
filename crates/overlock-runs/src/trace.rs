//! Trace events of pipelines.

use serde_json::{Map, Value};

/// One event of a trace: what a step did, and why.
pub type TraceEvent = Map<String, Value>;
