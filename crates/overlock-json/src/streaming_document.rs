//! How much of an answer that is still arriving is certain to stay?
//!
//! Who passes an answer on while it is written can take nothing back. So only that is given out
//! which every later decision will keep: the valid text of a document, up to half an escape at its
//! end. What comes after the document, and what is not JSON any more, is left out.
//!
//! A slip shows late: a comma was one too many if a bracket follows it, a quote did not end a
//! string if words follow it, and `12` may become `12 o'clock`. Such ends are held back until what
//! follows bears them out, so that a repair of the whole text can still begin with what was given
//! out.

use crate::cut::CutPlace;
use crate::document_start::DocumentStart;
use crate::partial_document::PartialDocument;
use crate::scan::{Scanner, SyntaxErrorKind};

/// An answer as it arrives.
///
/// ```
/// use overlock_json::{Arrival, StreamingDocument, PartialDocument};
///
/// let base = PartialDocument::read(r#"{"rows": ["alpha", "be"#)?;
/// let mut answer = StreamingDocument::after(&base, r#""alpha", "be"#);
/// assert_eq!(answer.feed(r#""alpha", "#), "");
/// assert_eq!(answer.feed(r#""beta""#), "ta");
/// assert_eq!(answer.feed("]"), r#""]"#);
/// assert_eq!(answer.feed("} That is all."), "}");
/// assert_eq!(answer.arrival(), Arrival::Whole);
/// # Ok::<(), overlock_json::NoJson>(())
/// ```
#[derive(Clone, Debug)]
pub struct StreamingDocument {
    scanner: Scanner,
    arrival: Arrival,
    begins: Begins,
    /// What has arrived and is not given out yet.
    held: String,
    /// Whether all that came between the tokens of the base was white space, which is no news.
    is_blank: bool,
    /// Half an escape that the base ends with: it is given out with the rest of it.
    owed: String,
    /// Where the text that was given out ends in the text that the scanner reads.
    given_len: usize,
    /// How many bytes of the answer stand before the text that the scanner reads, less those of
    /// the base.
    before: usize,
    /// How many bytes the scanner had read before the answer.
    read_before: usize,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It cannot be told yet where the document begins or goes on.
    Awaited,
    /// It does not begin as it should: only all of it can tell what it is.
    Unclear,
    /// The document grows.
    Growing,
    /// The document is whole. Whatever follows is none of it.
    Whole,
    /// What follows is no JSON: the document is cut here.
    Spoilt,
}

/// What the text of interest begins with.
#[derive(Clone, Debug)]
enum Begins {
    /// A document, and nothing before it.
    Bare,
    /// A document, perhaps with a fence and prose before it.
    Wrapped(DocumentStart),
    /// The end of the base.
    Overlap(String),
}

impl StreamingDocument {
    /// An answer that is a document from its beginning.
    pub fn document() -> Self {
        Self::new(Scanner::new(), Begins::Bare)
    }

    /// An answer with a document in it, perhaps after a fence and prose.
    pub fn wrapped_document() -> Self {
        Self::new(Scanner::new(), Begins::Wrapped(DocumentStart::default()))
    }

    /// An answer that is to begin with `overlap`, the end of a document that was cut.
    ///
    /// What is given out follows on the [settled](PartialDocument::settled_len) text of that document.
    pub fn after(base: &PartialDocument<'_>, overlap: &str) -> Self {
        let mut arriving = Self::new(base.scanner().clone(), Begins::Overlap(overlap.to_owned()));
        arriving.is_blank = !base.scanner().is_in_string();
        arriving.given_len = base.settled_len();
        base.text()[base.settled_len()..].clone_into(&mut arriving.owed);
        if overlap.is_empty() || !base.text().ends_with(overlap) {
            arriving.arrival = Arrival::Unclear;
        }
        arriving
    }

    fn new(scanner: Scanner, begins: Begins) -> Self {
        Self {
            read_before: scanner.offset(),
            given_len: scanner.offset(),
            scanner,
            arrival: Arrival::Awaited,
            begins,
            held: String::new(),
            is_blank: false,
            owed: String::new(),
            before: 0,
        }
    }

    /// Takes the next piece and gives out what has become certain. That all of what comes before
    /// the end of the document, or before it is spoilt, has been given out is not promised.
    pub fn feed(&mut self, piece: &str) -> String {
        match self.arrival {
            Arrival::Unclear | Arrival::Whole | Arrival::Spoilt => String::new(),
            Arrival::Growing => self.grow(piece),
            Arrival::Awaited => {
                self.held.push_str(piece);
                match self.begin(piece) {
                    Some(from) => {
                        let text = self.held.split_off(from);
                        self.before = from;
                        self.held = std::mem::take(&mut self.owed);
                        self.arrival = Arrival::Growing;
                        self.grow(&text)
                    }
                    None => String::new(),
                }
            }
        }
    }

