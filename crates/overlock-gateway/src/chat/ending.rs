//! With which word does an answer end?
//!
//! The upstream's word stands unless something better is known. If any part of an answer is cut,
//! the answer was cut: a tool call beside a cut one must not make both look ready to be made.

/// What is known of the end of one answer.
pub(crate) struct Ending {
    /// What the upstream says.
    said: Option<String>,
    found: Found,
}

/// What its parts turned out to be; what comes later here counts more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nothing,
    WholeContent,
    WholeCall,
    /// Nobody can tell of a call: its arguments may not even have begun.
    UnclearCall,
    CutPart,
}

impl Ending {
    /// An end of which the upstream says this.
    pub(crate) fn said(said: Option<String>) -> Self {
        Self {
            said,
            found: Found::Nothing,
        }
    }

    /// The content turned out to be whole, or cut.
    pub(crate) fn content(&mut self, is_whole: bool) {
        self.find(if is_whole {
            Found::WholeContent
        } else {
            Found::CutPart
        });
    }

    /// A tool call turned out to be whole, or cut, or nobody can tell.
    pub(crate) fn call(&mut self, is_whole: Option<bool>) {
        self.find(match is_whole {
            Some(true) => Found::WholeCall,
            Some(false) => Found::CutPart,
            None => Found::UnclearCall,
        });
    }

    fn find(&mut self, found: Found) {
        self.found = self.found.max(found);
    }

    /// The word for it, if there is one.
    pub(crate) fn word(&self) -> Option<&str> {
        match (self.found, self.said.as_deref()) {
            (Found::CutPart, _) => Some("length"),
            (Found::WholeCall, None | Some("length")) => Some("tool_calls"),
            (Found::WholeContent, None | Some("length")) => Some("stop"),
            (_, said) => said,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Option<bool> = Some(true);
    const CUT: Option<bool> = Some(false);

    #[track_caller]
    fn check_word(
        said: Option<&str>,
        content: &[bool],
        calls: &[Option<bool>],
        word: Option<&str>,
    ) {
        let mut ending = Ending::said(said.map(str::to_owned));
        for whole in content {
            ending.content(*whole);
        }
        for whole in calls {
            ending.call(*whole);
        }
        assert_eq!(ending.word(), word, "{said:?}, {content:?}, {calls:?}");
    }

    #[test]
    fn the_upstreams_word_stands_where_nothing_is_known_better() {
        for said in [None, Some("stop"), Some("length"), Some("tool_calls")] {
            check_word(said, &[], &[], said);
        }
        check_word(Some("stop"), &[], &[WHOLE], Some("stop"));
        check_word(Some("tool_calls"), &[true], &[], Some("tool_calls"));
        check_word(Some("tool_calls"), &[], &[None], Some("tool_calls"));
    }

    #[test]
    fn what_is_called_cut_and_is_whole_is_called_whole() {
        for said in [None, Some("length")] {
            check_word(said, &[true], &[], Some("stop"));
            check_word(said, &[], &[WHOLE], Some("tool_calls"));
            check_word(said, &[true], &[WHOLE, WHOLE], Some("tool_calls"));
        }
    }

    #[test]
    fn a_call_that_was_cut_before_its_arguments_does_not_become_whole() {
        for said in [None, Some("length")] {
            check_word(said, &[], &[WHOLE, None], said);
        }
    }

    #[test]
    fn one_cut_part_makes_a_cut_answer() {
        for said in [None, Some("stop"), Some("length"), Some("tool_calls")] {
            check_word(said, &[false], &[], Some("length"));
            check_word(said, &[false], &[WHOLE], Some("length"));
            check_word(said, &[true], &[CUT, WHOLE], Some("length"));
        }
    }
}
