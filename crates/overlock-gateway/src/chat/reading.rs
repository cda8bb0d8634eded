//! What is a first answer while it arrives, what of it can be passed on, and is it whole?

use overlock_json::{Arrival, Arriving, Base, Scanner};
use overlock_model::{HELD_BACK, StepEnd};

use super::first::First;

/// A text of a first answer: its content, or the arguments of a tool call.
pub(crate) struct Reading {
    kind: Kind,
    /// Whether it goes on as it comes: nobody wants it continued.
    is_verbatim: bool,
    arriving: Arriving,
    text: String,
    /// Where the text begins that `arriving` reads: behind the opening line of a fence, or at 0.
    start: usize,
    fences: FenceFinder,
    /// How much of the text was passed on, or will never be.
    passed: usize,
    /// How much of the document was passed on.
    given: usize,
}

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As JSON if it looks like it, without leaving anything out.
    Looks,
    /// As a document that was asked for: what stands around it is left out.
    Document,
    /// As the arguments of a tool call, which are JSON if they are anything.
    Arguments,
}

/// What a text turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A document that is whole, with nothing after it but white space or the end of a fence.
    Whole,
    /// A document that is whole, and violates a schema that it has to match.
    Invalid,
    /// A document that is cut.
    Cut,
    /// Nothing that tells by itself whether it is whole, such as text after a whole document.
    Unclear,
}

impl Reading {
    /// A text that is to be continued where it is cut.
    pub(crate) fn new(kind: Kind) -> Self {
        let arriving = match kind {
            Kind::Looks | Kind::Arguments => Arriving::document(),
            Kind::Document => Arriving::wrapped_document(HELD_BACK),
        };
        Self {
            kind,
            is_verbatim: false,
            arriving,
            text: String::new(),
            start: 0,
            fences: FenceFinder::default(),
            passed: 0,
            given: 0,
        }
    }

    /// A text that goes on as it comes. Whether it is whole is found out all the same.
    pub(crate) fn verbatim(kind: Kind) -> Self {
        Self {
            is_verbatim: true,
            ..Self::new(kind)
        }
    }

    /// Takes the next piece and gives back what can be passed on.
    pub(crate) fn feed(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        let mut certain = self.arriving.feed(piece);
        if self.is_verbatim {
            self.passed = self.text.len();
            return piece.to_owned();
        }
        if self.may_be_fenced()
            && let Some(start) = self.fences.find(&self.text)
        {
            self.start = start;
            self.arriving = Arriving::document();
            certain = self.arriving.feed(&self.text[start..]);
        }
        self.given += certain.len();
        let verbatim_to = match (self.kind, self.arriving.arrival()) {
            (_, Arrival::Awaited) => return String::new(),
            (Kind::Document, Arrival::Growing | Arrival::Whole | Arrival::Spoilt) => {
                self.passed = self.text.len();
                return certain;
            }
            (_, Arrival::Growing) => self.text.len() - self.arriving.held_len(),
            // It is no document, or none any more.
            (_, Arrival::Unclear | Arrival::Whole | Arrival::Spoilt) => self.text.len(),
        };
        let given = self.text[self.passed..verbatim_to].to_owned();
        self.passed = verbatim_to;
        given
    }

    /// What was held back and is still owed when the answer ends, if nothing continues it.
    pub(crate) fn rest(&mut self) -> String {
        if self.is_left_out() {
            return String::new();
        }
        let rest = self.text[self.passed..].to_owned();
        self.passed = self.text.len();
        rest
    }

    /// Whether only the document is passed on, and what stands around it is left out.
    fn is_left_out(&self) -> bool {
        let has_begun = matches!(
            self.arriving.arrival(),
            Arrival::Growing | Arrival::Whole | Arrival::Spoilt
        );
        self.kind == Kind::Document && !self.is_verbatim && has_begun
    }