    /// How far the answer has come.
    pub fn arrival(&self) -> Arrival {
        self.arrival
    }

    /// How many bytes have arrived that are not given out yet.
    pub fn held_len(&self) -> usize {
        self.held.len()
    }

    /// The part of an answer that is the document's, with what it repeats: up to where the
    /// document ended or was spoilt. `answer` must be all that was fed.
    pub fn of_document<'a>(&self, answer: &'a str) -> &'a str {
        self.split(answer).0
    }

    /// What follows that part: something else, or what spoilt the document.
    pub fn after_document<'a>(&self, answer: &'a str) -> &'a str {
        self.split(answer).1
    }

    fn split<'a>(&self, answer: &'a str) -> (&'a str, &'a str) {
        if matches!(self.arrival, Arrival::Awaited | Arrival::Unclear) {
            return (answer, "");
        }
        let from = match self.begins {
            Begins::Overlap(_) => 0,
            Begins::Bare | Begins::Wrapped(_) => self.before,
        };
        let end = self.before + self.scanner.offset() - self.read_before;
        let Some(part) = answer.get(from..end) else {
            return (answer, "");
        };
        let part = match self.arrival {
            Arrival::Whole => part.trim_end(),
            _ => part,
        };
        (part, &answer[from + part.len()..])
    }

    fn grow(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        self.scanner.feed(piece.as_bytes());
        if let Some(syntax_error) = self.scanner.syntax_error() {
            self.arrival = match syntax_error.kind {
                SyntaxErrorKind::TrailingText => Arrival::Whole,
                _ => Arrival::Spoilt,
            };
        } else if self.scanner.is_complete() {
            self.arrival = Arrival::Whole;
        }
        if self.arrival == Arrival::Spoilt {
            // What stood before the syntax error is cut now, perhaps in the middle of an escape.
            return String::new();
        }
        let settled = self.scanner.whole_text_end() - self.doubtful_len();
        self.is_blank &= self.held[..settled - self.given_len].trim().is_empty();
        if self.is_blank {
            return String::new();
        }
        let rest = self.held.split_off(settled - self.given_len);
        self.given_len = settled;
        let mut given = std::mem::replace(&mut self.held, rest);
        if self.arrival == Arrival::Whole {
            given.truncate(given.trim_end().len());
        }
        given
    }

    /// How many bytes at the end of what is held a repair may write otherwise, depending on what
    /// follows.
    fn doubtful_len(&self) -> usize {
        let Some(place) = self.scanner.place() else {
            return 0;
        };
        // Nobody waits for ever: each piece would have to look at all of it again.
        let near = &self.held[self
            .held
            .ceil_char_boundary(self.held.len().saturating_sub(DOUBTED))..];
        let sure = match place {
            CutPlace::AfterComma => {
                let value = near.trim_end();
                value.strip_suffix(',').unwrap_or(value)
            }
            CutPlace::AfterKey | CutPlace::AfterValue => {
                let value = near.trim_end();
                let text = value.strip_suffix('"');
                text.unwrap_or_else(|| value.trim_end_matches(is_of_scalar))
            }
            CutPlace::Number | CutPlace::Literal => near.trim_end_matches(is_of_scalar),
            _ => near,
        };
        match near.len() - sure.len() {
            DOUBTED.. => 0,
            doubtful => doubtful,
        }
    }

    /// Where the text of interest begins in what is held, of which `piece` is the end, if that can
    /// be told. Otherwise more is awaited, or given up.
    fn begin(&mut self, piece: &str) -> Option<usize> {
        let found = match &mut self.begins {
            Begins::Bare => bare_start(&self.held),
            Begins::Wrapped(opening) => match opening.feed(piece.as_bytes()) {
                Some(start) => Start::At(self.held.len() - piece.len() + start),
                None => Start::Later,
            },
            Begins::Overlap(overlap) => {
                if let Some(after) = self.held.strip_prefix(overlap.as_str()) {
                    // A model may repeat it twice, which only all of the answer can tell from a
                    // document that repeats itself.
                    if after.starts_with(overlap.as_str()) {
                        Start::Nowhere
                    } else if overlap.starts_with(after) {
                        Start::Later
                    } else {
                        Start::At(overlap.len())
                    }
                } else if overlap.starts_with(self.held.as_str()) {
                    Start::Later
                } else {
                    Start::Nowhere
                }
            }
        };
        match found {
            Start::At(from) => return Some(from),
            Start::Later => {}
            Start::Nowhere => self.arrival = Arrival::Unclear,
        }
        None
    }
}

/// More than so many bytes are not held back in doubt.
const DOUBTED: usize = 1024;

