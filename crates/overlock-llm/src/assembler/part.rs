//! One part of an answer: which of its bytes are stable, and whether it is complete.

use overlock_json::{Arrival, PartialDocument, Scanner, StreamingDocument};

use super::fence::FenceFinder;

/// A part of an answer: its content, or the arguments of a tool call.
pub struct PartText {
    kind: PartKind,
    delivery: Delivery,
    streaming: StreamingDocument,
    text: String,
    /// Where the text begins that `streaming` reads: after the opening line of a fence, or 0.
    start: usize,
    fences: FenceFinder,
    /// How many bytes of the text were released or dropped.
    passed: usize,
    /// How many bytes of the document were released.
    released: usize,
}

/// When the client gets the bytes of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// As soon as they are stable.
    Streamed,
    /// As they arrive: the client wants no continuation, so nothing changes.
    Verbatim,
    /// Once the answer has ended: until then it can change.
    AtEnd,
}

/// The expected content of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Any text. It is a document if it looks like JSON, or contains JSON in a fence.
    Detect,
    /// The document that was requested. The text around it is left out.
    Document,
    /// The arguments of a tool call.
    Arguments,
}

/// The state of a part at the end of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartState {
    /// A complete document, with nothing after it but white space or the end of a fence.
    Complete,
    /// A complete document that violates its schema.
    Invalid,
    /// A document that stops early.
    Cut,
    /// Text that does not show whether it is complete, such as prose.
    Unclear,
}

impl PartText {
    /// An empty part.
    pub fn new(kind: PartKind, delivery: Delivery) -> Self {
        let streaming = match kind {
            PartKind::Detect | PartKind::Arguments => StreamingDocument::document(),
            PartKind::Document => StreamingDocument::wrapped_document(),
        };
        Self {
            kind,
            delivery,
            streaming,
            text: String::new(),
            start: 0,
            fences: FenceFinder::default(),
            passed: 0,
            released: 0,
        }
    }

    /// Takes the next piece and returns the bytes that can go to the client now.
    pub fn feed(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        let mut stable = self.streaming.feed(piece);
        if self.delivery == Delivery::Verbatim {
            self.passed = self.text.len();
            return piece.to_owned();
        }
        if self.may_be_fenced()
            && let Some(start) = self.fences.find(&self.text)
        {
            self.start = start;
            self.streaming = StreamingDocument::document();
            stable = self.streaming.feed(&self.text[start..]);
        }
        if self.delivery == Delivery::AtEnd {
            return String::new();
        }
        self.released += stable.len();
        let released_to = match (self.kind, self.streaming.arrival()) {
            (_, Arrival::Awaited) => return String::new(),
            (PartKind::Document, Arrival::Growing | Arrival::Whole | Arrival::Spoilt) => {
                self.passed = self.text.len();
                return stable;
            }
            (_, Arrival::Growing) => self.text.len() - self.streaming.held_len(),
            // It is not a document, or no longer one.
            (_, Arrival::Unclear | Arrival::Whole | Arrival::Spoilt) => self.text.len(),
        };
        let released = self.text[self.passed..released_to].to_owned();
        self.passed = released_to;
        released
    }

    /// The bytes that were held back, for a part that is not continued.
    pub fn rest(&mut self) -> String {
        if self.is_document_alone() {
            let rest = self.document().get(self.released..);
            let rest = rest.unwrap_or_default().to_owned();
            self.released += rest.len();
            return rest;
        }
        let rest = self.text[self.passed..].to_owned();
        self.passed = self.text.len();
        rest
    }

    /// Whether the client gets the document without the text around it.
    fn is_document_alone(&self) -> bool {
        let has_begun = matches!(
            self.streaming.arrival(),
            Arrival::Growing | Arrival::Whole | Arrival::Spoilt
        );
        self.kind == PartKind::Document && self.is_continued() && has_begun
    }

    /// Whether the client wants it to be continued.
    pub fn is_continued(&self) -> bool {
        self.delivery != Delivery::Verbatim
    }

    /// Whether the client has received anything of it.
    pub fn is_sent(&self) -> bool {
        self.passed > 0
    }

    /// Whether there is an open document that has to be continued.
    pub fn is_open(&self) -> bool {
        self.is_continued() && self.streaming.arrival() == Arrival::Growing
    }

    /// Whether all of it was released, and nothing about it can change unless it was cut.
    pub fn is_settled(&self) -> bool {
        self.passed == self.text.len() && !self.is_open() && !self.needs_reread()
    }

    /// Whether a document was requested and the full text must be read again: it contains more than
    /// a document, needs repair, or no document has begun.
    pub fn needs_reread(&self) -> bool {
        let is_plain = match self.streaming.arrival() {
            Arrival::Growing | Arrival::Unclear => true,
            Arrival::Whole => self.is_bare(),
            Arrival::Awaited | Arrival::Spoilt => false,
        };
        self.kind == PartKind::Document && self.is_continued() && !is_plain
    }

    /// Whether a document in a fence may still begin in the text.
    fn may_be_fenced(&self) -> bool {
        let is_text = self.streaming.arrival() == Arrival::Unclear;
        self.kind == PartKind::Detect && is_text && !self.is_fenced()
    }

    fn is_fenced(&self) -> bool {
        self.start > 0
    }

    /// The text before the document that is kept, such as the opening line of its fence.
    pub fn before_document(&self) -> &str {
        if self.kind == PartKind::Document {
            return "";
        }
        let after = self.streaming.after_document(&self.text[self.start..]);
        let end = self.text.len() - after.len() - self.document().len();
        &self.text[..end]
    }

