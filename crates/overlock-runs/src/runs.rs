//! Recorded runs, as they are listed and shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Not;

use overlock_json::{Cut, CutPlace};
use overlock_llm::{Continuation, ContinuationOptions, Outcome, Reason, ResumeError, Step, Usage};
use overlock_store::{Run, RunId, RunSummary, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::CallBudget;
use crate::cost::{PartialCost, Pricing, RunCost};
use crate::fault::UpstreamFault;
use crate::pipelines::{PipelineEnding, PipelineOutcome, PipelineRun, RunProgress, RunUsage};
use crate::step::{Part, RecordedStep};
use crate::tally::{Tally, is_nothing};

/// A run in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListedRun<'a> {
    /// Its id.
    pub id: &'a RunId,
    /// When it began, in milliseconds since 1970.
    pub began_at: u64,
    /// When it ended, if it has.
    pub ended_at: Option<u64>,
    /// The model that was asked.
    pub model: &'a str,
    /// How it ended, if it has.
    pub outcome: Option<&'static str>,
    /// Why the document is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Where the document was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// The number of steps.
    pub iterations: u64,
    /// The name of the pipeline, for a pipeline run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// The step at which a pipeline failed, was cancelled or was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<StoppedAt>,
    /// The upstream failure that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_fault: Option<UpstreamFault>,
    /// Why the request was not sent, if it did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<Unfit>,
    /// Whether it is unfinished and, as far as can be known, no process works on it.
    #[serde(skip_serializing_if = "Not::not")]
    pub interrupted: bool,
    /// Whether it is unfinished and belongs to another gateway, which may still work on it.
    #[serde(skip_serializing_if = "Not::not")]
    pub elsewhere: bool,
    /// The time of the last record of an unfinished pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<u64>,
    /// The milliseconds between interruptions and resumptions of a pipeline.
    #[serde(skip_serializing_if = "is_nothing")]
    pub paused_ms: u64,
    /// Whether the pause may have been shorter, because a process was killed before it recorded
    /// its work.
    #[serde(skip_serializing_if = "Not::not")]
    pub paused_at_most: bool,
    /// Its token counts: known once it has ended, and of a pipeline at any time.
    #[serde(flatten, serialize_with = "Tally::shown")]
    pub tally: Option<Tally>,
    /// The usage of each model, in a pipeline run.
    #[serde(rename = "models", skip_serializing_if = "are_none")]
    pub used: Option<BTreeMap<String, Usage>>,
    /// Its cost, if all its models have prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<RunCost>,
    /// Its partial cost, if only some of its models have prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_cost: Option<PartialCost>,
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn are_none(models: &Option<BTreeMap<String, Usage>>) -> bool {
    models.as_ref().is_none_or(BTreeMap::is_empty)
}

/// Where a pipeline run stopped before its end.
#[derive(Clone, Debug, Serialize)]
pub struct StoppedAt {
    /// The step.
    pub step_id: String,
    /// A short reason, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The recorded error and its hint, for searching runs.
    #[serde(skip)]
    pub error: String,
}

impl StoppedAt {
    /// Stopped in this step without an error.
    fn in_step(step_id: String) -> Self {
        Self {
            step_id,
            why: None,
            error: String::new(),
        }
    }
}

/// A request that does not fit the window of its model and was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfit {
    /// The error message sent to the client.
    pub message: String,
    /// By how many tokens the required parts exceed the window.
    pub overflow: u64,
    /// The window with the required parts.
    pub budget: CallBudget,
}

/// How a run ended and its token counts, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ending {
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Its token counts, as far as they are known.
    #[serde(flatten)]
    pub tally: Option<Tally>,
    /// The upstream failure that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_fault: Option<UpstreamFault>,
    /// Why the request was not sent, if it did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<Unfit>,
}

impl<'a> From<&'a RunSummary> for ListedRun<'a> {
    fn from(summary: &'a RunSummary) -> Self {
        let stored = summary.outcome.as_deref();
        let begun = Self::begun(summary);
        let of_pipeline = stored.filter(|_| begun.pipeline.is_some());
        let of_pipeline = of_pipeline.and_then(|ending| serde_json::from_str(ending).ok());
        if let Some(ending) = of_pipeline {
            return begun.ended_as(ending);
        }
        // A damaged record counts as unfinished.
        let ending: Option<Ending> = stored.and_then(|ending| serde_json::from_str(ending).ok());
        let Some(ending) = ending else {
            return begun;
        };
        Self {
            outcome: Some(ending.outcome.name()),
            reason: ending.outcome.reason(),
            cut: cut_of(&ending.outcome),
            upstream_fault: ending.upstream_fault,
            unfit: ending.unfit,
            tally: ending.tally,
            ..begun
        }
    }
}

