//! Requests for the contexts of a cut text.

use crate::{ContextOptions, Cut, PartialDocument};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::{Object, Refusal, is_zero};

/// The reply: the forms of a cut document for a continuation prompt.
///
/// It contains the text several times, so the text is borrowed.
#[derive(Debug, Serialize)]
pub struct CutContexts<'a> {
    overlap_context: &'a str,
    hierarchy_context: &'a str,
    hierarchy_context_for_prompt: String,
    complete_part: ClosedForm<'a>,
    parsing_success: bool,
    cut: Option<Cut>,
    cut_off_element: &'a str,
    element_before_cutoff: &'a str,
    section_count: usize,
    delivered: String,
    #[serde(skip_serializing_if = "is_zero")]
    other_documents: usize,
}

/// A closed document: the kept prefix of the text and the closing brackets.
#[derive(Debug, Default)]
struct ClosedForm<'a> {
    kept: &'a str,
    closers: String,
}

impl Serialize for ClosedForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}{}", self.kept, self.closers))
    }
}

/// The contexts of a document.
pub fn cut_contexts<'a>(base: &'a PartialDocument<'_>) -> CutContexts<'a> {
    let options = ContextOptions::default();
    let delivered = base.delivered();
    let closing = base.scanner().closing(false);
    let elements = base.cut_elements();
    CutContexts {
        overlap_context: base.overlap_context(options.answer_chars),
        hierarchy_context: base.text(),
        hierarchy_context_for_prompt: base.render(&options.render),
        parsing_success: closing.is_some(),
        complete_part: closing.map_or(ClosedForm::default(), |closing| ClosedForm {
            kept: &base.text()[..closing.kept_len],
            closers: closing.closers,
        }),
        cut: base.cut(),
        cut_off_element: elements.cut_off,
        element_before_cutoff: elements.before,
        section_count: delivered.section_count(),
        delivered: delivered.lines().join("\n"),
        other_documents: base.other_documents(),
    }
}

/// The contexts of the `text` of an object.
pub fn cut_object(mut object: Object) -> Result<Box<RawValue>, Refusal> {
    let text = object.text("text")?;
    let base = PartialDocument::read(&text)?;
    // This cannot fail, because all keys are strings.
    to_raw_value(&cut_contexts(&base)).map_err(|error| Refusal::unusable(error.to_string()))
}
