//! Brings spans of runs to a collector of traces.
//!
//! A run of a pipeline is told here; the gateway tells of its requests with the same spans.

mod context;
mod export;
mod pipelines;
mod span;

pub use context::TraceContext;
pub use export::{Exporter, LAST_WORDS, SpanEnd, Traces, TracesError};
pub use pipelines::{TracedRun, send_run};
pub use span::{Attributes, Kind, Moment, Span, shortened};