impl ListedRun<'_> {
    /// Adds the cost, as far as usage and prices are known.
    #[must_use]
    pub fn priced(mut self, pricing: &Pricing) -> Self {
        self.cost = pricing.of(self.usage_by_model());
        self.partial_cost = pricing.of_some(self.usage_by_model());
        self
    }

    /// The usage of each of its models, where known.
    pub(crate) fn usage_by_model(&self) -> impl Iterator<Item = (&str, Usage)> {
        let used = self.used.iter().flatten();
        let used = used.map(|(model, usage)| (model.as_str(), *usage));
        let tally = self
            .tally
            .filter(|_| self.used.is_none() && self.pipeline.is_none())
            .filter(|tally| !tally.output_unknown);
        used.chain(tally.map(|tally| (self.model, tally.usage())))
    }
}

impl<'a> ListedRun<'a> {
    /// A run whose end is not known.
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
            pipeline: PipelineRun::pipeline_name(&summary.options),
            interrupted: false,
            stopped_at: None,
            elsewhere: false,
            upstream_fault: None,
            unfit: None,
            last_at: None,
            paused_ms: 0,
            paused_at_most: false,
            tally: None,
            used: None,
            cost: None,
            partial_cost: None,
        }
    }

    /// Adds the progress of a pipeline run.
    #[must_use]
    pub fn so_far(self, so_far: RunProgress) -> Self {
        Self {
            iterations: so_far.steps,
            stopped_at: so_far.step_id.map(StoppedAt::in_step),
            last_at: Some(so_far.worked.last_at),
            paused_ms: so_far.worked.paused_ms,
            paused_at_most: so_far.worked.paused_at_most,
            ..self.with_usage(so_far.took)
        }
    }

    /// Adds the usage of a pipeline run.
    fn with_usage(self, usage: RunUsage) -> Self {
        Self {
            tally: Some(Tally {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                calls: 0,
                window: usage.window,
                peak_tokens: usage.peak_tokens,
                cached_tokens: usage
                    .models
                    .values()
                    .filter_map(|used| used.cached)
                    .reduce(u64::saturating_add),
                overhead_tokens: None,
                window_assumed: false,
                counted_by: None,
                output_unknown: false,
                dropped_messages: 0,
            }),
            used: Some(usage.models),
            ..self
        }
    }

    /// Adds how a pipeline run ended.
    fn ended_as(self, ending: PipelineEnding) -> Self {
        let name = ending.outcome.name();
        let stopped_at = match ending.outcome {
            PipelineOutcome::Complete => None,
            PipelineOutcome::Cancelled { step_id } => Some(StoppedAt::in_step(step_id)),
            PipelineOutcome::Failed {
                step_id,
                error,
                hint,
            } => Some(StoppedAt {
                step_id,
                error: [&error, hint.as_deref().unwrap_or_default()].join(" "),
                // Only the error of an action has a shorter form.
                why: Some(ending.why.unwrap_or(error)),
            }),
        };
        Self {
            outcome: Some(name),
            stopped_at,
            iterations: ending.steps,
            paused_ms: ending.paused_ms,
            paused_at_most: ending.paused_at_most,
            ..self.with_usage(ending.took)
        }
    }
}

/// The outcome of an incomplete answer: failed if nothing came, else partial, with the cut of a
/// document.
pub fn unfinished(reason: Reason, has_come: bool, cut: Option<Cut>) -> Outcome {
    if !has_come {
        return Outcome::Failed { reason };
    }
    // A text that is not a document has no cut.
    let cut = cut.unwrap_or_else(|| Cut {
        offset: 0,
        path: String::new(),
        place: CutPlace::Root,
    });
    Outcome::Partial { reason, cut }
}

/// Where a document was cut. Offset 0 means a text that is not a document.
pub fn cut_of(outcome: &Outcome) -> Option<Cut> {
    match outcome {
        Outcome::Partial { cut, .. } if cut.offset > 0 => Some(cut.clone()),
        _ => None,
    }
}

/// A recorded run.
#[derive(Debug)]
pub struct RecordedRun {
    /// Its id, times and model.
    pub summary: RunSummary,
    /// The request.
    pub request: Value,
    /// The options of its continuations.
    pub options: ContinuationOptions,
    /// What else resuming it needs.
    pub conditions: Conditions,
    /// Its steps.
    pub steps: Vec<RecordedStep>,
}

/// What a process needs to resume a run, in addition to the options. It contains no keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// The base URL of the model.
    pub upstream: Option<String>,
    /// The schema of the document.
    pub schema: Option<Value>,
    /// Whether the process that works on the run holds its lock.
    #[serde(skip_serializing_if = "Not::not")]
    pub is_held: bool,
    /// The id that the working process holds as a lock, from which others see that it is alive.
    /// Nothing where that is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

impl Conditions {
    /// The conditions of an unfinished run.
    pub fn of_open(run: &RunSummary) -> Option<Self> {
        serde_json::from_str(run.open_conditions.as_deref()?).ok()
    }

