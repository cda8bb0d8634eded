//! The token budget of one model call: the window, its parts and the limit of the answer.

use std::borrow::Cow;
use std::ops::Not;

use overlock_budget::{self as budget, Found, Plan, PlannedPart, Provenance, WindowSource};
use serde::{Deserialize, Serialize};

use crate::fit::Least;

/// The budget of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBudget {
    /// The tokens available for the answer.
    pub adjusted_max_tokens: u64,
    /// The tokens of the prompt.
    pub input_token_count: u64,
    /// The messages that were sent.
    pub message_count: usize,
    /// The memories in the prompt.
    pub memory_count: usize,
    /// The tokens of the window.
    pub window: u64,
    /// The tokens of the safety margin.
    pub margin: u64,
    /// The parts of the window that requested tokens.
    pub parts: Vec<PartBudget>,
    /// How the figures were obtained, where that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// The limit on the answer's length, where known. Without one the model may write more than
    /// was planned for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<AnswerLimit>,
}

/// The limit of an answer: requested by the client and sent to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerLimit {
    /// The limit that the client set.
    pub asked: Option<u64>,
    /// The limit that was sent upstream.
    pub sent: Option<u64>,
}

impl AnswerLimit {
    /// The limit of a planned call. Without a requested limit, only the model limits the answer.
    pub fn of(requested: Option<u64>, plan: &Plan) -> Self {
        Self {
            asked: requested,
            sent: requested.map(|_| plan.adjusted_max_tokens),
        }
    }
}

/// How the figures of a budget were obtained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The counter's name.
    pub counter: Cow<'static, str>,
    /// The accuracy of the counts: `exact`, `calibrated` or `estimate`.
    pub provenance: Cow<'static, str>,
    /// Where the window comes from: `known`, `alike`, `set` or `assumed`.
    pub window: Cow<'static, str>,
}

/// What one part of a window requested and got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartBudget {
    /// Its name.
    pub name: Cow<'static, str>,
    /// The tokens that the whole part needs.
    pub asked: u64,
    /// Whether `asked` is a minimum: a part that cannot fit is not counted to its end.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub at_least: bool,
    /// The tokens that the part got.
    pub given: u64,
    /// The number of dropped pieces: messages, tools, memories or blocks.
    #[serde(default, skip_serializing_if = "is_none_left")]
    pub dropped: usize,
    /// The number of pieces kept, if some were dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<usize>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_none_left(count: &usize) -> bool {
    *count == 0
}

impl Basis {
    /// The basis of counts by this counter for a model.
    pub fn of(counter: &str, provenance: Provenance, model: &Found) -> Self {
        Self {
            counter: counter.to_owned().into(),
            provenance: provenance.name().into(),
            window: model.window_source().name().into(),
        }
    }
}

impl CallBudget {
    /// The budget of a call by its plan.
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

    /// Sets the limit that was sent with the call.
    #[must_use]
    pub fn with_limit(self, limit: AnswerLimit) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    /// The budget of a request that does not fit even after everything optional was dropped.
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

    /// The number of older messages that were dropped.
    pub(crate) fn dropped_messages(&self) -> u64 {
        let history = budget::Part::History.name();
        let part = self.parts.iter().find(|part| part.name == history);
        part.map_or(0, |part| part.dropped as u64)
    }

    /// Whether the model is unknown and its window was assumed.
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
    /// The parts that requested tokens.
    fn of(parts: &[PlannedPart]) -> Vec<Self> {
        let wanted = parts.iter().filter(|part| part.asked > 0);
        wanted.map(Self::from).collect()
    }
}
