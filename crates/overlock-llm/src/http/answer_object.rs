//! Reads an answer of the model as one object.

use bytes::Bytes;
use serde_json::Value;

use super::Response;
use crate::backend::{BackendError, SseReader, SurrogateBuffer};
use crate::wire::Protocol;

/// The events of a stream are several times as long as their texts.
const STREAM_OVERHEAD: usize = 8;

impl Response {
    /// Reads an answer of at most this many bytes, and its text, unless it was streamed.
    pub async fn answer_object(
        &mut self,
        protocol: Protocol,
        most_bytes: usize,
    ) -> Result<(Value, Option<Bytes>), BackendError> {
        if self.is_event_stream() {
            let most_bytes = most_bytes.saturating_mul(STREAM_OVERHEAD);
            let bytes = self.read_whole(most_bytes).await?;
            return Ok((self.joined(protocol, &bytes)?, None));
        }
        let bytes = self.read_whole(most_bytes).await?;
        // An answer may be cut in the middle of a surrogate pair.
        let read = SurrogateBuffer::default().read(&bytes);
        let value = read.map_err(|_| self.malformed("it is not JSON"))?.value;
        self.check_error(protocol, &value)?;
        match protocol.check_answer(&value) {
            Ok(()) => Ok((value, Some(bytes))),
            Err(reason) => Err(self.malformed(reason)),
        }
    }

    /// The object that the events of a stream make.
    fn joined(&self, protocol: Protocol, bytes: &[u8]) -> Result<Value, BackendError> {
        let mut reader = SseReader::default();
        let mut surrogates = SurrogateBuffer::default();
        let malformed = |_| self.malformed("an event is not JSON");
        let fed = reader.feed(bytes);
        fed.map_err(|error| self.malformed(&error.to_string()))?;
        let mut events = Vec::new();
        while let Some(event) = reader.next_event().or_else(|| reader.finish()) {
            let value = surrogates.read(&event.data).map_err(malformed)?.value;
            self.check_error(protocol, &value)?;
            events.push(value);
        }
        protocol.joined(&events).ok_or_else(|| self.ended_early())
    }

    /// Fails with the error in an event or in an answer, if there is one.
    pub fn check_error(&self, protocol: Protocol, value: &Value) -> Result<(), BackendError> {
        let error = protocol.error_in(value);
        let error = error.and_then(|error| self.error_in(&error));
        error.map_or(Ok(()), Err)
    }
}
