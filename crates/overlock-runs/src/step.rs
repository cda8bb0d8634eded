//! The steps of a run, as they are recorded.

use std::ops::Not;

use overlock_json::{Cut, Fix, PartialDocument};
use overlock_llm::{Continuation, Step, Usage};
use serde::{Deserialize, Serialize};

use crate::budget::CallBudget;

/// A step with what was planned for it and where the document stood after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedStep {
    /// The part of the answer that it is a step of, where several are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The step.
    #[serde(flatten)]
    pub step: Step,
    /// What was planned for it.
    #[serde(default)]
    pub budget: Option<CallBudget>,
    /// Where the document stood after it.
    #[serde(default)]
    pub cut: Option<Cut>,
    /// When it was done, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Whether it is of a text that is no document.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub plain_text: bool,
    /// What had to be mended in the answer, if anything had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mended: Option<Mended>,
    /// What the provider says that the call took. The tokens of the step are its, then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Usage>,
    /// The tokens of the answer as they are counted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
}

/// What was not JSON in an answer and was put right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mended {
    /// The first of the changes, in the order of the answer; offsets are bytes of it.
    pub fixes: Vec<Fix>,
    /// How many changes there were.
    pub count: usize,
    /// The answer as it came; left out where only the story is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub original: String,
}

/// A part of an answer that is a document of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The choice that it belongs to.
    pub choice: u64,
    /// The tool call whose arguments it is; without one it is the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<u64>,
}

impl Part {
    /// The content of a choice, or the arguments of one of its tool calls.
    pub fn new(choice: u64, call: Option<usize>) -> Self {
        Self {
            choice,
            tool_call: call.map(|call| call as u64),
        }
    }

    /// The content of a choice.
    pub const fn content(choice: u64) -> Self {
        Self {
            choice,
            tool_call: None,
        }
    }
}

impl RecordedStep {
    /// A step of a run that has just taken it.
    pub fn new(run: &Continuation, step: &Step, budget: Option<CallBudget>) -> Self {
        Self {
            part: None,
            step: step.clone(),
            budget,
            cut: run.base().and_then(PartialDocument::cut),
            at: None,
            plain_text: false,
            mended: None,
            told: None,
            counted: None,
        }
    }

    /// A step of a text that is no document.
    pub fn of_text(step: Step, budget: Option<CallBudget>) -> Self {
        Self {
            part: None,
            step,
            budget,
            cut: None,
            at: None,
            plain_text: true,
            mended: None,
            told: None,
            counted: None,
        }
    }

    /// The same step, done at this time.
    #[must_use]
    pub fn done_at(self, at: u64) -> Self {
        Self {
            at: Some(at),
            ..self
        }
    }

    /// The same step with what the provider says that its call took, if it says anything, and what
    /// its answer was counted to be here.
    #[must_use]
    pub fn with_counts(self, told: Option<Usage>, counted: Option<u64>) -> Self {
        Self {
            told,
            counted,
            ..self
        }
    }

    /// The same step without the text that it brought, to be shown.
    #[must_use]
    pub fn without_text(&self) -> Self {
        let mended = self.mended.as_ref().map(|mended| Mended {
            fixes: mended.fixes.clone(),
            count: mended.count,
            original: String::new(),
        });
        Self {
            part: self.part,
            step: self.step.without_text(),
            budget: self.budget.clone(),
            cut: self.cut.clone(),
            at: self.at,
            plain_text: self.plain_text,
            mended,
            told: self.told,
            counted: self.counted,
        }
    }

    /// Whether it came with another part of the first answer, so that it took no call of its own.
    pub(crate) fn came_along(&self) -> bool {
        self.step.iteration == 1 && self.budget.is_none()
    }

    /// Whether it holds any text.
    pub(crate) fn has_text(&self) -> bool {
        self.step.has_text()
    }
}