    /// Whether there is a document that is still open and is to be continued.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_verbatim && self.arriving.arrival() == Arrival::Growing
    }

    /// Whether a document was asked for and only all of the text tells what it is: it holds more
    /// than a document, or something that has to be repaired, or none has begun yet.
    pub(crate) fn is_to_be_read_again(&self) -> bool {
        let is_plain = match self.arriving.arrival() {
            Arrival::Growing | Arrival::Unclear => true,
            Arrival::Whole => self.is_bare(),
            Arrival::Awaited | Arrival::Spoilt => false,
        };
        self.kind == Kind::Document && !self.is_verbatim && !is_plain
    }

    /// Whether a document in a fence may still begin in a text that is not one itself.
    fn may_be_fenced(&self) -> bool {
        let is_text = self.arriving.arrival() == Arrival::Unclear;
        self.kind == Kind::Looks && is_text && !self.is_fenced()
    }

    fn is_fenced(&self) -> bool {
        self.start > 0
    }

    /// What stands before the document and was passed on, such as the opening line of its fence.
    pub(crate) fn before_document(&self) -> &str {
        match self.kind {
            Kind::Looks => &self.text[..self.start],
            Kind::Document | Kind::Arguments => "",
        }
    }

    /// What ends the text once the document is whole: the closing line of its fence.
    pub(crate) fn closing(&self) -> &'static str {
        if self.is_fenced() { "\n```" } else { "" }
    }

    /// What it turned out to be, by itself.
    pub(crate) fn found(&self) -> Found {
        match (self.arriving.arrival(), self.kind) {
            (Arrival::Growing, _) => Found::Cut,
            // More text may follow a fence.
            _ if self.is_fenced() => Found::Unclear,
            (Arrival::Whole, _) if self.is_bare() => Found::Whole,
            (Arrival::Spoilt, Kind::Document | Kind::Arguments) => match Base::read(&self.text) {
                Ok(base) if !base.is_complete() => Found::Cut,
                _ => Found::Unclear,
            },
            (Arrival::Unclear, Kind::Arguments) => scalar_found(&self.text),
            _ => Found::Unclear,
        }
    }

    /// How many bytes of the document were passed on.
    pub(crate) fn given_len(&self) -> usize {
        self.given
    }

    /// What of the document was passed on.
    pub(crate) fn given(&self) -> &str {
        self.document().get(..self.given).unwrap_or_default()
    }

    /// Whether nothing follows the document but white space or the end of a fence.
    fn is_bare(&self) -> bool {
        let after = self.arriving.after_document(&self.text[self.start..]);
        after.trim().trim_matches('`').is_empty()
    }

    /// What follows on what was passed on of the document, as it came.
    pub(crate) fn not_given(&self) -> String {
        let document = self.document().get(self.given..).unwrap_or_default();
        let after = self.arriving.after_document(&self.text[self.start..]);
        [document, after].concat()
    }

    /// Whether a document was whole, whatever followed it.
    pub(crate) fn has_whole_document(&self) -> bool {
        self.arriving.arrival() == Arrival::Whole
    }

    /// Whether all of the text, read as one document, is another one than its first: there are
    /// several, and nobody can tell which one was meant.
    pub(crate) fn is_one_of_several(&self, read: Option<&Base<'_>>) -> bool {
        let is_first = |base: &Base<'_>| base.text().trim() == self.document().trim();
        self.has_whole_document() && !read.is_some_and(is_first)
    }

    /// Whether there is nothing but the document.
    pub(crate) fn is_alone(&self) -> bool {
        self.document().trim() == self.text.trim()
    }

    /// The text as a first answer of which the document is kept, with what was left out around it
    /// where one was asked for.
    pub(crate) fn first<'a>(&'a self, end: &'a StepEnd) -> First<'a> {
        let document = self.document();
        match self.kind {
            Kind::Document => First {
                came: &self.text,
                document,
                end,
            },
            Kind::Looks | Kind::Arguments => First::all(document, end),
        }
    }

    /// All that came.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// All that was passed on: the document alone, where one was asked for.
    pub(crate) fn into_text(self) -> String {
        if self.is_left_out() {
            self.document().to_owned()
        } else {
            self.text
        }
    }

    /// The document alone, where it is one.
    pub(crate) fn document(&self) -> &str {
        self.arriving.of_document(&self.text[self.start..])
    }
}

/// Finds the first JSON document in a fenced block of a text that is still arriving.
#[derive(Default)]
struct FenceFinder {
    /// Where the line begins that has not ended yet.
    line: usize,
    /// Up to where that line has been searched for its end.
    searched: usize,
    block: Block,
}

/// What the lines of a text belong to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Block {
    /// No fenced block.
    #[default]
    None,
    /// A block that is marked as JSON, or not marked, and has no content yet.
    Json,
    /// A block of anything else.
    Other,
}

