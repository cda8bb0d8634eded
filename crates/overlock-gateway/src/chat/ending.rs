//! With which word does an answer end?
//!
//! The upstream's word stands unless something better is known. If any part of an answer is cut,
//! the answer was cut: a tool call beside a cut one must not make both look ready to be made. A part
//! that violates its schema counts like a cut one: there is no other word that clients know for it.

use overlock_llm::Reason;
use overlock_llm::assembler::PartState;

/// What is known of the end of one answer.
pub(super) struct Ending {
    /// What the upstream says.
    said: Option<String>,
    parts: Parts,
}

/// What its parts turned out to be; what comes later here counts more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Parts {
    /// Nothing that tells by itself whether it is whole.
    Nothing,
    WholeContent,
    WholeCall,
    /// Nobody can tell of a call: its arguments may not even have begun.
    UnclearCall,
    InvalidPart,
    CutPart,
}

impl Ending {
    /// An end of which the upstream says this.
    pub(super) fn said(said: Option<String>) -> Self {
        Self {
            said,
            parts: Parts::Nothing,
        }
    }

    /// The content turned out to be this.
    pub(super) fn content(&mut self, found: PartState) {
        self.find(match found {
            PartState::Complete => Parts::WholeContent,
            PartState::Invalid => Parts::InvalidPart,
            PartState::Cut => Parts::CutPart,
            PartState::Unclear => Parts::Nothing,
        });
    }

    /// A tool call turned out to be this.
    pub(super) fn call(&mut self, found: PartState) {
        self.find(match found {
            PartState::Complete => Parts::WholeCall,
            PartState::Invalid => Parts::InvalidPart,
            PartState::Cut => Parts::CutPart,
            PartState::Unclear => Parts::UnclearCall,
        });
    }

    /// A call in the older form turned out to be this. One that is whole ends with the upstream's
    /// own word, and one that is cut is not continued.
    pub(super) fn older_call(&mut self, found: PartState) {
        if found != PartState::Complete {
            self.call(found);
        }
    }

    /// The provider's filter ended what was asked for later.
    pub(super) fn withheld(&mut self) {
        (self.said, self.parts) = (Some("content_filter".to_owned()), Parts::Nothing);
    }

    fn find(&mut self, parts: Parts) {
        self.parts = self.parts.max(parts);
    }

    /// The word for it; nothing if nobody knows.
    pub(super) fn word(&self) -> Option<&str> {
        match (self.parts, self.said.as_deref()) {
            (Parts::InvalidPart | Parts::CutPart, _) | (Parts::UnclearCall, None) => Some("length"),
            (Parts::WholeCall, None | Some("length")) => Some("tool_calls"),
            (Parts::WholeContent, None | Some("length")) => Some("stop"),
            (_, said) => said,
        }
    }

    /// Why an answer with this end is not complete, where nothing else tells.
    pub(super) fn reason(&self) -> Option<Reason> {
        match self.word() {
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
    use super::*;

    #[track_caller]
    fn check_word(
        said: Option<&str>,
        content: &[PartState],
        calls: &[PartState],
        word: Option<&str>,
    ) {
        let mut ending = Ending::said(said.map(str::to_owned));
        for found in content {
            ending.content(*found);
        }
        for found in calls {
            ending.call(*found);
        }
        assert_eq!(ending.word(), word, "{said:?}, {content:?}, {calls:?}");
    }

    const WHOLE: PartState = PartState::Complete;
    const CUT: PartState = PartState::Cut;
    const UNCLEAR: PartState = PartState::Unclear;

    #[test]
    fn the_upstreams_word_stands_where_nothing_is_known_better() {
        for said in [None, Some("stop"), Some("length"), Some("tool_calls")] {
            check_word(said, &[], &[], said);
            check_word(said, &[UNCLEAR], &[], said);
        }
        check_word(Some("stop"), &[], &[WHOLE], Some("stop"));
        check_word(Some("tool_calls"), &[WHOLE], &[], Some("tool_calls"));
        check_word(Some("tool_calls"), &[], &[UNCLEAR], Some("tool_calls"));
    }

    #[test]
    fn what_is_called_cut_and_is_whole_is_called_whole() {
        for said in [None, Some("length")] {
            check_word(said, &[WHOLE], &[], Some("stop"));
            check_word(said, &[], &[WHOLE], Some("tool_calls"));
            check_word(said, &[WHOLE], &[WHOLE, WHOLE], Some("tool_calls"));
        }
    }

    #[test]
    fn a_call_of_which_nobody_knows_whether_it_is_whole_does_not_become_whole() {
        for said in [None, Some("length")] {
            check_word(said, &[], &[WHOLE, UNCLEAR], Some("length"));
            check_word(said, &[], &[UNCLEAR], Some("length"));
        }
    }

    #[test]
    fn a_part_that_violates_its_schema_never_looks_complete() {
        const INVALID: PartState = PartState::Invalid;
        for said in [None, Some("stop"), Some("length"), Some("tool_calls")] {
            check_word(said, &[INVALID], &[], Some("length"));
            check_word(said, &[INVALID], &[WHOLE], Some("length"));
            check_word(said, &[WHOLE], &[INVALID, WHOLE], Some("length"));
        }
    }

    #[test]
    fn one_cut_part_makes_a_cut_answer() {
        for said in [None, Some("stop"), Some("length"), Some("tool_calls")] {
            check_word(said, &[CUT], &[], Some("length"));
            check_word(said, &[CUT], &[WHOLE], Some("length"));
            check_word(said, &[WHOLE], &[CUT, WHOLE], Some("length"));
        }
    }
}