/// Whether a character may be part of a number or a literal.
fn is_of_scalar(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.')
}

/// Where a text begins in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    At(usize),
    /// Perhaps in what is still to come.
    Later,
    Nowhere,
}

fn bare_start(text: &str) -> Start {
    let inner = text.trim_start_matches('\u{feff}').trim_start();
    match inner.bytes().next() {
        None => Start::Later,
        Some(b'{' | b'[') => Start::At(text.len() - inner.len()),
        Some(_) => Start::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut arriving: StreamingDocument, pieces: &[&str], certain: &str, arrival: Arrival) {
        let given: String = pieces.iter().map(|piece| arriving.feed(piece)).collect();
        assert_eq!(given, certain, "{pieces:?}");
        assert_eq!(arriving.arrival(), arrival, "{pieces:?}");
    }

    #[test]
    fn a_document_is_given_out_as_it_comes() {
        let pieces = [" {\"a\"", ": [1", "2, \"x"];
        check(
            StreamingDocument::document(),
            &pieces,
            "{\"a\": [12, \"x",
            Arrival::Growing,
        );
    }

    #[test]
    fn half_an_escape_is_held_back() {
        check(
            StreamingDocument::document(),
            &[r#"["a\"#],
            r#"["a"#,
            Arrival::Growing,
        );
        check(
            StreamingDocument::document(),
            &[r#"["a\ud83d"#],
            r#"["a"#,
            Arrival::Growing,
        );
        let pieces = [r#"["a\ud83d"#, r"\ude00b"];
        check(
            StreamingDocument::document(),
            &pieces,
            r#"["a\ud83d\ude00b"#,
            Arrival::Growing,
        );
    }

    #[test]
    fn what_may_turn_out_to_be_a_slip_is_held_back() {
        let held = |piece, certain| {
            check(
                StreamingDocument::document(),
                &[piece],
                certain,
                Arrival::Growing,
            );
        };
        held("[1, 2, ", "[1, 2");
        held("[1, 2", "[1, ");
        held("[1, tru", "[1, ");
        held("[1, [2] ", "[1, [2]");
        held("{\"a\" ", "{\"a");
        held("{\"a\": \"b\"\n", "{\"a\": \"b");
        held("{\"a\": \"b\",\n", "{\"a\": \"b\"");
        held("{\"a\": ", "{\"a\": ");
    }

    #[test]
    fn doubts_are_not_kept_for_ever() {
        let blank = " ".repeat(DOUBTED);
        let (piece, certain) = (format!("[1,{blank}"), format!("[1,{blank}"));
        check(
            StreamingDocument::document(),
            &[&piece],
            &certain,
            Arrival::Growing,
        );
    }

    #[test]
    fn what_follows_the_document_is_left_out() {
        let pieces = ["[1]", "\n```\nAnything else?"];
        check(
            StreamingDocument::document(),
            &pieces,
            "[1]",
            Arrival::Whole,
        );
        check(
            StreamingDocument::document(),
            &["[1] [2]"],
            "[1]",
            Arrival::Whole,
        );
    }

    #[test]
    fn what_is_no_json_is_left_out() {
        check(
            StreamingDocument::document(),
            &["[1, ", "'two']"],
            "[1",
            Arrival::Spoilt,
        );
        check(
            StreamingDocument::document(),
            &["Sure: [1]"],
            "",
            Arrival::Unclear,
        );
    }

    #[test]
    fn a_fence_and_talk_are_left_out() {
        let wrapped = StreamingDocument::wrapped_document;
        let pieces = ["Here you", " are:\n``", "`json\n", "[1, 2]\n```"];
        check(wrapped(), &pieces, "[1, 2]", Arrival::Whole);
        check(
            wrapped(),
            &["As in [1]:\n{\"a\":"],
            "{\"a\":",
            Arrival::Growing,
        );
        check(
            wrapped(),
            &["<think>\n{no}\n</think>\n[1, "],
            "[1",
            Arrival::Growing,
        );
        check(wrapped(), &["<think>\n{no}\n"], "", Arrival::Awaited);
        check(wrapped(), &[&"talk ".repeat(100)], "", Arrival::Awaited);
    }

    #[test]
    fn an_answer_that_begins_otherwise_is_unclear() {
        let base = PartialDocument::read(r#"{"rows": ["alpha", "be"#).expect("a document");
        let after = || StreamingDocument::after(&base, r#""alpha", "be"#);
        check(after(), &[r#""al"#], "", Arrival::Awaited);
        check(after(), &[r#""also"#], "", Arrival::Unclear);
        check(
            StreamingDocument::after(&base, "other"),
            &["other"],
            "",
            Arrival::Unclear,
        );
    }
}
