//! Pipelines: YAML files of steps that are checked before they run and keep within their context.
//!
//! [`read`] reports all problems of a file with their positions. [`run`] executes the steps over a
//! [`State`](overlock_runs::State) and records it after each step, so that an interrupted run can
//! be resumed. Prompts are counted exactly as they are sent.

// Reading files.
mod actions;
mod file;
mod settings;
mod source;
mod suggest;

// Building prompts.
mod context;

// Running.
mod definitions;
mod engine;
mod record;
mod repository;

#[cfg(test)]
mod testing;

pub use actions::{
    Action, ActionError, CallModel, CompactCode, CompactLevel, EdgeType, ExpandDependencyTree,
    FetchNodeTexts, FilterLanguage, Filters, Finalize, LoadHistory, LoadMemories, LoopGuard,
    ManageContextBudget, Matching, Policy, Prioritization, RepeatQueryGuard, ResponseKind, Route,
    Rule, RuleLanguage, SearchNodes, SearchType, Send, SetRule, SetVariables, Transform, UserPart,
    WalkDirection,
};
pub use context::joined;
pub use definitions::RecordedDefinitions;
pub use engine::{Embed, Environment, ModelClient, Models, Watch, run};
pub use file::{
    Checked, Measure, Measures, Pipeline, Problem, Prompts, ReadOptions, Severity, Step, drawing,
    graph, read, schema,
};
pub use repository::{RepositoryError, check_repository};
pub use settings::{InboxRule, Settings};
pub use source::UnknownSource;