    /// The id that the working process holds as a lock.
    pub fn worker(&self) -> Option<RunId> {
        self.worker.as_deref()?.parse().ok()
    }
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such run.
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
    /// It is not a run of a pipeline.
    #[error("run `{id}` is not a run of a pipeline")]
    NotPipeline {
        /// The run.
        id: RunId,
    },
    /// Another process works on it.
    #[error("run `{id}` is being worked on by another process")]
    Busy {
        /// The run.
        id: RunId,
    },
    /// The record is not valid.
    #[error("run `{id}` was recorded in a form that cannot be read")]
    Damaged {
        /// The run.
        id: RunId,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The steps of the record contradict each other.
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

    /// Reads a run from its stored form.
    pub fn of(run: Run) -> Result<Self, RunsError> {
        let id = &run.summary.id;
        if PipelineRun::pipeline_name(&run.summary.options).is_some() {
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

    /// The continuation as far as it has come.
    pub fn resumed(&self) -> Result<Continuation, RunsError> {
        let run = Continuation::resume(self.options.clone(), self.document());
        run.map_err(|source| RunsError::Inconsistent {
            id: self.summary.id.clone(),
            source,
        })
    }

    /// The steps of the part that came first.
    fn first_part(&self) -> impl Iterator<Item = &RecordedStep> {
        let part = self.steps.first().map(|first| self.part_of(first));
        let steps = self.steps.iter();
        steps.filter(move |recorded| Some(self.part_of(recorded)) == part)
    }

    /// The steps of the first part that belong to a document.
    fn document(&self) -> impl Iterator<Item = &Step> {
        self.first_part()
            .filter(|recorded| !recorded.plain_text)
            .map(|recorded| &recorded.step)
    }

    /// The total size of all parts of the answer in bytes, if it is known.
    pub fn bytes(&self) -> Option<usize> {
        let mut parts: Vec<(Part, usize)> = Vec::new();
        for recorded in &self.steps {
            let Some(bytes) = recorded.step.end_len() else {
                continue;
            };
            let part = self.part_of(recorded);
            match parts.iter_mut().find(|(known, _)| *known == part) {
                Some((_, known)) => *known = bytes,
                None => parts.push((part, bytes)),
            }
        }
        (!parts.is_empty()).then(|| parts.iter().map(|(_, bytes)| bytes).sum())
    }

    /// The part of the answer to which a step belongs.
    fn part_of(&self, recorded: &RecordedStep) -> Part {
        let first = self.steps.first().and_then(|first| first.part);
        // Steps of an answer with a single part do not name it.
        recorded.part.or(first).unwrap_or(Part::content(0))
    }

    /// The part of the answer that has this cut, for an answer with several parts.
    fn cut_part(&self, cut: Option<&Cut>) -> Option<Part> {
        let cut = cut?;
        let mut steps = self.steps.iter().rev();
        let last = steps.find(|recorded| recorded.cut.as_ref() == Some(cut))?;
        let has_parts = self.steps.iter().any(|recorded| recorded.part.is_some());
        has_parts.then(|| self.part_of(last))
    }

    /// The JSON form of the run. Some records hold no text.
    pub fn shown(&self, text: Text) -> Result<ShownRun<'_>, RunsError> {
        let has_text = self.steps.iter().any(RecordedStep::has_text);
        if has_text {
            self.resumed()?;
        }
        let mut listed = ListedRun::from(&self.summary);
        listed
            .tally
            .get_or_insert_with(|| Tally::of(self.steps.iter()));
        Ok(ShownRun {
            cut_part: self.cut_part(listed.cut.as_ref()),
            listed,
            request: &self.request,
            keyed: self.conditions.is_held,
            upstream: self.conditions.upstream.as_deref(),
            schema: self.conditions.schema.as_ref(),
            max_total_tokens: self.options.max_output_tokens,
            bytes: self.bytes(),
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
    /// The fields of a listed run.
    #[serde(flatten)]
    pub listed: ListedRun<'a>,
    /// The part of the answer that was cut, for an answer with several parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_part: Option<Part>,
    request: &'a Value,
    /// Whether repeating the request resumes it.
    #[serde(skip_serializing_if = "Not::not")]
    keyed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a Value>,
    /// The token limit of all answers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_total_tokens: Option<u64>,
    /// The bytes of all parts; unknown if the answer is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// Whether the text of the answers is stored.
    has_text: bool,
    steps: Cow<'a, [RecordedStep]>,
}

/// Whether a run is shown with the text of its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Text {
    /// With the stored text.
    Shown,
    /// Without text.
    #[default]
    LeftOut,
}

/// Serializes a record for the store.
#[expect(clippy::missing_panics_doc, reason = "a record is plain data")]
pub fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a record is plain data")
}
