//! Reads an answer that comes as server-sent events, in whatever words the provider has.

use futures_util::{StreamExt, stream};
use serde_json::Value;

use super::Response;
use crate::backend::{BackendError, Event, Events, SseEvent, SseReader, SurrogateBuffer};

/// What one server-sent event says.
pub(super) enum Heard {
    /// These things; perhaps nothing at all.
    Events(Vec<Event>),
    /// That the model is at work, and nothing of its answer.
    Thought,
    /// That the answer is over.
    Done,
}

/// An event as it came and as it was read.
pub(super) struct Said<'a> {
    /// Its name; empty if it has none.
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
    pub(super) raw: &'a [u8],
}

/// How a provider's events are understood, one after the other; the host is for messages.
type Understand = Box<dyn FnMut(&Said<'_>, &str) -> Result<Heard, BackendError> + Send>;

/// The events of an answer.
pub(super) fn streamed(
    answer: Response,
    understand: impl FnMut(&Said<'_>, &str) -> Result<Heard, BackendError> + Send + 'static,
) -> Events<'static> {
    let reading = Reading {
        answer,
        understand: Box::new(understand),
        halves: SurrogateBuffer::default(),
        reader: SseReader::default(),
        ready: Vec::new(),
        is_over: false,
        has_begun: false,
    };
    stream::unfold(reading, |mut reading| async {
        let event = reading.next().await?;
        Some((event, reading))
    })
    .boxed()
}

struct Reading {
    answer: Response,
    understand: Understand,
    halves: SurrogateBuffer,
    reader: SseReader,
    /// Events that are read and not yet given out, the next one last.
    ready: Vec<Event>,
    is_over: bool,
    /// Whether some of the answer has come.
    has_begun: bool,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Event, BackendError>> {
        loop {
            if let Some(event) = self.ready.pop() {
                if let Event::Finish(_) = event {
                    self.answer.has_ended();
                }
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.read().await {
                self.is_over = true;
                let is_missed = !self.answer.is_ended || !error.is_passing();
                return is_missed.then_some(Err(error));
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
        let heard = self.understand(&event);
        match heard.map_err(|error| self.answer.failed(error))? {
            Heard::Done => self.is_over = true,
            Heard::Thought => self.answer.has_spoken(),
            Heard::Events(events) => {
                let is_word = |event: &Event| !matches!(event, Event::Usage(_));
                if events.iter().any(is_word) {
                    self.answer.has_spoken();
                    self.has_begun = true;
                }
                self.ready = events;
                self.ready.reverse();
            }
        }
        Ok(())
    }

    fn understand(&mut self, event: &SseEvent) -> Result<Heard, BackendError> {
        if event.data == b"[DONE]" {
            return Ok(Heard::Done);
        }
        let read = self.halves.read(&event.data);
        let read = read.map_err(|error| BackendError::Malformed {
            host: self.answer.host().to_owned(),
            reason: format!("an event is not JSON: {error}"),
        })?;
        let said = Said {
            name: &event.name,
            value: &read.value,
            raw: &event.data,
        };
        let mut heard = (self.understand)(&said, self.answer.host())?;
        if let (Heard::Events(events), Some(half)) = (&mut heard, read.alone) {
            let goes_on = events.iter().any(|event| matches!(event, Event::Text(_)));
            if goes_on || self.halves.is_holding() {
                events.insert(0, Event::Text('\u{fffd}'.to_string()));
            } else {
                self.halves.hold(half);
            }
        }
        Ok(heard)
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), BackendError> {
        self.reader
            .feed(bytes)
            .map_err(|error| self.answer.malformed(&error.to_string()))
    }

    /// The connection was closed, which is in order only after the answer was.
    fn end(&mut self) -> Result<(), BackendError> {
        self.is_over = true;
        if self.answer.is_ended {
            return Ok(());
        }
        if !self.has_begun {
            return Err(self.answer.malformed("it ended without an answer"));
        }
        Err(self.answer.ended_early())
    }
}
