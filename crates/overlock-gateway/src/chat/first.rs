//! What is kept of a first answer, whatever it turned out to be.
//!
//! A document is kept as the first step of its run, a text as the first step of a text. An answer
//! that is neither what was asked for nor what the provider lets through is kept with the reason.

use overlock_llm::{
    Continuation, Failure, ModelOutput, Outcome, Progress, Reason, Step, StepEnd, StepResult,
    TextContinuation,
};

use overlock_llm::assembler::{Delivery, PartKind, PartState, PartText};

use super::context::RequestContext;
use super::repair_report::repair_report;
use super::resume::unkept;
use crate::error::ApiError;
use crate::record::{RecordError, Recording};
use overlock_runs::{RecordedStep, unfinished};

/// A first answer, or a part of it.
#[derive(Clone, Copy)]
pub(super) struct First<'a> {
    /// All that came.
    pub(super) came: &'a str,
    /// What of that is read as the document.
    pub(super) document: &'a str,
    /// How it ended.
    pub(super) end: &'a StepEnd,
}

impl<'a> First<'a> {
    /// A part of which the document is recorded, with the text around it.
    pub(super) fn of(part: &'a PartText, end: &'a StepEnd) -> Self {
        Self {
            came: part.recorded_text(),
            document: part.document(),
            end,
        }
    }

    /// One of which nothing is left out before it is read.
    pub(super) fn all(came: &'a str, end: &'a StepEnd) -> Self {
        Self {
            came,
            document: came,
            end,
        }
    }

    /// Whether it was cut off at its limit before its document began, if this became of it. The
    /// whole document is then still to come.
    pub(super) fn awaits_document(&self, step: Option<&Step>) -> bool {
        let is_cut = self.end.finish.as_deref() == Some("length");
        is_cut && self.end.refusal.is_none() && step.is_some_and(Step::has_no_json)
    }
}

/// Keeps a step, unless nothing depends on whether it is kept.
pub(super) async fn keep(
    recording: &mut Recording,
    mut step: RecordedStep,
) -> Result<(), RecordError> {
    recording.place(&mut step);
    match recording.step(&step).await {
        Err(error) if recording.is_keyed() => Err(error),
        _ => Ok(()),
    }
}

/// The same, with the error for the client.
pub(super) async fn keep_step(
    recording: &mut Recording,
    step: RecordedStep,
) -> Result<(), ApiError> {
    let kept = keep(recording, step).await;
    kept.map_err(|error| unkept(&error))
}

/// Whether this is a word for an answer that ended by itself: those of `OpenAI`, and those that
/// other servers have for the same.
fn is_usual(finish: Option<&str>) -> bool {
    matches!(
        finish,
        Some(
            "stop"
                | "tool_calls"
                | "function_call"
                | "eos"
                | "eos_token"
                | "end_turn"
                | "stop_sequence"
        )
    )
}

impl RequestContext {
    /// Reads a first answer as a document; what became of it then.
    pub(super) fn read_first(&self, first: &First<'_>) -> (Continuation, Option<Step>) {
        let mut run = Continuation::new(self.wish.continuation(&self.gateway));
        let Some(ask) = run.next() else {
            return (run, None);
        };
        let (text, tokens) = (first.document.as_bytes(), self.tokens_of(first));
        // What is to be asked can be answered.
        let step = run.answered(&ask, &ModelOutput::new(text, tokens)).ok();
        (run, step)
    }

    /// The step of a run that a first answer was.
    pub(super) fn document_step(
        &self,
        run: &Continuation,
        step: &Step,
        first: &First<'_>,
    ) -> RecordedStep {
        let mut recorded = RecordedStep::new(run, step, Some(self.budget.clone()));
        recorded.step.end = first.end.clone();
        recorded.mended = run
            .base()
            .and_then(|base| repair_report(first.came, first.document, base));
        self.with_counts(recorded, first)
    }

    /// The step that a text is.
    pub(super) fn text_step(&self, first: &First<'_>) -> RecordedStep {
        let tokens = self.tokens_of(first);
        let step = TextContinuation::first_step(first.came, tokens, first.end.clone());
        self.with_counts(
            RecordedStep::of_text(step, Some(self.budget.clone())),
            first,
        )
    }

    /// The tokens of a first answer: what the provider says, or else what is counted here. One
    /// count for all answers, or what they take together would be nobody's.
    pub(super) fn tokens_of(&self, first: &First<'_>) -> u64 {
        let counted = || self.wish.counter().tokens().count(first.came);
        self.first_usage.map_or_else(counted, |told| told.output)
    }

