//! Finds where the document begins in a streamed answer.
//!
//! The prose before the document is read once, byte by byte, and only a few brackets are buffered,
//! because the prose may have any length.

/// Finds the beginning of a document in pieces of any size.
///
/// A document begins at the start of the text, on a separate line after a fence, or, if it is an
/// object, on a separate line after prose, where a square bracket may be a footnote. Reasoning in
/// `<think>` is skipped.
///
/// ```
/// use overlock_json::DocumentStart;
///
/// let mut opening = DocumentStart::default();
/// assert_eq!(opening.feed(b"Here you are:\n``"), None);
/// assert_eq!(opening.feed(b"`json\n{\"rows\": ["), Some(6));
/// ```
#[derive(Clone, Debug, Default)]
pub struct DocumentStart {
    state: StartState,
    /// Whether reasoning was skipped; there is at most one such section.
    has_reasoning: bool,
    /// Whether a document may also begin within a line.
    is_within_lines: bool,
    /// Brackets and white space inside a line, which begin a document if a string follows.
    held: Vec<u8>,
    /// The byte before.
    last: u8,
}

const MARK: &[u8] = "\u{feff}".as_bytes();
const REASONING: &[u8] = b"<think>";
const REASONING_END: &[u8] = b"</think>";
const FENCE: &[u8] = b"```";

/// How many brackets and white space are held at most.
const MOST_HELD: usize = 256;

/// The position in the text, with the number of bytes matched of a longer token.
#[derive(Clone, Copy, Debug)]
enum StartState {
    /// After white space and byte order marks only.
    Start { of_mark: usize },
    /// In what may be the tag that opens the reasoning.
    Tag { matched: usize },
    /// In the reasoning, perhaps in its closing tag.
    Reasoning { matched: usize },
    /// In a line of white space and backticks.
    LineStart { backticks: usize, is_fenced: bool },
    /// In another line. The next one may begin an object, and after a fence also an array.
    Line { is_fenced: bool },
}

impl Default for StartState {
    fn default() -> Self {
        Self::Start { of_mark: 0 }
    }
}

