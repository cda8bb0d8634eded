//! What came of one request, for those who count and those who read logs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Is written while a request is worked on, and read when it is done.
#[derive(Debug, Default)]
pub(crate) struct Account {
    noted: Mutex<Noted>,
}

/// Nothing in it comes from a prompt, an answer or a header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) continuations: u32,
    pub(crate) outcome: Option<&'static str>,
}

impl Account {
    /// An answer was given: what all its calls took, as `OpenAI` tells it, how it ended, and how
    /// often it was continued.
    pub(crate) fn answered(&self, usage: &Value, outcome: &'static str, continuations: u32) {
        let tokens = |name| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
        let mut noted = self.noted();
        noted.input_tokens = tokens("prompt_tokens");
        noted.output_tokens = tokens("completion_tokens");
        noted.continuations = continuations;
        noted.outcome = Some(outcome);
    }

    /// What is noted so far.
    pub(crate) fn read(&self) -> Noted {
        self.noted().clone()
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
