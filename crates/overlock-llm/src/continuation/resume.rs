//! Takes a run up from its steps.
//!
//! What was recorded is not believed: a step that is missing would leave a document that looks
//! whole and is not.

use super::document::Document;
use super::{Continuation, ContinuationOptions, Step, StepResult, measured};

/// Why steps are not those of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// One is missing, or comes twice.
    #[error("step `{expected}` should come next, but there is step `{found}`")]
    Gap {
        /// The step that should come.
        expected: u32,
        /// The one that comes.
        found: u32,
    },
    /// One goes on where the document does not reach, or lacks its text.
    #[error("step `{iteration}` does not go on from the document before it")]
    Unjoined {
        /// The step.
        iteration: u32,
    },
    /// Together they make no document.
    #[error("the recorded text is no document as it stands")]
    NotADocument,
}

impl Continuation {
    /// The run that these steps are of, ready to go on. All of them must be there, in their order.
    pub fn resume<'a>(
        options: ContinuationOptions,
        steps: impl IntoIterator<Item = &'a Step>,
    ) -> Result<Self, ResumeError> {
        let mut run = Self::new(options);
        let mut text = Vec::new();
        let mut has_document = false;
        for step in steps {
            let (expected, found) = (run.tally.iterations.saturating_add(1), step.iteration);
            if found != expected {
                return Err(ResumeError::Gap { expected, found });
            }
            run.tally.add(step, &run.options);
            match &step.result {
                StepResult::Grown {
                    offset,
                    added,
                    added_bytes,
                    half_character,
                    ..
                } => {
                    if *offset > text.len() || added.len() != *added_bytes {
                        return Err(ResumeError::Unjoined { iteration: found });
                    }
                    text.truncate(*offset);
                    text.extend_from_slice(added.as_bytes());
                    text.extend_from_slice(half_character);
                    has_document = true;
                    run.raw.clear();
                }
                StepResult::Failed { raw, .. } => {
                    // What there was to fall back on then is what there is now.
                    if let Some(raw) = raw.as_ref().filter(|_| !has_document) {
                        run.raw.clone_from(raw);
                    }
                }
            }
        }
        if has_document {
            let document = Document::stored(&text, measured(&run.options, &run.tally));
            run.document = Some(document.ok_or(ResumeError::NotADocument)?);
        }
        run.outcome = run.decide();
        Ok(run)
    }
}
