//! Reads JSON events that split a surrogate pair.
//!
//! A character beyond U+FFFF is escaped as two surrogates, such as `\ud83d\ude00`. Some servers
//! send the first at the end of an event and the second at the start of the next. JSON parsers
//! reject either alone.

use std::borrow::Cow;

use serde_json::Value;

/// Joins surrogate pairs that are split between events.
///
/// ```
/// use overlock_llm::SurrogateBuffer;
///
/// let mut buffer = SurrogateBuffer::default();
/// buffer.read(br#"{"text": "\ud83d"}"#)?;
/// let read = buffer.read(br#"{"text": "\ude00"}"#)?;
/// assert_eq!(read.value["text"], "😀");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct SurrogateBuffer {
    /// The high surrogate at the end of the last text.
    held: Option<HighSurrogate>,
}

/// A high surrogate.
#[derive(Clone, Copy, Debug)]
pub struct HighSurrogate(u16);

/// A parsed event.
#[derive(Debug)]
pub struct ReadEvent {
    /// The JSON value.
    pub value: Value,
    /// A high surrogate from an earlier event that was not joined in this one.
    pub alone: Option<HighSurrogate>,
    /// Whether the event was changed before parsing, so that `value` may differ from its bytes.
    pub is_repaired: bool,
}

impl SurrogateBuffer {
    /// Reads the next event. A high surrogate at the end of a text is held for the next event; one
    /// that cannot be joined becomes U+FFFD.
    pub fn read(&mut self, data: &[u8]) -> Result<ReadEvent, serde_json::Error> {
        let alone = self.held.take();
        let mut error = None;
        if alone.is_none() {
            match serde_json::from_slice(data) {
                Ok(value) => {
                    return Ok(ReadEvent {
                        value,
                        alone,
                        is_repaired: false,
                    });
                }
                Err(found) => error = Some(found),
            }
        }
        let repaired = repair_surrogates(data, alone);
        self.held = repaired.held;
        match (serde_json::from_slice(&repaired.data), error) {
            (Ok(value), _) => Ok(ReadEvent {
                value,
                is_repaired: true,
                alone: alone.filter(|_| !repaired.is_joined),
            }),
            // The error in the original event is more useful.
            (Err(_), Some(error)) | (Err(error), None) => Err(error),
        }
    }

    /// Holds a high surrogate for the next event.
    pub fn hold(&mut self, half: HighSurrogate) {
        self.held = Some(half);
    }

    /// Whether a high surrogate is held.
    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }
}

struct RepairedEvent<'a> {
    data: Cow<'a, [u8]>,
    /// Whether the held surrogate was joined with one at the start of a text.
    is_joined: bool,
    held: Option<HighSurrogate>,
}

/// Removes lone surrogates from an event, joining the first one with the one held before.
fn repair_surrogates(data: &[u8], before: Option<HighSurrogate>) -> RepairedEvent<'_> {
    let mut repaired = Vec::with_capacity(data.len() + 6);
    let (mut is_joined, mut held) = (false, None);
    // Where the current string starts.
    let mut string: Option<usize> = None;
    let mut at = 0;
    while at < data.len() {
        let step = match (data[at], unit(data, at)) {
            (b'"', _) => {
                string = if string.is_some() { None } else { Some(at + 1) };
                1
            }
            (b'\\', Some(0xD800..=0xDBFF)) if is_low_surrogate(unit(data, at + 6)) => 12,
            (b'\\', Some(first @ 0xD800..=0xDBFF)) => {
                if data.get(at + 6) == Some(&b'"') {
                    held = Some(HighSurrogate(first));
                } else {
                    repaired.extend_from_slice(b"\\ufffd");
                }
                at += 6;
                continue;
            }
            (b'\\', Some(second @ 0xDC00..=0xDFFF)) => {
                match before {
                    Some(HighSurrogate(first)) if string == Some(at) && !is_joined => {
                        is_joined = true;
                        repaired
                            .extend_from_slice(format!("\\u{first:04x}\\u{second:04x}").as_bytes());
                    }
                    _ => repaired.extend_from_slice(b"\\ufffd"),
                }
                at += 6;
                continue;
            }
            (b'\\', Some(_)) => 6,
            (b'\\', None) => 2,
            _ => 1,
        };
        let end = (at + step).min(data.len());
        repaired.extend_from_slice(&data[at..end]);
        at = end;
    }
    RepairedEvent {
        data: repaired.into(),
        is_joined,
        held,
    }
}

