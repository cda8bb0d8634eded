//! An answer of any protocol, streamed or not.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::ErrorBody;
use crate::assembler::{Assembler, Delta};
use crate::backend::Usage;

/// The member that reports what a client cannot see from the answer.
pub(super) const REPORT: &str = "overlock";

/// The final state of a choice.
#[derive(Clone, Debug, Default)]
pub struct FinalChoice {
    /// The finish reason, if there is one.
    pub finish: Option<String>,
    /// The content.
    pub content: String,
    /// The arguments of its tool calls.
    pub calls: Vec<String>,
}

/// An event of a streamed answer.
pub struct WireEvent {
    /// Its JSON.
    pub value: Value,
    pub(super) data: Vec<u8>,
    pub(super) is_changed: bool,
}

/// The result of forwarding an event.
pub struct Forwarded {
    /// The bytes for the client; they may be empty.
    pub bytes: Vec<u8>,
    /// How many bytes of the event are not content.
    pub overhead: usize,
}

/// The figures of an answer for traces.
#[derive(Clone, Debug, Default)]
pub struct AnswerSummary<'a> {
    /// The model that the upstream reports.
    pub model: Option<&'a str>,
    /// The finish reasons of its choices.
    pub finishes: Vec<&'a str>,
    /// The reported usage.
    pub usage: Option<Usage>,
}

/// An answer of the upstream, and the answer that the client gets. Each protocol implements this.
///
/// A choice is a text followed by tool calls. A part of it is continued after the upstream's answer
/// has ended: its [encoder](Self::encoder) writes the rest.
pub trait WireAnswer: Send + Sync {
    /// Parses the data of an event.
    fn read_event(&mut self, data: Vec<u8>) -> Result<WireEvent, serde_json::Error>;

    /// Feeds an event to the assembler and returns what the client gets now.
    fn forward(&mut self, event: WireEvent, assembler: &mut Assembler) -> Forwarded;

    /// Whether the last event was the end of the stream.
    fn is_over(&self) -> bool;

    /// An encoder for the rest of parts of this answer.
    fn encoder(&self) -> Box<dyn WireEncoder>;

    /// The last events, with the usage of all calls. The last one has `report` as its `overlock`
    /// member.
    fn encode_end(
        &mut self,
        choices: &BTreeMap<u64, FinalChoice>,
        usage: Option<&Value>,
        report: Option<&Value>,
    ) -> Vec<u8>;

    /// The events that end the stream with an error.
    fn encode_error(&mut self, error: &ErrorBody<'_>) -> Vec<u8>;

    /// The usage that the upstream reports.
    fn usage(&self) -> Option<&Value>;

    /// The model that the upstream reports.
    fn model(&self) -> Option<&str>;

    /// The name of the tool that is called; without a `call`, that of the older form of a call.
    fn tool(&self, index: u64, call: Option<usize>) -> String;

    /// The upstream's answer as one object.
    fn first(&self, assembler: &Assembler) -> Value;

    /// The answer as one object, and whether it differs from the upstream's.
    fn finished(
        &mut self,
        choices: &BTreeMap<u64, FinalChoice>,
        usage: Option<&Value>,
        report: Option<&Value>,
    ) -> (Value, bool);
}

/// Writes the rest of the parts of an answer.
pub trait WireEncoder: Send + Sync {
    /// The events with a delta; none if parts of its kind are not continued.
    fn encode(&mut self, index: u64, delta: Delta<'_>) -> Vec<u8>;
}

/// The lines of an event with this data.
pub(super) fn frame(data: &[u8]) -> Vec<u8> {
    [b"data: ", data, b"\n\n"].concat()
}
