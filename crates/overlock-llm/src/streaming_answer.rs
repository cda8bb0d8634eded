//! What of an answer can be passed on while the model still writes it?

use overlock_json::{Arrival, PartialDocument, StreamingDocument};

use crate::continuation::{NextCall, Wants};
use crate::marker::{Marker, MarkerFilter};
use crate::progress::split_label;
use crate::strategy::Strategy;
use crate::text::{LONGEST_REPETITION, TextPrefill, asked_overlap, repeated_len};

/// A line on progress is no longer than this.
const LONGEST_LABEL: usize = 200;

/// An answer to a call, as it arrives: for whoever shows a document while it is written.
#[derive(Debug)]
pub struct StreamingAnswer {
    kind: Kind,
    /// Keeps the markers of the prompt out; a prompt for a first answer has none.
    filter: Option<MarkerFilter>,
    /// Whether any text was given out, which stays.
    has_given: bool,
    /// A first line that may be one on progress.
    label: Option<Label>,
    /// Where the answer begins after such a line.
    start: usize,
}

/// What arrives.
#[derive(Debug)]
enum Kind {
    Document(Box<StreamingDocument>),
    /// A text that may begin with a repetition of the end of another.
    Text {
        before: String,
        held: String,
        is_certain: bool,
    },
    /// A text that goes on from a beginning that was put in the model's mouth.
    PrefilledText {
        prefill: TextPrefill,
        held: String,
        is_certain: bool,
    },
    /// Something of which only all of it tells how it goes on.
    Unclear,
}

/// A first line that may still grow.
#[derive(Debug)]
struct Label {
    /// An answer that begins with this has no such line.
    overlap: String,
    text: String,
}

impl StreamingAnswer {
    /// The answer to what is asked, given the document so far.
    pub fn new(base: Option<&PartialDocument<'_>>, ask: &NextCall) -> Self {
        let kind = match (base, ask.way) {
            _ if ask.wants == Wants::Kpis => Kind::Unclear,
            // After an answer without a document, the run accepts this one only as a whole.
            (None, _) if ask.iteration > 1 => Kind::Unclear,
            (None, _) => Kind::Document(Box::new(StreamingDocument::wrapped_document())),
            (Some(base), Some(Strategy::Overlap)) => {
                Kind::Document(Box::new(StreamingDocument::after(base, &ask.overlap)))
            }
            // What a model that was put its words in the mouth repeats is seen only at the end,
            // and so is what a document of its own adds.
            (Some(_), _) => Kind::Unclear,
        };
        let label = (ask.wants == Wants::ProgressAndDocument).then(|| Label {
            overlap: ask.overlap.clone(),
            text: String::new(),
        });
        Self {
            kind,
            filter: base.map(|_| MarkerFilter::new(ask.marker.clone())),
            has_given: false,
            label,
            start: 0,
        }
    }

    /// An answer that goes on with a text.
    pub(crate) fn of_text(before: &str, marker: &Marker) -> Self {
        let start = before.len().saturating_sub(LONGEST_REPETITION);
        let before = before[before.ceil_char_boundary(start)..].to_owned();
        Self {
            kind: Kind::Text {
                before,
                held: String::new(),
                is_certain: false,
            },
            filter: Some(MarkerFilter::new(marker.clone())),
            has_given: false,
            label: None,
            start: 0,
        }
    }

    /// An answer that goes on from this beginning of a text.
    pub(crate) fn after_prefill(prefill: TextPrefill) -> Self {
        Self {
            kind: Kind::PrefilledText {
                prefill,
                held: String::new(),
                is_certain: false,
            },
            // Such a prompt has no markers.
            filter: None,
            has_given: false,
            label: None,
            start: 0,
        }
    }

    /// Takes the next piece and gives out what has become certain.
    pub fn feed(&mut self, piece: &str) -> String {
        let certain = match &mut self.filter {
            Some(filter) => {
                let piece = filter.feed(piece);
                self.feed_filtered(&piece)
            }
            None => self.feed_filtered(piece),
        };
        self.has_given |= !certain.is_empty();
        certain
    }

