//! Finds the stable prefix of a streamed document.
//!
//! Bytes sent to a client cannot be revised, so only text that no later decision changes is
//! released: the valid text of the document, without half an escape at its end. Text after the
//! document and text that is not JSON are left out.
//!
//! Some errors become visible late: a comma is wrong if a bracket follows it, a quote does not end a
//! string if words follow it, and `12` may become `12 o'clock`. Such ends are held back until the
//! following text confirms them, so a repair of the complete text begins with what was released.

use crate::cut::CutPlace;
use crate::document_start::DocumentStart;
use crate::partial_document::PartialDocument;
use crate::scan::{Scanner, SyntaxErrorKind};
use crate::stitch::{is_talk_after, is_telling};

/// A document that arrives in pieces.
///
/// ```
/// use overlock_json::{Arrival, StreamingDocument, PartialDocument};
///
/// let base = PartialDocument::read(r#"{"rows": ["alpha", "be"#)?;
/// let mut answer = StreamingDocument::after(&base, r#""alpha", "be"#);
/// assert_eq!(answer.feed(r#""alpha", "#), "");
/// assert_eq!(answer.feed(r#""beta""#), "ta");
/// // A bracket is held back until the next token confirms it.
/// assert_eq!(answer.feed("]"), r#"""#);
/// assert_eq!(answer.feed("} That is all."), "]}");
/// assert_eq!(answer.arrival(), Arrival::Whole);
/// # Ok::<(), overlock_json::NoJson>(())
/// ```
#[derive(Clone, Debug)]
pub struct StreamingDocument {
    scanner: Scanner,
    arrival: Arrival,
    begins: Begins,
    /// Text that has arrived but is not released yet.
    held: String,
    /// Whether only white space between the tokens of the base has arrived, which is not released.
    is_blank: bool,
    /// Half an escape at the end of the base, which is released with its other half.
    owed: String,
    /// Where the released text ends in the text that the scanner reads.
    given_len: usize,
    /// How many bytes of the answer precede the text that the scanner reads, without those of
    /// the base.
    before: usize,
    /// How many bytes the scanner had read before the answer.
    read_before: usize,
}

/// The progress of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The document has not begun or continued yet.
    Awaited,
    /// It does not begin as expected, so only the complete answer can be interpreted.
    Unclear,
    /// The document is growing.
    Growing,
    /// The document is complete. Text after it does not belong to it.
    Whole,
    /// Text that is not JSON follows: the document is cut here.
    Spoilt,
}

/// How the answer is expected to begin.
#[derive(Clone, Debug)]
enum Begins {
    /// With the document.
    Bare,
    /// With the document, perhaps after a fence and prose.
    Wrapped(DocumentStart),
    /// With the end of the base.
    Overlap(String),
}

impl StreamingDocument {
    /// An answer that begins with the document.
    pub fn document() -> Self {
        Self::new(Scanner::new(), Begins::Bare)
    }

    /// An answer that contains a document, perhaps after a fence and prose.
    pub fn wrapped_document() -> Self {
        Self::new(Scanner::new(), Begins::Wrapped(DocumentStart::default()))
    }

