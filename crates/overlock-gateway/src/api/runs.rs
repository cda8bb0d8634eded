//! Recorded runs, as they are listed and shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Not;

use overlock_budget::{Plan, PlannedPart};
use overlock_json::{Base, Cut};
use overlock_model::{
    BackendError, Continuation, ContinuationOptions, Outcome, Reason, ResumeError, Step, Usage,
};
use overlock_pipeline::Taken;
use overlock_store::{Run, RunId, RunSummary, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cost::RunCost;
use crate::record::now;
use crate::secrets::Secrets;

/// A run in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListedRun<'a> {
    /// Its name.
    pub id: &'a RunId,
    /// When it began, in milliseconds since 1970.
    pub began_at: u64,
    /// When it ended, if it has.
    pub ended_at: Option<u64>,
    /// The model that was asked.
    pub model: &'a str,
    /// How it ended, if it has.
    pub outcome: Option<&'static str>,
    /// Why it ended before the document was whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Where the document was cut then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// How many steps it has; of a pipeline that has not ended, how many records.
    pub iterations: u64,
    /// The pipeline that it is a run of, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// The step of a pipeline in which it failed or was called off, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<StoppedAt>,
    /// Why the upstream did not answer, if that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_fault: Option<UpstreamFault>,
    /// Whether it has not ended and nobody works on it, as far as anybody can know.
    #[serde(skip_serializing_if = "Not::not")]
    pub left: bool,
    /// What it took, which is known once it has ended.
    #[serde(flatten)]
    pub tally: Option<Tally>,
    /// What the calls of each model took, in a run of a pipeline.
    #[serde(skip)]
    pub used: Option<BTreeMap<String, Usage>>,
    /// What that cost, if its models have prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<RunCost>,
}

/// Where a run of a pipeline stopped before its end.
#[derive(Clone, Debug, Serialize)]
pub struct StoppedAt {
    /// The step.
    pub step_id: String,
    /// Why, in a few words, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// The tokens of the model's window.
    pub window: u64,
    /// The tokens of prompt and answer in the call that took the most of the window.
    pub peak_tokens: u64,
    /// The tokens of prompts that the provider says it had read before.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub cached_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_nothing(count: &u64) -> bool {
    *count == 0
}

impl Tally {
    /// What the steps of a run took.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a RecordedStep>) -> Self {
        let mut tally = Self::default();
        for step in steps {
            tally.add(step);
        }
        tally
    }

    /// One step more.
    pub fn add(&mut self, recorded: &RecordedStep) {
        let input = recorded.budget.as_ref().map_or(0, |budget| {
            self.window = budget.window;
            budget.input_token_count
        });
        self.call(input, recorded.step.tokens);
    }

    /// A call with so many tokens in its prompt and in its answer.
    pub fn call(&mut self, input: u64, output: u64) {
        self.input_tokens = self.input_tokens.saturating_add(input);
        self.output_tokens = self.output_tokens.saturating_add(output);
        self.peak_tokens = self.peak_tokens.max(input.saturating_add(output));
    }
}

/// Why an upstream did not answer, in its own words as far as it had any. No key is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamFault {
    /// The status it answered with, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What it said, or what happened on the way to it.
    pub message: String,
}

impl UpstreamFault {
    /// What stopped a call, from whoever hides the key they showed.
    pub fn of(error: &BackendError) -> Self {
        Self::without(&Secrets::of(None, None, None), error)
    }

    /// What stopped a call, without these.
    pub(crate) fn without(secrets: &Secrets, error: &BackendError) -> Self {
        let (status, said) = match error {
            BackendError::Status {
                status, message, ..
            } => (Some(*status), message.clone()),
            error => (None, error.to_string()),
        };
        Self {
            status,
            message: secrets.scrub(&said),
        }
    }
}

/// How a run ended and what it took, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ending {
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What it took, as far as whoever ended it knew.
    #[serde(flatten)]
    pub tally: Option<Tally>,
    /// Why the upstream did not answer, if that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_fault: Option<UpstreamFault>,
}