impl FenceFinder {
    /// Where the document begins. `text` must be what it was before, and more.
    fn find(&mut self, text: &str) -> Option<usize> {
        loop {
            if self.block == Block::Json {
                let content = text[self.line..].trim_start();
                match content.chars().next() {
                    None => return None,
                    Some('{' | '[') => return Some(text.len() - content.len()),
                    Some(_) => self.block = Block::Other,
                }
            }
            let from = self.searched.max(self.line);
            self.searched = text.len();
            let end = from + text[from..].find('\n')?;
            let line = text[self.line..end].trim();
            self.line = end + 1;
            self.searched = self.line;
            let Some(info) = line.strip_prefix("```").map(str::trim) else {
                continue;
            };
            self.block = match self.block {
                Block::None if info.is_empty() || info.eq_ignore_ascii_case("json") => Block::Json,
                Block::None => Block::Other,
                Block::Json | Block::Other if info.is_empty() => Block::None,
                block => block,
            };
        }
    }
}

/// What a text is that may be a string, a number or a literal.
fn scalar_found(text: &str) -> Found {
    let text = text.trim();
    let mut scanner = Scanner::new();
    scanner.feed(text.as_bytes());
    match scanner.cut() {
        _ if scanner.offence().is_some() || text.is_empty() => Found::Unclear,
        None => Found::Whole,
        Some(_) => Found::Cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: Kind, text: &str, found: Found) {
        for mut reading in [Reading::new(kind), Reading::verbatim(kind)] {
            reading.feed(text);
            assert_eq!(reading.found(), found, "{kind:?}: {text:?}");
        }
    }

    #[test]
    fn a_bare_document_tells_by_itself_whether_it_is_whole() {
        for kind in [Kind::Looks, Kind::Document, Kind::Arguments] {
            check(kind, "{\"a\": 1}", Found::Whole);
            check(kind, "[1]\n```\n", Found::Whole);
            check(kind, "{\"a\": ", Found::Cut);
        }
        check(Kind::Document, "Sure:\n```json\n[1]\n```", Found::Whole);
    }

    #[test]
    fn text_after_a_whole_document_is_text() {
        for kind in [Kind::Looks, Kind::Document, Kind::Arguments] {
            check(
                kind,
                "{\"a\": 1}\n\nNow let me explain that",
                Found::Unclear,
            );
            check(kind, "[1] Smith says that and", Found::Unclear);
            check(kind, "{\"a\": 1}\n{\"a\": 2}\n{\"a\"", Found::Unclear);
        }
    }

    #[test]
    fn json_in_a_fence_is_found_wherever_the_text_is_divided() {
        let before = "Sure, an [example]:\n\n```python\nrows = [\n```\n\n```json\n";
        let document = "{\"rows\": [\"a ``` b\", 12";
        let text = [before, document].concat();
        for size in 1..text.len() {
            let mut reading = Reading::new(Kind::Looks);
            let mut given = String::new();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(size.min(rest.len()));
                given += &reading.feed(piece);
                rest = after;
            }
            assert_eq!(reading.found(), Found::Cut, "pieces of {size}");
            assert!(reading.is_open());
            assert_eq!(reading.before_document(), before);
            assert_eq!(reading.document(), document);
            assert_eq!(given, [before, reading.given()].concat());
            assert_eq!(given + &reading.rest(), text);
        }
    }

    #[test]
    fn a_fence_around_something_else_is_text() {
        for text in [
            "```python\n[1, 2",
            "```\nrows\n[1, 2",
            "```json\n{\"a\": 1}\n```\n",
            "```json\n{\"a\": 1}\n```\nThis",
            "```json\n{\"a\": 1}\n```\n```json\n{\"b\"",
            "see ```json {\"a\": ",
        ] {
            check(Kind::Looks, text, Found::Unclear);
        }
    }

    #[test]
    fn arguments_that_were_cut_are_known_by_what_they_are() {
        check(Kind::Arguments, "\"cut string", Found::Cut);
        check(Kind::Arguments, "{'city': 'Ber", Found::Cut);
        check(Kind::Arguments, "{'city': 'Berlin'}", Found::Unclear);
        check(Kind::Arguments, "null", Found::Whole);
        check(Kind::Arguments, "", Found::Unclear);
        check(Kind::Arguments, "city=Berlin", Found::Unclear);
    }
}
