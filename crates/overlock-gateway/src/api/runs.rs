//! Recorded runs, as they are listed and shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{AddAssign, Not};

use overlock_budget::{self as budget, Found, Plan, PlannedPart, Provenance, WindowSource};
use overlock_json::{Base, Cut, Fix, Place};
use overlock_model::{
    BackendError, Continuation, ContinuationOptions, Outcome, Phase, Reason, ResumeError, Retried,
    Step, Usage,
};
use overlock_pipeline::{SoFar, Taken, Took};
use overlock_store::{Run, RunId, RunSummary, Store, StoreError};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::cost::{PartialCost, RunCost};
use super::fit::Least;
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
    /// How many steps it has.
    pub iterations: u64,
    /// The pipeline that it is a run of, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// The step of a pipeline in which it failed, was called off or was left, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<StoppedAt>,
    /// Why the upstream did not answer, if that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_fault: Option<UpstreamFault>,
    /// Why the request was never sent, if it did not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<Unfit>,
    /// Whether it has not ended and nobody works on it, as far as anybody can know.
    #[serde(skip_serializing_if = "Not::not")]
    pub left: bool,
    /// Whether it has not ended and is not at this gateway: another one may work on it, or did.
    #[serde(skip_serializing_if = "Not::not")]
    pub elsewhere: bool,
    /// When the last was recorded of a pipeline that has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<u64>,
    /// How many milliseconds nobody worked on a pipeline, before it was taken up again.
    #[serde(skip_serializing_if = "is_nothing")]
    pub paused_ms: u64,
    /// Whether somebody may have worked in some of that time, and was killed before it was
    /// recorded.
    #[serde(skip_serializing_if = "Not::not")]
    pub paused_at_most: bool,
    /// What it took, which is known once it has ended, and of a pipeline at any time.
    #[serde(flatten, serialize_with = "Tally::shown")]
    pub tally: Option<Tally>,
    /// What the calls of each model took, in a run of a pipeline.
    #[serde(rename = "models", skip_serializing_if = "are_none")]
    pub used: Option<BTreeMap<String, Usage>>,
    /// What that cost, if its models have prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<RunCost>,
    /// What some of it cost, if only some of its models have prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_cost: Option<PartialCost>,
}

/// Where a run of a pipeline stopped before its end.
#[derive(Clone, Debug, Serialize)]
pub struct StoppedAt {
    /// The step.
    pub step_id: String,
    /// Why, in a few words, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// All that the run itself says of why it failed and what would help, by which it may be found.
    #[serde(skip)]
    pub told: String,
}

impl StoppedAt {
    /// It stopped in this step, without a word.
    fn in_step(step_id: String) -> Self {
        Self {
            step_id,
            why: None,
            told: String::new(),
        }
    }
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// How many calls were answered or turned down, where that was kept: an answer may have several parts, each
    /// with steps of its own.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub calls: u64,
    /// The tokens of the model's window.
    pub window: u64,
    /// The tokens of prompt and answer in the call that took the most of the window.
    pub peak_tokens: u64,
    /// The cached input tokens, where the provider reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// The tokens that one uncut answer would not have taken, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_tokens: Option<u64>,
    /// Whether nothing is known of the model, and its window was assumed.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub window_assumed: bool,
    /// Whether nobody told nor counted the tokens of the answer, so that there are more than those
    /// of all answers say.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub output_unknown: bool,
    /// Whose count the tokens of prompts and answers are, where that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<CountedBy>,
    /// How many older messages were left out of the call that had to do without the most.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub dropped_messages: u64,
}

/// What a run took, with what follows from it.
#[derive(Serialize)]
struct ShownTally<'a> {
    #[serde(flatten)]
    tally: &'a Tally,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_hit_rate: Option<f64>,
}

/// Who counted the tokens of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    /// The provider, for every call.
    Provider,
    /// Nobody but us: the provider did not say.
    Us,
    /// The provider for some calls, and we for the others.
    Both,
}

