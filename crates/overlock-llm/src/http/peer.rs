//! Who answers a call, and what happens to every error of it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::backend::{BackendError, Phase};

/// Is told of every call that fails.
type OnFailure = Arc<dyn Fn(&BackendError) + Send + Sync>;

/// A server as its errors name it, without the keys that it was shown: it may say them back.
#[derive(Clone)]
pub struct Peer {
    /// Host and port, for instance: an address may hold a password.
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
    /// A server that errors name like this.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            keys: Vec::new(),
            on_failure: None,
        }
    }

    /// Hides this key too.
    #[must_use]
    pub fn hiding(mut self, key: &str) -> Self {
        let key = Some(key.trim()).filter(|key| !key.is_empty());
        self.keys.extend(key.map(str::to_owned));
        // One may be a part of another.
        self.keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        self
    }

    /// Tells of every call that fails.
    #[must_use]
    pub fn telling(mut self, on_failure: impl Fn(&BackendError) + Send + Sync + 'static) -> Self {
        self.on_failure = Some(Arc::new(on_failure));
        self
    }

    /// What errors name it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it was shown a key that it may say back.
    pub fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// A text of the server without the keys.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.keys.iter().fold(Cow::Borrowed(text), |text, key| {
            if text.contains(key) {
                text.replace(key, "[redacted]").into()
            } else {
                text
            }
        })
    }

    /// The same for all texts of a value.
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

    /// An error of a call, on its way to whoever made the call. Each passes here once.
    pub(crate) fn failed(&self, mut error: BackendError) -> BackendError {
        if let BackendError::Status { message: said, .. }
        | BackendError::Malformed { reason: said, .. }
        | BackendError::Broken { reason: said, .. } = &mut error
            && let Cow::Owned(hidden) = self.hide(said)
        {
            *said = hidden;
        }
        let is_fault = !matches!(error, BackendError::Deadline { .. });
        if let Some(on_failure) = self.on_failure.as_ref().filter(|_| is_fault) {
            on_failure(&error);
        }
        error
    }

    /// A wait that was in vain, until a timeout or until the deadline if that came before it.
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