impl<'a> From<&'a RunSummary> for ListedRun<'a> {
    fn from(summary: &'a RunSummary) -> Self {
        let kept = summary.outcome.as_deref();
        let of_pipeline = kept.and_then(|ending| serde_json::from_str(ending).ok());
        if let Some(ending) = of_pipeline {
            return Self::of_pipeline(summary, ending);
        }
        // A run that was damaged has not ended in a way that anybody knows.
        let ending: Option<Ending> = kept.and_then(|ending| serde_json::from_str(ending).ok());
        let (outcome, tally, upstream_fault) = match ending {
            Some(ending) => (Some(ending.outcome), ending.tally, ending.upstream_fault),
            None => (None, None, None),
        };
        Self {
            upstream_fault,
            outcome: outcome.as_ref().map(Outcome::name),
            reason: outcome.as_ref().and_then(Outcome::reason),
            cut: match outcome {
                Some(Outcome::Partial { cut, .. }) => Some(cut),
                _ => None,
            },
            tally,
            ..Self::begun(summary)
        }
    }
}

impl<'a> ListedRun<'a> {
    /// A run of which only the beginning is known.
    fn begun(summary: &'a RunSummary) -> Self {
        Self {
            id: &summary.id,
            began_at: summary.began_at,
            ended_at: summary.ended_at,
            model: &summary.model,
            outcome: None,
            reason: None,
            cut: None,
            iterations: summary.steps,
            pipeline: Taken::pipeline_name(&summary.options),
            left: false,
            stopped_at: None,
            upstream_fault: None,
            tally: None,
            used: None,
            cost: None,
        }
    }

    fn of_pipeline(summary: &'a RunSummary, ending: overlock_pipeline::Ending) -> Self {
        use overlock_pipeline::Outcome;
        let name = ending.outcome.name();
        let stopped_at = match ending.outcome {
            Outcome::Complete => None,
            Outcome::Cancelled { step_id } => Some(StoppedAt { step_id, why: None }),
            Outcome::Failed { step_id, error, .. } => Some(StoppedAt {
                step_id,
                // Earlier versions kept no shorter one.
                why: Some(ending.why.unwrap_or(error)),
            }),
        };
        Self {
            outcome: Some(name),
            stopped_at,
            iterations: if ending.steps > 0 {
                ending.steps
            } else {
                summary.steps
            },
            tally: Some(Tally {
                input_tokens: ending.input_tokens,
                output_tokens: ending.output_tokens,
                window: ending.window,
                peak_tokens: ending.peak_tokens,
                cached_tokens: ending.models.values().map(|usage| usage.cached).sum(),
            }),
            used: Some(ending.models),
            ..Self::begun(summary)
        }
    }
}

/// A run as it was recorded.
#[derive(Debug)]
pub struct RecordedRun {
    /// When it was, and with which model.
    pub summary: RunSummary,
    /// What was asked.
    pub request: Value,
    /// How it may go on.
    pub options: ContinuationOptions,
    /// What else it depends on.
    pub conditions: Conditions,
    /// What became of each answer.
    pub steps: Vec<RecordedStep>,
}

/// What a run depends on besides its options. A key is never among it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Where the model is.
    pub upstream: Option<String>,
    /// What the document is held to.
    pub schema: Option<Value>,
}

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
    #[serde(default)]
    pub window: u64,
    /// The tokens that were left free.
    #[serde(default)]
    pub margin: u64,
    /// Every part of the window that wanted anything.
    #[serde(default)]
    pub parts: Vec<PartBudget>,
}

/// What one part of a window wanted and had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartBudget {
    /// Its name.
    pub name: Cow<'static, str>,
    /// The tokens that all of it would take.
    pub asked: u64,
    /// The tokens it took; of the answer, those it might have.
    pub given: u64,
}

impl RecordedStep {
    /// A step of a run that has just taken it.
    pub fn new(run: &Continuation, step: &Step, budget: Option<CallBudget>) -> Self {
        Self {
            part: None,
            step: step.clone(),
            budget,
            cut: run.base().and_then(Base::cut),
            at: Some(now()),
        }
    }

    /// The same step without the text that it brought, to be shown.
    #[must_use]
    pub fn without_text(&self) -> Self {
        Self {
            step: self.step.without_text(),
            ..self.clone()
        }
    }
}

impl From<&Plan> for CallBudget {
    fn from(plan: &Plan) -> Self {
        Self {
            adjusted_max_tokens: plan.adjusted_max_tokens,
            input_token_count: plan.input_token_count,
            message_count: plan.message_count,
            memory_count: plan.memory_count,
            window: plan.window,
            margin: plan.margin.tokens,
            parts: plan
                .parts
                .iter()
                .filter(|part| part.asked > 0)
                .map(PartBudget::from)
                .collect(),
        }
    }
}

