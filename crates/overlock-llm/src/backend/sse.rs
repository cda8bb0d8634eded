//! Parses a stream of server-sent events.
//!
//! The input can be split anywhere, even inside a character.

use bytes::{Buf, BytesMut};

/// A longer event ends the stream with an error.
const LONGEST_EVENT: usize = 16 << 20;

/// Some servers start a stream with it; it is not part of the first field.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Splits bytes into events.
///
/// ```
/// use overlock_llm::SseReader;
///
/// let mut reader = SseReader::default();
/// reader.feed(b"data: {\"a\"")?;
/// assert_eq!(reader.next_event(), None);
/// reader.feed(b": 1}\n\n")?;
/// assert_eq!(reader.next_event().map(|event| event.data), Some(b"{\"a\": 1}".to_vec()));
/// # Ok::<(), overlock_llm::TooLongEvent>(())
/// ```
#[derive(Debug, Default)]
pub struct SseReader {
    buffer: BytesMut,
    /// How much of the buffer was searched for a line break.
    searched: usize,
    data: Vec<u8>,
    has_data: bool,
    event: Vec<u8>,
    /// Whether the first line was read, which may start with a byte order mark.
    has_begun: bool,
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The event name; empty if it has none.
    pub name: String,
    /// The data.
    pub data: Vec<u8>,
}

/// The stream contains an event over the size limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {LONGEST_EVENT} bytes")]
pub struct TooLongEvent;

impl SseReader {
    /// Takes the next bytes.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), TooLongEvent> {
        if self.buffer.len() + self.data.len() + piece.len() > LONGEST_EVENT {
            return Err(TooLongEvent);
        }
        self.buffer.extend_from_slice(piece);
        Ok(())
    }

    /// The next complete event.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        while let Some(mut line) = self.next_line() {
            if !std::mem::replace(&mut self.has_begun, true) && line.starts_with(BYTE_ORDER_MARK) {
                line.advance(BYTE_ORDER_MARK.len());
            }
            if line.is_empty() {
                if let Some(event) = self.take_event() {
                    return Some(event);
                }
                continue;
            }
            let (field, value) = match line.iter().position(|byte| *byte == b':') {
                Some(colon) => (&line[..colon], &line[colon + 1..]),
                None => (&line[..], &[][..]),
            };
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match field {
                b"data" => {
                    if self.has_data {
                        self.data.push(b'\n');
                    }
                    self.has_data = true;
                    self.data.extend_from_slice(value);
                }
                b"event" => self.event = value.to_vec(),
                // Comments keep the connection alive; identifiers and delays are for browsers.
                _ => {}
            }
        }
        None
    }

    /// The last event at the end of the stream, since some servers omit the last blank line.
    pub fn finish(&mut self) -> Option<SseEvent> {
        self.buffer.extend_from_slice(b"\n\n");
        self.next_event()
    }

    fn take_event(&mut self) -> Option<SseEvent> {
        let name = String::from_utf8_lossy(&std::mem::take(&mut self.event)).into_owned();
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        let data = std::mem::take(&mut self.data);
        Some(SseEvent { name, data })
    }

    /// The next complete line, without its end.
    fn next_line(&mut self) -> Option<BytesMut> {
        let new = &self.buffer[self.searched..];
        let Some(found) = new.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + found;
        // A carriage return may have its line feed in the next piece.
        if self.buffer[end] == b'\r' && end + 1 == self.buffer.len() {
            self.searched = end;
            return None;
        }
        let ends_in_two = self.buffer[end..].starts_with(b"\r\n");
        let line = self.buffer.split_to(end);
        self.buffer.advance(if ends_in_two { 2 } else { 1 });
        self.searched = 0;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut reader = SseReader::default();
        let mut events = Vec::new();
        for piece in pieces {
            reader.feed(piece).expect("it is short");
            events.extend(std::iter::from_fn(|| reader.next_event()));
        }
        events.extend(reader.finish());
        let text = |event: SseEvent| {
            (
                event.name,
                String::from_utf8_lossy(&event.data).into_owned(),
            )
        };
        events.into_iter().map(text).collect()
    }

    #[track_caller]
    fn check(stream: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
            .collect();
        assert_eq!(events(&[stream.as_bytes()]), expected, "{stream:?}");
    }

    #[test]
    fn reads_data_names_and_comments() {
        check("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check("event: ping\ndata: {}\n\n", &[("ping", "{}")]);
        check(": keep-alive\n\ndata: a\n\n", &[("", "a")]);
        check("data: a\ndata: b\n\n", &[("", "a\nb")]);
        check("data:a\r\n\r\ndata:b\r\rid: 5\n\n", &[("", "a"), ("", "b")]);
        check("event: nothing\n\ndata: a\n\n", &[("", "a")]);
        check("data\n\n", &[("", "")]);
        check("data: {\r\ndata: }\r\n\r\n", &[("", "{\n}")]);
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_field() {
        check("\u{feff}data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check("\u{feff}", &[]);
        check(
            "data: \u{feff}a\n\n\u{feff}data: b\n\n",
            &[("", "\u{feff}a")],
        );
    }

    #[test]
    fn reads_an_unterminated_event_at_the_end() {
        check("data: a\n\ndata: [DONE]", &[("", "a"), ("", "[DONE]")]);
        check("", &[]);
    }

    #[test]
    fn rejects_an_event_without_end() {
        let mut reader = SseReader::default();
        let piece = vec![b'a'; 1 << 20];
        let refused = (0..20).map(|_| reader.feed(&piece)).find(Result::is_err);
        assert_eq!(refused, Some(Err(TooLongEvent)));
    }

    proptest! {
        #[test]
        fn the_events_do_not_depend_on_the_pieces(
            mark in "\u{feff}?",
            lines in prop::collection::vec("(data: ?|event: |: |)[a-zé😀:]{0,5}(\n|\r|\r\n)", 0..12),
            at in any::<prop::sample::Index>(),
        ) {
            let stream = (mark + &lines.concat()).into_bytes();
            let at = at.index(stream.len() + 1);
            let (one, other) = stream.split_at(at);
            prop_assert_eq!(events(&[one, other]), events(&[&stream]));
        }
    }
}
