//! Sends, continues, checks and records one part of an answer.

use overlock_json::Cut;
use overlock_llm::Outcome;
use overlock_llm::assembler::{ChoiceParts, PartState, PartText, UnsentOnly};
use overlock_runs::Part;

use super::context::AnswerPart;
use super::continuation::state_of;
use super::first::FirstText;
use super::observer::PartCalls;
use super::out::{Out, PartOut};
use super::response::ResponseRun;
use crate::error::ApiError;
use crate::record::Recording;

/// How a part ended.
pub(super) struct EndedPart {
    pub(super) state: PartState,
    /// The text for the client, if it is not the one that the assembler delivers.
    pub(super) text: Option<String>,
    /// Where a document stops that is not continued.
    pub(super) cut: Option<Cut>,
    /// Whether the provider's filter ended it.
    pub(super) is_withheld: bool,
}

impl From<PartState> for EndedPart {
    fn from(state: PartState) -> Self {
        Self {
            state,
            text: None,
            cut: None,
            is_withheld: false,
        }
    }
}

impl ResponseRun {
    /// Continues a part. Without a document there is no text.
    pub(super) async fn continued(
        &mut self,
        target: AnswerPart<'_>,
        part: &PartText,
        first: &FirstText<'_>,
    ) -> Result<EndedPart, ApiError> {
        let out = self.part_out(target.part);
        let may_close = target.tool.is_none() && self.allows(UnsentOnly::ClosePartial);
        let mut calls = PartCalls::new(&mut self.run, target, out, &mut self.totals);
        let mut run = Box::pin(calls.join(first, part.released().len())).await?;
        let compared = if calls.out.out.is_stream() {
            let compared = calls.context.compare(target, state_of(&run), run.text());
            Box::pin(compared).await
        } else {
            Box::pin(calls.compare_or_correct(&mut run)).await?
        };
        let is_complete = state_of(&run) == PartState::Complete;
        if let Some(document) = run.base() {
            // A document that stays partial may end in half an escape, held back until now.
            let held_back = &document.text()[document.settled_len()..];
            calls.out.send(held_back).await;
            if is_complete {
                calls.out.send(part.closing()).await;
            }
        }
        let (outcome, is_withheld) = (calls.outcome(&run), calls.is_withheld(&run));
        drop(calls);
        self.note(outcome);
        // Cut arguments are never closed: a call that looks complete is executed.
        let is_closed = !is_complete && may_close;
        let closed = is_closed.then(|| run.last_valid_complete_part()).flatten();
        let document = closed.unwrap_or_else(|| run.text().to_owned());
        let closing = Some(part.closing()).filter(|_| is_complete || is_closed);
        let closing = closing.unwrap_or_default();
        let text = [part.before_document(), &document, closing].concat();
        Ok(EndedPart {
            state: self.compliance.add(target, compared),
            text: Some(text).filter(|_| run.base().is_some()),
            cut: None,
            is_withheld,
        })
    }

    /// Compares a part with its schema and records it. One that violates its schema is corrected by
    /// the model if nothing of it was sent.
    pub(super) async fn checked(
        &mut self,
        target: AnswerPart<'_>,
        part: &PartText,
        first: &FirstText<'_>,
    ) -> Result<EndedPart, ApiError> {
        let context = &self.run.context;
        let document = match target.tool {
            Some(_) => part.text(),
            None => first.document,
        };
        let mut compared = context.compare(target, part.state(), document).await;
        let is_unsent = self.allows(UnsentOnly::CorrectSchema) || !part.is_sent();
        let mut text = None;
        if compared.violation().is_some() && is_unsent && context.is_continued() {
            let out = PartOut {
                out: Out::AtEnd,
                ..self.part_out(target.part)
            };
            let mut calls = PartCalls::new(&mut self.run, target, out, &mut self.totals);
            let mut run = Box::pin(calls.begin(first)).await?;
            if run.base().is_some() {
                compared = Box::pin(calls.compare_or_correct(&mut run)).await?;
                let outcome = calls.outcome(&run);
                drop(calls);
                self.note(outcome);
                let is_corrected = run.text() != first.document.trim();
                text = is_corrected.then(|| run.text().to_owned());
            }
        } else if part.state() == PartState::Complete
            && let Some(recording) = new_recording(&mut self.run.recording, target.part)
            && (target.tool.is_none() || recording.keeps_text())
            && let (run, Some(step)) = context.read_first(first)
        {
            let step = context.document_step(&run, &step, first);
            recording.step(step).await?;
        }
        let state = self.compliance.add(target, compared);
        Ok(EndedPart {
            text,
            ..EndedPart::from(state)
        })
    }

    /// Records content that is not continued. Returns where it stops if it is a cut document.
    pub(super) async fn record_content(
        &mut self,
        part: Part,
        first: &FirstText<'_>,
    ) -> Result<Option<Cut>, ApiError> {
        let Some(recording) = new_recording(&mut self.run.recording, part) else {
            return Ok(None);
        };
        let step = self.run.context.content_step(first);
        let cut = step.cut.clone();
        recording.step(step).await?;
        Ok(cut)
    }

    /// Compares a part with its schema. Returns its state.
    pub(super) async fn compared(
        &mut self,
        target: AnswerPart<'_>,
        state: PartState,
        text: &str,
    ) -> PartState {
        let compared = self.run.context.compare(target, state, text).await;
        self.compliance.add(target, compared)
    }

    /// Takes note of how a part ended. The first part that is not complete decides the outcome.
    pub(super) fn note(&mut self, outcome: impl Into<Option<Outcome>>) {
        if self.outcome == Outcome::Complete {
            self.outcome = outcome.into().unwrap_or(Outcome::Complete);
        }
    }

    /// Sends what was held back of a choice that is not continued.
    pub(super) async fn send_rest(&self, index: u64, choice: &mut ChoiceParts) {
        for (call, text) in choice.rest() {
            self.send(Part::new(index, call), &text).await;
        }
    }

    /// Sends a piece of a part.
    pub(super) async fn send(&self, part: Part, text: &str) {
        if self.out.is_stream() {
            self.part_out(part).send(text).await;
        }
    }

    pub(super) fn part_out(&self, part: Part) -> PartOut {
        PartOut {
            out: self.out.clone(),
            encoder: self.wire.encoder(),
            part,
        }
    }

    /// Records the choices that will not be complete as far as they have arrived.
    pub(super) fn record_rest(&mut self) {
        let Some(recording) = &mut self.run.recording else {
            return;
        };
        let context = &self.run.context;
        for (index, choice) in self.assembler.choices() {
            let end = context.end_of(choice, self.broken.as_deref());
            let first = FirstText::all(choice.content.text(), &end);
            if !first.text.is_empty() {
                recording.turn_to(Part::content(index));
                recording.record_partial(context.content_step(&first));
            }
        }
    }
}

/// The recording, unless this part was recorded for an earlier request.
pub(super) fn new_recording(
    recording: &mut Option<Recording>,
    part: Part,
) -> Option<&mut Recording> {
    recording.as_mut()?.turn_to_new(part)
}
