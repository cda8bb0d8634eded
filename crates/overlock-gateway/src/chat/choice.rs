//! Decides how one choice of an answer ends, and continues what is cut of it.

use overlock_llm::assembler::{ChoiceParts, PartState, PartText};
use overlock_llm::wire::FinalChoice;
use overlock_llm::{Outcome, Reason, StepEnd};
use overlock_runs::{Part, unfinished};

use super::compliance::{Compared, NO_ARGUMENTS};
use super::context::AnswerPart;
use super::ending::Ending;
use super::first::FirstText;
use super::observer::PartCalls;
use super::params::Continues;
use super::part::{EndedPart, new_recording};
use super::response::ResponseRun;
use crate::error::ApiError;
use crate::record::Recording;

impl ResponseRun {
    /// Continues what is cut of one choice. Returns the choice as it ends.
    pub(super) async fn end_choice(
        &mut self,
        index: u64,
        mut choice: ChoiceParts,
    ) -> Result<FinalChoice, ApiError> {
        let part = Part::content(index);
        let target = AnswerPart { part, tool: None };
        let end = self.run.context.end_of(&choice, self.broken.as_deref());
        let mut ending = Ending::new(choice.finish.clone());
        if let Some(reason) = never_continued(&choice) {
            let first = FirstText::all(choice.content.text(), &end);
            let step = self.run.context.content_step(&first);
            let has_text = !first.text.is_empty();
            let outcome = unfinished(reason, has_text, step.cut.clone());
            if let Some(recording) = new_recording(&mut self.run.recording, part) {
                recording.step(step).await?;
            }
            self.note(outcome);
            self.send_rest(index, &mut choice).await;
            return Ok(final_choice(&choice, None, Vec::new(), &ending));
        }
        let has_calls = choice.has_calls();
        let content = self.content(target, &mut choice.content, has_calls, &end);
        let mut content = content.await?;
        ending.add_content(content.state);
        if content.state == PartState::Unclear {
            let longer = self.unclear(target, &choice, &end, &mut ending).await?;
            content.text = longer.or(content.text);
        }
        let mut is_withheld = content.is_withheld;
        let mut calls = Vec::new();
        let last = choice.calls.len().saturating_sub(1);
        for (call, arguments) in choice.calls.iter_mut().enumerate() {
            let tool = self.wire.tool(index, Some(call));
            let target = AnswerPart {
                part: Part::new(index, Some(call)),
                tool: Some(&tool),
            };
            let ended = Box::pin(self.arguments(target, call == last, arguments, &end)).await?;
            ending.add_call(ended.state);
            is_withheld |= ended.is_withheld;
            calls.push(ended.text);
        }
        if is_withheld {
            ending.set_withheld();
        }
        if let Some(arguments) = &choice.function {
            let tool = self.wire.tool(index, None);
            let tool = Some(tool.as_str());
            let target = AnswerPart { part, tool };
            let compared = self.compared(target, arguments.state(), arguments.text());
            ending.add_older_call(compared.await);
        }
        if let Some(reason) = ending.reason() {
            let has_text = choice.has_calls() || !choice.content.text().is_empty();
            self.note(unfinished(reason, has_text, content.cut));
        }
        Ok(final_choice(&choice, content.text, calls, &ending))
    }

    /// Continues a text if the client wants that, or records it. Returns the text if it is longer.
    async fn unclear(
        &mut self,
        target: AnswerPart<'_>,
        choice: &ChoiceParts,
        end: &StepEnd,
        ending: &mut Ending,
    ) -> Result<Option<String>, ApiError> {
        let first = FirstText::all(choice.content.text(), end);
        let is_text_continued = self.run.context.params.continues == Continues::Text;
        let is_cut = ending.finish() == Some("length");
        if is_cut && is_text_continued && choice.calls.is_empty() && !first.text.is_empty() {
            let out = self.part_out(target.part);
            let mut calls = PartCalls::new(&mut self.run, target, out, &mut self.totals);
            let run = Box::pin(calls.join_text(&first)).await?;
            drop(calls);
            let is_cut = run.is_cut();
            ending.add_content(if is_cut {
                PartState::Cut
            } else {
                PartState::Complete
            });
            if run.reason() == Some(Reason::ContentFilter) {
                ending.set_withheld();
            }
            self.note(run.reason().map(|it| unfinished(it, true, None)));
            return Ok(Some(run.text().to_owned()));
        }
        let recording = new_recording(&mut self.run.recording, target.part);
        let request = &self.run.context;
        let outcome = request.record_unclear(&first, choice.has_calls(), recording);
        let outcome = Box::pin(outcome).await?;
        let reason = outcome.as_ref().and_then(Outcome::reason);
        if reason == Some(Reason::NoJson) && request.params.is_strict() {
            let compared = Compared::not_json("the answer");
            ending.add_content(self.compliance.add(target, compared));
        }
        self.note(outcome);
        Ok(None)
    }

