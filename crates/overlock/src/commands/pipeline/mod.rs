//! The commands for pipelines.

mod check;
mod file;
mod graph;
mod measures;
mod run;
mod schema;

pub(super) use check::Check;
pub(super) use graph::Graph;
pub(super) use run::{Run, StepSummary};
pub(super) use schema::Schema;
