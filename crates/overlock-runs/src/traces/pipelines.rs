//! Spans of a pipeline run.
//!
//! The run is the parent span and each step a child, with its decision and token counts. Spans
//! contain nothing from prompts, answers or other texts.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::context::TraceContext;
use super::export::{Exporter, FLUSH_TIMEOUT, Traces, TracesError};
use super::span::{Attributes, Kind, Moment, Span};
use crate::pipelines::PipelineOutcome;
use crate::trace::TraceEvent;

/// A finished pipeline run.
#[derive(Clone, Copy, Debug)]
pub struct TracedRun<'a> {
    /// Its id.
    pub run: &'a str,
    /// The name of the pipeline.
    pub pipeline: &'a str,
    /// How it ended.
    pub outcome: &'a PipelineOutcome,
    /// The events of its steps.
    pub events: &'a [TraceEvent],
}

/// Sends the spans of a run to a collector, and gives up after a timeout.
pub async fn send_run(traces: &Traces, run: &TracedRun<'_>) -> Result<(), TracesError> {
    let exporter = Exporter::new(traces, |_, _| {})?;
    run.spans().into_iter().for_each(|span| exporter.take(span));
    exporter.close();
    let _ = timeout(FLUSH_TIMEOUT, exporter.run()).await;
    Ok(())
}

impl TracedRun<'_> {
    fn spans(&self) -> Vec<Span> {
        let parent = TraceContext::new_trace();
        let began = |event: &TraceEvent| number(event, "at").unwrap_or_default();
        let first = self.events.iter().map(began).min().unwrap_or_default();
        let ends = self.events.iter().map(|event| began(event) + took(event));
        let last = ends.max().unwrap_or(first);
        let mut attributes = Attributes::default();
        attributes.text("overlock.run", self.run);
        attributes.text("overlock.pipeline", self.pipeline);
        attributes.text("overlock.outcome", self.outcome.name());
        attributes.number("overlock.steps", self.events.len() as u64);
        let has_failed = matches!(self.outcome, PipelineOutcome::Failed { .. });
        let root = Span {
            context: parent,
            parent: None,
            name: format!("run {}", self.pipeline),
            kind: Kind::Internal,
            begun: Moment::at_milliseconds(first),
            took: Duration::from_millis(last - first),
            attributes,
            has_failed,
        };
        let steps = self.events.iter().map(|event| Span {
            context: parent.child(),
            parent: Some(parent.span),
            name: format!("{} {}", text(event, "action"), text(event, "step_id")),
            kind: Kind::Internal,
            begun: Moment::at_milliseconds(began(event)),
            took: Duration::from_millis(took(event)),
            attributes: step_attributes(event),
            has_failed: event.contains_key("error"),
        });
        std::iter::once(root).chain(steps).collect()
    }
}

fn step_attributes(event: &TraceEvent) -> Attributes {
    let mut attributes = Attributes::default();
    attributes.text("overlock.step", text(event, "step_id"));
    attributes.text("overlock.action", text(event, "action"));
    for (key, name) in [("decision", "overlock.decision"), ("next", "overlock.next")] {
        attributes.maybe(name, event.get(key).and_then(Value::as_str));
    }
    for (key, name) in [
        ("max_context_tokens", "overlock.max_context_tokens"),
        ("current_context_tokens", "overlock.current_context_tokens"),
        ("context_tokens", "overlock.context_tokens"),
        ("calls", "overlock.calls"),
        ("output_tokens", "gen_ai.usage.output_tokens"),
    ] {
        if let Some(number) = number(event, key) {
            attributes.number(name, number);
        }
    }
    if text(event, "action") == "call_model" {
        attributes.text("gen_ai.operation.name", "chat");
        attributes.maybe(
            "gen_ai.request.model",
            event.get("model").and_then(Value::as_str),
        );
        // A call without an answer has no usage.
        if let Some(input) = number(event, "input_tokens") {
            attributes.number("gen_ai.usage.input_tokens", input);
        }
    }
    if event.contains_key("error") {
        attributes.text("error.type", "step_failed");
    }
    attributes
}

fn text<'a>(event: &'a TraceEvent, key: &str) -> &'a str {
    event.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(event: &TraceEvent, key: &str) -> Option<u64> {
    event.get(key).and_then(Value::as_u64)
}

fn took(event: &TraceEvent) -> u64 {
    number(event, "took_ms").unwrap_or_default()
}
