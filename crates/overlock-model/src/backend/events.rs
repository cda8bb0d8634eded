//! Reads an answer that comes as server-sent events, in whatever words the provider has.

use futures_util::{StreamExt, stream};

use super::http::Answer;
use super::sse::{SseEvent, SseReader};
use super::{BackendError, Event, Events};

/// What one server-sent event says.
pub(super) enum Heard {
    /// These things.
    Events(Vec<Event>),
    /// That the answer is over.
    Done,
}

/// How a provider's events are understood; the host is for messages.
pub(super) type Understand = fn(&SseEvent, &str) -> Result<Heard, BackendError>;

/// The events of an answer.
pub(super) fn streamed(answer: Answer, host: String, understand: Understand) -> Events {
    let reading = Reading {
        answer,
        host,
        understand,
        reader: SseReader::default(),
        ready: Vec::new(),
        is_over: false,
        was_ended: false,
    };
    stream::unfold(reading, |mut reading| async {
        let event = reading.next().await?;
        Some((event, reading))
    })
    .boxed()
}

struct Reading {
    answer: Answer,
    host: String,
    understand: Understand,
    reader: SseReader,
    /// Events that are read and not yet given out, the next one last.
    ready: Vec<Event>,
    is_over: bool,
    /// Whether the provider has said why the answer ended.
    was_ended: bool,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Event, BackendError>> {
        loop {
            if let Some(event) = self.ready.pop() {
                self.was_ended |= matches!(event, Event::Finish(_));
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.read().await {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }

    /// Reads on by one piece, or understands one event.
    async fn read(&mut self) -> Result<(), BackendError> {
        let event = match self.reader.next_event() {
            Some(event) => event,
            None => match self.answer.next_bytes().await? {
                Some(bytes) => return self.feed(&bytes),
                None => match self.reader.finish() {
                    Some(event) => event,
                    None => return self.end(),
                },
            },
        };
        match (self.understand)(&event, &self.host)? {
            Heard::Done => self.is_over = true,
            Heard::Events(events) => {
                self.ready = events;
                self.ready.reverse();
            }
        }
        Ok(())
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), BackendError> {
        self.reader
            .feed(bytes)
            .map_err(|error| BackendError::Malformed {
                host: self.host.clone(),
                reason: error.to_string(),
            })
    }

    /// The connection was closed, which is in order only after the answer was.
    fn end(&mut self) -> Result<(), BackendError> {
        self.is_over = true;
        if self.was_ended {
            return Ok(());
        }
        Err(BackendError::Broken {
            host: self.host.clone(),
            reason: "the stream ended before the answer did".to_owned(),
        })
    }
}