    fn feed_filtered(&mut self, piece: &str) -> String {
        let document = match &mut self.kind {
            Kind::Document(document) => document,
            Kind::Unclear => return String::new(),
            Kind::Text {
                is_certain: true, ..
            }
            | Kind::PrefilledText {
                is_certain: true, ..
            } => return piece.to_owned(),
            Kind::PrefilledText {
                prefill,
                held,
                is_certain,
            } => {
                held.push_str(piece);
                *is_certain = !prefill.may_repeat(held);
                return if *is_certain {
                    prefill.new_text(held).to_owned()
                } else {
                    String::new()
                };
            }
            Kind::Text {
                before,
                held,
                is_certain,
            } => {
                held.push_str(piece);
                // All that was asked for is there, or nothing that comes can make it a repetition.
                *is_certain =
                    held.starts_with(asked_overlap(before)) || held.len() >= LONGEST_REPETITION;
                if !*is_certain {
                    return String::new();
                }
                return held.split_off(repeated_len(before, held));
            }
        };
        let Some(label) = &mut self.label else {
            return document.feed(piece);
        };
        label.text.push_str(piece);
        let Some(start) = label.answer_start() else {
            return String::new();
        };
        let certain = document.feed(&label.text[start..]);
        (self.label, self.start) = (None, start);
        certain
    }

    /// Whether nothing of what is to come can belong to the document.
    pub fn is_spoilt(&self) -> bool {
        let is_no_json =
            matches!(&self.kind, Kind::Document(document) if document.arrival() == Arrival::Spoilt);
        is_no_json || self.has_given && self.has_leaked()
    }

    fn has_leaked(&self) -> bool {
        self.filter.as_ref().is_some_and(MarkerFilter::has_leaked)
    }

    /// Whether an answer ends before the marker in it. If none of it was given out, it is refused
    /// instead.
    pub(crate) fn is_cut_at_marker(&self, answer: &str) -> bool {
        self.has_given && self.has_marker(answer)
    }

    /// Whether there is a marker outside the head of an answer, whole or cut off.
    fn has_marker(&self, answer: &str) -> bool {
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| filter.is_marker_in(answer))
    }

    /// The answer without what is certain not to belong to the document. One with a marker in it
    /// ends before the marker if a part of it was given out, and else stays as it is, to be refused.
    pub fn of_document(&self, mut answer: String) -> String {
        if self.has_marker(&answer) && !self.has_given {
            return answer;
        }
        if let Some(filter) = &self.filter {
            answer = filter.without_markers(&answer);
        }
        if let (Kind::Document(document), None) = (&self.kind, &self.label) {
            let kept = document.of_document(&answer[self.start..]).to_owned();
            answer.truncate(self.start);
            answer.push_str(&kept);
        }
        answer
    }
}

impl Label {
    /// Where the answer itself begins; nothing as long as its first line may still become one on
    /// progress.
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
    fn a_line_break_in_a_piece_of_its_own_belongs_to_the_marker_before_it() {
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
            let mut arriving = StreamingAnswer::new(run.base(), &ask);
            for piece in pieces {
                arriving.feed(piece);
            }
            let answer = arriving.of_document(pieces.concat());
            assert_eq!(answer, format!("PROGRESS: 40\n{rest}"));
        }
    }

    #[test]
    fn an_overlap_is_recognised_after_a_marker_on_its_own_line() {
        let marker = Marker::default();
        let text = "It was a dark and stormy night; the rain fell in torrents";
        let mut arriving = StreamingAnswer::of_text(text, &marker);
        let pieces = [&marker.open("overlap"), "\n", text, ", except."];
        let told: String = pieces.map(|piece| arriving.feed(piece)).concat();
        assert_eq!(told, ", except.");
    }
}