impl DocumentStart {
    /// Reads the next piece and returns where in it the document begins, if it does. The rest is for
    /// a [`Scanner`](crate::Scanner).
    pub fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, byte) in piece.iter().enumerate() {
            let held = self.held.len();
            // An object on a separate line may be the first item of an array that is held.
            if self.begins(*byte) && (held == 0 || self.holds_object()) {
                self.held.clear();
                return Some(at);
            }
            if self.is_within_lines && self.confirms_held(*byte) {
                self.held.truncate(held.saturating_sub(at));
                return Some(at.saturating_sub(held));
            }
        }
        None
    }

    /// Also accepts documents inside a line of prose, and arrays on separate lines, if a string
    /// follows the brackets, as in `Sure: {"rows"`. So `{name}` and `[1]` are not documents, nor are
    /// brackets directly after a word, a backtick or another bracket. JSON that is quoted in the
    /// prose is taken for the document; if the complete answer is available, use
    /// [`extract`](crate::extract), which compares all candidates.
    ///
    /// ```
    /// use overlock_json::DocumentStart;
    ///
    /// let mut opening = DocumentStart::within_lines();
    /// assert_eq!(opening.feed(b"Use {name}: [ {"), None);
    /// assert_eq!(opening.feed(b"\"rows\": ["), Some(0));
    /// assert_eq!(opening.held(), b"[ {");
    /// ```
    #[must_use]
    pub fn within_lines() -> Self {
        Self {
            is_within_lines: true,
            ..Self::default()
        }
    }

    /// The beginning of the found document that was in earlier pieces: brackets and white space.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Whether this byte confirms that the held bytes begin a document; otherwise updates them.
    fn confirms_held(&mut self, byte: u8) -> bool {
        let last = std::mem::replace(&mut self.last, byte);
        if !matches!(
            self.state,
            StartState::LineStart { .. } | StartState::Line { .. }
        ) {
            self.held.clear();
            return false;
        }
        let may_grow = (1..MOST_HELD).contains(&self.held.len());
        match byte {
            b'"' => return !self.held.is_empty(),
            b' ' | b'\t' | b'\r' | b'\n' if may_grow => self.held.push(byte),
            b'{' | b'[' if may_grow && !self.holds_object() => self.held.push(byte),
            b'{' | b'[' => {
                self.held.clear();
                if matches!(last, b' ' | b'\t'..=b'\r' | b':' | b'.' | b'!' | b'?' | 0x80..) {
                    self.held.push(byte);
                }
            }
            _ => self.held.clear(),
        }
        false
    }

    fn holds_object(&self) -> bool {
        self.held.contains(&b'{')
    }

    fn begins(&mut self, byte: u8) -> bool {
        let blank = matches!(byte, b' ' | b'\t'..=b'\r');
        self.state = match self.state {
            StartState::Start { of_mark } if byte == MARK[of_mark] => StartState::Start {
                of_mark: (of_mark + 1) % MARK.len(),
            },
            StartState::Start { of_mark: 0 } if blank => return false,
            StartState::Start { of_mark: 0 } if matches!(byte, b'{' | b'[') => return true,
            StartState::Start { of_mark: 0 } if byte == REASONING[0] && !self.has_reasoning => {
                StartState::Tag { matched: 1 }
            }
            StartState::Start { of_mark: 0 } => StartState::in_line(0, false, byte),
            StartState::Tag { matched } if byte == REASONING[matched] => {
                if matched + 1 == REASONING.len() {
                    StartState::Reasoning { matched: 0 }
                } else {
                    StartState::Tag {
                        matched: matched + 1,
                    }
                }
            }
            StartState::Reasoning { matched } if byte == REASONING_END[matched] => {
                if matched + 1 == REASONING_END.len() {
                    self.has_reasoning = true;
                    StartState::default()
                } else {
                    StartState::Reasoning {
                        matched: matched + 1,
                    }
                }
            }
            StartState::Reasoning { .. } => StartState::Reasoning {
                matched: usize::from(byte == REASONING_END[0]),
            },
            StartState::LineStart {
                backticks: 0,
                is_fenced,
            } if byte == b'{' || is_fenced && byte == b'[' => return true,
            StartState::LineStart { backticks: 0, .. } if blank => return false,
            StartState::LineStart {
                backticks,
                is_fenced,
            } => StartState::in_line(backticks, is_fenced, byte),
            StartState::Start { .. } | StartState::Tag { .. } => StartState::after(false, byte),
            StartState::Line { is_fenced } => StartState::after(is_fenced, byte),
        };
        false
    }
}

impl StartState {
    /// The state after a byte of a line that has only backticks before it.
    fn in_line(backticks: usize, is_fenced: bool, byte: u8) -> Self {
        if byte != b'`' {
            Self::after(false, byte)
        } else if backticks + 1 == FENCE.len() {
            Self::Line { is_fenced: true }
        } else {
            Self::LineStart {
                backticks: backticks + 1,
                is_fenced,
            }
        }
    }

