//! Reads the upstream's answer for a client that gets one object.

use bytes::Bytes;
use overlock_llm::wire::Protocol;
use overlock_llm::{BackendError, Response, SseReader, SurrogateBuffer};
use serde_json::Value;

/// The events of a stream are several times as long as their texts.
const STREAM_OVERHEAD: usize = 8;

/// Reads an answer of at most this many bytes, and its text, unless it was streamed to the gateway.
pub(super) async fn read(
    answer: &mut Response,
    most_bytes: usize,
    protocol: Protocol,
) -> Result<(Value, Option<Bytes>), BackendError> {
    if answer.is_event_stream() {
        let most_bytes = most_bytes.saturating_mul(STREAM_OVERHEAD);
        let bytes = answer.read_whole(most_bytes).await?;
        return Ok((joined(protocol, answer, &bytes)?, None));
    }
    let bytes = answer.read_whole(most_bytes).await?;
    Ok((object(protocol, answer, &bytes)?, Some(bytes)))
}

/// Reads a stream for a client that gets one object.
fn joined(protocol: Protocol, answer: &Response, bytes: &[u8]) -> Result<Value, BackendError> {
    let mut reader = SseReader::default();
    let mut surrogates = SurrogateBuffer::default();
    let malformed = |_| answer.malformed("an event is not JSON");
    let fed = reader.feed(bytes);
    fed.map_err(|error| answer.malformed(&error.to_string()))?;
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().or_else(|| reader.finish()) {
        let value = surrogates.read(&event.data).map_err(malformed)?.value;
        let error = protocol.error_in(&value);
        if let Some(error) = error.and_then(|error| answer.error_in(&error)) {
            return Err(error);
        }
        events.push(value);
    }
    protocol.joined(&events).ok_or_else(|| answer.ended_early())
}

/// Reads an answer that is not streamed.
fn object(protocol: Protocol, answer: &Response, bytes: &[u8]) -> Result<Value, BackendError> {
    // An answer may be cut in the middle of a surrogate pair.
    let read = SurrogateBuffer::default().read(bytes);
    let value = read.map_err(|_| answer.malformed("it is not JSON"))?.value;
    let error = protocol.error_in(&value);
    if let Some(error) = error.and_then(|error| answer.error_in(&error)) {
        return Err(error);
    }
    match protocol.check_answer(&value) {
        Ok(()) => Ok(value),
        Err(reason) => Err(answer.malformed(reason)),
    }
}
