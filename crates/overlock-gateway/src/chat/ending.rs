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
mod tests {
    use super::PartState::{Complete, Cut, Invalid, Unclear};
    use super::*;

    const ANY: [Option<&str>; 4] = [None, Some("stop"), Some("length"), Some("tool_calls")];

    #[track_caller]
    fn check(
        reported: Option<&str>,
        content: &[PartState],
        calls: &[PartState],
        finish: Option<&str>,
    ) {
        let mut ending = Ending::new(reported.map(str::to_owned));
        for state in content {
            ending.add_content(*state);
        }
        for state in calls {
            ending.add_call(*state);
        }
        let found = ending.finish();
        assert_eq!(found, finish, "{reported:?}, {content:?}, {calls:?}");
    }

    #[test]
    fn keeps_the_finish_reason_of_the_upstream() {
        for reported in ANY {
            check(reported, &[], &[], reported);
            check(reported, &[Unclear], &[], reported);
        }
        check(Some("stop"), &[], &[Complete], Some("stop"));
        check(Some("tool_calls"), &[Complete], &[], Some("tool_calls"));
        check(Some("tool_calls"), &[], &[Unclear], Some("tool_calls"));
    }

    #[test]
    fn an_answer_reported_as_cut_is_complete_if_its_parts_are() {
        for reported in [None, Some("length")] {
            check(reported, &[Complete], &[], Some("stop"));
            check(reported, &[], &[Complete], Some("tool_calls"));
            check(reported, &[Complete], &[Complete; 2], Some("tool_calls"));
        }
    }

    #[test]
    fn an_unclear_call_does_not_become_complete() {
        for reported in [None, Some("length")] {
            check(reported, &[], &[Complete, Unclear], Some("length"));
            check(reported, &[], &[Unclear], Some("length"));
        }
    }

    #[test]
    fn one_cut_or_invalid_part_makes_a_cut_answer() {
        for reported in ANY {
            for state in [Cut, Invalid] {
                check(reported, &[state], &[], Some("length"));
                check(reported, &[state], &[Complete], Some("length"));
                check(reported, &[Complete], &[state, Complete], Some("length"));
            }
        }
    }
}