    /// An answer that should begin with `overlap`, the end of a cut document.
    ///
    /// The released text continues the [settled](PartialDocument::settled_len) text of that document.
    pub fn after(base: &PartialDocument<'_>, overlap: &str) -> Self {
        let mut arriving = Self::new(base.scanner().clone(), Begins::Overlap(overlap.to_owned()));
        arriving.is_blank = !base.scanner().is_in_string();
        arriving.given_len = base.settled_len();
        base.text()[base.settled_len()..].clone_into(&mut arriving.owed);
        if !base.text().ends_with(overlap) || !is_telling(base, overlap) {
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

    /// Reads the next piece and returns the text that has become stable. Not all of the text before
    /// the end of the document, or before the first error, is necessarily returned.
    pub fn feed(&mut self, piece: &str) -> String {
        match self.arrival {
            Arrival::Whole if self.is_unconfirmed() => self.grow(piece),
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

    /// Whether the brackets that close the document wait for the text after it.
    fn is_unconfirmed(&self) -> bool {
        matches!(self.begins, Begins::Overlap(_)) && self.scanner.syntax_error().is_none()
    }

    /// The progress of the answer.
    pub fn arrival(&self) -> Arrival {
        self.arrival
    }

    /// How many bytes have arrived that are not released yet.
    pub fn held_len(&self) -> usize {
        self.held.len()
    }

    /// The part of an answer that belongs to the document, including the overlap, up to where the
    /// document ended or the first error. `answer` must be all text that was fed.
    pub fn of_document<'a>(&self, answer: &'a str) -> &'a str {
        self.split(answer).0
    }

    /// The text after that part: other text, or text that is not JSON.
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
        self.arrival = self.arrival_at_end();
        if self.arrival == Arrival::Spoilt {
            // The text before the syntax error may end inside an escape.
            return String::new();
        }
        let end = self.scanner.whole_text_end();
        let read = &self.held[..end - self.given_len];
        let place = self.scanner.place();
        let settled = end
            - match self.begins {
                // Text after the document confirms it.
                Begins::Overlap(_) if self.scanner.syntax_error().is_none() => {
                    unconfirmed_len(place, read)
                }
                _ => doubtful_len(place, read),
            };
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

    fn arrival_at_end(&self) -> Arrival {
        let is_continuation = matches!(self.begins, Begins::Overlap(_));
        match self.scanner.syntax_error() {
            None if self.scanner.is_complete() => Arrival::Whole,
            None => Arrival::Growing,
            Some(syntax_error) if syntax_error.kind != SyntaxErrorKind::TrailingText => {
                Arrival::Spoilt
            }
            // More of some document follows: the brackets before it close too much.
            Some(_)
                if is_continuation
                    && !is_talk_after(&self.held, self.scanner.offset() - self.given_len) =>
            {
                Arrival::Spoilt
            }
            Some(_) => Arrival::Whole,
        }
    }

    /// Where the document begins in the held text, which ends with `piece`. If it has not begun, waits
    /// for more text or gives up.
    fn begin(&mut self, piece: &str) -> Option<usize> {
        let found = match &mut self.begins {
            Begins::Bare => bare_start(&self.held),
            Begins::Wrapped(opening) => match opening.feed(piece.as_bytes()) {
                Some(start) => Start::At(self.held.len() - piece.len() + start),
                None => Start::Later,
            },
            Begins::Overlap(overlap) => {
                if let Some(after) = self.held.strip_prefix(overlap.as_str()) {
                    // A model may repeat the overlap twice. Only the complete answer shows whether
                    // the document repeats itself.
                    let (after, again) = (after.trim_start(), overlap.trim_start());
                    if after.starts_with(again) {
                        Start::Nowhere
                    } else if again.starts_with(after) {
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

/// How many doubtful bytes are held back at most.
const DOUBTED: usize = 1024;

/// How many bytes at the end of a text that stops at a place a repair may write otherwise,
/// depending on what follows.
pub(crate) fn doubtful_len(place: Option<CutPlace>, text: &str) -> usize {
    let Some(place) = place else {
        return 0;
    };
    // Doubt does not last for ever: each piece would have to look at all of it again.
    let near = &text[text.ceil_char_boundary(text.len().saturating_sub(DOUBTED))..];
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

/// How many bytes at the end of a continuation a repair may write otherwise. A bracket that closes
/// too much shows only in the token after the next comma, so brackets wait for that.
pub(crate) fn unconfirmed_len(place: Option<CutPlace>, text: &str) -> usize {
    let doubtful = doubtful_len(place, text);
    let near = &text[text.ceil_char_boundary(text.len().saturating_sub(DOUBTED))..];
    doubtful.max(
        brackets_len(place, near.trim_end())
            .map_or(0, |len| near.len() - near.trim_end().len() + len),
    )
}

/// The length of the closing brackets at the end of a text, with a comma and a string after them, or
/// of the opening ones: those of talk open nothing.
fn brackets_len(place: Option<CutPlace>, text: &str) -> Option<usize> {
    let before = match place {
        Some(CutPlace::ContainerStart) => {
            let kept = text.trim_end_matches(['[', '{', ' ', '\t', '\r', '\n']);
            return Some(text.len() - kept.len());
        }
        Some(CutPlace::AfterColon | CutPlace::Root | CutPlace::Number | CutPlace::Literal) => {
            return None;
        }
        Some(CutPlace::String | CutPlace::Key | CutPlace::Escape) => before_string(text)?,
        _ => match text.strip_suffix('"') {
            Some(string) => before_string(string)?,
            None => text.strip_suffix(',').unwrap_or(text),
        },
    };
    let before = before.trim_end();
    let kept = before.trim_end_matches([']', '}', ' ', '\t', '\r', '\n']);
    (kept.len() < before.len()).then(|| text.len() - kept.len())
}

/// The text before a comma and the string in which a text stops.
fn before_string(text: &str) -> Option<&str> {
    let quote = text.rmatch_indices('"').map(|(at, _)| at).find(|at| {
        let before = &text[..*at];
        (before.len() - before.trim_end_matches('\\').len()).is_multiple_of(2)
    })?;
    text[..quote].trim_end().strip_suffix(',')
}

/// Whether a character may be part of a number or a literal.
fn is_of_scalar(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.')
}

/// Where the document begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    At(usize),
    /// Perhaps in the following text.
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
    fn releases_a_document_while_it_arrives() {
        let pieces = [" {\"a\"", ": [1", "2, \"x"];
        check(
            StreamingDocument::document(),
            &pieces,
            "{\"a\": [12, \"x",
            Arrival::Growing,
        );
    }

    #[test]
    fn holds_back_half_an_escape() {
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
    fn holds_back_possible_errors() {
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
    fn doubtful_text_is_bounded() {
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
    fn leaves_out_text_after_the_document() {
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
    fn leaves_out_text_that_is_not_json() {
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
    fn leaves_out_fences_and_prose() {
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
    fn an_unexpected_beginning_is_unclear() {
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
