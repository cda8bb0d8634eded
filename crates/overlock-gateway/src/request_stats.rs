//! The statistics of one request, for metrics, logs and traces.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::HeaderMap;
use overlock_llm::Usage;
use overlock_llm::wire::AnswerSummary;

use crate::totals::{RequestTotals, UsageTotals};
use crate::trace::{Called, RequestTrace};

/// Collects statistics during a request; they are read at its end.
#[derive(Default)]
pub(crate) struct RequestStats {
    totals: Mutex<RequestTotals>,
    trace: Option<RequestTrace>,
}

/// The longest model name in statistics.
const LONGEST_NAME: usize = 100;

/// A client's model name, shortened and reduced to printable ASCII.
fn sanitized(name: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_graphic() {
            character
        } else {
            '?'
        }
    };
    name.chars().take(LONGEST_NAME).map(plain).collect()
}

impl RequestStats {
    /// The statistics of a request that may be traced.
    pub(crate) fn new(trace: Option<RequestTrace>) -> Self {
        Self {
            totals: Mutex::default(),
            trace,
        }
    }

    /// Sets the requested model and the upstream.
    pub(crate) fn asked(&self, model: &str, max_tokens: Option<u64>, base: Option<&str>) {
        self.totals().model = Some(sanitized(model));
        if let Some(trace) = &self.trace {
            trace.set_request(model, max_tokens, base);
        }
    }

    /// An upstream call begins; a continuation has a strategy.
    pub(crate) fn calling(&self, strategy: Option<&'static str>) {
        if let Some(trace) = &self.trace {
            trace.calling(strategy);
        }
    }

    /// Adds the trace context to the headers of that call.
    pub(crate) fn place_in_trace(&self, headers: &mut HeaderMap) {
        if let Some(trace) = &self.trace {
            trace.add_to(headers);
        }
    }

    /// That call ends.
    pub(crate) fn called(&self, how: impl FnOnce() -> Called) {
        if let Some(trace) = &self.trace {
            trace.called(how());
        }
    }

    /// Sets the answer, its outcome, the usage of all its calls, and that of the calls after the
    /// first.
    pub(crate) fn answered(
        &self,
        answer: &AnswerSummary<'_>,
        outcome: &'static str,
        continued: UsageTotals,
    ) {
        self.ended(answer.usage.unwrap_or_default(), outcome, continued);
        if let Some(trace) = &self.trace {
            trace.answered(answer);
        }
    }

    /// Sets the usage and the outcome of an answer, and the usage of the calls after the first.
    pub(crate) fn ended(&self, usage: Usage, outcome: &'static str, continued: UsageTotals) {
        let mut totals = self.totals();
        totals.usage = usage;
        totals.continued = continued;
        totals.outcome = Some(outcome);
    }

    /// Sets a replayed answer, which has no usage.
    pub(crate) fn replayed(&self, answer: &AnswerSummary<'_>, outcome: &'static str) {
        self.totals().outcome = Some(outcome);
        if let Some(trace) = &self.trace {
            trace.answered(answer);
        }
    }

    /// Sets the outcome of a run without a complete answer.
    pub(crate) fn unfinished(&self, outcome: &'static str) {
        self.totals().outcome = Some(outcome);
    }

    /// Sets the error of an answer that had begun. Its run has failed, unless an outcome is set.
    pub(crate) fn failed(&self, error: &'static str) {
        let mut totals = self.totals();
        totals.outcome.get_or_insert("failed");
        totals.error = Some(error);
        drop(totals);
        if let Some(trace) = &self.trace {
            trace.failed(error);
        }
    }

    /// Takes the statistics so far.
    pub(crate) fn take(&self) -> RequestTotals {
        mem::take(&mut *self.totals())
    }

    pub(crate) fn trace(&self) -> Option<&RequestTrace> {
        self.trace.as_ref()
    }

    fn totals(&self) -> MutexGuard<'_, RequestTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
