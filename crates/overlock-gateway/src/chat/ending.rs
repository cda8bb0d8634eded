//! The finish reason of an answer.
//!
//! The upstream's finish reason stands unless the parts show another one. One cut part makes the
//! whole answer cut, so that no other tool call looks ready to be executed. A part that violates
//! its schema counts as cut, because clients know no other word for it.

use overlock_llm::Reason;
use overlock_llm::assembler::PartState;

/// The end of one choice.
pub(super) struct Ending {
    /// The upstream's finish reason.
    reported: Option<String>,
    parts: Parts,
}

/// The state of the parts together; later variants take precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Parts {
    /// No part shows whether it is complete.
    Unclear,
    CompleteContent,
    CompleteCall,
    /// A call whose arguments may not even have begun.
    UnclearCall,
    InvalidPart,
    CutPart,
}

impl Ending {
    pub(super) fn new(reported: Option<String>) -> Self {
        let parts = Parts::Unclear;
        Self { reported, parts }
    }

    pub(super) fn add_content(&mut self, state: PartState) {
        self.add(state, Parts::CompleteContent, Parts::Unclear);
    }

    pub(super) fn add_call(&mut self, state: PartState) {
        self.add(state, Parts::CompleteCall, Parts::UnclearCall);
    }

    /// Adds a call in the older form. A complete one ends with the upstream's own finish reason,
    /// and a cut one is not continued.
    pub(super) fn add_older_call(&mut self, state: PartState) {
        if state != PartState::Complete {
            self.add_call(state);
        }
    }

    fn add(&mut self, state: PartState, complete: Parts, unclear: Parts) {
        self.parts = self.parts.max(match state {
            PartState::Complete => complete,
            PartState::Invalid => Parts::InvalidPart,
            PartState::Cut => Parts::CutPart,
            PartState::Unclear => unclear,
        });
    }

    /// The provider's filter ended a later answer.
    pub(super) fn set_withheld(&mut self) {
        *self = Self::new(Some("content_filter".to_owned()));
    }

    /// The finish reason for the client, if there is any.
    pub(super) fn finish(&self) -> Option<&str> {
        match (self.parts, self.reported.as_deref()) {
            (Parts::InvalidPart | Parts::CutPart, _) | (Parts::UnclearCall, None) => Some("length"),
            (Parts::CompleteCall, None | Some("length")) => Some("tool_calls"),
            (Parts::CompleteContent, None | Some("length")) => Some("stop"),
            (_, reported) => reported,
        }
    }

    /// Why the answer is not complete, if its finish reason shows that it is not.
    pub(super) fn reason(&self) -> Option<Reason> {
        match self.finish() {
            None => Some(Reason::NoFinish),
            Some("length") if self.parts == Parts::InvalidPart => Some(Reason::SchemaViolation),
            Some("length") => Some(Reason::NotContinued),
            Some("content_filter") => Some(Reason::ContentFilter),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
