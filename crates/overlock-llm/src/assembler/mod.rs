//! Which bytes of an answer are stable, and which of its parts are complete or cut?
//!
//! The assembler takes the deltas of one answer, in any protocol, and returns the bytes that can go
//! to the client. It does no I/O. An answer that is not streamed is the same assembler with
//! [`Delivery::AtEnd`]: everything is decided in the same way, and nothing is released before the
//! end.

mod fence;
mod part;

pub use part::{Delivery, PartKind, PartState, PartText};

use std::collections::BTreeMap;

use crate::continuation::StepEnd;

/// A piece of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Content.
    Text(&'a str),
    /// Arguments of a tool call.
    ToolArguments {
        /// The index of the call in its choice.
        call: usize,
        /// The text.
        text: &'a str,
    },
    /// Arguments of a `function_call`, the older form of a tool call, which is never continued.
    FunctionArguments(&'a str),
    /// Refusal text.
    Refusal(&'a str),
    /// The end, with the upstream's finish reason.
    Finish(&'a str),
}

/// Changes that are possible only while no byte was sent. They are the only differences between a
/// streamed answer and one that is not: a stream ends as partial instead, and its bytes are a
/// prefix of the accepted document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnsentOnly {
    /// A partial document is closed.
    ClosePartial,
    /// A document is replaced by another reading of the same answer, such as a repaired one.
    Replace,
    /// The model corrects a document that violates its schema.
    CorrectSchema,
    /// Items that only repeat are removed.
    RemoveLoop,
}

/// The parts of an answer as they arrive.
pub struct Assembler {
    content: PartKind,
    delivery: Delivery,
    /// Boxed, because a map has space for eleven, and most answers have one.
    choices: BTreeMap<u64, Box<ChoiceParts>>,
}

/// The parts of one choice.
pub struct ChoiceParts {
    delivery: Delivery,
    /// The content.
    pub content: PartText,
    /// The arguments of its tool calls.
    pub calls: Vec<PartText>,
    /// The arguments of a `function_call`.
    pub function: Option<PartText>,
    /// The upstream's finish reason.
    pub finish: Option<String>,
    refusal: String,
}

impl Assembler {
    /// An assembler for an answer with this kind of content and delivery.
    pub fn new(content: PartKind, delivery: Delivery) -> Self {
        Self {
            content,
            delivery,
            choices: BTreeMap::new(),
        }
    }

    /// Takes the next piece of a choice and returns the bytes that can go to the client now.
    pub fn feed(&mut self, choice: u64, delta: Delta<'_>) -> String {
        let (content, delivery) = (self.content, self.delivery);
        let choice = self.choices.entry(choice).or_insert_with(|| {
            Box::new(ChoiceParts {
                delivery,
                content: PartText::new(content, delivery),
                calls: Vec::new(),
                function: None,
                finish: None,
                refusal: String::new(),
            })
        });
        choice.feed(delta)
    }

    /// The choices, by their index.
    pub fn choices(&self) -> impl Iterator<Item = (u64, &ChoiceParts)> {
        self.choices
            .iter()
            .map(|(index, choice)| (*index, &**choice))
    }

    /// Takes the first choice out.
    pub fn pop_first(&mut self) -> Option<(u64, ChoiceParts)> {
        self.choices
            .pop_first()
            .map(|(index, choice)| (index, *choice))
    }

    /// Whether every choice can be completed although the stream was interrupted.
    pub fn survives_break(&self) -> bool {
        self.choices.values().all(|choice| choice.survives_break())
    }

    /// Whether the upstream has ended every choice.
    pub fn is_ended(&self) -> bool {
        let is_ended = self.choices.values().all(|choice| choice.finish.is_some());
        is_ended && !self.choices.is_empty()
    }

    /// Whether the answer is at most one text, so that its usage is the usage of that text.
    pub fn is_one_text(&self) -> bool {
        let texts = self
            .choices
            .values()
            .map(|choice| usize::from(!choice.content.text().is_empty()) + choice.calls.len());
        texts.sum::<usize>() <= 1
    }

    /// The bytes of all parts.
    pub fn text_len(&self) -> usize {
        let texts = self.choices.values().flat_map(|choice| choice.texts());
        texts.map(str::len).sum()
    }
}

impl ChoiceParts {
    fn feed(&mut self, delta: Delta<'_>) -> String {
        match delta {
            Delta::Text(text) => return self.content.feed(text),
            Delta::ToolArguments { call, text } => {
                let delivery = self.delivery;
                let part = || PartText::new(PartKind::Arguments, delivery);
                while self.calls.len() <= call {
                    self.calls.push(part());
                }
                return self.calls[call].feed(text);
            }
            Delta::FunctionArguments(text) => {
                let part = || PartText::new(PartKind::Arguments, Delivery::Verbatim);
                return self.function.get_or_insert_with(part).feed(text);
            }
            Delta::Refusal(text) => self.refusal.push_str(text),
            Delta::Finish(reason) => self.finish = Some(reason.to_owned()),
        }
        String::new()
    }

    /// The text of each part.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let calls = self.calls.iter().map(PartText::text);
        std::iter::once(self.content.text()).chain(calls)
    }

    /// The part that is being written.
    pub fn written(&self) -> &str {
        self.calls.last().unwrap_or(&self.content).text()
    }

    /// Whether it calls a tool, in either form.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty() || self.function.is_some()
    }

    /// The bytes of its parts that were held back, with the index of the tool call. Nothing
    /// continues these parts.
    pub fn rest(&mut self) -> Vec<(Option<usize>, String)> {
        let calls = self.calls.iter_mut().enumerate();
        let calls = calls.map(|(call, part)| (Some(call), part.rest()));
        let mut rest = vec![(None, self.content.rest())];
        rest.extend(calls);
        rest
    }

    /// Without a finish reason, more tool calls may be missing, and a plain text may be incomplete.
    fn survives_break(&self) -> bool {
        let content = &self.content;
        let is_document =
            content.is_open() || content.needs_reread() || content.state() == PartState::Complete;
        self.finish.is_some() || !self.has_calls() && is_document
    }

    /// How it ended: with a finish reason or with an error.
    pub fn end(&self, broken: Option<&str>) -> StepEnd {
        StepEnd {
            finish: self.finish.clone(),
            refusal: Some(self.refusal.clone()).filter(|text| !text.is_empty()),
            broken: broken.map(str::to_owned),
            ..StepEnd::default()
        }
    }
}
