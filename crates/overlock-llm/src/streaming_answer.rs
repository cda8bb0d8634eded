//! Which part of an answer can be streamed while it arrives?

use overlock_json::{Arrival, PartialDocument, StreamingDocument};

use crate::continuation::{NextCall, Wants};
use crate::marker::{Marker, MarkerFilter};
use crate::progress::split_label;
use crate::strategy::Strategy;
use crate::text::{LONGEST_REPETITION, TextPrefill, expected_overlap, repeated_len};

/// The maximum length of a progress line.
const LONGEST_LABEL: usize = 200;

/// An answer that is streamed while it arrives.
#[derive(Debug)]
pub struct StreamingAnswer {
    kind: AnswerKind,
    /// Removes the markers of the prompt; a prompt for a first answer has none.
    filter: Option<MarkerFilter>,
    /// Whether text was returned, which must not be revised.
    has_streamed: bool,
    /// A first line that may be a progress line.
    label: Option<Label>,
    /// Where the answer begins after a progress line.
    start: usize,
}

/// How the answer continues.
#[derive(Debug)]
enum AnswerKind {
    Document(Box<StreamingDocument>),
    /// The continuation of a text, which may begin with a repetition.
    Text {
        start: TextStart,
        held: String,
        is_stable: bool,
    },
    /// An answer that can be joined only when it is complete.
    Unclear,
}

/// What the continuation of a text may repeat.
#[derive(Debug)]
enum TextStart {
    /// The end of this text.
    Overlap(String),
    /// The prefill of the call.
    Prefill(TextPrefill),
}

/// A first line that may be incomplete.
#[derive(Debug)]
struct Label {
    /// An answer that begins with this has no progress line.
    overlap: String,
    text: String,
}

impl StreamingAnswer {
    /// The answer to a call, given the document so far.
    pub fn new(base: Option<&PartialDocument<'_>>, ask: &NextCall) -> Self {
        let kind = match (base, ask.strategy) {
            _ if ask.wants == Wants::Kpis => AnswerKind::Unclear,
            // After an answer without a document, the run judges only complete answers.
            (None, _) if ask.iteration > 1 => AnswerKind::Unclear,
            (None, _) => AnswerKind::Document(Box::new(StreamingDocument::wrapped_document())),
            (Some(base), Some(Strategy::Overlap)) => {
                AnswerKind::Document(Box::new(StreamingDocument::after(base, &ask.overlap)))
            }
            // A repeated prefill, and the new part of a remainder, are known only at the end.
            (Some(_), _) => AnswerKind::Unclear,
        };
        let label = (ask.wants == Wants::ProgressAndDocument).then(|| Label {
            overlap: ask.overlap.clone(),
            text: String::new(),
        });
        let filter = base.map(|_| MarkerFilter::new(ask.marker.clone()));
        Self {
            label,
            ..Self::of_kind(kind, filter)
        }
    }

    fn of_kind(kind: AnswerKind, filter: Option<MarkerFilter>) -> Self {
        Self {
            kind,
            filter,
            has_streamed: false,
            label: None,
            start: 0,
        }
    }

    fn of_text_start(start: TextStart, filter: Option<MarkerFilter>) -> Self {
        let kind = AnswerKind::Text {
            start,
            held: String::new(),
            is_stable: false,
        };
        Self::of_kind(kind, filter)
    }

    /// An answer that continues a text.
    pub(crate) fn of_text(before: &str, marker: &Marker) -> Self {
        let start = before.len().saturating_sub(LONGEST_REPETITION);
        let before = before[before.ceil_char_boundary(start)..].to_owned();
        let filter = MarkerFilter::new(marker.clone());
        Self::of_text_start(TextStart::Overlap(before), Some(filter))
    }

    /// An answer that continues a prefill. Its prompt has no markers.
    pub(crate) fn after_prefill(prefill: TextPrefill) -> Self {
        Self::of_text_start(TextStart::Prefill(prefill), None)
    }

    /// Takes the next piece and returns the text that is now stable.
    pub fn feed(&mut self, piece: &str) -> String {
        let stable = match &mut self.filter {
            Some(filter) => {
                let piece = filter.feed(piece);
                self.feed_filtered(&piece)
            }
            None => self.feed_filtered(piece),
        };
        self.has_streamed |= !stable.is_empty();
        stable
    }

    fn feed_filtered(&mut self, piece: &str) -> String {
        let document = match &mut self.kind {
            AnswerKind::Document(document) => document,
            AnswerKind::Unclear => return String::new(),
            AnswerKind::Text {
                is_stable: true, ..
            } => return piece.to_owned(),
            AnswerKind::Text {
                start,
                held,
                is_stable,
            } => {
                held.push_str(piece);
                let Some(repeated) = start.repeated_len(held) else {
                    return String::new();
                };
                *is_stable = true;
                return held.split_off(repeated);
            }
        };
        let Some(label) = &mut self.label else {
            return document.feed(piece);
        };
        label.text.push_str(piece);
        let Some(start) = label.answer_start() else {
            return String::new();
        };
        let stable = document.feed(&label.text[start..]);
        (self.label, self.start) = (None, start);
        stable
    }

