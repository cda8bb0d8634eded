//! Where the bytes of an answer go.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use overlock_llm::assembler::Delta;
use overlock_llm::wire::chat::ChatEncoder;
use serde_json::Value;
use tokio::sync::mpsc;

use super::observer::Listen;
use crate::reply::KEEP_ALIVE;
use overlock_runs::Part;

/// Where the bytes of an answer go.
pub(super) enum Out {
    /// To the client, as soon as they are stable.
    Stream(mpsc::Sender<Bytes>),
    /// Nowhere until the answer has ended.
    AtEnd,
}

impl Out {
    pub(super) async fn event(&self, value: &Value) {
        if let Self::Stream(_) = self {
            self.send(format!("data: {value}\n\n").into()).await;
        }
    }

    pub(super) async fn send(&self, bytes: Bytes) {
        if let Self::Stream(out) = self {
            // A client that disconnects drops this future too.
            let _ = out.send(bytes).await;
        }
    }
}

/// Sends the rest of a part as events.
pub(super) struct Listener {
    pub(super) out: mpsc::Sender<Bytes>,
    pub(super) encoder: ChatEncoder,
    pub(super) part: Part,
}

impl Listen for Listener {
    fn hear<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        let event = self
            .encoder
            .encode(self.part.choice, delta(self.part, text));
        async move {
            if let Some(event) = event {
                // A client that disconnects drops this future too.
                let _ = self.out.send(format!("data: {event}\n\n").into()).await;
            }
        }
        .boxed()
    }

    fn call(&mut self) {
        // If there is no room for it, the client gets something else anyway.
        let _ = self.out.try_send(Bytes::from_static(KEEP_ALIVE));
    }
}

pub(super) fn delta(part: Part, text: &str) -> Delta<'_> {
    match part.tool_call {
        None => Delta::Text(text),
        Some(call) => Delta::ToolArguments {
            call: usize::try_from(call).unwrap_or(usize::MAX),
            text,
        },
    }
}
