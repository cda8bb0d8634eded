//! The name, the keys and the failure callback of an upstream.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::backend::{BackendError, Phase};

/// A callback for failed calls.
type OnFailure = Arc<dyn Fn(&BackendError) + Send + Sync>;

/// An upstream in errors. Its keys are redacted, because servers may echo them.
#[derive(Clone)]
pub struct Peer {
    /// For instance host and port, but no URL: it may contain a password.
    name: String,
    keys: Vec<String>,
    on_failure: Option<OnFailure>,
}

impl fmt::Debug for Peer {
    /// Without the keys.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Peer").field(&self.name).finish()
    }
}

impl Peer {
    /// An upstream with this name in errors.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            keys: Vec::new(),
            on_failure: None,
        }
    }

    /// Redacts this key in errors.
    #[must_use]
    pub fn hiding(mut self, key: &str) -> Self {
        let key = Some(key.trim()).filter(|key| !key.is_empty());
        self.keys.extend(key.map(str::to_owned));
        // A key may be part of another, so longer ones come first.
        self.keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        self
    }

    /// Calls `on_failure` for every call that fails.
    #[must_use]
    pub fn on_failure(
        mut self,
        on_failure: impl Fn(&BackendError) + Send + Sync + 'static,
    ) -> Self {
        self.on_failure = Some(Arc::new(on_failure));
        self
    }

    /// The name in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether there is a key to redact.
    pub fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// A text of the server with redacted keys.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.keys.iter().fold(Cow::Borrowed(text), |text, key| {
            if text.contains(key) {
                text.replace(key, "[redacted]").into()
            } else {
                text
            }
        })
    }

    /// Redacts the keys in all texts of a value.
    pub fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.hide(text) {
                    *text = hidden;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|it| self.hide_in(it)),
            Value::Object(members) => members.values_mut().for_each(|it| self.hide_in(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Redacts and reports an error. Every error of a call passes here once.
    pub(crate) fn failed(&self, mut error: BackendError) -> BackendError {
        if let BackendError::Status { message: text, .. }
        | BackendError::Malformed { reason: text, .. }
        | BackendError::Broken { reason: text, .. } = &mut error
            && let Cow::Owned(hidden) = self.hide(text)
        {
            *text = hidden;
        }
        let is_fault = !matches!(error, BackendError::Deadline { .. });
        if let Some(on_failure) = self.on_failure.as_ref().filter(|_| is_fault) {
            on_failure(&error);
        }
        error
    }

    /// The error of an expired timeout, or of the deadline if that came first.
    pub(super) fn timed_out(
        &self,
        phase: Phase,
        until: Instant,
        after: Duration,
        deadline: Option<Instant>,
    ) -> BackendError {
        let host = self.name.clone();
        match deadline {
            Some(deadline) if deadline < until => BackendError::Deadline { host },
            _ => BackendError::TimedOut { host, phase, after },
        }
    }
}
