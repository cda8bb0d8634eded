//! Pipelines: a YAML file of steps, checked before it runs, that never overflows its context.
//!
//! [`read`] finds everything that is wrong with a file at once, and says where. [`run`] does one
//! step after the other over one [`State`](overlock_runs::State), which is recorded after each, so that a run that died
//! is taken up where it was. What goes into a prompt is counted as it is sent.

// What a file says.
mod actions;
mod file;
mod settings;
mod source;
mod suggest;

// What goes into prompts.
mod context;

// How it goes.
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
pub use engine::{Embed, Models, Speaker, Watch, World, run};
pub use file::{
    Checked, Measure, Measures, Pipeline, Problem, Prompts, ReadOptions, Severity, Step, drawing,
    graph, read, schema,
};
pub use repository::{RepositoryError, check_repository};
pub use settings::{InboxRule, Settings};
pub use source::UnknownSource;
