//! Restores a run from its recorded steps.
//!
//! The steps are checked: with a step missing, a document could look complete and not be.

use super::document::Document;
use super::{Continuation, ContinuationOptions, Step, StepResult, measured};

/// Why recorded steps cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// A step is missing or doubled.
    #[error("expected step `{expected}`, but found step `{found}`")]
    Gap {
        /// The expected step.
        expected: u32,
        /// The step in its place.
        found: u32,
    },
    /// A step starts after the end of the document, or lacks its text.
    #[error("step `{iteration}` does not continue the document before it")]
    Unjoined {
        /// The step.
        iteration: u32,
    },
    /// The joined text is not a JSON document.
    #[error("the recorded text is not a JSON document")]
    NotADocument,
}

impl Continuation {
    /// The run with these steps, ready for its next call. The steps must be complete and in order.
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
                    // Like a new run, keep the last answer only while no document has begun.
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
