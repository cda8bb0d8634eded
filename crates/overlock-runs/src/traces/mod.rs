//! Sends spans of runs to a trace collector.
//!
//! Spans of pipelines are made here; the gateway makes those of its requests.

mod context;
mod export;
mod pipelines;
mod span;

pub use context::TraceContext;
pub use export::{Exporter, FLUSH_TIMEOUT, SpanEnd, Traces, TracesError};
pub use pipelines::{TracedRun, send_run};
pub use span::{Attributes, Kind, Moment, Span, shortened};
