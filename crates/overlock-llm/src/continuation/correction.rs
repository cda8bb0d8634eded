//! Replaces a complete document that violates its schema.
//!
//! A run does not know schemas: the caller decides whether a document is valid.

use overlock_json::PartialDocument;

use super::document::Document;
use super::{
    Continuation, ContinuationOptions, Failure, Outcome, Step, StepResult, grown, measured,
};

/// The seam of a step that replaced the document.
const CORRECTED: &str = "corrected";

impl Continuation {
    /// Whether the model may be asked to correct the document: only a complete document, once in a
    /// run, and within the run's limits.
    pub fn can_be_corrected(&self) -> bool {
        let (tally, options) = (&self.tally, &self.options);
        let most_tokens = options.max_output_tokens.unwrap_or(u64::MAX);
        self.outcome == Some(Outcome::Complete)
            && tally.corrections == 0
            && tally.iterations < options.max_iterations
            && tally.output_tokens < most_tokens
    }

    /// The complete document in an answer, or why there is none.
    pub(crate) fn complete_document(answer: &str) -> Result<String, String> {
        let mut read = Self::new(ContinuationOptions::default());
        match read.begin(answer.as_bytes()) {
            StepResult::Failed { failure, .. } => Err(failure.to_string()),
            StepResult::Grown { .. } if read.base().is_some_and(PartialDocument::is_complete) => {
                Ok(read.text().to_owned())
            }
            StepResult::Grown { .. } => Err("the answer was cut off".to_owned()),
        }
    }

    /// Records the answer to a correction call: a valid document, or why there is none.
    pub(crate) fn corrected(
        &mut self,
        document: Result<String, String>,
        answer: &str,
        tokens: u64,
    ) -> Step {
        let kpis = measured(&self.options, &self.tally);
        let document = document.and_then(|text| {
            let document = Document::stored(text.as_bytes(), kpis);
            document.ok_or_else(|| "the answer is not a document".to_owned())
        });
        let result = match document {
            Ok(document) => {
                let len = document.base().text().len();
                let result = grown(CORRECTED, &document, 0, 0, len);
                self.document = Some(document);
                result
            }
            Err(message) => StepResult::failed(Failure::Uncorrected { message }, answer.as_bytes()),
        };
        self.take(Step::new(self.tally.iterations + 1, None, tokens, result))
    }
}

impl Step {
    /// Whether the call asked for a correction.
    pub fn is_correction(&self) -> bool {
        match &self.result {
            StepResult::Grown { seam, .. } => seam == CORRECTED,
            StepResult::Failed { failure, .. } => matches!(failure, Failure::Uncorrected { .. }),
        }
    }
}
