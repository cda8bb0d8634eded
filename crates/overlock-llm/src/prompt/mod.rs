//! The instructions to a model that should continue a cut answer.
//!
//! They are appended to the caller's last message, so that roles still alternate, the caller's
//! messages are unchanged, and prompt caches still match the beginning.
//!
//! Their size does not grow with the document: the outline has a budget, and every other quotation
//! is bounded.

mod block;
mod size;

#[cfg(test)]
mod tests;

pub(crate) use block::{OVERLAP, WRITTEN};
pub use size::{FittedCall, PromptError, first_call, next_call};
pub(crate) use size::{begun_tokens, correction_call, text_call, text_prefill_call};

use std::fmt::Write;

use overlock_json::PartialDocument;

use crate::continuation::{Continuation, NextCall, Wants};
use crate::marker::Marker;
use crate::progress::MOST_KPIS;
use crate::strategy::Strategy;
use block::{COMPLETE, CUT_OFF, DOCUMENT};

/// The title of the outline.
const SO_FAR: &str = "The document so far, shortened: `<str>`, `<object>` and the like stand for \
                      what is already written, and it ends where your answer was cut off.";

/// The instructions of a call for the rest of a document.
///
/// `outline` is the document from its root to the cut under a budget; it may be empty.
pub(crate) fn words(
    run: &Continuation,
    base: &PartialDocument<'_>,
    ask: &NextCall,
    outline: &str,
) -> String {
    let mut text = String::from(
        "Your answer to this was cut off before its JSON document was complete. \
         Go on where it stopped.\n",
    );
    if !outline.is_empty() {
        paragraph(&mut text, SO_FAR, &DOCUMENT.around(outline, &ask.marker));
    }
    let delivered = run.delivered().map(ToString::to_string).unwrap_or_default();
    if !delivered.is_empty() {
        paragraph(&mut text, "Delivered so far:", &delivered);
    }
    let sections = run
        .delivered()
        .map_or(0, overlock_json::Delivered::section_count);
    if sections > 0 {
        let plural = if sections == 1 { "" } else { "s" };
        paragraph(&mut text, "In all:", &format!("{sections} section{plural}"));
    }
    let elements = base.cut_elements();
    if !elements.before.is_empty() {
        paragraph(
            &mut text,
            "The last complete element:",
            &COMPLETE.around(elements.before, &ask.marker),
        );
    }
    if !elements.cut_off.is_empty() {
        paragraph(
            &mut text,
            "The element that was cut off, as far as it came:",
            &CUT_OFF.around(elements.cut_off, &ask.marker),
        );
    }
    match ask.strategy {
        Some(Strategy::Remainder) => remainder(&mut text, ask),
        // A call with a prefill has no instructions.
        Some(Strategy::Overlap | Strategy::Prefill) | None => overlap(&mut text, ask),
    }
    text
}

/// The JSON form of an answer that proposes KPIs; the instructions end with it.
pub(crate) const KPI_FORM: &str = r#"{"kpis": [{"id": "pages", "description": "pages written", "json_path": "$.chapters[*].pages[*]", "target_value": 120}]}"#;

/// The instructions of a call that asks which KPIs to count.
pub(crate) fn kpi_words(run: &Continuation, ask: &NextCall, outline: &str) -> String {
    let mut text = String::from(
        "Your answer to this was cut off before its JSON document was complete. It will be \
         continued; before that, say how its progress can be measured. Do not go on with the \
         document now.\n",
    );
    if !outline.is_empty() {
        paragraph(&mut text, SO_FAR, &DOCUMENT.around(outline, &ask.marker));
    }
    let delivered = run.delivered().map(ToString::to_string).unwrap_or_default();
    if !delivered.is_empty() {
        paragraph(&mut text, "Delivered so far:", &delivered);
    }
    let most = format!(
        "- Name from 1 to {MOST_KPIS} things that can be counted in the document and that it will \
         have more of as it is continued, such as the items of a list. The smaller and the more \
         of them, the better."
    );
    let rules = [
        most.as_str(),
        "- `json_path` begins with `$` and goes on with `.name`, `['name']`, `[3]` or `[*]`, and \
         names what is counted: `$.chapters[*].pages[*]`.",
        "- `target_value` is how many there are to be when the document is complete, a whole \
         number.",
        "- Answer with JSON of this form and nothing else:",
        KPI_FORM,
    ];
    paragraph(&mut text, "Rules:", &rules.join("\n"));
    text
}

/// The instructions of a call for the rest of a plain text.
pub(crate) fn text_words(overlap: &str, marker: &Marker) -> String {
    format!(
        "Your answer to this was cut off. Go on where it stopped.\n\nRules:\n\
         - Begin with {}\n\
         - Do not begin the answer again, and do not repeat anything else of it.\n\n{}",
        repeat_rule(marker),
        OVERLAP.around(overlap, marker)
    )
}

/// The instructions of a call for a correction.
pub(crate) fn correction_words(violation: &str) -> String {
    format!(
        "Your answer is not valid: {violation}.\n\nRules:\n\
         - Answer with the whole document again, corrected.\n\
         - Change only what is not valid.\n\
         - {ONLY_JSON}"
    )
}

const ONLY_JSON: &str = "Write JSON and nothing else: no fence, no greeting, no explanation.";

fn overlap(text: &mut String, ask: &NextCall) {
    let begin = if ask.wants == Wants::ProgressAndDocument {
        paragraph(
            text,
            "Progress:",
            &"Say on the very first line about what percentage of the whole document has been \
              delivered so far, in the form `PROGRESS: n`, where n is an integer from 0 to 100. \
              If it falls, or does not rise by at least 1 from answer to answer, the generation \
              stops.",
        );
        "After that line, begin"
    } else {
        "Begin"
    };
    let begin = format!("{begin} with {}", repeat_rule(&ask.marker));
    paragraph(text, "Rules:", &rules(&[&begin]));
    let overlap = OVERLAP.around(&ask.overlap, &ask.marker);
    let _ = write!(text, "\n{overlap}"); // writing to a string cannot fail
}

fn repeat_rule(marker: &Marker) -> String {
    let (open, close) = (marker.open("overlap"), marker.close("overlap"));
    format!(
        "the text between {open} and {close}, repeated character for character, and go on from \
         there without a break."
    )
}

fn remainder(text: &mut String, ask: &NextCall) {
    let own = [
        "Answer with a JSON document of its own that has only what is still missing, within the \
         same keys and brackets as the document so far.",
        "Write the element that was cut off again, from its beginning.",
    ];
    paragraph(text, "Rules:", &rules(&own));
    let _ = write!(
        text,
        "\nThe document so far ends with:\n{}",
        WRITTEN.around(&ask.overlap, &ask.marker)
    );
}

/// The rules of one strategy, then the common ones.
fn rules(own: &[&str]) -> String {
    const COMMON: [&str; 3] = [
        ONLY_JSON,
        "Do not begin the document again, and do not repeat what was delivered.",
        "Do not close it early: leave nothing out, and stop only when the document is complete.",
    ];
    let all = own.iter().chain(&COMMON);
    all.map(|rule| format!("- {rule}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn paragraph(text: &mut String, title: &str, body: &dyn std::fmt::Display) {
    let _ = write!(text, "\n{title}\n{body}\n"); // writing to a string cannot fail
}
