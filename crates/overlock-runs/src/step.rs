//! The recorded steps of a run.

use std::ops::Not;

use overlock_json::{Cut, PartialDocument};
use overlock_llm::{Continuation, Step, Usage};
use serde::{Deserialize, Serialize};

use crate::budget::CallBudget;
use crate::repair_report::RepairReport;

/// A step with its budget and the cut of the document after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedStep {
    /// The part of the answer it belongs to, if the answer has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The step.
    #[serde(flatten)]
    pub step: Step,
    /// Its token budget.
    #[serde(default)]
    pub budget: Option<CallBudget>,
    /// The cut of the document after it.
    #[serde(default)]
    pub cut: Option<Cut>,
    /// When it was done, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Whether its text is not a document.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub plain_text: bool,
    /// The repairs of the answer, if any were needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mended: Option<RepairReport>,
    /// The usage that the provider reports. If set, the tokens of the step are the provider's too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Usage>,
    /// The tokens of the answer by our own count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
}

/// A part of an answer with its own document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The choice it belongs to.
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
    /// Records a step of a continuation.
    pub fn new(run: &Continuation, step: &Step, budget: Option<CallBudget>) -> Self {
        Self {
            part: None,
            step: step.clone(),
            budget,
            cut: run.base().and_then(PartialDocument::cut),
            at: None,
            plain_text: false,
            mended: None,
            reported: None,
            counted: None,
        }
    }

    /// Records a step of a text that is not a document.
    pub fn of_text(step: Step, budget: Option<CallBudget>) -> Self {
        Self {
            part: None,
            step,
            budget,
            cut: None,
            at: None,
            plain_text: true,
            mended: None,
            reported: None,
            counted: None,
        }
    }

    /// Sets the time at which it was done.
    #[must_use]
    pub fn done_at(self, at: u64) -> Self {
        Self {
            at: Some(at),
            ..self
        }
    }

    /// Sets the usage that the provider reports, and our own count of the answer.
    #[must_use]
    pub fn with_counts(self, reported: Option<Usage>, counted: Option<u64>) -> Self {
        Self {
            reported,
            counted,
            ..self
        }
    }

    /// The step without the text of its answer.
    #[must_use]
    pub fn without_text(&self) -> Self {
        let mended = self.mended.as_ref().map(RepairReport::without_text);
        Self {
            part: self.part,
            step: self.step.without_text(),
            budget: self.budget.clone(),
            cut: self.cut.clone(),
            at: self.at,
            plain_text: self.plain_text,
            mended,
            reported: self.reported,
            counted: self.counted,
        }
    }

    /// Whether it arrived with another part of the first answer and made no call.
    pub(crate) fn came_along(&self) -> bool {
        self.step.iteration == 1 && self.budget.is_none()
    }

    /// Whether it holds any text.
    pub(crate) fn has_text(&self) -> bool {
        self.step.has_text()
    }
}
