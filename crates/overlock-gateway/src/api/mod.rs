//! One object in, one object out: what the command line and the JSON API answer alike.

// What is asked.
mod object;

// Cut JSON.
mod close;
mod cut;
mod render;
mod repair;
mod shortened;
mod stitch;
mod totals;

// The context budget.
mod fit;

// Recorded runs.
mod cost;
mod pipelines;
mod runs;
mod strategies;

pub use close::{ClosedText, close_object, close_text};
pub use cost::{PartialCost, Pricing, RunCost};
pub use cut::{CutContexts, cut_contexts, cut_object};
pub use fit::{Asked, AskedPart, Fitted, FittedText, Least, Refused, RefusedText};
pub use object::{Object, Refusal};
pub use pipelines::{
    Definition, Graph, GraphStep, GraphTarget, Piece, PipelineRequest, ShownPipelineRun, ShownStep,
    Unfinished, quoted,
};
pub(crate) use pipelines::{price, shown_event};
pub use render::{LEAST_LIMIT, RenderedText, render_object};
pub use repair::{RepairedText, repair_object, repair_text};
pub use runs::{
    AnswerLimit, Basis, CallBudget, Conditions, CountedBy, Ending, FaultKind, ListedRun, Mended,
    Part, PartBudget, RecordedRun, RecordedStep, RunsError, ShownRun, StoppedAt, Tally, Text,
    Unfit, UpstreamFault,
};
pub(crate) use runs::{cut_of, unfinished};
pub(crate) use shortened::shortened;
pub use stitch::{StitchedSeam, StitchedText, stitch_object, stitched};
pub use strategies::{add_stored, stored_result};
pub use totals::{Adding, StateError, Totals, Wanted};
