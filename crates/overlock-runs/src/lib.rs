//! Records of runs: everything that calls models.
//!
//! The gateway, pipelines, `overlock complete` and the Python package write these records, and
//! `overlock inspect`, the JSON API and the page show them. A run is a [`RecordedRun`] with one
//! [`RecordedStep`] for each answer, or a [`PipelineRun`] with one event for each step. Records
//! are read from a store, and the time is passed in. The feature `traces` sends spans to a
//! collector; nothing else makes calls.
//!
//! ```
//! use overlock_runs::{ListedRun, RecordedRun};
//! use overlock_store::{NewRun, RunId};
//!
//! let store = overlock_store::in_memory()?;
//! let id = RunId::new(1_700_000_000_000, 7);
//! let claim = store.begin(&NewRun {
//!     id: &id,
//!     at: 1_700_000_000_000,
//!     model: "gpt-4o",
//!     request: r#"{"model": "gpt-4o", "messages": []}"#,
//!     options: "{}",
//!     conditions: "{}",
//! })?;
//! store.end(&claim, 1_700_000_000_900, r#"{"outcome": "complete"}"#)?;
//!
//! let run = RecordedRun::read(&*store, &id)?;
//! assert_eq!(ListedRun::from(&run.summary).outcome, Some("complete"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Budgets, failures and steps of calls.
mod budget;
mod fault;
mod fit;
mod repair_report;
mod step;
mod tally;

// Pipeline runs.
mod definitions;
mod pipelines;
mod state;
mod trace;

// Writing and reading records.
mod recorder;
mod runs;
mod secrets;
mod strategies;

// Showing records.
mod cost;
mod shown_pipelines;
mod totals;
#[cfg(feature = "traces")]
mod traces;

pub use budget::{AnswerLimit, Basis, CallBudget, PartBudget};
pub use cost::{PartialCost, Pricing, RunCost};
pub use definitions::{Definitions, Graph, GraphStep, GraphTarget};
pub use fault::{FaultKind, UpstreamFault};
pub use fit::{FitReport, FitRequest, Fitted, Least, PartReport, RefusalReport, Refused};
pub use pipelines::{
    ASKED, Answered, Begun, EndedPipeline, PipelineConditions, PipelineOutcome, PipelineRun,
    RunProgress, RunUsage, StepAnswers, StoredAnswer, StoredEvent, WorkTimes,
};
pub use recorder::{Record, Recording};
pub use repair_report::RepairReport;
pub use runs::{
    Conditions, Ending, ListedRun, RecordedRun, RunsError, ShownRun, StoppedAt, Text, Unfit,
    cut_of, to_json, unfinished,
};
pub use secrets::Secrets;
pub use shown_pipelines::{
    Definition, Piece, PipelineRequest, ShownPipelineRun, ShownStep, UnfinishedStep, price, quoted,
    shown_event,
};
pub use state::{GraphNode, Mail, NodeText, Remembered, Role, SearchHit, State, Turn};
pub use step::{Part, RecordedStep};
pub use strategies::{add_stored, stored_result};
pub use tally::{CountedBy, Tally};
pub use totals::{RunFilter, StateError, Totals, TotalsBuilder};
pub use trace::TraceEvent;
#[cfg(feature = "traces")]
pub use traces::{
    Attributes, Exporter, FLUSH_TIMEOUT, Kind, Moment, Span, SpanEnd, TraceContext, TracedRun,
    Traces, TracesError, send_run, shortened,
};
