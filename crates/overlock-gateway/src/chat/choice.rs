//! Decides how one choice of an answer ends, and continues what is cut of it.

use overlock_json::Cut as DocumentCut;
use overlock_llm::assembler::{ChoiceParts, PartState, PartText, UnsentOnly};
use overlock_llm::wire::chat::FinalChoice;
use overlock_llm::{Reason, StepEnd};

use super::compliance::{Compared, NO_ARGUMENTS};
use super::continuation::{Cut, Joined, is_complete};
use super::ending::Ending;
use super::first::First;
use super::observer::Listen;
use super::part::new_recording;
use super::response::ResponseRun;
use super::wish::Continues;
use crate::error::ApiError;
use crate::record::Recording;
use overlock_runs::{Part, unfinished};

/// What a content turned out to be.
struct Content {
    state: PartState,
    /// The text for the client, if it is not what the assembler delivers.
    text: Option<String>,
    /// Where it stops, if it is a document that is not continued.
    cut: Option<DocumentCut>,
    /// Whether the provider's filter ended the rest.
    is_withheld: bool,
}

impl From<PartState> for Content {
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
    /// Continues what is cut of one choice. Returns the choice as it ends.
    pub(super) async fn end_choice(
        &mut self,
        index: u64,
        mut choice: ChoiceParts,
    ) -> Result<FinalChoice, ApiError> {
        let part = Part::content(index);
        let end = self.run.context.end_of(&choice, self.broken.as_deref());
        let mut ending = Ending::said(choice.finish.clone());
        // What a provider's filter stopped is not asked for again.
        if choice.finish.as_deref() == Some("content_filter") {
            let first = First::all(choice.content.text(), &end);
            let context = &self.run.context;
            let kind = context.content_kind();
            let recording = new_recording(&mut self.run.recording, part);
            let outcome = context.keep_withheld(kind, &first, recording).await?;
            self.note(outcome);
            self.send_rest(index, &mut choice).await;
            return Ok(finished(&choice, None, Vec::new(), &ending));
        }
        let has_calls = choice.has_calls();
        let content = self.content(index, &mut choice.content, has_calls, &end);
        let mut content = content.await?;
        ending.content(content.state);
        if content.state == PartState::Unclear {
            content = self
                .unclear(part, &choice, &end, &mut ending, content)
                .await?;
        }
        let mut is_withheld = content.is_withheld;
        let mut calls = Vec::new();
        let last = choice.calls.len().saturating_sub(1);
        for (call, arguments) in choice.calls.iter_mut().enumerate() {
            let part = Part::new(index, Some(call));
            let is_last = call == last;
            let found = Box::pin(self.arguments(part, call, is_last, arguments, &end)).await?;
            ending.call(found.state);
            is_withheld |= found.is_withheld;
            calls.push(found.text);
        }
        if is_withheld {
            ending.withheld();
        }
        if let Some(arguments) = &choice.function {
            let tool = self.wire.tool(index, None).to_owned();
            let cut = Cut::Arguments(&tool);
            let compared = self.compared(cut, arguments.state(), arguments.text());
            ending.older_call(compared.await);
        }
        if let Some(reason) = ending.reason() {
            let has_come = choice.has_calls() || !choice.content.text().is_empty();
            self.note(unfinished(reason, has_come, content.cut));
        }
        Ok(finished(&choice, content.text, calls, &ending))
    }

    /// Continues content that is no document if that is wanted, or records it as it is.
    async fn unclear(
        &mut self,
        part: Part,
        choice: &ChoiceParts,
        end: &StepEnd,
        ending: &mut Ending,
        content: Content,
    ) -> Result<Content, ApiError> {
        let text = choice.content.text();
        let first = First::all(text, end);
        let is_text_wanted = self.run.context.wish.continues == Continues::Text;
        let is_cut = ending.word() == Some("length");
        if is_cut && is_text_wanted && choice.calls.is_empty() && !text.is_empty() {
            let mut listener = self.listener(part);
            let listener = listener.as_mut().map(|it| it as &mut dyn Listen);
            let recording = self.run.recording.as_mut().map(|it| it.turn_to(part));
            let longer = self.run.context.join_text(&first, listener, recording);
            let longer = Box::pin(longer).await?;
            self.totals.join(longer.totals);
            ending.content(longer.state());
            if longer.is_withheld() {
                ending.withheld();
            }
            self.note(longer.outcome());
            let text = Some(longer.run.text().to_owned());
            return Ok(Content { text, ..content });
        }
        let recording = new_recording(&mut self.run.recording, part);
        let kept = self
            .run
            .context
            .keep_unclear(&first, choice.has_calls(), recording);
        if let Some(outcome) = Box::pin(kept).await? {
            if outcome.reason() == Some(Reason::NoJson) && self.run.context.wish.is_strict() {
                let compared = Compared::not_json("the answer");
                ending.content(self.compliance.add(Cut::Content, compared));
            }
            self.note(outcome);
        }
        Ok(content)
    }

