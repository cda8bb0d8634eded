//! The record of a pipeline run, from which another process can resume it.
//!
//! Every step is stored with its trace event and the state fields it changed, and every model
//! answer before anything depends on it. A run is read back by applying the changes in order.

use std::collections::BTreeMap;
use std::ops::Not;

use overlock_llm::{Step, TextContinuation, Usage};
use overlock_store::Run;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definitions::Definitions;
use crate::runs::RunsError;
use crate::state::State;
use crate::tally::{CountedBy, is_nothing};
use crate::trace::TraceEvent;

/// What a run starts with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Begun {
    /// The name of the pipeline.
    pub name: String,
    /// The file that defines it.
    pub file: String,
    /// The text of the file.
    pub text: String,
    /// The prompt files that its steps name.
    pub prompts: BTreeMap<String, String>,
    /// The settings given for this run.
    pub settings: Map<String, Value>,
    /// The initial state.
    pub state: State,
}

/// What a process needs to resume a run, in addition to the definition. It contains no keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PipelineConditions {
    /// The base URL of the model.
    pub upstream: Option<String>,
    /// The embedding model.
    pub embed: Option<String>,
}

/// How a run of a pipeline ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum PipelineOutcome {
    /// All steps finished.
    Complete,
    /// A step failed.
    Failed {
        /// The step.
        step_id: String,
        /// Why.
        error: String,
        /// What would help.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// It was cancelled before this step.
    Cancelled {
        /// The step.
        step_id: String,
    },
}

impl PipelineOutcome {
    /// The name in messages and in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
        }
    }
}

/// A finished run of a pipeline.
#[derive(Clone, Debug)]
pub struct EndedPipeline {
    /// How it ended.
    pub outcome: PipelineOutcome,
    /// The final state.
    pub state: State,
    /// The events of its steps.
    pub trace: Vec<TraceEvent>,
}

/// How a run ended and what it used, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PipelineEnding {
    /// How it ended.
    #[serde(flatten)]
    pub outcome: PipelineOutcome,
    /// The name of the pipeline.
    pub pipeline: String,
    /// What its calls used.
    #[serde(flatten)]
    pub took: RunUsage,
    /// The number of steps.
    pub steps: u64,
    /// The milliseconds between interruptions and resumptions.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub paused_ms: u64,
    /// Whether the pause is a maximum: see [`WorkTimes::paused_at_most`].
    #[serde(default, skip_serializing_if = "Not::not")]
    pub paused_at_most: bool,
    /// A short reason for a failure, without any model output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What the recorded calls of a run used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunUsage {
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// The window of the call with the most tokens.
    pub window: u64,
    /// The tokens of prompt and answer of that call.
    pub peak_tokens: u64,
    /// The usage of each model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Usage>,
}

impl RunUsage {
    /// Sums the events of a run.
    pub fn of(trace: &[TraceEvent]) -> Self {
        let mut all = Self {
            models: used(trace),
            ..Self::default()
        };
        for event in counted(trace) {
            let number = |key: &str| event.get(key).and_then(Value::as_u64);
            // Without an answer nothing was used.
            let (Some(input), Some(used)) = (number("input_tokens"), usage_of(event)) else {
                continue;
            };
            let output = number("output_tokens").unwrap_or_default();
            all.add(used);
            let window = event.get("window").and_then(|window| window.get("tokens"));
            let peak = number("peak_tokens").unwrap_or(input.saturating_add(output));
            all.call(peak, window.and_then(Value::as_u64).unwrap_or_default());
        }
        all
    }

    /// Adds the usage of calls.
    fn add(&mut self, used: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(used.input);
        self.output_tokens = self.output_tokens.saturating_add(used.output);
    }

    /// Notes a call, for the peak.
    fn call(&mut self, tokens: u64, window: u64) {
        if tokens >= self.peak_tokens {
            self.peak_tokens = tokens;
            self.window = window;
        }
    }
}

/// When a run was worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkTimes {
    /// The time of its last record, in milliseconds since 1970.
    pub last_at: u64,
    /// The milliseconds between interruptions and resumptions.
    pub paused_ms: u64,
    /// Whether the pause may have been shorter: a process killed within a step leaves no record
    /// of when it stopped.
    pub paused_at_most: bool,
}

