//! The steps that a first answer is recorded as.
//!
//! A document is the first step of its continuation, a text the first step of a text. An answer
//! that is neither what was asked for nor complete is recorded with the reason.

use overlock_llm::assembler::{Delivery, PartKind, PartState, PartText};
use overlock_llm::wire::is_normal_end;
use overlock_llm::{
    Continuation, Failure, ModelOutput, Outcome, Reason, Step, StepEnd, StepResult,
    TextContinuation,
};
use overlock_runs::{RecordedStep, RepairReport, unfinished};

use super::context::RequestContext;
use crate::error::ApiError;
use crate::record::Recording;

/// The text of one part of a first answer.
#[derive(Clone, Copy)]
pub(super) struct FirstText<'a> {
    /// All of it.
    pub(super) text: &'a str,
    /// What is read as the document.
    pub(super) document: &'a str,
    pub(super) end: &'a StepEnd,
}

impl<'a> FirstText<'a> {
    /// A part whose document is recorded with the text around it.
    pub(super) fn of(part: &'a PartText, end: &'a StepEnd) -> Self {
        Self {
            text: part.recorded_text(),
            document: part.document(),
            end,
        }
    }

    /// A text that is read as a whole.
    pub(super) fn all(text: &'a str, end: &'a StepEnd) -> Self {
        Self {
            text,
            document: text,
            end,
        }
    }

    /// Whether it was cut off at its limit before its document began, so that the whole document
    /// is still to come.
    pub(super) fn awaits_document(&self, step: Option<&Step>) -> bool {
        let is_cut = self.end.finish.as_deref() == Some("length");
        is_cut && self.end.refusal.is_none() && step.is_some_and(Step::has_no_json)
    }
}

impl RequestContext {
    /// Reads a first text as a document. There is no step if the settings allow no calls.
    pub(super) fn read_first(&self, first: &FirstText<'_>) -> (Continuation, Option<Step>) {
        let mut run = Continuation::new(self.params.continuation(&self.gateway));
        let output = ModelOutput::new(first.document.as_bytes(), self.tokens_of(first));
        let step = run.next().and_then(|ask| run.answered(&ask, &output).ok());
        (run, step)
    }

    /// The step of a text that was read as a document.
    pub(super) fn document_step(
        &self,
        run: &Continuation,
        step: &Step,
        first: &FirstText<'_>,
    ) -> RecordedStep {
        let mut recorded = RecordedStep::new(run, step, Some(self.budget.clone()));
        recorded.step.end = first.end.clone();
        let document = run.base();
        recorded.mended = document.and_then(|it| RepairReport::of(first.text, first.document, it));
        self.with_counts(recorded, first.text)
    }

    /// The step of a text that is not a document.
    pub(super) fn text_step(&self, first: &FirstText<'_>) -> RecordedStep {
        let tokens = self.tokens_of(first);
        let step = TextContinuation::first_step(first.text, tokens, first.end.clone());
        let step = RecordedStep::of_text(step, Some(self.budget.clone()));
        self.with_counts(step, first.text)
    }

    /// The step of an answer without text. What the model says instead is counted.
    fn blank_step(&self, end: &StepEnd) -> RecordedStep {
        let refusal = end.refusal.as_deref();
        let failure = match refusal {
            Some(_) => Failure::Declined,
            None => Failure::Empty,
        };
        let refusal = refusal.unwrap_or_default();
        let tokens = self.tokens_of(&FirstText::all(refusal, end));
        let step = Step {
            result: StepResult::Failed { failure, raw: None },
            ..TextContinuation::first_step("", tokens, end.clone())
        };
        let step = RecordedStep::of_text(step, Some(self.budget.clone()));
        self.with_counts(step, refusal)
    }

    /// The tokens of a first text: as reported by the provider, or else as counted here.
    pub(super) fn tokens_of(&self, first: &FirstText<'_>) -> u64 {
        let counted = || self.params.counter().tokens().count(first.text);
        self.first_usage.map_or_else(counted, |usage| usage.output)
    }

    /// Adds the reported usage and our count of a text to its step.
    fn with_counts(&self, step: RecordedStep, text: &str) -> RecordedStep {
        let counted = match self.first_usage {
            Some(_) => self.params.counter().tokens().count(text),
            None => step.step.tokens,
        };
        step.with_counts(self.first_usage, Some(counted))
    }

    /// The step of content that is not continued.
    pub(super) fn content_step(&self, first: &FirstText<'_>) -> RecordedStep {
        if first.text.is_empty() {
            return self.blank_step(first.end);
        }
        let kind = self.content_kind();
        let may_be_document = kind != PartKind::Detect || {
            let mut part = PartText::new(kind, Delivery::AtEnd);
            part.feed(first.document);
            part.state() != PartState::Unclear
        };
        match may_be_document.then(|| self.read_first(first)) {
            Some((run, Some(step))) if run.base().is_some() => {
                self.document_step(&run, &step, first)
            }
            _ => self.text_step(first),
        }
    }

    /// Records content that is not a document. Returns the outcome of the answer, unless the
    /// upstream's finish reason says it. A text that ended normally is recorded only with its text.
    pub(super) async fn record_unclear(
        &self,
        first: &FirstText<'_>,
        has_calls: bool,
        recording: Option<&mut Recording>,
    ) -> Result<Option<Outcome>, ApiError> {
        let finish = first.end.finish.as_deref();
        let is_empty = first.text.is_empty();
        // A text that was cut may have been about to begin a document.
        let is_ended = !matches!(finish, None | Some("length" | "pause_turn"));
        let reason = if is_empty && first.end.refusal.is_some() {
            Some(Reason::Refusal)
        } else if self.params.is_json && !has_calls && is_ended {
            Some(Reason::NoJson)
        } else if is_ended && !finish.is_some_and(is_normal_end) {
            Some(Reason::NoFinish)
        } else {
            None
        };
        let is_normal = finish.is_some_and(is_normal_end) || is_empty && has_calls;
        let is_recorded = |recording: &&mut Recording| {
            reason.is_some() || !is_normal || !is_empty && recording.keeps_text()
        };
        if let Some(recording) = recording.filter(is_recorded) {
            let step = if is_empty {
                self.blank_step(first.end)
            } else if reason == Some(Reason::NoJson)
                && let (run, Some(step)) = self.read_first(first)
                // With a document, there are several.
                && run.base().is_none()
            {
                self.document_step(&run, &step, first)
            } else {
                self.text_step(first)
            };
            recording.step(step).await?;
        }
        Ok(reason.map(|reason| {
            let has_text = reason == Reason::NoFinish && !is_empty;
            unfinished(reason, has_text, None)
        }))
    }
}
