//! What was planned for a call: the window, its parts, and the limit of the answer.

use std::borrow::Cow;
use std::ops::Not;

use overlock_budget::{self as budget, Found, Plan, PlannedPart, Provenance, WindowSource};
use serde::{Deserialize, Serialize};

use crate::fit::Least;

/// The budget of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBudget {
    /// The tokens that the answer might have.
    pub adjusted_max_tokens: u64,
    /// The tokens of the prompt.
    pub input_token_count: u64,
    /// The messages that were sent.
    pub message_count: usize,
    /// The memories that were told.
    pub memory_count: usize,
    /// The tokens of the window.
    pub window: u64,
    /// The tokens that were left free.
    pub margin: u64,
    /// Every part of the window that wanted anything.
    pub parts: Vec<PartBudget>,
    /// What these figures rest on, where that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// How long the answer was said to be at most, where that is known: what was planned for it is
    /// only room, as long as the model has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<AnswerLimit>,
}

/// The limit of an answer, as it was asked for and as it was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerLimit {
    /// The tokens that whoever asked set as a limit, if they set one.
    pub asked: Option<u64>,
    /// The tokens that the model was told, if it was told any.
    pub sent: Option<u64>,
}

/// What the figures of a budget rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// Who counted.
    pub counter: Cow<'static, str>,
    /// What a count rests on: `exact`, `calibrated` or `estimate`.
    pub provenance: Cow<'static, str>,
    /// What the window rests on: `known`, `alike`, `set` or `assumed`.
    pub window: Cow<'static, str>,
}

/// What one part of a window wanted and had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartBudget {
    /// Its name.
    pub name: Cow<'static, str>,
    /// The tokens that all of it would take.
    pub asked: u64,
    /// Whether it would take even more: what cannot fit is not counted to its end.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub at_least: bool,
    /// The tokens it took; of the answer, those it might have.
    pub given: u64,
    /// How many pieces of it were left out: messages, tools, memories or blocks.
    #[serde(default, skip_serializing_if = "is_none_left")]
    pub dropped: usize,
    /// How many stayed, where some were left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<usize>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_none_left(count: &usize) -> bool {
    *count == 0
}

impl Basis {
    /// What figures rest on that this counter told of a model.
    pub fn of(counter: &str, provenance: Provenance, model: &Found) -> Self {
        Self {
            counter: counter.to_owned().into(),
            provenance: provenance.name().into(),
            window: model.window_source().name().into(),
        }
    }
}

impl CallBudget {
    /// What was planned for a call of a model.
    pub fn of(plan: &Plan, model: &Found) -> Self {
        Self {
            adjusted_max_tokens: plan.adjusted_max_tokens,
            input_token_count: plan.input_token_count,
            message_count: plan.message_count,
            memory_count: plan.memory_count,
            window: plan.window,
            margin: plan.margin.tokens,
            parts: PartBudget::of(&plan.parts),
            basis: Some(Basis::of(&plan.counter, plan.provenance, model)),
            limit: None,
        }
    }

    /// The same with the limit that goes with the call.
    #[must_use]
    pub fn with_limit(self, limit: AnswerLimit) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    /// A window with what must stay, which is too much for it.
    pub fn least(window: u64, least: &Least, basis: Basis) -> Self {
        Self {
            adjusted_max_tokens: least.answer,
            input_token_count: least.input,
            message_count: least.message_count(),
            memory_count: least.memory_count(),
            window,
            margin: least.margin,
            parts: PartBudget::of(&least.parts),
            basis: Some(basis),
            limit: None,
        }
    }

    /// How many older messages were left out.
    pub(crate) fn dropped_messages(&self) -> u64 {
        let history = budget::Part::History.name();
        let part = self.parts.iter().find(|part| part.name == history);
        part.map_or(0, |part| part.dropped as u64)
    }

    /// Whether nothing is known of the model, and its window was assumed.
    pub fn is_window_assumed(&self) -> bool {
        let assumed = WindowSource::Assumed.name();
        self.basis.as_ref().is_some_and(|it| it.window == assumed)
    }
}

impl From<&PlannedPart> for PartBudget {
    fn from(part: &PlannedPart) -> Self {
        Self {
            name: part.part.name().into(),
            asked: part.asked,
            at_least: part.at_least,
            given: part.given,
            dropped: part.dropped,
            kept: (part.dropped > 0).then_some(part.kept),
        }
    }
}

impl PartBudget {
    /// Those that wanted anything.
    fn of(parts: &[PlannedPart]) -> Vec<Self> {
        let wanted = parts.iter().filter(|part| part.asked > 0);
        wanted.map(Self::from).collect()
    }
}
