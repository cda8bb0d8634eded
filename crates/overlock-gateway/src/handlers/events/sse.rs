//! Server-sent events as text, and the body that streams them.

use std::convert::Infallible;
use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use tokio::time::timeout;

use crate::events::Subscription;
use crate::record::Recorder;
use crate::reply::{Body, KEEP_ALIVE};

/// How long a client waits before it reconnects.
pub(super) const RECONNECT_DELAY: Duration = Duration::from_secs(3);

/// Events in wire format.
#[derive(Default)]
pub(super) struct SseText(String);

impl SseText {
    /// The beginning of every stream.
    pub(super) fn first() -> Self {
        Self(format!("retry: {}\n\n", RECONNECT_DELAY.as_millis()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn event(&mut self, id: Option<&str>, name: &str, data: &str) -> &mut Self {
        // Writing into a string cannot fail.
        if let Some(id) = id {
            let _ = writeln!(self.0, "id: {id}");
        }
        let _ = write!(self.0, "event: {name}\ndata: {data}\n\n");
        self
    }

    pub(super) fn lagged(&mut self) -> &mut Self {
        let message = "some events are lost: read the runs again";
        self.event(None, "lagged", &json!({ "message": message }).to_string())
    }

    /// The runs in progress, for a subscriber that missed their beginning.
    pub(super) fn running(&mut self, recorder: &Recorder, subscription: &Subscription) {
        let runs = json!({ "runs": recorder.running() }).to_string();
        // It replaces all earlier events, so it has the number of the latest of them.
        let id = format!(
            "{}-{}",
            subscription.era(),
            subscription.at.saturating_sub(1)
        );
        self.event(Some(&id), "running", &runs);
    }
}

/// A source of events.
pub(super) trait EventSource: Send + 'static {
    /// Waits for the next events; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<SseText>> + Send;

    /// Whether events may still follow, checked after each keep-alive interval.
    fn is_alive(&self) -> bool;
}

/// A body with the events of a source, and keep-alive comments between them.
pub(super) fn body(first: SseText, source: impl EventSource, keep_alive: Duration) -> Body {
    let pieces = stream::unfold(
        (Some(first), source),
        move |(first, mut source)| async move {
            if let Some(SseText(first)) = first {
                return Some((Ok(Bytes::from(first)), (None, source)));
            }
            let piece = match timeout(keep_alive, source.next()).await {
                Ok(text) => Bytes::from(text?.0),
                Err(_) if source.is_alive() => Bytes::from_static(KEEP_ALIVE),
                Err(_) => return None,
            };
            Some((Ok::<_, Infallible>(piece), (None, source)))
        },
    );
    Body::from_stream(pieces)
}
