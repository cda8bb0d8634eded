//! Reads an answer that arrives as server-sent events, in the format of any provider.

use futures_util::{StreamExt, stream};
use serde_json::Value;

use super::Response;
use crate::backend::{BackendError, Event, Events, SseEvent, SseReader, SurrogateBuffer};

/// The content of one server-sent event.
pub(super) enum EventContent {
    /// The events in it, if any.
    Events(Vec<Event>),
    /// The model is working, but sent nothing of its answer.
    Activity,
    /// The answer has ended.
    Done,
}

/// Interprets a provider's events in order; the host is for errors.
type Interpret = Box<dyn FnMut(&Value, &str) -> Result<EventContent, BackendError> + Send>;

/// The events of a streamed answer.
pub(super) fn event_stream(
    answer: Response,
    interpret: impl FnMut(&Value, &str) -> Result<EventContent, BackendError> + Send + 'static,
) -> Events<'static> {
    let reader = EventReader {
        answer,
        interpret: Box::new(interpret),
        surrogates: SurrogateBuffer::default(),
        sse: SseReader::default(),
        ready: Vec::new(),
        is_over: false,
        has_begun: false,
    };
    stream::unfold(reader, |mut reader| async {
        let event = reader.next().await?;
        Some((event, reader))
    })
    .boxed()
}

struct EventReader {
    answer: Response,
    interpret: Interpret,
    surrogates: SurrogateBuffer,
    sse: SseReader,
    /// Events that were read but not returned yet, in reverse order.
    ready: Vec<Event>,
    is_over: bool,
    /// Whether a part of the answer has arrived.
    has_begun: bool,
}

impl EventReader {
    async fn next(&mut self) -> Option<Result<Event, BackendError>> {
        loop {
            if let Some(event) = self.ready.pop() {
                if let Event::Finish(_) = event {
                    self.answer.mark_ended();
                }
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.read().await {
                self.is_over = true;
                // After the finish reason, an interrupted connection loses nothing.
                let is_loss = !self.answer.is_ended || !error.is_transient();
                return is_loss.then_some(Err(error));
            }
        }
    }

    /// Reads the next piece, or interprets the next event.
    async fn read(&mut self) -> Result<(), BackendError> {
        let event = match self.sse.next_event() {
            Some(event) => event,
            None => match self.answer.next_bytes().await? {
                Some(bytes) => return self.feed(&bytes),
                None => match self.sse.finish() {
                    Some(event) => event,
                    None => return self.end(),
                },
            },
        };
        let content = self.interpret(&event);
        match content.map_err(|error| self.answer.failed(error))? {
            EventContent::Done => self.is_over = true,
            EventContent::Activity => self.answer.mark_active(),
            EventContent::Events(events) => {
                let is_output = |event: &Event| !matches!(event, Event::Usage(_));
                if events.iter().any(is_output) {
                    self.answer.mark_active();
                    self.has_begun = true;
                }
                self.ready = events;
                self.ready.reverse();
            }
        }
        Ok(())
    }

    fn interpret(&mut self, event: &SseEvent) -> Result<EventContent, BackendError> {
        if event.data == b"[DONE]" {
            return Ok(EventContent::Done);
        }
        let read = self.surrogates.read(&event.data);
        let read = read.map_err(|error| BackendError::Malformed {
            host: self.answer.host().to_owned(),
            reason: format!("an event is not JSON: {error}"),
        })?;
        let mut content = (self.interpret)(&read.value, self.answer.host())?;
        if let (EventContent::Events(events), Some(half)) = (&mut content, read.alone) {
            let has_text = events.iter().any(|event| matches!(event, Event::Text(_)));
            if has_text || self.surrogates.is_holding() {
                events.insert(0, Event::Text('\u{fffd}'.to_string()));
            } else {
                self.surrogates.hold(half);
            }
        }
        Ok(content)
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), BackendError> {
        self.sse
            .feed(bytes)
            .map_err(|error| self.answer.malformed(&error.to_string()))
    }

    /// Handles the end of the connection, which is an error before the end of the answer.
    fn end(&mut self) -> Result<(), BackendError> {
        self.is_over = true;
        if self.answer.is_ended {
            return Ok(());
        }
        if !self.has_begun {
            return Err(self.answer.malformed("the stream ended without an answer"));
        }
        Err(self.answer.ended_early())
    }
}