/// Shorter gaps occur between any two steps.
const SHORTEST_PAUSE: u64 = 1000;

impl WorkTimes {
    /// Notes the time of a record.
    pub fn recorded(&mut self, at: u64) {
        self.last_at = self.last_at.max(at);
    }

    /// Notes that a run was resumed; `ended_at` is missing if its process was killed.
    pub(crate) fn taken_up(&mut self, at: u64, ended_at: Option<u64>) {
        let gap = at.saturating_sub(ended_at.unwrap_or(self.last_at));
        if gap >= SHORTEST_PAUSE {
            self.paused_ms = self.paused_ms.saturating_add(gap);
            self.paused_at_most |= ended_at.is_none();
        }
        self.last_at = self.last_at.max(at);
    }
}

/// The progress of an unfinished run.
#[derive(Clone, Debug)]
pub struct RunProgress {
    /// The number of steps that finished or failed.
    pub steps: u64,
    /// What these steps and the answers of the current one used.
    pub took: RunUsage,
    /// The current step; nothing after the last.
    pub step_id: Option<String>,
    /// When it was worked on.
    pub worked: WorkTimes,
}

/// The usage of each model by the events of a run.
fn used(trace: &[TraceEvent]) -> BTreeMap<String, Usage> {
    let mut used: BTreeMap<String, Usage> = BTreeMap::new();
    for event in counted(trace) {
        let model = event.get("model").and_then(Value::as_str);
        if let (Some(model), Some(usage)) = (model, usage_of(event)) {
            *used.entry(model.to_owned()).or_default() += usage;
        }
    }
    used
}

/// The events whose figures count. A failed step that was resumed does not: the next event
/// includes the usage of its answers.
fn counted(trace: &[TraceEvent]) -> impl Iterator<Item = &TraceEvent> {
    let last = trace.len().saturating_sub(1);
    let events = trace.iter().enumerate();
    events
        .filter(move |(at, event)| *at == last || !event.contains_key("error"))
        .map(|(_, event)| event)
}

/// The usage of a step's calls.
fn usage_of(event: &TraceEvent) -> Option<Usage> {
    Usage::deserialize(event.get("usage")?).ok()
}

/// One stored entry of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A model answered within a step.
    Answer {
        step_id: String,
        #[serde(flatten)]
        answered: Answered,
    },
    /// A step finished.
    Step {
        /// The next step; nothing at the end.
        next: Option<String>,
        /// The state fields that changed.
        changed: Map<String, Value>,
        event: TraceEvent,
    },
    /// A step failed.
    Failed { event: TraceEvent },
    /// The run was resumed.
    TakenUp {
        /// When, in milliseconds since 1970.
        at: u64,
        /// When it had ended; nothing if its process was killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<u64>,
    },
}

/// A stored entry as it is sent to subscribers.
#[derive(Clone, Debug)]
pub enum StoredEvent {
    /// A model answered within a step.
    Answered {
        /// The step.
        step_id: String,
        /// The tokens of the answer.
        tokens: u64,
        /// The usage of the call.
        usage: Usage,
        /// The tokens of the window.
        window: u64,
        /// The model.
        model: String,
    },
    /// A step finished or failed.
    Stepped {
        /// Its event.
        event: TraceEvent,
        /// The state fields that it changed, with their new values.
        changed: Map<String, Value>,
    },
    /// The run was resumed.
    TakenUp {
        /// When, in milliseconds since 1970.
        at: u64,
        /// When it had ended; nothing if its process was killed.
        ended_at: Option<u64>,
    },
}

impl StoredEvent {
    /// Reads a stored entry.
    pub fn read(entry: &str) -> serde_json::Result<Self> {
        Ok(match serde_json::from_str(entry)? {
            Entry::Answer { step_id, answered } => Self::Answered {
                step_id,
                tokens: match answered.answer {
                    StoredAnswer::Document(step) => step.tokens,
                    StoredAnswer::Text { tokens, .. } => tokens,
                },
                usage: answered.usage,
                window: answered.window,
                model: answered.model,
            },
            Entry::Step { changed, event, .. } => Self::Stepped { event, changed },
            Entry::Failed { event } => Self::Stepped {
                event,
                changed: Map::new(),
            },
            Entry::TakenUp { at, ended_at } => Self::TakenUp { at, ended_at },
        })
    }
}

