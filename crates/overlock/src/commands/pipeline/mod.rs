//! The commands for pipelines: what a file says, whether it is right, and running it.

mod check;
mod file;
mod graph;
mod measures;
mod run;
mod schema;

pub(super) use check::Check;
pub(super) use graph::Graph;
pub(super) use run::{Run, Story};
pub(super) use schema::Schema;