    /// The text after the complete document: the closing line of its fence, if any.
    pub fn closing(&self) -> &'static str {
        if self.is_fenced() { "\n```" } else { "" }
    }

    /// Its state, judged by the text alone.
    pub fn state(&self) -> PartState {
        match (self.streaming.arrival(), self.kind) {
            (Arrival::Growing, _) => PartState::Cut,
            // More text may follow a fence.
            _ if self.is_fenced() => PartState::Unclear,
            (Arrival::Whole, _) if self.is_bare() => PartState::Complete,
            (Arrival::Spoilt, PartKind::Document | PartKind::Arguments) => {
                match PartialDocument::read(&self.text) {
                    Ok(base) if !base.is_complete() => PartState::Cut,
                    _ => PartState::Unclear,
                }
            }
            (Arrival::Unclear, PartKind::Arguments) => scalar_state(&self.text),
            _ => PartState::Unclear,
        }
    }

    /// The released part of the document.
    pub fn released(&self) -> &str {
        self.document().get(..self.released).unwrap_or_default()
    }

    /// Whether nothing follows the document but white space or the end of a fence.
    fn is_bare(&self) -> bool {
        let after = self.streaming.after_document(&self.text[self.start..]);
        after.trim().trim_matches('`').is_empty()
    }

    /// The text after the released part of the document.
    pub fn unreleased(&self) -> String {
        let document = self.document().get(self.released..).unwrap_or_default();
        let after = self.streaming.after_document(&self.text[self.start..]);
        [document, after].concat()
    }

    /// Whether there is a complete document, perhaps followed by other text.
    pub fn has_complete_document(&self) -> bool {
        self.streaming.arrival() == Arrival::Whole
    }

    /// Whether the full text, read as one document, differs from the first document in it. Then
    /// there are several, and it is unclear which one was meant.
    pub fn is_one_of_several(&self, read: Option<&PartialDocument<'_>>) -> bool {
        let is_first = |base: &PartialDocument<'_>| base.text().trim() == self.document().trim();
        self.has_complete_document() && !read.is_some_and(is_first)
    }

    /// The full text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text for the client, if nothing continues it: the document alone, if one was requested.
    pub fn delivered(&self) -> &str {
        if self.is_document_alone() {
            self.document()
        } else {
            &self.text
        }
    }

    /// The text that the recorded run starts with: if a document was requested, this includes the
    /// text around it.
    pub fn recorded_text(&self) -> &str {
        match self.kind {
            PartKind::Document => &self.text,
            PartKind::Detect | PartKind::Arguments => self.document(),
        }
    }

    /// The document alone, if there is one.
    pub fn document(&self) -> &str {
        self.streaming.of_document(&self.text[self.start..])
    }
}

/// The state of a text that may be a string, a number or a literal.
fn scalar_state(text: &str) -> PartState {
    let text = text.trim();
    let mut scanner = Scanner::new();
    scanner.feed(text.as_bytes());
    match scanner.cut() {
        _ if scanner.syntax_error().is_some() || text.is_empty() => PartState::Unclear,
        None => PartState::Complete,
        Some(_) => PartState::Cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: PartKind, text: &str, state: PartState) {
        for delivery in [Delivery::Streamed, Delivery::Verbatim, Delivery::AtEnd] {
            let mut part = PartText::new(kind, delivery);
            part.feed(text);
            assert_eq!(part.state(), state, "{kind:?}: {text:?}");
        }
    }

    #[test]
    fn a_bare_document_shows_whether_it_is_complete() {
        for kind in [PartKind::Detect, PartKind::Document, PartKind::Arguments] {
            check(kind, "{\"a\": 1}", PartState::Complete);
            check(kind, "[1]\n```\n", PartState::Complete);
            check(kind, "{\"a\": ", PartState::Cut);
        }
        check(
            PartKind::Document,
            "Sure:\n```json\n[1]\n```",
            PartState::Complete,
        );
    }

    #[test]
    fn text_after_a_complete_document_is_text() {
        for kind in [PartKind::Detect, PartKind::Document, PartKind::Arguments] {
            check(
                kind,
                "{\"a\": 1}\n\nNow let me explain that",
                PartState::Unclear,
            );
            check(kind, "[1] Smith says that and", PartState::Unclear);
            check(kind, "{\"a\": 1}\n{\"a\": 2}\n{\"a\"", PartState::Unclear);
        }
    }

    #[test]
    fn json_in_a_fence_is_found_for_every_piece_size() {
        let before = "Sure, an [example]:\n\n```python\nrows = [\n```\n\n```json\n";
        let document = "{\"rows\": [\"a ``` b\", 12";
        let text = [before, document].concat();
        for size in 1..text.len() {
            let mut part = PartText::new(PartKind::Detect, Delivery::Streamed);
            let mut released = String::new();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(size.min(rest.len()));
                released += &part.feed(piece);
                rest = after;
            }
            assert_eq!(part.state(), PartState::Cut, "pieces of {size}");
            assert!(part.is_open());
            assert_eq!(part.before_document(), before);
            assert_eq!(part.document(), document);
            assert_eq!(released, [before, part.released()].concat());
            assert_eq!(released + &part.rest(), text);
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
            check(PartKind::Detect, text, PartState::Unclear);
        }
    }

    #[test]
    fn cut_arguments_are_recognised_by_their_type() {
        check(PartKind::Arguments, "\"cut string", PartState::Cut);
        check(PartKind::Arguments, "{'city': 'Ber", PartState::Cut);
        check(
            PartKind::Arguments,
            "{'city': 'Berlin'}",
            PartState::Unclear,
        );
        check(PartKind::Arguments, "null", PartState::Complete);
        check(PartKind::Arguments, "", PartState::Unclear);
        check(PartKind::Arguments, "city=Berlin", PartState::Unclear);
    }
}