/// What a model answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredAnswer {
    /// One answer of a document.
    Document(Box<Step>),
    /// One answer of a text.
    Text {
        /// The whole text so far.
        text: String,
        /// The tokens of all answers so far.
        tokens: u64,
        /// Whether the text is cut off.
        is_cut: bool,
    },
}

/// A model answer with its usage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// The answer.
    pub answer: StoredAnswer,
    /// The usage of the call.
    pub usage: Usage,
    /// Who counted the tokens.
    pub counted_by: CountedBy,
    /// The tokens of the window.
    pub window: u64,
    /// The model.
    pub model: String,
    /// When its process entered the step, and when the answer was recorded.
    pub worked: [u64; 2],
}

impl StoredAnswer {
    /// A text as far as it has come.
    pub fn of_text(run: &TextContinuation) -> Self {
        Self::Text {
            text: run.text().to_owned(),
            tokens: run.output_tokens(),
            is_cut: run.is_cut(),
        }
    }
}

/// A run up to its last record.
#[derive(Clone, Debug)]
pub struct PipelineRun {
    /// What it started with.
    pub begun: Begun,
    /// What resuming it needs.
    pub conditions: PipelineConditions,
    /// When it began, in milliseconds since 1970.
    pub began_at: u64,
    /// Its current state.
    pub state: State,
    /// The next step; nothing if no step was done, or the run is over.
    pub next: Option<String>,
    /// Whether all steps finished.
    pub is_over: bool,
    /// The events of its steps.
    pub trace: Vec<TraceEvent>,
    /// The state fields that each step changed, with their new values.
    pub changes: Vec<Map<String, Value>>,
    /// The model answers of each step.
    pub answered: Vec<Vec<Answered>>,
    /// When it was worked on.
    pub worked: WorkTimes,
    /// The number of stored entries.
    pub entries: u32,
    /// The model answers of the unfinished step.
    pub answers: StepAnswers,
}

/// The model answers of a step.
#[derive(Clone, Debug, Default)]
pub struct StepAnswers(pub Vec<Answered>);

impl StepAnswers {
    /// Their total usage.
    pub fn usage(&self) -> Usage {
        let mut all = Usage::default();
        for answered in &self.0 {
            all += answered.usage;
        }
        all
    }

    /// The tokens of the call that used most of its window, and the size of that window.
    pub fn peak(&self) -> Option<(u64, u64)> {
        let calls = self.0.iter().map(|answered| {
            let Usage { input, output, .. } = answered.usage;
            (input.saturating_add(output), answered.window)
        });
        calls.max_by_key(|(tokens, _)| *tokens)
    }
}

impl PipelineRun {
    /// A new run.
    pub fn new(begun: Begun, conditions: PipelineConditions, began_at: u64) -> Self {
        Self {
            state: begun.state.clone(),
            begun,
            conditions,
            began_at,
            next: None,
            is_over: false,
            trace: Vec::new(),
            changes: Vec::new(),
            answered: Vec::new(),
            worked: WorkTimes {
                last_at: began_at,
                paused_ms: 0,
                paused_at_most: false,
            },
            entries: 0,
            answers: StepAnswers::default(),
        }
    }

    /// The name of the pipeline in a run's options; nothing if it is another kind of run.
    pub fn pipeline_name(options: &str) -> Option<String> {
        // Avoids parsing the options of other runs, which are most of a list.
        if !options.contains(KIND) {
            return None;
        }
        let options: Map<String, Value> = serde_json::from_str(options).ok()?;
        options.get(KIND)?.as_str().map(str::to_owned)
    }

