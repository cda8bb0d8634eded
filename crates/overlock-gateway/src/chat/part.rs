//! Sends, continues, checks and records one part of an answer.

use overlock_json::Cut as DocumentCut;
use overlock_llm::Outcome;
use overlock_llm::assembler::{ChoiceParts, PartKind, PartState, PartText, UnsentOnly};

use super::compliance::Compared;
use super::continuation::{Cut, Joined, LiveDocument, state_of};
use super::first::{First, keep_step};
use super::out::{Listener, Out, delta};
use super::response::ResponseRun;
use super::wish::Continues;
use crate::error::ApiError;
use crate::record::Recording;
use overlock_runs::Part;

impl ResponseRun {
    /// Compares a part with its schema and records it. One that violates its schema is corrected by
    /// the model while nothing of it was sent. Returns the corrected text, if there is one.
    pub(super) async fn checked(
        &mut self,
        place: Part,
        cut: Cut<'_>,
        part: &PartText,
        first: &First<'_>,
    ) -> Result<(Option<String>, PartState), ApiError> {
        let context = &self.run.context;
        let is_arguments = matches!(cut, Cut::Arguments(_));
        let text = if is_arguments {
            part.text()
        } else {
            first.document
        };
        let compared = context.compare(cut, part.state(), text).await;
        let is_unsent = self.allows(UnsentOnly::CorrectSchema) || !part.is_sent();
        let is_continued = context.wish.continues != Continues::Nothing;
        if compared.violation().is_some() && is_unsent && is_continued {
            let mut recording = self.run.recording.as_mut().map(|it| it.turn_to(place));
            let begun = context.begin(first, recording.as_deref_mut());
            let mut joined = Box::pin(begun).await?;
            if joined.run.base().is_some() {
                let compared = context.compare_or_correct(cut, &mut joined, recording);
                let compared = Box::pin(compared).await?;
                let state = self.joined(cut, &joined, compared);
                let is_corrected = joined.run.text() != first.document.trim();
                let text = is_corrected.then(|| joined.run.text().to_owned());
                return Ok((text, state));
            }
            return Ok((None, self.compliance.add(cut, compared)));
        }
        let recording = new_recording(&mut self.run.recording, place);
        let recording = recording.filter(|it| !is_arguments || it.keeps_text());
        let recording = recording.filter(|_| part.state() == PartState::Complete);
        Box::pin(context.keep_document(first, recording)).await?;
        Ok((None, self.compliance.add(cut, compared)))
    }

    /// Asks for the rest of a document of which so many bytes were sent.
    pub(super) async fn continued(
        &mut self,
        place: Part,
        cut: Cut<'_>,
        first: &First<'_>,
        sent: usize,
    ) -> Result<(Joined, PartState), ApiError> {
        let mut listener = self.listener(place);
        let live = listener
            .as_mut()
            .map(|listener| LiveDocument { listener, sent });
        let is_live = live.is_some();
        let context = &self.run.context;
        let mut recording = self.run.recording.as_mut().map(|it| it.turn_to(place));
        let joined = context.join(cut, first, live, recording.as_deref_mut());
        let mut joined = Box::pin(joined).await?;
        let compared = if is_live {
            let run = &joined.run;
            context.compare(cut, state_of(run), run.text()).await
        } else {
            let compared = context.compare_or_correct(cut, &mut joined, recording);
            Box::pin(compared).await?
        };
        // A document that stays partial may end in half an escape, which was held back until now.
        if let Some(base) = joined.run.base() {
            self.send(place, &base.text()[base.settled_len()..]).await;
        }
        let state = self.joined(cut, &joined, compared);
        Ok((joined, state))
    }

    /// Takes note of a part that was continued or corrected.
    pub(super) fn joined(
        &mut self,
        cut: Cut<'_>,
        joined: &Joined,
        compared: Compared,
    ) -> PartState {
        self.totals.join(joined.totals);
        if let Some(outcome) = joined.outcome() {
            self.note(outcome);
        }
        self.compliance.add(cut, compared)
    }

    /// Records a document that is not continued. Returns where it stops, if it does.
    pub(super) async fn keep_document(
        &mut self,
        place: Part,
        first: &First<'_>,
    ) -> Result<Option<DocumentCut>, ApiError> {
        let Some(recording) = new_recording(&mut self.run.recording, place) else {
            return Ok(None);
        };
        let step = self.run.context.step_of(PartKind::Document, first);
        let cut = step.cut.clone();
        keep_step(recording, step).await.map(|()| cut)
    }

    /// Compares a part with its schema.
    pub(super) async fn compared(
        &mut self,
        cut: Cut<'_>,
        state: PartState,
        text: &str,
    ) -> PartState {
        let compared = self.run.context.compare(cut, state, text).await;
        self.compliance.add(cut, compared)
    }

    /// Takes note of how a part ended. The first that is not complete decides how the answer did.
    pub(super) fn note(&mut self, outcome: Outcome) {
        if self.outcome == Outcome::Complete {
            self.outcome = outcome;
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
        if let Some(event) = self.wire.encoder().encode(part.choice, delta(part, text))
            && !text.is_empty()
        {
            self.out.event(&event).await;
        }
    }

    /// Sends the rest of a part while it is continued.
    pub(super) fn listener(&self, part: Part) -> Option<Listener> {
        let Out::Stream(out) = &self.out else {
            return None;
        };
        Some(Listener {
            out: out.clone(),
            encoder: self.wire.encoder(),
            part,
        })
    }

    /// Records what has arrived of choices that will not be complete.
    pub(super) fn leave(&mut self) {
        let Some(recording) = &mut self.run.recording else {
            return;
        };
        let context = &self.run.context;
        for (index, choice) in self.assembler.choices() {
            let end = context.end_of(choice, self.broken.as_deref());
            let first = First::all(choice.content.text(), &end);
            if !first.came.is_empty() {
                let step = context.step_of(context.content_kind(), &first);
                recording.turn_to(Part::content(index));
                recording.record_partial(step);
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