impl CountedBy {
    /// Who counted so many calls, of which the provider told some.
    pub fn of(calls: u32, told: u32) -> Self {
        match told {
            0 => Self::Us,
            told if told >= calls => Self::Provider,
            _ => Self::Both,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_nothing(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::ref_option, reason = "serde asks like this")]
fn are_none(models: &Option<BTreeMap<String, Usage>>) -> bool {
    models.as_ref().is_none_or(BTreeMap::is_empty)
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
        self.calls += u64::from(!recorded.came_along());
        let input = recorded.budget.as_ref().map_or(0, |budget| {
            self.plan(budget);
            budget.input_token_count
        });
        let input = recorded.told.map_or(input, |told| told.input);
        self.add_cached(recorded.told.and_then(|told| told.cached));
        self.call(input, recorded.step.tokens);
        self.add_overhead(recorded.step.overhead_tokens(input));
        // Earlier records do not say.
        if recorded.counted.is_some() {
            let told = u32::from(recorded.told.is_some());
            let counted_by = CountedBy::of(1, told);
            self.counted_by = match self.counted_by {
                Some(before) if before != counted_by => Some(CountedBy::Both),
                _ => Some(counted_by),
            };
        }
    }

    /// The next call is planned like this.
    pub fn plan(&mut self, budget: &CallBudget) {
        self.window = budget.window;
        self.window_assumed = budget.is_window_assumed();
        self.dropped_messages = self.dropped_messages.max(budget.dropped_messages());
    }

    /// Whether any call was answered.
    pub(super) fn is_of_calls(&self) -> bool {
        self.input_tokens > 0 || self.output_tokens > 0 || self.output_unknown
    }

    /// What all calls took.
    pub(super) fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            output: self.output_tokens,
            cached: self.cached_tokens,
        }
    }

    /// Tokens paid relative to one uncut answer: 1 if the answer took one call.
    pub fn cost_ratio(&self) -> Option<f64> {
        let paid = self.input_tokens.saturating_add(self.output_tokens);
        let uncut = paid.saturating_sub(self.overhead_tokens?);
        (uncut > 0 && !self.output_unknown).then(|| ratio(paid, uncut))
    }

    /// The share of the input tokens that the provider read from its prompt cache.
    pub fn cache_hit_rate(&self) -> Option<f64> {
        let cached = self.cached_tokens?;
        (self.input_tokens > 0).then(|| ratio(cached, self.input_tokens))
    }

    fn add_cached(&mut self, tokens: Option<u64>) {
        if let Some(tokens) = tokens {
            let sum = self.cached_tokens.unwrap_or_default();
            self.cached_tokens = Some(sum.saturating_add(tokens));
        }
    }

    fn add_overhead(&mut self, tokens: u64) {
        let sum = self.overhead_tokens.unwrap_or_default();
        self.overhead_tokens = Some(sum.saturating_add(tokens));
    }

    #[expect(clippy::ref_option, reason = "serde asks like this")]
    fn shown<S: Serializer>(tally: &Option<Self>, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = tally.as_ref().map(|tally| ShownTally {
            tally,
            cost_ratio: tally.cost_ratio(),
            cache_hit_rate: tally.cache_hit_rate(),
        });
        shown.serialize(serializer)
    }

    /// A call with so many tokens in its prompt and in its answer.
    pub fn call(&mut self, input: u64, output: u64) {
        self.add_overhead(0);
        self.input_tokens = self.input_tokens.saturating_add(input);
        self.output_tokens = self.output_tokens.saturating_add(output);
        self.peak_tokens = self.peak_tokens.max(input.saturating_add(output));
    }
}

impl AddAssign<&Self> for Tally {
    /// The tokens of another run.
    fn add_assign(&mut self, other: &Self) {
        self.call(other.input_tokens, other.output_tokens);
        self.add_overhead(other.overhead_tokens.unwrap_or_default());
        self.add_cached(other.cached_tokens);
    }
}

/// To three decimals: the tokens are seldom counted more exactly.
#[expect(clippy::cast_precision_loss, reason = "no run takes so many tokens")]
fn ratio(part: u64, whole: u64) -> f64 {
    (part as f64 / whole as f64 * 1000.0).round() / 1000.0
}

/// Why an upstream did not answer, in its own words as far as it had any. No key is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamFault {
    /// The status it answered with, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What became of its answer, if it gave no status. Earlier records do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FaultKind>,
    /// What it said, or what happened on the way to it.
    pub message: String,
    /// The calls before that it did not answer either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<Retried>,
}

/// What became of an answer that nobody got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// There was none: nobody is there, or nobody who answers.
    Unanswered,
    /// It broke off.
    Broken,
    /// It was not there in time.
    Late,
    /// It is none that can be used.
    Unusable,
}

impl FaultKind {
    /// What became of the answer to a call that failed; nothing if it has a status.
    pub(crate) fn of(error: &BackendError) -> Option<Self> {
        Some(match error {
            BackendError::Status { .. } => return None,
            BackendError::Address { .. }
            | BackendError::Unreachable { .. }
            | BackendError::Certificate { .. }
            | BackendError::TimedOut {
                phase: Phase::Connect,
                ..
            } => Self::Unanswered,
            BackendError::TimedOut { .. } => Self::Late,
            BackendError::Broken { .. } => Self::Broken,
            BackendError::Unsupported { .. }
            | BackendError::Malformed { .. }
            | BackendError::TooLong { .. } => Self::Unusable,
        })
    }
}