    /// Whether no further text can belong to the document. The text after a syntax error in a
    /// continuation can: the stitch repairs it.
    pub fn is_spoilt(&self) -> bool {
        self.has_syntax_error() && self.filter.is_none() || self.has_streamed && self.has_leaked()
    }

    fn has_syntax_error(&self) -> bool {
        matches!(&self.kind, AnswerKind::Document(document) if document.arrival() == Arrival::Spoilt)
    }

    fn has_leaked(&self) -> bool {
        self.filter.as_ref().is_some_and(MarkerFilter::has_leaked)
    }

    /// Whether an answer is cut at a marker. If no text was returned before, the run rejects the
    /// answer instead.
    pub(crate) fn is_cut_at_marker(&self, answer: &str) -> bool {
        self.has_streamed && self.has_marker(answer)
    }

    /// Whether there is a marker outside the head of an answer, complete or cut.
    fn has_marker(&self, answer: &str) -> bool {
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| filter.is_marker_in(answer))
    }

    /// The answer without text that cannot belong to the document. If a part was returned, the
    /// answer is cut at its first marker. Otherwise an answer with a marker is unchanged, so that
    /// the run rejects it.
    pub fn of_document(&self, mut answer: String) -> String {
        if self.has_marker(&answer) && !self.has_streamed {
            return answer;
        }
        if let Some(filter) = &self.filter {
            answer = filter.without_markers(&answer);
        }
        let is_repaired = self.has_syntax_error() && self.filter.is_some();
        if let (AnswerKind::Document(document), None, false) =
            (&self.kind, &self.label, is_repaired)
        {
            let text = document.of_document(&answer[self.start..]).to_owned();
            answer.truncate(self.start);
            answer.push_str(&text);
        }
        answer
    }
}

impl TextStart {
    /// How many bytes at the start of an answer are repeated; `None` until that is certain.
    fn repeated_len(&self, answer: &str) -> Option<usize> {
        match self {
            Self::Prefill(prefill) => {
                let repeated = || answer.len() - prefill.new_text(answer).len();
                (!prefill.may_repeat(answer)).then(repeated)
            }
            // The overlap is complete, or the text is too long to be a repetition.
            Self::Overlap(before)
                if answer.starts_with(expected_overlap(before))
                    || answer.len() >= LONGEST_REPETITION =>
            {
                Some(repeated_len(before, answer))
            }
            Self::Overlap(_) => None,
        }
    }
}

impl Label {
    /// Where the answer begins; `None` while its first line may still become a progress line.
    fn answer_start(&self) -> Option<usize> {
        if self.text.starts_with(&self.overlap) {
            return Some(0);
        }
        if let Some((_, rest)) = split_label(&self.text) {
            return Some(self.text.len() - rest.len());
        }
        let may_grow = !self.text.trim_start().contains('\n') && self.text.len() < LONGEST_LABEL;
        (!may_grow).then_some(0)
    }
}

#[cfg(test)]
mod tests {
    use crate::continuation::{Continuation, ContinuationOptions, ModelOutput};
    use crate::progress::Kpi;

    use super::*;

    #[test]
    fn a_line_break_in_a_separate_piece_belongs_to_the_marker_before_it() {
        let mut run = Continuation::new(ContinuationOptions {
            kpi: Kpi::Ask,
            ..ContinuationOptions::default()
        });
        let first = run.next().expect("a first call");
        let begun = ModelOutput::new(br#"{"rows": ["alpha", "beta"#, 9);
        run.answered(&first, &begun).expect("it was asked");
        let ask = run.next().expect("it is cut");
        let open = ask.marker.open("overlap");
        for rest in [
            "",
            "é",
            &ask.overlap,
            &format!("{}\", \"é\"]}}", ask.overlap),
        ] {
            let pieces = [&open, "\n", "PROGRESS: 40\n", rest];
            let mut streaming = StreamingAnswer::new(run.base(), &ask);
            for piece in pieces {
                streaming.feed(piece);
            }
            let answer = streaming.of_document(pieces.concat());
            assert_eq!(answer, format!("PROGRESS: 40\n{rest}"));
        }
    }

    #[test]
    fn an_overlap_is_recognised_after_a_marker_on_its_own_line() {
        let marker = Marker::default();
        let text = "It was a dark and stormy night; the rain fell in torrents";
        let mut streaming = StreamingAnswer::of_text(text, &marker);
        let pieces = [&marker.open("overlap"), "\n", text, ", except."];
        let streamed: String = pieces.map(|piece| streaming.feed(piece)).concat();
        assert_eq!(streamed, ", except.");
    }
}
