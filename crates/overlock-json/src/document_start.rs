//! Where does the document begin in an answer that is still arriving?
//!
//! What is said before it is read once, byte by byte, and none of it is kept but a few brackets: an
//! answer may begin with any amount of talk.

/// Looks for the beginning of a document, in pieces of any size.
///
/// A document begins at the beginning, or on a line of its own after a fence, or with an object on
/// a line of its own after talk: a bracket there may be a footnote. Thoughts are no documents.
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
    state: State,
    /// Whether thoughts are over, so that there are no more of them.
    has_thought: bool,
    /// Whether a document may also begin within a line.
    is_within_lines: bool,
    /// Brackets within a line, and white space: the beginning of a document if a string follows.
    held: Vec<u8>,
    /// The byte before.
    last: u8,
}

const MARK: &[u8] = "\u{feff}".as_bytes();
const THOUGHTS: &[u8] = b"<think>";
const THOUGHTS_END: &[u8] = b"</think>";
const FENCE: &[u8] = b"```";

/// More brackets and white space than so many begin no document.
const MOST_HELD: usize = 256;

/// What has been read, with how many bytes of something that is told by several.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing but white space and byte order marks.
    Start { of_mark: usize },
    /// What may be the tag that thoughts begin with.
    Tag { matched: usize },
    /// Thoughts, up to what may be the tag that they end with.
    Thoughts { matched: usize },
    /// A line of nothing but white space and backticks.
    LineStart { backticks: usize, is_fenced: bool },
    /// More of a line. The next one may begin a document, if this one is a fence even an array.
    Line { is_fenced: bool },
}

impl Default for State {
    fn default() -> Self {
        Self::Start { of_mark: 0 }
    }
}

impl DocumentStart {
    /// Takes the next piece; where in it the document begins, if it does. What follows is for a
    /// [`Scanner`](crate::Scanner).
    pub fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, byte) in piece.iter().enumerate() {
            let held = self.held.len();
            // An object on a line of its own may be the first in an array that is held.
            if self.begins(*byte) && (held == 0 || self.holds_object()) {
                self.held.clear();
                return Some(at);
            }
            if self.is_within_lines && self.is_borne_out(*byte) {
                self.held.truncate(held.saturating_sub(at));
                return Some(at.saturating_sub(held));
            }
        }
        None
    }

    /// Takes documents also within a line of talk, and arrays on a line of their own: brackets with
    /// a string after them, as in `Sure: {"rows"`. So `{name}` and `[1]` are none, and neither is
    /// what follows a word, a backtick or another bracket at once. Who quotes JSON in talk before
    /// the document is taken at the first word, so this is for those that cannot wait for all of
    /// the answer to [weigh](crate::extract) one against the other.
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

    /// What the document that was found begins with, if that came in earlier pieces: brackets and
    /// white space.
    pub fn held(&self) -> &[u8] {
        &self.held
    }

    /// Whether this byte shows that what is held is the beginning of a document; otherwise holds
    /// what may be one.
    fn is_borne_out(&mut self, byte: u8) -> bool {
        let last = std::mem::replace(&mut self.last, byte);
        if !matches!(self.state, State::LineStart { .. } | State::Line { .. }) {
            self.held.clear();
            return false;
        }
        let goes_on = (1..MOST_HELD).contains(&self.held.len());
        match byte {
            b'"' => return !self.held.is_empty(),
            b' ' | b'\t' | b'\r' | b'\n' if goes_on => self.held.push(byte),
            b'{' | b'[' if goes_on && !self.holds_object() => self.held.push(byte),
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
            State::Start { of_mark } if byte == MARK[of_mark] => State::Start {
                of_mark: (of_mark + 1) % MARK.len(),
            },
            State::Start { of_mark: 0 } if blank => return false,
            State::Start { of_mark: 0 } if matches!(byte, b'{' | b'[') => return true,
            State::Start { of_mark: 0 } if byte == THOUGHTS[0] && !self.has_thought => {
                State::Tag { matched: 1 }
            }
            State::Start { of_mark: 0 } => State::in_line(0, false, byte),
            State::Tag { matched } if byte == THOUGHTS[matched] => {
                if matched + 1 == THOUGHTS.len() {
                    State::Thoughts { matched: 0 }
                } else {
                    State::Tag {
                        matched: matched + 1,
                    }
                }
            }
            State::Thoughts { matched } if byte == THOUGHTS_END[matched] => {
                if matched + 1 == THOUGHTS_END.len() {
                    self.has_thought = true;
                    State::default()
                } else {
                    State::Thoughts {
                        matched: matched + 1,
                    }
                }
            }
            State::Thoughts { .. } => State::Thoughts {
                matched: usize::from(byte == THOUGHTS_END[0]),
            },
            State::LineStart {
                backticks: 0,
                is_fenced,
            } if byte == b'{' || is_fenced && byte == b'[' => return true,
            State::LineStart { backticks: 0, .. } if blank => return false,
            State::LineStart {
                backticks,
                is_fenced,
            } => State::in_line(backticks, is_fenced, byte),
            State::Start { .. } | State::Tag { .. } => State::after(false, byte),
            State::Line { is_fenced } => State::after(is_fenced, byte),
        };
        false
    }
}

impl State {
    /// The state after a byte of a line that had nothing but backticks before it.
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

    /// However the text is split, the document begins at the same byte.
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
    fn a_bare_document_begins_at_the_beginning() {
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
    fn an_object_begins_on_a_line_of_its_own_after_talk() {
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
    fn brackets_of_prose_are_no_document() {
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
    fn whatever_is_found_on_lines_is_found_within_them() {
        check_within_lines("[1]", Some("[1]"));
        check_within_lines("```json\n[1]\n```", Some("[1]\n```"));
        check_within_lines("As in [1]:\n [2]\n {\"a\":", Some("{\"a\":"));
        check_within_lines("<think>\n{no}\n</think>\n[1]", Some("[1]"));
    }

    proptest! {
        #[test]
        fn a_document_begins_with_a_bracket_wherever_the_text_is_split(
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
    fn thoughts_are_no_documents() {
        check("<think>\n{no}\n</think>\n[1]", Some("[1]"));
        check(" <think>[no] <</think>{", Some("{"));
        check("<think>no</think> As asked:\n{", Some("{"));
        check("<think>\n{no}\n", None);
        check("<thing>\n{", Some("{"));
        check("<th\n{", Some("{"));
        check("<think>a</think><think>\n{", Some("{"));
    }
}
