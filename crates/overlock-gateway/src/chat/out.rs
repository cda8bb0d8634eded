//! Where the bytes of an answer go.

use bytes::Bytes;
use overlock_llm::assembler::Delta;
use overlock_llm::wire::WireEncoder;
use overlock_runs::Part;
use tokio::sync::mpsc;

use crate::reply::KEEP_ALIVE;

/// Where the bytes of an answer go.
#[derive(Clone)]
pub(super) enum Out {
    /// To the client, as soon as they are stable.
    Stream(mpsc::Sender<Bytes>),
    /// Nowhere until the answer has ended.
    AtEnd,
}

impl Out {
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    pub(super) async fn send(&self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if let Self::Stream(out) = self
            && !bytes.is_empty()
        {
            // A client that disconnects drops this future too.
            let _ = out.send(bytes).await;
        }
    }

    /// Shows the client that the answer is still being made.
    pub(super) fn keep_alive(&self) {
        if let Self::Stream(out) = self {
            // If the channel is full, the client has something else to read.
            let _ = out.try_send(Bytes::from_static(KEEP_ALIVE));
        }
    }
}

/// Streams the text of one part.
pub(super) struct PartOut {
    pub(super) out: Out,
    pub(super) encoder: Box<dyn WireEncoder>,
    pub(super) part: Part,
}

impl PartOut {
    pub(super) async fn send(&mut self, text: &str) {
        let delta = match self.part.tool_call {
            None => Delta::Text(text),
            Some(call) => Delta::ToolArguments {
                call: usize::try_from(call).unwrap_or(usize::MAX),
                text,
            },
        };
        if self.out.is_stream() && !text.is_empty() {
            let events = self.encoder.encode(self.part.choice, delta);
            self.out.send(events).await;
        }
    }
}