    /// Sends the content, and continues it if it is a cut document.
    async fn content(
        &mut self,
        target: AnswerPart<'_>,
        part: &mut PartText,
        has_calls: bool,
        end: &StepEnd,
    ) -> Result<EndedPart, ApiError> {
        if part.needs_reread() {
            return Box::pin(self.reread(target, part, has_calls, end)).await;
        }
        if part.is_open() {
            return Box::pin(self.continued(target, part, &FirstText::of(part, end))).await;
        }
        let rest = part.rest();
        self.send(target.part, &rest).await;
        let state = part.state();
        if state == PartState::Complete && self.run.context.is_continued() {
            return Box::pin(self.checked(target, part, &FirstText::of(part, end))).await;
        }
        let first = FirstText::all(part.document(), end);
        let recording = self.run.recording.as_ref();
        let keeps_text = recording.is_some_and(Recording::keeps_text);
        let cut = match state {
            PartState::Unclear => return Ok(state.into()),
            PartState::Complete | PartState::Invalid if !keeps_text => None,
            _ => self.record_content(target.part, &first).await?,
        };
        let state = if self.run.context.params.is_strict() {
            self.compared(target, state, first.document).await
        } else {
            state
        };
        Ok(EndedPart {
            cut,
            ..state.into()
        })
    }

    /// Reads all of the content again, if a document was requested and the content has other text
    /// around it or has to be repaired. What was sent stays.
    async fn reread(
        &mut self,
        target: AnswerPart<'_>,
        part: &PartText,
        has_calls: bool,
        end: &StepEnd,
    ) -> Result<EndedPart, ApiError> {
        let sent = part.released();
        let first = FirstText::all(part.text(), end);
        let (read, step) = self.run.context.read_first(&first);
        let document = read.base();
        match document.filter(|_| !part.is_one_of_several(document)) {
            Some(document) if document.text().starts_with(sent) => {
                Box::pin(self.continued(target, part, &first)).await
            }
            Some(_) if part.has_complete_document() => {
                let first = FirstText::of(part, end);
                Box::pin(self.checked(target, part, &first)).await
            }
            // All of the text is another document than the one that was sent.
            Some(_) => {
                let first = FirstText {
                    document: sent,
                    ..first
                };
                let cut = self.record_content(target.part, &first).await?;
                Ok(EndedPart {
                    text: Some(sent.to_owned()),
                    cut,
                    ..PartState::Cut.into()
                })
            }
            // It is no document, or several: all of it is delivered.
            None => {
                let mut ended = EndedPart::from(PartState::Unclear);
                if !has_calls && first.awaits_document(step.as_ref()) {
                    ended = Box::pin(self.continued(target, part, &first)).await?;
                }
                if ended.text.is_none() {
                    let rest = part.unreleased();
                    self.send(target.part, &rest).await;
                    ended.text = Some([sent, &rest].concat());
                }
                Ok(ended)
            }
        }
    }

    /// Sends the arguments of a tool call, and continues them if they are cut.
    async fn arguments(
        &mut self,
        target: AnswerPart<'_>,
        is_last: bool,
        part: &mut PartText,
        end: &StepEnd,
    ) -> Result<EndedPart, ApiError> {
        let is_empty = part.text().trim().is_empty();
        // The limit was reached after the name of the tool.
        let is_unbegun = is_empty && is_last && end.finish.as_deref() == Some("length");
        if part.is_open() || is_unbegun && part.is_continued() {
            let first = FirstText::all(part.document(), end);
            let ended = self.continued(target, part, &first).await?;
            if ended.text.is_none() {
                // No arguments ever began: the white space is sent, as the final object has it.
                let rest = part.rest();
                self.send(target.part, &rest).await;
            }
            return Ok(ended);
        }
        let rest = part.rest();
        self.send(target.part, &rest).await;
        let arguments = if is_empty { NO_ARGUMENTS } else { part.text() };
        let first = FirstText::all(arguments, end);
        let ended = self.checked(target, part, &first).await?;
        if let Some(corrected) = &ended.text {
            self.send(target.part, corrected).await;
        }
        Ok(ended)
    }
}

/// Why a choice is not continued whatever its parts are.
fn never_continued(choice: &ChoiceParts) -> Option<Reason> {
    let is_open = || choice.content.is_open() || choice.calls.iter().any(PartText::is_open);
    match choice.finish.as_deref()? {
        // The provider would filter a continuation as well.
        "content_filter" => Some(Reason::ContentFilter),
        // The client asked for this end, or continues the turn itself.
        "stop_sequence" | "pause_turn" if is_open() => Some(Reason::NotContinued),
        _ => None,
    }
}

/// A choice with its final texts: those that the assembler delivers, unless there are others.
fn final_choice(
    choice: &ChoiceParts,
    content: Option<String>,
    calls: Vec<Option<String>>,
    ending: &Ending,
) -> FinalChoice {
    let delivered =
        |text: Option<String>, part: &PartText| text.unwrap_or_else(|| part.delivered().to_owned());
    let calls = calls.into_iter().chain(std::iter::repeat(None));
    let calls = calls.zip(&choice.calls);
    FinalChoice {
        finish: ending.finish().map(str::to_owned),
        content: delivered(content, &choice.content),
        calls: calls.map(|(text, part)| delivered(text, part)).collect(),
    }
}