    /// Sends what there is of the content, and continues it if it is a document that is cut.
    async fn content(
        &mut self,
        index: u64,
        part: &mut PartText,
        has_calls: bool,
        end: &StepEnd,
    ) -> Result<Content, ApiError> {
        let place = Part::content(index);
        if part.needs_reread() {
            return Box::pin(self.reread(place, part, has_calls, end)).await;
        }
        if part.is_open() {
            let first = First::of(part, end);
            let sent = part.released().len();
            let joined = self.continued(place, Cut::Content, &first, sent);
            let (joined, state) = Box::pin(joined).await?;
            if is_complete(&joined.run) {
                self.send(place, part.closing()).await;
            }
            return Ok(self.delivered(part, &joined, state));
        }
        let rest = part.rest();
        self.send(place, &rest).await;
        let state = part.state();
        let is_continued = self.run.context.wish.continues != Continues::Nothing;
        if state == PartState::Complete && is_continued {
            let first = First::of(part, end);
            let (text, state) = self.checked(place, Cut::Content, part, &first).await?;
            return Ok(Content {
                text,
                ..Content::from(state)
            });
        }
        let first = First::all(part.document(), end);
        let recording = self.run.recording.as_ref();
        let keeps_text = recording.is_some_and(Recording::keeps_text);
        let cut = match state {
            PartState::Unclear => return Ok(Content::from(state)),
            PartState::Complete | PartState::Invalid if !keeps_text => None,
            _ => self.keep_document(place, &first).await?,
        };
        let state = if self.run.context.wish.is_strict() {
            self.compared(Cut::Content, state, first.document).await
        } else {
            state
        };
        Ok(Content {
            cut,
            ..Content::from(state)
        })
    }

    /// Reads all of the content once more, where a document was requested and something else came
    /// with it or made it invalid. What was sent stays.
    async fn reread(
        &mut self,
        place: Part,
        part: &PartText,
        has_calls: bool,
        end: &StepEnd,
    ) -> Result<Content, ApiError> {
        let sent = part.released();
        let first = First::all(part.text(), end);
        let (read, step) = self.run.context.read_first(&first);
        let base = read.base();
        match base.filter(|_| !part.is_one_of_several(base)) {
            Some(base) if base.text().starts_with(sent) => {
                let joined = self.continued(place, Cut::Content, &first, sent.len());
                let (joined, state) = Box::pin(joined).await?;
                Ok(self.delivered(part, &joined, state))
            }
            Some(_) if part.has_complete_document() => {
                let first = First::of(part, end);
                let (_, state) = self.checked(place, Cut::Content, part, &first).await?;
                Ok(Content::from(state))
            }
            // All of the text is another document than what was sent.
            Some(_) => {
                let first = First {
                    document: sent,
                    ..first
                };
                let cut = self.keep_document(place, &first).await?;
                Ok(Content {
                    text: Some(sent.to_owned()),
                    cut,
                    ..Content::from(PartState::Cut)
                })
            }
            // It is no document, or several: nothing of it is left out.
            None => {
                let mut found = Content::from(PartState::Unclear);
                if !has_calls && first.awaits_document(step.as_ref()) {
                    let joined = self.continued(place, Cut::Content, &first, sent.len());
                    let (joined, state) = Box::pin(joined).await?;
                    if joined.run.base().is_some() {
                        return Ok(self.delivered(part, &joined, state));
                    }
                    found.state = state;
                    found.is_withheld = joined.is_withheld();
                }
                let rest = part.unreleased();
                self.send(place, &rest).await;
                found.text = Some([sent, &rest].concat());
                Ok(found)
            }
        }
    }

    /// Content with its document as it was continued. A partial one is closed if it can be.
    fn delivered(&self, part: &PartText, joined: &Joined, state: PartState) -> Content {
        let run = &joined.run;
        let is_complete = is_complete(run);
        let is_closed = !is_complete && self.allows(UnsentOnly::ClosePartial);
        let closed = run.last_valid_complete_part().filter(|_| is_closed);
        let document = closed.unwrap_or_else(|| run.text().to_owned());
        let closing = if is_complete || is_closed {
            part.closing()
        } else {
            ""
        };
        Content {
            text: Some([part.before_document(), &document, closing].concat()),
            is_withheld: joined.is_withheld(),
            ..Content::from(state)
        }
    }

    /// Sends what there is of the arguments of a tool call, and continues them if they are cut.
    /// Cut arguments are never closed: a call that looks complete is executed.
    async fn arguments(
        &mut self,
        place: Part,
        call: usize,
        is_last: bool,
        part: &mut PartText,
        end: &StepEnd,
    ) -> Result<Content, ApiError> {
        let tool = self.wire.tool(place.choice, Some(call)).to_owned();
        let cut = Cut::Arguments(&tool);
        let is_empty = part.text().trim().is_empty();
        // The limit was reached after the name of the tool.
        let is_unbegun = is_empty && is_last && end.finish.as_deref() == Some("length");
        if part.is_open() || is_unbegun && part.is_continued() {
            let first = First::all(part.document(), end);
            let sent = part.released().len();
            let (joined, state) = self.continued(place, cut, &first, sent).await?;
            return Ok(Content {
                text: Some([part.before_document(), joined.run.text()].concat()),
                is_withheld: joined.is_withheld(),
                ..Content::from(state)
            });
        }
        let rest = part.rest();
        self.send(place, &rest).await;
        let document = if is_empty { NO_ARGUMENTS } else { part.text() };
        let first = First::all(document, end);
        let (text, state) = self.checked(place, cut, part, &first).await?;
        if let Some(text) = &text {
            self.send(place, text).await;
        }
        Ok(Content {
            text,
            ..Content::from(state)
        })
    }
}

/// A choice with its final texts: what the assembler delivers, unless there is another.
fn finished(
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
        finish: ending.word().map(str::to_owned),
        content: delivered(content, &choice.content),
        calls: calls.map(|(text, part)| delivered(text, part)).collect(),
    }
}