impl From<&PlannedPart> for PartBudget {
    fn from(part: &PlannedPart) -> Self {
        Self {
            name: part.part.name().into(),
            asked: part.asked,
            given: part.given,
        }
    }
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is not there.
    #[error("there is no run `{id}`")]
    Missing {
        /// The run.
        id: RunId,
    },
    /// It is a run of a pipeline, which has other steps.
    #[error("run `{id}` is a run of a pipeline")]
    OfPipeline {
        /// The run.
        id: RunId,
    },
    /// Somebody else wrote it.
    #[error("run `{id}` was recorded in a form that cannot be read")]
    Damaged {
        /// The run.
        id: RunId,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Its steps do not make a run.
    #[error("run `{id}` was recorded in a form that cannot be read")]
    Inconsistent {
        /// The run.
        id: RunId,
        /// What is wrong.
        source: ResumeError,
    },
}

impl RecordedRun {
    /// Reads a run.
    pub fn read(store: &dyn Store, id: &RunId) -> Result<Self, RunsError> {
        match store.run(id)? {
            Some(run) => Self::of(run),
            None => Err(RunsError::Missing { id: id.clone() }),
        }
    }

    /// Reads a run that was found.
    pub fn of(run: Run) -> Result<Self, RunsError> {
        let id = &run.summary.id;
        if Taken::pipeline_name(&run.summary.options).is_some() {
            return Err(RunsError::OfPipeline { id: id.clone() });
        }
        let damaged = |source| RunsError::Damaged {
            id: id.clone(),
            source,
        };
        let steps = run.steps.iter().map(|step| serde_json::from_str(step));
        Ok(Self {
            options: serde_json::from_str(&run.summary.options).map_err(damaged)?,
            request: serde_json::from_str(&run.request).map_err(damaged)?,
            conditions: serde_json::from_str(&run.conditions).map_err(damaged)?,
            steps: steps.collect::<Result<_, _>>().map_err(damaged)?,
            summary: run.summary,
        })
    }

    /// The run as far as it has come.
    pub fn resumed(&self) -> Result<Continuation, RunsError> {
        let run = Continuation::resume(self.options.clone(), self.document());
        run.map_err(|source| RunsError::Inconsistent {
            id: self.summary.id.clone(),
            source,
        })
    }

    /// The steps of the document that was begun first.
    fn document(&self) -> impl Iterator<Item = &Step> {
        let part = self.steps.first().and_then(|recorded| recorded.part);
        let steps = self.steps.iter();
        // Who goes on with one document says of no step which it is of.
        steps
            .filter(move |recorded| recorded.part.or(part) == part)
            .map(|recorded| &recorded.step)
    }

    /// The answer to machines. Of some runs only the story is kept, and none of the text.
    pub fn shown(&self, text: Text) -> Result<ShownRun<'_>, RunsError> {
        let has_text = |recorded: &RecordedStep| recorded.step != recorded.step.without_text();
        let has_text = self.steps.iter().any(has_text);
        if has_text {
            self.resumed()?;
        }
        let mut listed = ListedRun::from(&self.summary);
        listed
            .tally
            .get_or_insert_with(|| Tally::of(self.steps.iter()));
        Ok(ShownRun {
            listed,
            request: &self.request,
            upstream: self.conditions.upstream.as_deref(),
            schema: self.conditions.schema.as_ref(),
            bytes: self
                .document()
                .filter_map(Step::end_len)
                .last()
                .unwrap_or_default(),
            has_text,
            steps: match text {
                Text::Shown => Cow::Borrowed(&self.steps),
                Text::LeftOut => self.steps.iter().map(RecordedStep::without_text).collect(),
            },
        })
    }
}

/// One run.
#[derive(Debug, Serialize)]
pub struct ShownRun<'a> {
    /// What a list shows of it.
    #[serde(flatten)]
    pub listed: ListedRun<'a>,
    request: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a Value>,
    bytes: usize,
    /// Whether the text of the answers is kept, shown or not.
    has_text: bool,
    steps: Cow<'a, [RecordedStep]>,
}

/// Whether the answers of a run are shown with their text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Text {
    /// As far as it is kept.
    Shown,
    /// Only what became of each.
    #[default]
    LeftOut,
}
