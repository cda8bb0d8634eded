//! Where does the document begin in an answer that is still arriving?
//!
//! What is said before it is read once, byte by byte, and none of it is kept: an answer may begin
//! with any amount of talk.

/// Looks for the beginning of a document, in pieces of any size.
///
/// A document begins at the beginning, or on a line of its own after a fence, or with an object on
/// a line of its own after talk: a bracket there may be a footnote. Thoughts are no documents.
///
/// ```
/// use overlock_json::Opening;
///
/// let mut opening = Opening::default();
/// assert_eq!(opening.feed(b"Here you are:\n``"), None);
/// assert_eq!(opening.feed(b"`json\n{\"rows\": ["), Some(6));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Opening {
    state: State,
    /// Whether thoughts are over, so that there are no more of them.
    has_thought: bool,
}

const MARK: &[u8] = "\u{feff}".as_bytes();
const THOUGHTS: &[u8] = b"<think>";
const THOUGHTS_END: &[u8] = b"</think>";
const FENCE: &[u8] = b"```";

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

impl Opening {
    /// Takes the next piece; where in it the document begins, if it does. What follows is for a
    /// [`Scanner`](crate::Scanner).
    pub fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        piece.iter().position(|byte| self.begins(*byte))
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
    use super::Opening;

    /// However the text is split, the document begins at the same byte.
    #[track_caller]
    fn check(text: &str, document: Option<&str>) {
        let start = document.map(|document| text.len() - document.len());
        for split in 0..=text.len() {
            let (first, second) = text.as_bytes().split_at(split);
            let mut opening = Opening::default();
            let found = opening
                .feed(first)
                .or_else(|| Some(split + opening.feed(second)?));
            assert_eq!(found, start, "{text:?} split at {split}");
        }
        let mut opening = Opening::default();
        let mut bytes = text.bytes();
        let found = bytes.position(|byte| opening.feed(&[byte]).is_some());
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
