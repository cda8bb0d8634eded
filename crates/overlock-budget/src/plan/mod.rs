//! What of a request goes into the window, and how long may the answer be?
//!
//! The parts of a prompt share the window as items of a flexbox do: those of low priority give way
//! first, and what must stay is never touched. A plan always fits: input, answer and margin are
//! within the window, counted as they are sent. What cannot fit is refused, with what would help.

mod explain;
mod extras;
mod layout;
mod line;
mod measure;
mod options;
mod recount;

pub use options::{
    ContextBlock, Extras, Maker, Memory, MemoryOptions, Part, PartOptions, PlanOptions, Trim,
};

use crate::chat::{ChatCounter, Request, SentMessage};
use crate::count::Provenance;
use crate::flex::{Change, FlexError, Help};
use crate::models::Sharing;
use crate::negotiate::Adjustment;

/// A request that fits, and how it came to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tokens of the window.
    pub window: u64,
    /// Whether the answer takes its room from the window.
    pub sharing: Sharing,
    /// What is left free.
    pub margin: Margin,
    /// Who counted.
    pub counter: String,
    /// What the figures rest on.
    pub provenance: Provenance,
    /// The tokens of the request as it is to be sent.
    pub input_token_count: u64,
    /// What there is for the answer.
    pub available: u64,
    /// What was wanted for the answer.
    pub requested: u64,
    /// What the answer may have.
    pub adjusted_max_tokens: u64,
    /// What became of the wish.
    pub adjustment: Adjustment,
    /// Every part, in the order of [`Part`].
    pub parts: Vec<PlannedPart>,
    /// The places of the messages that stay.
    pub kept_messages: Vec<usize>,
    /// The places of the messages that go.
    pub dropped_messages: Vec<usize>,
    /// The places of the tools that stay.
    pub kept_tools: Vec<usize>,
    /// What is added, in the order of its places.
    pub insertions: Vec<Insertion>,
    /// How many messages stay that are no system prompts.
    pub message_count: usize,
    /// How many memories are told.
    pub memory_count: usize,
    /// What stands in the way of more, in a sentence.
    pub blocker: Option<String>,
    /// Who made the model.
    pub maker: Maker,
}

/// A system message that is added to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// The place of the message it is put before.
    pub before: usize,
    /// What it says.
    pub text: String,
}

/// What is left free of a window, and why so much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Margin {
    /// The tokens.
    pub tokens: u64,
    /// The reason, in a few words.
    pub reason: String,
}

/// What became of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPart {
    /// Which one.
    pub part: Part,
    /// The tokens that all of it would take.
    pub asked: u64,
    /// Whether it would take even more: what cannot fit is not counted to its end.
    pub at_least: bool,
    /// The tokens that the flexbox has for it.
    pub share: u64,
    /// The tokens it takes.
    pub given: u64,
    /// How the share came about.
    pub change: Change,
    /// How many pieces stay: messages, tools, memories or blocks.
    pub kept: usize,
    /// How many pieces go.
    pub dropped: usize,
    /// What the pieces that go are called; messages are in [`Plan::dropped_messages`].
    pub dropped_names: Vec<String>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// What must stay does not fit, or the options contradict each other.
    #[error(transparent)]
    Refused(#[from] FlexError),
}

impl PlanError {
    /// What would help, each on its own.
    pub fn help(&self) -> &[Help] {
        match self {
            Self::Refused(FlexError::TooLarge { help, .. }) => help,
            Self::Refused(FlexError::Contradiction { .. }) => &[],
        }
    }
}

impl Plan {
    /// Whether input, answer and margin are within the window, which they are in every plan.
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

    /// What became of a part.
    #[expect(clippy::missing_panics_doc, reason = "a plan has every part")]
    pub fn part(&self, part: Part) -> &PlannedPart {
        let found = self.parts.iter().find(|planned| planned.part == part);
        found.expect("a plan has every part")
    }

    /// The tokens of the window that nothing takes, the margin aside.
    pub fn unused(&self) -> u64 {
        let answer = match self.sharing {
            Sharing::Shared => self.adjusted_max_tokens,
            Sharing::Separate => 0,
        };
        let taken = self.input_token_count + self.margin.tokens + answer;
        self.window.saturating_sub(taken)
    }

    /// Whether other messages are sent than those of the request.
    pub fn changes_messages(&self) -> bool {
        !self.dropped_messages.is_empty() || !self.insertions.is_empty()
    }

    /// The messages as they are to be sent, in order.
    pub fn messages(&self) -> impl Iterator<Item = SentMessage<'_>> {
        arranged(&self.kept_messages, &self.insertions)
    }
}

/// The messages that stay, and between them those that are added.
fn arranged<'p>(
    kept: &'p [usize],
    insertions: &'p [Insertion],
) -> impl Iterator<Item = SentMessage<'p>> {
    let mut kept = kept.iter().copied().peekable();
    let mut insertions = insertions.iter().peekable();
    std::iter::from_fn(move || {
        let next = kept.peek();
        let is_first = |one: &&Insertion| next.is_none_or(|place| one.before <= *place);
        match insertions.next_if(is_first) {
            Some(insertion) => Some(SentMessage::Inserted(&insertion.text)),
            None => kept.next().map(SentMessage::Kept),
        }
    })
}

/// Every part of a request that was refused, at the least it can be brought down to.
///
/// As a template writes them together they may take something else than their sum.
pub fn least_parts(
    request: &dyn Request,
    extras: &Extras,
    counter: &ChatCounter,
    options: &PlanOptions,
) -> Vec<PlannedPart> {
    layout::Planner::new(request, extras, counter, options, 0).least_parts()
}

/// Plans only what must stay of a request: everything goes that may.
///
/// Whether that fits can be counted by others, where the figures of the rest say little about it.
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
/// For every plan: input, answer and margin are within the window; the system prompt and the whole
/// open turn are there: the last user message, the tool calls and results after it; no tool call is
/// separated from its result; nothing goes while something of lower priority could give way for it;
/// a larger window keeps all that a smaller one did, unless gaps are filled or a template writes the
/// chat; and it is refused only if what must stay does not fit at its smallest.
pub fn plan(
    request: &dyn Request,
    extras: &Extras,
    counter: &ChatCounter,
    options: &PlanOptions,
) -> Result<Plan, PlanError> {
    recount::plan(request, extras, counter, options)
}
