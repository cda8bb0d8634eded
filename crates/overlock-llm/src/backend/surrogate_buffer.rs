//! Reads JSON whose characters were torn in two.
//!
//! A character beyond the first 65,536 is escaped as two halves, such as `\ud83d\ude00`, and some
//! servers send one half at the end of an event and the other at the beginning of the next. No
//! parser takes either alone, and the answer is none the worse for it.

use std::borrow::Cow;

use serde_json::Value;

/// Puts halves together from event to event.
///
/// ```
/// use overlock_llm::SurrogateBuffer;
///
/// let mut halves = SurrogateBuffer::default();
/// halves.read(br#"{"text": "\ud83d"}"#)?;
/// let read = halves.read(br#"{"text": "\ude00"}"#)?;
/// assert_eq!(read.value["text"], "😀");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct SurrogateBuffer {
    /// The first half that the last text ended with.
    held: Option<Half>,
}

/// The first half of a character.
#[derive(Clone, Copy, Debug)]
pub struct Half(u16);

/// What an event holds.
#[derive(Debug)]
pub struct ReadEvent {
    /// What it says.
    pub value: Value,
    /// A half from an earlier event that has found no other in this one.
    pub alone: Option<Half>,
    /// Whether it may say something else than what came.
    pub is_mended: bool,
}

impl SurrogateBuffer {
    /// Reads the next event. A first half at the end of a text waits for the other one; a half
    /// that can have none becomes U+FFFD.
    pub fn read(&mut self, data: &[u8]) -> Result<ReadEvent, serde_json::Error> {
        let alone = self.held.take();
        let mut error = None;
        if alone.is_none() {
            match serde_json::from_slice(data) {
                Ok(value) => {
                    return Ok(ReadEvent {
                        value,
                        alone,
                        is_mended: false,
                    });
                }
                Err(found) => error = Some(found),
            }
        }
        let mended = mend(data, alone);
        self.held = mended.held;
        match (serde_json::from_slice(&mended.data), error) {
            (Ok(value), _) => Ok(ReadEvent {
                value,
                is_mended: true,
                alone: alone.filter(|_| !mended.is_joined),
            }),
            // What is wrong with the event as it came says more.
            (Err(_), Some(error)) | (Err(error), None) => Err(error),
        }
    }

    /// Lets a half wait on.
    pub fn hold(&mut self, half: Half) {
        self.held = Some(half);
    }

    /// Whether a half is waiting.
    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }
}

struct Mended<'a> {
    data: Cow<'a, [u8]>,
    /// Whether the half from before was put together with one at the beginning of a text.
    is_joined: bool,
    held: Option<Half>,
}

/// An event in which no half stands alone.
fn mend(data: &[u8], before: Option<Half>) -> Mended<'_> {
    let mut mended = Vec::with_capacity(data.len() + 6);
    let (mut is_joined, mut held) = (false, None);
    // Where the string began that is being read.
    let mut string: Option<usize> = None;
    let mut at = 0;
    while at < data.len() {
        let step = match (data[at], unit(data, at)) {
            (b'"', _) => {
                string = if string.is_some() { None } else { Some(at + 1) };
                1
            }
            (b'\\', Some(0xD800..=0xDBFF)) if is_second_half(unit(data, at + 6)) => 12,
            (b'\\', Some(first @ 0xD800..=0xDBFF)) => {
                if data.get(at + 6) == Some(&b'"') {
                    held = Some(Half(first));
                } else {
                    mended.extend_from_slice(b"\\ufffd");
                }
                at += 6;
                continue;
            }
            (b'\\', Some(second @ 0xDC00..=0xDFFF)) => {
                match before {
                    Some(Half(first)) if string == Some(at) && !is_joined => {
                        is_joined = true;
                        mended
                            .extend_from_slice(format!("\\u{first:04x}\\u{second:04x}").as_bytes());
                    }
                    _ => mended.extend_from_slice(b"\\ufffd"),
                }
                at += 6;
                continue;
            }
            (b'\\', Some(_)) => 6,
            (b'\\', None) => 2,
            _ => 1,
        };
        let end = (at + step).min(data.len());
        mended.extend_from_slice(&data[at..end]);
        at = end;
    }
    Mended {
        data: mended.into(),
        is_joined,
        held,
    }
}

fn is_second_half(unit: Option<u16>) -> bool {
    matches!(unit, Some(0xDC00..=0xDFFF))
}

/// The unit that is escaped as `\u` and four digits at a place.
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

    /// What events of one text each say together.
    fn said(texts: &[&str]) -> String {
        let mut halves = SurrogateBuffer::default();
        let mut said = String::new();
        for text in texts {
            let event = format!(r#"{{"text": "{text}"}}"#);
            let read = halves.read(event.as_bytes()).expect("it is an event");
            let text = read.value["text"].as_str().expect("a text");
            if read.alone.is_some() {
                said.push('\u{fffd}');
            }
            said.push_str(text);
        }
        said
    }

    #[test]
    fn halves_are_put_together_across_events() {
        assert_eq!(said(&[r"a\ud83d", r"\ude00b"]), "a😀b");
        assert_eq!(said(&[r"\uD83D", r"\uDE00\ud83d", r"\ude00"]), "😀😀");
        assert_eq!(said(&[r"a\ud83d\ude00b"]), "a😀b");
        assert_eq!(said(&[r"\\ud83d", r"\\ude00"]), r"\ud83d\ude00");
        assert_eq!(said(&[r#"\"\ud83d"#, r"\ude00\n"]), "\"😀\n");
    }

    #[test]
    fn a_half_that_is_alone_is_replaced() {
        assert_eq!(said(&[r"a\ud83d", "b"]), "a\u{fffd}b");
        assert_eq!(said(&[r"a\ud83db"]), "a\u{fffd}b");
        assert_eq!(said(&[r"a\ude00b"]), "a\u{fffd}b");
        assert_eq!(said(&[r"\ud83d", r"x\ude00"]), "\u{fffd}x\u{fffd}");
        assert_eq!(said(&[r"\ud83d", r"\ud83d", r"\ude00"]), "\u{fffd}😀");
    }

    #[test]
    fn a_half_at_the_very_end_is_as_if_it_had_not_come() {
        let mut halves = SurrogateBuffer::default();
        let read = halves.read(br#"{"text": "a\ud83d"}"#).expect("an event");
        assert_eq!(read.value, json!({ "text": "a" }));
        assert!(halves.is_holding());
    }

    #[test]
    fn what_is_no_json_stays_none() {
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
        fn any_text_may_be_torn_anywhere(text in "[a-c\"\\\\\n é😀🚀]{0,12}", at in any::<prop::sample::Index>()) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let (one, other) = units.split_at(at.index(units.len() + 1));
            let escaped = |units: &[u16]| {
                units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat()
            };
            prop_assert_eq!(said(&[&escaped(one), &escaped(other)]), text);
        }

        #[test]
        fn nothing_makes_it_panic(data in prop::collection::vec(any::<u8>(), 0..40), held: bool) {
            let mut halves = SurrogateBuffer::default();
            if held {
                halves.hold(Half(0xD83D));
            }
            let _ = halves.read(&data);
        }
    }
}
