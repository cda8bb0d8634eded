//! With which word does an answer end?
//!
//! The upstream's word stands unless something better is known. If any part of an answer is cut,
//! the answer was cut: a tool call beside a cut one must not make both look ready to be made.

/// What is known of the end of one answer.
#[derive(Default)]
pub(crate) struct Ending {
    /// What the upstream says.
    said: Option<String>,
    /// Whether the content is whole, if that can be told.
    content: Option<bool>,
    /// The same of every tool call: the arguments of one may not even have begun.
    calls: Vec<Option<bool>>,
}

impl Ending {
    /// An end of which the upstream says this.
    pub(crate) fn said(said: Option<String>) -> Self {
        Self {
            said,
            ..Self::default()
        }
    }

    /// The content turned out to be whole, or cut.
    pub(crate) fn content(&mut self, is_whole: bool) {
        self.content = Some(is_whole);
    }

    /// A tool call turned out to be whole, or cut, or nobody can tell.
    pub(crate) fn call(&mut self, is_whole: Option<bool>) {
        self.calls.push(is_whole);
    }

    /// The word for it, if there is one.
    pub(crate) fn word(&self) -> Option<&str> {
        let has_call = |is_whole: Option<bool>| self.calls.contains(&is_whole);
        if self.content == Some(false) || has_call(Some(false)) {
            return Some("length");
        }
        match self.said.as_deref() {
            Some("length") if has_call(None) => Some("length"),
            None | Some("length") if has_call(Some(true)) => Some("tool_calls"),
            None | Some("length") if self.content == Some(true) => Some("stop"),
            said => said,
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
    fn a_call_that_was_cut_before_its_arguments_is_cut() {
        check_word(Some("length"), &[], &[WHOLE, None], Some("length"));
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
