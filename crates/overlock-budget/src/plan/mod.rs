//! Plans which parts of a request are sent, and how long the answer may be.
//!
//! The parts of a prompt share the window like items of a flexbox: parts of low priority shrink
//! first, and required parts never do. A plan always fits: input, answer and margin are within the
//! window, counted in the form in which they are sent. A request that cannot fit is rejected, with
//! advice.

mod explain;
mod extras;
mod layout;
mod line;
mod measure;
mod options;
mod recount;
mod results;

pub use options::{
    ContextBlock, Extras, Maker, Memory, MemoryOptions, Part, PartOptions, PlanOptions,
    ResultOptions, Trim,
};

use crate::chat::{ChatCounter, Request, SentMessage};
use crate::count::Provenance;
use crate::flex::{Change, FlexError, Help};
use crate::models::Sharing;
use crate::negotiate::Adjustment;

/// A request that fits, with all figures.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tokens of the window.
    pub window: u64,
    /// Whether the answer takes its room from the window.
    pub sharing: Sharing,
    /// The tokens that stay free.
    pub margin: Margin,
    /// The name of the counter.
    pub counter: String,
    /// How exact the counts are.
    pub provenance: Provenance,
    /// The tokens of the request that is sent.
    pub input_token_count: u64,
    /// The tokens available for the answer.
    pub available: u64,
    /// The tokens requested for the answer.
    pub requested: u64,
    /// The tokens that the answer may have.
    pub adjusted_max_tokens: u64,
    /// How the requested length was changed.
    pub adjustment: Adjustment,
    /// Every part, in the order of [`Part`].
    pub parts: Vec<PlannedPart>,
    /// The indices of the messages that stay.
    pub kept_messages: Vec<usize>,
    /// The indices of the dropped messages.
    pub dropped_messages: Vec<usize>,
    /// The tool results that are sent with another text, in order.
    pub shortened: Vec<ShortenedResult>,
    /// The indices of the tools that stay.
    pub kept_tools: Vec<usize>,
    /// The inserted messages, in order.
    pub insertions: Vec<Insertion>,
    /// How many messages stay, without system prompts.
    pub message_count: usize,
    /// How many memories are included.
    pub memory_count: usize,
    /// What limits the plan, in a sentence.
    pub blocker: Option<String>,
    /// The maker of the model.
    pub maker: Maker,
}

/// A system message that is added to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// The index of the message after it.
    pub before: usize,
    /// Its text.
    pub text: String,
}

/// A tool result that is sent with another text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortenedResult {
    /// The index of its message.
    pub message: usize,
    /// The text: one line in place of an old result, or the beginning and the end of a large one.
    pub text: String,
}

/// The tokens of a window that stay free, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Margin {
    /// The tokens.
    pub tokens: u64,
    /// The reason, in a few words.
    pub reason: String,
}

/// The result for one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPart {
    /// The part.
    pub part: Part,
    /// The tokens of all of it.
    pub asked: u64,
    /// Whether it has even more tokens: parts that cannot fit are not counted to their end.
    pub at_least: bool,
    /// Its share of the window in tokens.
    pub share: u64,
    /// The tokens it takes.
    pub given: u64,
    /// How the share came about.
    pub change: Change,
    /// How many pieces stay: messages, tools, memories or blocks.
    pub kept: usize,
    /// How many pieces are dropped.
    pub dropped: usize,
    /// The names of the dropped pieces; messages are in [`Plan::dropped_messages`].
    pub dropped_names: Vec<String>,
}

/// Why a request cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The required parts do not fit, or the options contradict each other.
    #[error(transparent)]
    Refused(#[from] FlexError),
}

impl PlanError {
    /// Changes that would each help alone.
    pub fn help(&self) -> &[Help] {
        match self {
            Self::Refused(FlexError::TooLarge { help, .. }) => help,
            Self::Refused(FlexError::Contradiction { .. }) => &[],
        }
    }
}

impl Plan {
    /// Whether input, answer and margin are within the window, which is true for every plan.
    pub fn fits(&self) -> bool {
        let answer = match self.sharing {
            Sharing::Shared => self.adjusted_max_tokens,
            Sharing::Separate => 0,
        };
        let sum = [answer, self.margin.tokens]
            .iter()
            .fold(self.input_token_count, |sum, tokens| {
                sum.saturating_add(*tokens)
            });
        sum <= self.window
    }

    /// The result for a part.
    #[expect(clippy::missing_panics_doc, reason = "a plan has every part")]
    pub fn part(&self, part: Part) -> &PlannedPart {
        let found = self.parts.iter().find(|planned| planned.part == part);
        found.expect("a plan has every part")
    }

    /// The unused tokens of the window, without the margin.
    pub fn unused(&self) -> u64 {
        let answer = match self.sharing {
            Sharing::Shared => self.adjusted_max_tokens,
            Sharing::Separate => 0,
        };
        let taken = self.input_token_count + self.margin.tokens + answer;
        self.window.saturating_sub(taken)
    }

    /// Whether the messages differ from those of the request.
    pub fn changes_messages(&self) -> bool {
        !(self.dropped_messages.is_empty()
            && self.insertions.is_empty()
            && self.shortened.is_empty())
    }

    /// The messages that are sent, in order.
    pub fn messages(&self) -> impl Iterator<Item = SentMessage<'_>> {
        let mut kept = self.kept_messages.iter().copied().peekable();
        let mut insertions = self.insertions.iter().peekable();
        let mut shortened = self.shortened.iter().peekable();
        std::iter::from_fn(move || {
            let next = kept.peek();
            let is_first = |one: &&Insertion| next.is_none_or(|place| one.before <= *place);
            if let Some(insertion) = insertions.next_if(is_first) {
                return Some(SentMessage::Inserted(&insertion.text));
            }
            let place = kept.next()?;
            Some(match shortened.next_if(|one| one.message == place) {
                Some(short) => SentMessage::Shortened(place, &short.text),
                None => SentMessage::Kept(place),
            })
        })
    }
}

/// Every part of a rejected request, at its smallest.
///
/// Written by a template, they may have other tokens than their sum.
pub fn least_parts(
    request: &dyn Request,
    extras: &Extras,
    counter: &ChatCounter,
    options: &PlanOptions,
) -> Vec<PlannedPart> {
    layout::Planner::new(request, extras, counter, options, 0).least_parts()
}

/// Plans only the required parts of a request.
///
/// The result can be counted elsewhere, if the counts of the other parts say little about it.
pub fn plan_least(
    request: &dyn Request,
    extras: &Extras,
    counter: &ChatCounter,
    options: &PlanOptions,
) -> Result<Plan, PlanError> {
    recount::least(request, extras, counter, options)
}

/// Plans a request.
///
/// This is the order in which parts give way, with the default priorities:
///
/// 1. the answer, down to its minimum;
/// 2. old tool results, which become marks of one line, in batches, the oldest first;
/// 3. memories, 4. context, 5. the oldest turns, 6. tools that no message that stays calls;
/// 7. results of the open turn, truncated in the middle, the largest first, down to a floor.
///
/// For every plan: input, answer and margin are within the window; the system prompt and the whole
/// open turn (the last user message, and the tool calls and results after it) stay; no tool call is
/// separated from its result or from its tool; a part is dropped only if it does not fit in place of
/// all parts of lower priority; and a request is rejected only if the required parts do not fit at
/// their smallest.
pub fn plan(
    request: &dyn Request,
    extras: &Extras,
    counter: &ChatCounter,
    options: &PlanOptions,
) -> Result<Plan, PlanError> {
    recount::plan(request, extras, counter, options)
}