    /// The state after a byte of a line.
    fn after(is_fenced: bool, byte: u8) -> Self {
        if byte == b'\n' {
            Self::LineStart {
                backticks: 0,
                is_fenced,
            }
        } else {
            Self::Line { is_fenced }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::DocumentStart;

    #[track_caller]
    fn check(text: &str, document: Option<&str>) {
        check_with(DocumentStart::default, text, document);
    }

    #[track_caller]
    fn check_within_lines(text: &str, document: Option<&str>) {
        check_with(DocumentStart::within_lines, text, document);
    }

    /// Checks that the document begins at the same byte for every split of the text.
    #[track_caller]
    fn check_with(new: fn() -> DocumentStart, text: &str, document: Option<&str>) {
        let start = document.map(|document| text.len() - document.len());
        for split in 0..=text.len() {
            let (first, second) = text.as_bytes().split_at(split);
            let mut opening = new();
            let found = opening
                .feed(first)
                .or_else(|| Some(split + opening.feed(second)?));
            let found = found.map(|found| found - opening.held().len());
            assert_eq!(found, start, "{text:?} split at {split}");
            if let Some(start) = start {
                let held = &text.as_bytes()[start..][..opening.held().len()];
                assert_eq!(opening.held(), held, "{text:?} split at {split}");
            }
        }
        let mut opening = new();
        let mut bytes = text.bytes();
        let found = bytes.position(|byte| opening.feed(&[byte]).is_some());
        let found = found.map(|found| found - opening.held().len());
        assert_eq!(found, start, "{text:?} byte by byte");
    }

    #[test]
    fn a_bare_document_begins_at_the_start() {
        check("[1]", Some("[1]"));
        check(" \n\u{feff}\r\n{\"a\": 1}", Some("{\"a\": 1}"));
        check("\u{feff}\u{feff} [", Some("["));
        check("", None);
        check("\u{fefb}[1]", None);
    }

    #[test]
    fn a_document_begins_after_a_fence() {
        check("```json\n[1]\n```", Some("[1]\n```"));
        check("```\n\n  [1]", Some("[1]"));
        check("\u{feff}```\n[1]", Some("[1]"));
        check("Sure:\n  ```json\n{", Some("{"));
        check("``\n[1]", None);
        check("```json [1]", None);
        check("```json\nno\n[1]", None);
    }

    #[test]
    fn an_object_begins_on_a_separate_line_after_prose() {
        check("As in [1]:\n [2]\n {\"a\":", Some("{\"a\":"));
        check("Use {curly} braces.", None);
        check("`\n{", Some("{"));
    }

    #[test]
    fn a_document_begins_within_a_line_if_a_string_follows() {
        check("Sure: {\"a\": 1", None);
        check_within_lines("Sure: {\"a\": 1", Some("{\"a\": 1"));
        check_within_lines("Sure: {\n  \"a\": 1", Some("{\n  \"a\": 1"));
        check_within_lines("Sure! [\n  {\n  \"a\": 1", Some("[\n  {\n  \"a\": 1"));
        check_within_lines("Sure:\n[\n{\"a\": 1", Some("[\n{\"a\": 1"));
        check_within_lines("如下：[[\"a\"", Some("[[\"a\""));
        check_within_lines("```json {\"a\": 1", Some("{\"a\": 1"));
        check_within_lines("As in [1] { {\"a\": 1", Some("{\"a\": 1"));
    }

    #[test]
    fn brackets_in_prose_are_not_documents() {
        check_within_lines("use {name}, [1], [a](b) and {} or [ ] \"or\" {'so'}", None);
        check_within_lines("Write `{\"a\": 1}`, f({\"a\": 1}) or {{\"a\"}}", None);
        check_within_lines("function f() {\n  let a = x[\"a\"];\n}", None);
        check_within_lines("use {name}:\n{\"a\": 1", Some("{\"a\": 1"));
        check_within_lines("if (so) {\n{\"a\": 1", Some("{\"a\": 1"));
        check_within_lines("<think>so: {\"a\": 1}</think>{}", Some("{}"));
        let far = format!("Sure: {{{}\"a\": 1", " ".repeat(super::MOST_HELD));
        check_within_lines(&far, None);
    }

    #[test]
    fn finds_within_lines_what_it_finds_on_lines() {
        check_within_lines("[1]", Some("[1]"));
        check_within_lines("```json\n[1]\n```", Some("[1]\n```"));
        check_within_lines("As in [1]:\n [2]\n {\"a\":", Some("{\"a\":"));
        check_within_lines("<think>\n{no}\n</think>\n[1]", Some("[1]"));
    }

    proptest! {
        #[test]
        fn a_document_begins_with_a_bracket_for_every_split(
            text in "([{\\[\"` :\n}a1]|<think>|</think>|：){0,40}",
        ) {
            for new in [DocumentStart::default, DocumentStart::within_lines] {
                let found = new().feed(text.as_bytes());
                let document = found.map(|found| &text[found..]);
                let begins = document.is_none_or(|document| document.starts_with(['{', '[']));
                prop_assert!(begins, "{:?}", document);
                check_with(new, &text, document);
            }
        }
    }

    #[test]
    fn skips_reasoning() {
        check("<think>\n{no}\n</think>\n[1]", Some("[1]"));
        check(" <think>[no] <</think>{", Some("{"));
        check("<think>no</think> As asked:\n{", Some("{"));
        check("<think>\n{no}\n", None);
        check("<thing>\n{", Some("{"));
        check("<th\n{", Some("{"));
        check("<think>a</think><think>\n{", Some("{"));
    }
}