impl UpstreamFault {
    /// What stopped a call, and those before, from whoever hides the key they showed.
    pub fn of(error: &BackendError, retried: Option<&Retried>) -> Self {
        Self::without(&Secrets::of(None, None, None), error, retried)
    }

    /// What stopped a call, and those before, without these.
    pub(crate) fn without(
        secrets: &Secrets,
        error: &BackendError,
        retried: Option<&Retried>,
    ) -> Self {
        let (status, said) = match error {
            BackendError::Status {
                status, message, ..
            } => (Some(*status), message.clone()),
            error => (None, error.to_string()),
        };
        Self {
            status,
            kind: FaultKind::of(error),
            message: secrets.scrub(&said),
            retried: retried.map(|it| Retried {
                error: secrets.scrub(&it.error),
                ..it.clone()
            }),
        }
    }
}

/// A request that could not be made to fit the window of its model, and was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfit {
    /// What whoever asked was told: by how much it is too much, and what would help.
    pub message: String,
    /// By how many tokens what must stay is too much.
    pub overflow: u64,
    /// The window with what must stay.
    pub budget: CallBudget,
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
    /// Why the request was never sent, if it did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<Unfit>,
}

impl<'a> From<&'a RunSummary> for ListedRun<'a> {
    fn from(summary: &'a RunSummary) -> Self {
        let kept = summary.outcome.as_deref();
        let begun = Self::begun(summary);
        let of_pipeline = kept.filter(|_| begun.pipeline.is_some());
        let of_pipeline = of_pipeline.and_then(|ending| serde_json::from_str(ending).ok());
        if let Some(ending) = of_pipeline {
            return begun.ended_as(ending);
        }
        // A run that was damaged has not ended in a way that anybody knows.
        let ending: Option<Ending> = kept.and_then(|ending| serde_json::from_str(ending).ok());
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

    /// The same run of a pipeline with how far it has come.
    #[must_use]
    pub(crate) fn so_far(self, so_far: SoFar) -> Self {
        Self {
            iterations: so_far.steps,
            stopped_at: so_far.step_id.map(StoppedAt::in_step),
            last_at: Some(so_far.worked.last_at),
            paused_ms: so_far.worked.paused_ms,
            paused_at_most: so_far.worked.paused_at_most,
            ..self.taking(so_far.took)
        }
    }

    /// The same run of a pipeline with what it took.
    fn taking(self, took: Took) -> Self {
        Self {
            tally: Some(Tally {
                input_tokens: took.input_tokens,
                output_tokens: took.output_tokens,
                calls: 0,
                window: took.window,
                peak_tokens: took.peak_tokens,
                cached_tokens: took
                    .models
                    .values()
                    .filter_map(|usage| usage.cached)
                    .reduce(u64::saturating_add),
                overhead_tokens: None,
                window_assumed: false,
                counted_by: None,
                output_unknown: false,
                dropped_messages: 0,
            }),
            used: Some(took.models),
            ..self
        }
    }

    /// The same run of a pipeline with how it ended.
    fn ended_as(self, ending: overlock_pipeline::Ending) -> Self {
        use overlock_pipeline::Outcome;
        let name = ending.outcome.name();
        let stopped_at = match ending.outcome {
            Outcome::Complete => None,
            Outcome::Cancelled { step_id } => Some(StoppedAt::in_step(step_id)),
            Outcome::Failed {
                step_id,
                error,
                hint,
            } => Some(StoppedAt {
                step_id,
                told: [&error, hint.as_deref().unwrap_or_default()].join(" "),
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
                self.iterations
            },
            paused_ms: ending.paused_ms,
            paused_at_most: ending.paused_at_most,
            ..self.taking(ending.took)
        }
    }
}

/// How an answer ended that is not whole: nothing of it came, or a part, up to a cut if it is a
/// document.
pub(crate) fn unfinished(reason: Reason, has_come: bool, cut: Option<Cut>) -> Outcome {
    if !has_come {
        return Outcome::Failed { reason };
    }
    // A text has no places.
    let cut = cut.unwrap_or_else(|| Cut {
        offset: 0,
        path: String::new(),
        place: Place::Root,
    });
    Outcome::Partial { reason, cut }
}

/// Where a document stopped. No document stops before it begins: then it is a text.
pub(crate) fn cut_of(outcome: &Outcome) -> Option<Cut> {
    match outcome {
        Outcome::Partial { cut, .. } if cut.offset > 0 => Some(cut.clone()),
        _ => None,
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
    /// Whether whoever works on it holds it, so that everybody can see whether anybody does.
    #[serde(skip_serializing_if = "Not::not")]
    pub is_held: bool,
    /// What whoever works on it holds for as long as they are there, as they would hold a run: so
    /// everybody can see whether they are. Nothing where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

impl Conditions {
    /// Those of a run that has not ended, and nothing of one that has.
    pub(crate) fn of_open(run: &RunSummary) -> Option<Self> {
        serde_json::from_str(run.open_conditions.as_deref()?).ok()
    }

    /// What whoever works on it holds.
    pub(crate) fn worker(&self) -> Option<RunId> {
        self.worker.as_deref()?.parse().ok()
    }
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
    /// The content of a choice.
    pub(crate) const fn content(choice: u64) -> Self {
        Self {
            choice,
            tool_call: None,
        }
    }
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
    /// What these figures rest on, where that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// How long the answer was said to be at most, where that was kept: what was planned for it
    /// is only room, as long as nobody is told.
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

impl RecordedStep {
    /// A step of a run that has just taken it.
    pub fn new(run: &Continuation, step: &Step, budget: Option<CallBudget>) -> Self {
        Self {
            part: None,
            step: step.clone(),
            budget,
            cut: run.base().and_then(Base::cut),
            at: Some(now()),
            plain_text: false,
            mended: None,
            told: None,
            counted: None,
        }
    }

    /// A step of a text that is no document.
    pub(crate) fn of_text(step: Step, budget: Option<CallBudget>) -> Self {
        Self {
            part: None,
            step,
            budget,
            cut: None,
            at: Some(now()),
            plain_text: true,
            mended: None,
            told: None,
            counted: None,
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
    fn came_along(&self) -> bool {
        self.step.iteration == 1 && self.budget.is_none()
    }

    /// Whether it holds any text.
    fn has_text(&self) -> bool {
        self.step.has_text()
    }
}

impl Basis {
    /// What figures rest on that this counter told of a model.
    pub(crate) fn of(counter: &str, provenance: Provenance, model: &Found) -> Self {
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
    pub(crate) fn with_limit(self, limit: AnswerLimit) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    /// A window with what must stay, which is too much for it.
    pub(crate) fn least(window: u64, least: &Least, basis: Basis) -> Self {
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
    fn dropped_messages(&self) -> u64 {
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

    /// The steps of what was begun first.
    fn first_part(&self) -> impl Iterator<Item = &RecordedStep> {
        let part = self.steps.first().map(|first| self.part_of(first));
        let steps = self.steps.iter();
        steps.filter(move |recorded| Some(self.part_of(recorded)) == part)
    }

    /// Those of them that are of a document.
    fn document(&self) -> impl Iterator<Item = &Step> {
        self.first_part()
            .filter(|recorded| !recorded.plain_text)
            .map(|recorded| &recorded.step)
    }

    /// How many bytes all parts of the answer have together, if any are known of.
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

    /// The part of the answer that a step is of.
    fn part_of(&self, recorded: &RecordedStep) -> Part {
        let first = self.steps.first().and_then(|first| first.part);
        // Who goes on with one document says of no step which it is of.
        recorded.part.or(first).unwrap_or(Part::content(0))
    }

    /// The part of the answer in which this cut is, where an answer has parts.
    fn cut_part(&self, cut: Option<&Cut>) -> Option<Part> {
        let cut = cut?;
        let mut steps = self.steps.iter().rev();
        let last = steps.find(|recorded| recorded.cut.as_ref() == Some(cut))?;
        let has_parts = self.steps.iter().any(|recorded| recorded.part.is_some());
        has_parts.then(|| self.part_of(last))
    }

    /// The answer to machines. Of some runs only the story is kept, and none of the text.
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
    /// What a list shows of it.
    #[serde(flatten)]
    pub listed: ListedRun<'a>,
    /// The part of the answer in which it was cut, where an answer has parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_part: Option<Part>,
    request: &'a Value,
    /// Whether the same request goes on with it.
    #[serde(skip_serializing_if = "Not::not")]
    keyed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a Value>,
    /// The tokens that all answers might have together.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_total_tokens: Option<u64>,
    /// Those of all parts together. Of an answer of which nothing is kept nobody knows how long it
    /// was.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
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