    /// A step with the provider's count, if there is one, and the one made here.
    fn with_counts(&self, recorded: RecordedStep, first: &First<'_>) -> RecordedStep {
        let counted = match self.first_usage {
            Some(_) => self.wish.counter().tokens().count(first.came),
            None => recorded.step.tokens,
        };
        recorded.with_counts(self.first_usage, Some(counted))
    }

    /// The step that an answer without anything in it is.
    fn blank_step(&self, end: &StepEnd) -> RecordedStep {
        let refusal = end.refusal.as_deref();
        let counted = refusal.map_or(0, |text| self.wish.counter().tokens().count(text));
        let failure = match refusal {
            Some(_) => Failure::Declined,
            None => Failure::Empty,
        };
        let step = Step {
            iteration: 1,
            way: None,
            tokens: self.first_usage.map_or(counted, |told| told.output),
            kpi: None,
            kpis: None,
            progress: Progress::Unknown,
            is_looping: false,
            result: StepResult::Failed { failure, raw: None },
            end: end.clone(),
        };
        RecordedStep::of_text(step, Some(self.budget.clone()))
            .with_counts(self.first_usage, Some(counted))
    }

    /// The step that a content is which nobody goes on with: that of a document if it is one.
    pub(super) fn step_of(&self, kind: PartKind, first: &First<'_>) -> RecordedStep {
        if first.came.is_empty() {
            return self.blank_step(first.end);
        }
        let may_be_document = kind != PartKind::Detect || {
            let mut part = PartText::new(kind, Delivery::AtEnd);
            part.feed(first.document);
            part.state() != PartState::Unclear
        };
        if may_be_document
            && let (run, Some(step)) = self.read_first(first)
            && run.base().is_some()
        {
            return self.document_step(&run, &step, first);
        }
        self.text_step(first)
    }

    /// Keeps a document that nobody has to go on with.
    pub(super) async fn keep_document(
        &self,
        first: &First<'_>,
        recording: Option<&mut Recording>,
    ) -> Result<(), ApiError> {
        let Some(recording) = recording else {
            return Ok(());
        };
        match self.read_first(first) {
            (run, Some(step)) => {
                let step = self.document_step(&run, &step, first);
                keep_step(recording, step).await
            }
            (_, None) => Ok(()),
        }
    }

    /// Keeps a content that the provider's filter ended; how that ends the answer.
    pub(super) async fn keep_withheld(
        &self,
        kind: PartKind,
        first: &First<'_>,
        recording: Option<&mut Recording>,
    ) -> Result<Outcome, ApiError> {
        let step = self.step_of(kind, first);
        let has_come = !first.came.is_empty();
        let outcome = unfinished(Reason::ContentFilter, has_come, step.cut.clone());
        if let Some(recording) = recording {
            keep_step(recording, step).await?;
        }
        Ok(outcome)
    }

    /// Keeps a content that is no document; how that ends the answer, if that is not for the
    /// provider to say. Of a text that ended by itself nothing is kept where no text is.
    pub(super) async fn keep_unclear(
        &self,
        first: &First<'_>,
        has_calls: bool,
        recording: Option<&mut Recording>,
    ) -> Result<Option<Outcome>, ApiError> {
        let finish = first.end.finish.as_deref();
        let is_declined = first.came.is_empty() && first.end.refusal.is_some();
        // What is cut may have been about to begin one.
        let is_ended = !matches!(finish, None | Some("length"));
        let reason = if is_declined {
            Some(Reason::Refusal)
        } else if self.wish.is_json && !has_calls && is_ended {
            Some(Reason::NoJson)
        } else if is_ended && !is_usual(finish) {
            Some(Reason::NoFinish)
        } else {
            None
        };
        let is_empty = first.came.is_empty();
        let outcome = reason.map(|reason| {
            let has_come = reason == Reason::NoFinish && !is_empty;
            unfinished(reason, has_come, None)
        });
        let is_one_of_many = is_usual(finish) || is_empty && has_calls;
        let is_told = outcome.is_some() || !is_one_of_many;
        let recording = recording.filter(|it| is_told || !is_empty && it.keeps_text());
        if let Some(recording) = recording {
            let step = match reason {
                _ if is_empty => self.blank_step(first.end),
                Some(Reason::NoJson) => self.no_document_step(first),
                _ => self.text_step(first),
            };
            keep_step(recording, step).await?;
        }
        Ok(outcome)
    }

    /// The step that an answer is which should be a document and is none.
    fn no_document_step(&self, first: &First<'_>) -> RecordedStep {
        match self.read_first(first) {
            (run, Some(step)) if run.base().is_none() => self.document_step(&run, &step, first),
            // There are several.
            _ => self.text_step(first),
        }
    }
}