    /// Reads a recorded run.
    pub fn read(run: &Run) -> Result<Self, RunsError> {
        let id = &run.summary.id;
        if Self::pipeline_name(&run.summary.options).is_none() {
            return Err(RunsError::NotPipeline { id: id.clone() });
        }
        let damaged = |source| RunsError::Damaged {
            id: id.clone(),
            source,
        };
        let begun: Begun = serde_json::from_str(&run.request).map_err(damaged)?;
        let conditions = serde_json::from_str(&run.conditions).map_err(damaged)?;
        let mut run_so_far = Self::new(begun, conditions, run.summary.began_at);
        let mut state = fields(&run_so_far.state);
        for entry in &run.steps {
            run_so_far.entries += 1;
            match serde_json::from_str(entry).map_err(damaged)? {
                Entry::Answer { answered, .. } => {
                    let [_, at] = answered.worked;
                    run_so_far.worked.recorded(at);
                    run_so_far.answers.0.push(answered);
                }
                Entry::Step {
                    next,
                    changed,
                    event,
                } => {
                    state.extend(changed.clone());
                    run_so_far.is_over = next.is_none();
                    run_so_far.next = next;
                    let StepAnswers(answers) = std::mem::take(&mut run_so_far.answers);
                    run_so_far.add_step(event, changed, answers);
                }
                Entry::Failed { event } => {
                    let answers = run_so_far.answers.0.clone();
                    run_so_far.add_step(event, Map::new(), answers);
                }
                Entry::TakenUp { at, ended_at } => run_so_far.worked.taken_up(at, ended_at),
            }
        }
        run_so_far.state = serde_json::from_value(Value::Object(state)).map_err(damaged)?;
        Ok(run_so_far)
    }

    /// Adds a step that finished or failed.
    fn add_step(&mut self, event: TraceEvent, changed: Map<String, Value>, answers: Vec<Answered>) {
        let number = |key: &str| event.get(key).and_then(Value::as_u64);
        if let (Some(since), Some(took)) = (number("at"), number("took_ms")) {
            self.worked.recorded(since.saturating_add(took));
        }
        self.trace.push(event);
        self.changes.push(changed);
        self.answered.push(answers);
    }

    /// The model answers of the unfinished step. A failed step keeps them when it is resumed.
    pub fn unfinished(&self) -> &[Answered] {
        &self.answers.0
    }

    /// The usage of all calls, including those of the unfinished step.
    pub fn usage(&self) -> RunUsage {
        let mut usage = RunUsage::of(&self.trace);
        // The event of a failed step already counts the answers it had.
        let last = self.trace.last().filter(|it| it.contains_key("error"));
        let counted = last.and_then(usage_of).unwrap_or_default();
        let mut rest = self.answers.usage();
        rest.input = rest.input.saturating_sub(counted.input);
        rest.output = rest.output.saturating_sub(counted.output);
        let counted_cached = counted.cached.unwrap_or_default();
        rest.cached = rest
            .cached
            .map(|cached| cached.saturating_sub(counted_cached));
        if (rest.input, rest.output) == (0, 0) {
            return usage;
        }
        usage.add(rest);
        if let Some((tokens, window)) = self.answers.peak() {
            usage.call(tokens, window);
        }
        if let Some(last) = self.answers.0.last() {
            *usage.models.entry(last.model.clone()).or_default() += rest;
        }
        usage
    }

    /// Its progress.
    pub fn so_far(&self, definitions: &dyn Definitions) -> RunProgress {
        RunProgress {
            steps: self.trace.len() as u64,
            took: self.usage(),
            step_id: self.step_id(definitions),
            worked: self.worked,
        }
    }

    /// The current step; nothing after the last.
    pub fn step_id(&self, definitions: &dyn Definitions) -> Option<String> {
        if self.is_over {
            return None;
        }
        let entry = || Some(definitions.graph(&self.begun)?.entry);
        self.next.clone().or_else(entry)
    }

    /// The messages sent to the model in the n-th step, counted from 1; nothing if it called none.
    ///
    /// Planned messages are not stored: they follow from the state before the step.
    pub fn asked(&self, number: usize, definitions: &dyn Definitions) -> Option<Value> {
        let event = self.trace.get(number.checked_sub(1)?)?;
        if let Some(asked) = event.get(ASKED) {
            return Some(asked.clone());
        }
        // An event without a window made no call.
        event.get("window")?;
        let mut state = fields(&self.begun.state);
        for changed in self.changes.get(..number - 1)? {
            state.extend(changed.clone());
        }
        let mut state: State = serde_json::from_value(Value::Object(state)).ok()?;
        let step_id = event.get("step_id")?.as_str()?;
        state.take_mail(step_id);
        definitions.messages(&self.begun, step_id, &state)
    }
}

/// The key of an event with the messages sent, where they do not follow from the state.
pub const ASKED: &str = "asked";

/// The key that only the options of a pipeline run have.
pub(crate) const KIND: &str = "pipeline";

pub(crate) fn fields(state: &State) -> Map<String, Value> {
    match serde_json::to_value(state) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