fn is_low_surrogate(unit: Option<u16>) -> bool {
    matches!(unit, Some(0xDC00..=0xDFFF))
}

/// The UTF-16 unit that is escaped at a place as `\u` and four digits.
fn unit(data: &[u8], at: usize) -> Option<u16> {
    let digits = data.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The joined text of events with one text each.
    fn joined(texts: &[&str]) -> String {
        let mut buffer = SurrogateBuffer::default();
        let mut joined = String::new();
        for text in texts {
            let event = format!(r#"{{"text": "{text}"}}"#);
            let read = buffer.read(event.as_bytes()).expect("it is an event");
            let text = read.value["text"].as_str().expect("a text");
            if read.alone.is_some() {
                joined.push('\u{fffd}');
            }
            joined.push_str(text);
        }
        joined
    }

    #[test]
    fn joins_surrogates_across_events() {
        assert_eq!(joined(&[r"a\ud83d", r"\ude00b"]), "a😀b");
        assert_eq!(joined(&[r"\uD83D", r"\uDE00\ud83d", r"\ude00"]), "😀😀");
        assert_eq!(joined(&[r"a\ud83d\ude00b"]), "a😀b");
        assert_eq!(joined(&[r"\\ud83d", r"\\ude00"]), r"\ud83d\ude00");
        assert_eq!(joined(&[r#"\"\ud83d"#, r"\ude00\n"]), "\"😀\n");
    }

    #[test]
    fn replaces_a_lone_surrogate() {
        assert_eq!(joined(&[r"a\ud83d", "b"]), "a\u{fffd}b");
        assert_eq!(joined(&[r"a\ud83db"]), "a\u{fffd}b");
        assert_eq!(joined(&[r"a\ude00b"]), "a\u{fffd}b");
        assert_eq!(joined(&[r"\ud83d", r"x\ude00"]), "\u{fffd}x\u{fffd}");
        assert_eq!(joined(&[r"\ud83d", r"\ud83d", r"\ude00"]), "\u{fffd}😀");
    }

    #[test]
    fn holds_a_high_surrogate_at_the_end() {
        let mut buffer = SurrogateBuffer::default();
        let read = buffer.read(br#"{"text": "a\ud83d"}"#).expect("an event");
        assert_eq!(read.value, json!({ "text": "a" }));
        assert!(buffer.is_holding());
    }

    #[test]
    fn rejects_invalid_json() {
        for data in [
            &b"{oops"[..],
            b"",
            b"\"\\ud83",
            b"\"\\ud83d",
            b"\xff\xfe",
            b"\\",
        ] {
            assert!(SurrogateBuffer::default().read(data).is_err(), "{data:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_may_be_split_anywhere(text in "[a-c\"\\\\\n é😀🚀]{0,12}", at in any::<prop::sample::Index>()) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let (one, other) = units.split_at(at.index(units.len() + 1));
            let escaped = |units: &[u16]| {
                units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat()
            };
            prop_assert_eq!(joined(&[&escaped(one), &escaped(other)]), text);
        }

        #[test]
        fn never_panics(data in prop::collection::vec(any::<u8>(), 0..40), held: bool) {
            let mut buffer = SurrogateBuffer::default();
            if held {
                buffer.hold(HighSurrogate(0xD83D));
            }
            let _ = buffer.read(&data);
        }
    }
}
