//! What came of one request, for those who count, those who read logs, and those who follow traces.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::HeaderMap;
use overlock_llm::Usage;
use serde_json::Value;

use crate::totals::{RequestTotals, UsageTotals};
use crate::trace::{Called, RequestTrace};

/// Is written while a request is worked on, and read when it is done.
#[derive(Default)]
pub(crate) struct RequestStats {
    noted: Mutex<RequestTotals>,
    trace: Option<RequestTrace>,
}

/// The longest name of a model that is told.
const LONGEST_NAME: usize = 100;

/// A name as a client wrote it, short and of plain characters only.
fn harmless(name: &str) -> String {
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
    /// The stats of a request that may be traced.
    pub(crate) fn new(trace: Option<RequestTrace>) -> Self {
        Self {
            noted: Mutex::default(),
            trace,
        }
    }

    /// A model was asked for, of the upstream at this address.
    pub(crate) fn asked(&self, model: &str, max_tokens: Option<u64>, base: Option<&str>) {
        self.noted().model = Some(harmless(model));
        if let Some(trace) = &self.trace {
            trace.asked(model, max_tokens, base);
        }
    }

    /// The upstream is about to be called, for the rest of an answer if there is a way to ask.
    pub(crate) fn calling(&self, way: Option<&'static str>) {
        if let Some(trace) = &self.trace {
            trace.calling(way);
        }
    }

    /// The headers of that call, which tell the upstream what it is part of.
    pub(crate) fn place_in_trace(&self, headers: &mut HeaderMap) {
        if let Some(trace) = &self.trace {
            trace.tell(headers);
        }
    }

    /// That call has ended.
    pub(crate) fn called(&self, how: impl FnOnce() -> Called) {
        if let Some(trace) = &self.trace {
            trace.called(how());
        }
    }

    /// An answer was given, as a completion with the usage of all its calls: how it ended, and the
    /// calls after the first.
    pub(crate) fn answered(&self, answer: &Value, outcome: &'static str, continued: UsageTotals) {
        let usage = Usage::of_completion(answer).unwrap_or_default();
        self.ended(usage, outcome, continued);
        if let Some(trace) = &self.trace {
            trace.answered(answer);
        }
    }

    /// What an answer took, how it ended, and the calls after the first.
    pub(crate) fn ended(&self, usage: Usage, outcome: &'static str, continued: UsageTotals) {
        let mut noted = self.noted();
        noted.usage = usage;
        noted.continued = continued;
        noted.outcome = Some(outcome);
    }

    /// An answer was given that had been given before, and took nothing.
    pub(crate) fn replayed(&self, answer: &Value, outcome: &'static str) {
        self.noted().outcome = Some(outcome);
        if let Some(trace) = &self.trace {
            trace.answered(answer);
        }
    }

    /// How a run ended that has no whole answer.
    pub(crate) fn unfinished(&self, outcome: &'static str) {
        self.noted().outcome = Some(outcome);
    }

    /// An answer that was begun could not be ended: its run has failed, unless a part of it is
    /// recorded.
    pub(crate) fn failed(&self, error: &'static str) {
        let mut noted = self.noted();
        noted.outcome.get_or_insert("failed");
        noted.error = Some(error);
        drop(noted);
        if let Some(trace) = &self.trace {
            trace.failed(error);
        }
    }

    /// What is noted so far, which is told once.
    pub(crate) fn take(&self) -> RequestTotals {
        mem::take(&mut *self.noted())
    }

    pub(crate) fn trace(&self) -> Option<&RequestTrace> {
        self.trace.as_ref()
    }

    fn noted(&self) -> MutexGuard<'_, RequestTotals> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
