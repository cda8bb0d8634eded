//! What is a first answer while it arrives, and what of it can be passed on?

use overlock_json::{Arrival, Arriving};
use overlock_model::HELD_BACK;

/// A text of a first answer: its content, or the arguments of a tool call.
pub(crate) struct Reading {
    kind: Kind,
    arriving: Arriving,
    text: String,
    /// How much of the text was passed on, or will never be.
    passed: usize,
    /// How much of the document was passed on.
    given: usize,
}

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As it comes: nobody wants it continued.
    Verbatim,
    /// As JSON if it looks like it, without leaving anything out.
    Looks,
    /// As a document that was asked for: what stands around it is left out.
    Document,
}

impl Reading {
    pub(crate) fn new(kind: Kind) -> Self {
        let arriving = match kind {
            Kind::Verbatim | Kind::Looks => Arriving::document(),
            Kind::Document => Arriving::wrapped_document(HELD_BACK),
        };
        Self {
            kind,
            arriving,
            text: String::new(),
            passed: 0,
            given: 0,
        }
    }

    /// Takes the next piece and gives back what can be passed on.
    pub(crate) fn feed(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        if self.kind == Kind::Verbatim {
            self.passed = self.text.len();
            return piece.to_owned();
        }
        let certain = self.arriving.feed(piece);
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
        let is_document = matches!(
            self.arriving.arrival(),
            Arrival::Growing | Arrival::Whole | Arrival::Spoilt
        );
        if self.kind == Kind::Document && is_document {
            return String::new();
        }
        let rest = self.text[self.passed..].to_owned();
        self.passed = self.text.len();
        rest
    }

    /// Whether there is a document that is still open.
    pub(crate) fn is_open(&self) -> bool {
        match self.kind {
            Kind::Verbatim => false,
            Kind::Looks => self.arriving.arrival() == Arrival::Growing,
            // Who asked for a document is not helped by half of one and something else.
            Kind::Document => {
                matches!(self.arriving.arrival(), Arrival::Growing | Arrival::Spoilt)
            }
        }
    }

    /// Whether the document is whole; nothing if there is none.
    pub(crate) fn is_whole(&self) -> Option<bool> {
        if self.kind == Kind::Verbatim {
            return None;
        }
        match self.arriving.arrival() {
            Arrival::Whole => Some(true),
            Arrival::Growing => Some(false),
            Arrival::Spoilt => (self.kind == Kind::Document).then_some(false),
            Arrival::Awaited | Arrival::Unclear => None,
        }
    }

    /// How many bytes of the document were passed on.
    pub(crate) fn given_len(&self) -> usize {
        self.given
    }

    /// Whether there is nothing but the document.
    pub(crate) fn is_bare(&self) -> bool {
        self.document().trim() == self.text.trim()
    }

    /// All that came.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// All that was passed on: the document alone, where one was asked for.
    pub(crate) fn into_text(self) -> String {
        match (self.kind, self.arriving.arrival()) {
            (Kind::Document, Arrival::Growing | Arrival::Whole | Arrival::Spoilt) => {
                self.document().to_owned()
            }
            _ => self.text,
        }
    }

    /// The document alone, where it is one.
    pub(crate) fn document(&self) -> &str {
        self.arriving.of_document(&self.text)
    }
}
