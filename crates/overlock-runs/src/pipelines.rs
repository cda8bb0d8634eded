//! What is kept of a run, so that another process can go on with it.
//!
//! After every step the store has what the step changed and what the trace tells of it; within a
//! step every answer of a model is there before anything follows from it. A run is read back by
//! doing the same changes again.

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

/// What a run is begun with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Begun {
    /// What the pipeline is called.
    pub name: String,
    /// The file it was read from.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The prompts that its steps name.
    pub prompts: BTreeMap<String, String>,
    /// The settings that were set for this run.
    pub settings: Map<String, Value>,
    /// What the run knew at first.
    pub state: State,
}

/// What else whoever takes a run up has to know. A key is never among it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PipelineConditions {
    /// Where the model is.
    pub upstream: Option<String>,
    /// The model that makes vectors.
    pub embed: Option<String>,
}

/// How a run of a pipeline ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum PipelineOutcome {
    /// It came to its end.
    Complete,
    /// A step could not be done.
    Failed {
        /// Which.
        step_id: String,
        /// Why.
        error: String,
        /// What would help.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// It was called off before this step.
    Cancelled {
        /// Which.
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

/// A run of a pipeline that is over.
#[derive(Clone, Debug)]
pub struct EndedPipeline {
    /// How it ended.
    pub outcome: PipelineOutcome,
    /// What it knew then.
    pub state: State,
    /// What its steps told.
    pub trace: Vec<TraceEvent>,
}

/// How a run ended and what it took, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PipelineEnding {
    /// How it ended.
    #[serde(flatten)]
    pub outcome: PipelineOutcome,
    /// What the pipeline is called.
    pub pipeline: String,
    /// What it took.
    #[serde(flatten)]
    pub took: Took,
    /// How many steps it took.
    pub steps: u64,
    /// How many milliseconds nobody worked on it, before it was taken up again.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub paused_ms: u64,
    /// Whether somebody may have worked in some of that time: see [`Worked::paused_at_most`].
    #[serde(default, skip_serializing_if = "Not::not")]
    pub paused_at_most: bool,
    /// Why it failed, in a few words that no model said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What the recorded calls of a run took: all of it is about the same ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Took {
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// The tokens of the window of the call that took the most.
    pub window: u64,
    /// The tokens of its prompt and its answer.
    pub peak_tokens: u64,
    /// What the calls of each model took.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Usage>,
}

impl Took {
    /// What the events of a run come to.
    pub fn of(trace: &[TraceEvent]) -> Self {
        let mut all = Self {
            models: used(trace),
            ..Self::default()
        };
        for event in counted(trace) {
            let number = |key: &str| event.get(key).and_then(Value::as_u64);
            let (Some(input), output) = (number("input_tokens"), number("output_tokens")) else {
                continue;
            };
            let output = output.unwrap_or_default();
            // Nobody answered, so nothing was taken.
            let Some(used) = usage_of(event) else {
                continue;
            };
            all.add(used);
            let window = event.get("window").and_then(|window| window.get("tokens"));
            let peak = number("peak_tokens").unwrap_or(input.saturating_add(output));
            all.call(peak, window.and_then(Value::as_u64).unwrap_or_default());
        }
        all
    }

    /// Adds what calls took.
    fn add(&mut self, used: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(used.input);
        self.output_tokens = self.output_tokens.saturating_add(used.output);
    }

    /// A call that took so much of a window.
    fn call(&mut self, tokens: u64, window: u64) {
        if tokens >= self.peak_tokens {
            self.peak_tokens = tokens;
            self.window = window;
        }
    }
}

/// When a run was worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worked {
    /// When the last was recorded of it, in milliseconds since 1970.
    pub last_at: u64,
    /// How many milliseconds before that nobody worked on it.
    pub paused_ms: u64,
    /// Whether somebody may have worked in some of that time: who is killed in a step records
    /// nothing more, and nobody knows when that was.
    pub paused_at_most: bool,
}

/// What is shorter goes by between two steps, too.
const SHORTEST_PAUSE: u64 = 1000;

impl Worked {
    /// Something was recorded at a time.
    pub fn recorded(&mut self, at: u64) {
        self.last_at = self.last_at.max(at);
    }

    /// Somebody took it up that had ended at a time; without one nobody knows when it was left.
    pub(crate) fn taken_up(&mut self, at: u64, ended_at: Option<u64>) {
        let was_paused = self.paused(ended_at.unwrap_or(self.last_at), at);
        self.paused_at_most |= was_paused && ended_at.is_none();
        self.last_at = self.last_at.max(at);
    }

    /// Counts the time between two as a pause, if it is one.
    fn paused(&mut self, from: u64, until: u64) -> bool {
        let gap = until.saturating_sub(from);
        if gap < SHORTEST_PAUSE {
            return false;
        }
        self.paused_ms = self.paused_ms.saturating_add(gap);
        true
    }
}

/// How far a run has come that has not ended.
#[derive(Clone, Debug)]
pub struct SoFar {
    /// How many steps were done, or could not be.
    pub steps: u64,
    /// What they took, and the answers of the one that is not done.
    pub took: Took,
    /// The step that it is in; nothing after the last.
    pub step_id: Option<String>,
    /// When it was worked on.
    pub worked: Worked,
}

/// What the calls of each model took, as the events of a run tell.
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

/// The events whose figures count: a step that failed and was taken up again tells in the next event
/// all that its answers took, those from before included.
fn counted(trace: &[TraceEvent]) -> impl Iterator<Item = &TraceEvent> {
    let last = trace.len().saturating_sub(1);
    let events = trace.iter().enumerate();
    events
        .filter(move |(at, event)| *at == last || !event.contains_key("error"))
        .map(|(_, event)| event)
}

/// What the calls of a step took.
fn usage_of(event: &TraceEvent) -> Option<Usage> {
    Usage::deserialize(event.get("usage")?).ok()
}

/// One thing that is kept of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A model answered, within a step.
    Answer {
        step_id: String,
        #[serde(flatten)]
        answered: Answered,
    },
    /// A step is done.
    Step {
        /// Where the run goes on; nowhere at its end.
        next: Option<String>,
        /// The fields of the state that are not what they were.
        changed: Map<String, Value>,
        event: TraceEvent,
    },
    /// A step could not be done.
    Failed { event: TraceEvent },
    /// Somebody goes on with it.
    TakenUp {
        /// When, in milliseconds since 1970.
        at: u64,
        /// When it had ended; nothing if whoever worked on it was gone without a word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<u64>,
    },
}

/// What an entry tells whoever follows a run.
#[derive(Clone, Debug)]
pub enum Happened {
    /// A model answered, within a step.
    Answered {
        /// Which step.
        step_id: String,
        /// The tokens of the answer.
        tokens: u64,
        /// What the call took.
        usage: Usage,
        /// The tokens of the window.
        window: u64,
        /// The model.
        model: String,
    },
    /// A step is done, or could not be.
    Stepped {
        /// What it told.
        event: TraceEvent,
        /// The fields of the state that it changed, as they were after it.
        changed: Map<String, Value>,
    },
    /// Somebody goes on with it.
    TakenUp {
        /// When, in milliseconds since 1970.
        at: u64,
        /// When it had ended; nothing if whoever worked on it was gone without a word.
        ended_at: Option<u64>,
    },
}

impl Happened {
    /// Reads one thing that is kept of a run.
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
    /// A step on the way to a document.
    Document(Box<Step>),
    /// A text, as far as it has come.
    Text {
        /// All of it, with what came before.
        text: String,
        /// The tokens of all its pieces.
        tokens: u64,
        /// Whether there is more of it.
        is_cut: bool,
    },
}

/// An answer, with what it took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// What was answered.
    pub answer: StoredAnswer,
    /// What the call took.
    pub usage: Usage,
    /// Who says so.
    pub counted_by: CountedBy,
    /// The tokens of the window.
    pub window: u64,
    /// The model.
    pub model: String,
    /// Since when its recorder was at the step, and when it was recorded.
    pub worked: [u64; 2],
}

impl StoredAnswer {
    /// A text, as far as it has come.
    pub fn of_text(run: &TextContinuation) -> Self {
        Self::Text {
            text: run.text().to_owned(),
            tokens: run.output_tokens(),
            is_cut: run.is_cut(),
        }
    }
}

/// A run as far as it has come.
#[derive(Clone, Debug)]
pub struct PipelineRun {
    /// What it was begun with.
    pub begun: Begun,
    /// What else it depends on.
    pub conditions: PipelineConditions,
    /// When it began, in milliseconds since 1970.
    pub began_at: u64,
    /// What it knows.
    pub state: State,
    /// The step it goes on with; nothing if it has not begun, or is over.
    pub next: Option<String>,
    /// Whether it came to its end.
    pub is_over: bool,
    /// What its steps have told.
    pub trace: Vec<TraceEvent>,
    /// The fields of the state that each of them changed, as they were after it.
    pub changes: Vec<Map<String, Value>>,
    /// What models answered in each of them.
    pub answered: Vec<Vec<Answered>>,
    /// When it was worked on.
    pub worked: Worked,
    /// How many entries are kept of it.
    pub entries: u32,
    /// What models have answered in the step that is not done.
    pub answers: StepAnswers,
}

/// What models have answered in a step.
#[derive(Clone, Debug, Default)]
pub struct StepAnswers(pub Vec<Answered>);

impl StepAnswers {
    /// What all of it took.
    pub fn usage(&self) -> Usage {
        let mut all = Usage::default();
        for answered in &self.0 {
            all += answered.usage;
        }
        all
    }

    /// The tokens of the call that took the most of its window, and those of that window.
    pub fn peak(&self) -> Option<(u64, u64)> {
        let calls = self.0.iter().map(|answered| {
            let Usage { input, output, .. } = answered.usage;
            (input.saturating_add(output), answered.window)
        });
        calls.max_by_key(|(tokens, _)| *tokens)
    }
}

impl PipelineRun {
    /// A run that begins.
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
            worked: Worked {
                last_at: began_at,
                paused_ms: 0,
                paused_at_most: false,
            },
            entries: 0,
            answers: StepAnswers::default(),
        }
    }

    /// What the pipeline is called that a recorded run is one of, by what the run may do; nothing
    /// if it is another kind of run.
    pub fn pipeline_name(options: &str) -> Option<String> {
        // Most runs are of another kind, and many are asked in a row.
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
        let mut taken = Self::new(begun, conditions, run.summary.began_at);
        let mut state = fields(&taken.state);
        for entry in &run.steps {
            taken.entries += 1;
            match serde_json::from_str(entry).map_err(damaged)? {
                Entry::Answer { answered, .. } => {
                    let [_, at] = answered.worked;
                    taken.worked.recorded(at);
                    taken.answers.0.push(answered);
                }
                Entry::Step {
                    next,
                    changed,
                    event,
                } => {
                    state.extend(changed.clone());
                    taken.changes.push(changed);
                    taken.is_over = next.is_none();
                    taken.next = next;
                    taken.recorded(&event);
                    taken.trace.push(event);
                    let StepAnswers(answers) = std::mem::take(&mut taken.answers);
                    taken.answered.push(answers);
                }
                Entry::Failed { event } => {
                    taken.changes.push(Map::new());
                    taken.answered.push(taken.answers.0.clone());
                    taken.recorded(&event);
                    taken.trace.push(event);
                }
                Entry::TakenUp { at, ended_at } => taken.worked.taken_up(at, ended_at),
            }
        }
        taken.state = serde_json::from_value(Value::Object(state)).map_err(damaged)?;
        Ok(taken)
    }

    /// Notes when a step was done that told this.
    fn recorded(&mut self, event: &TraceEvent) {
        let number = |key: &str| event.get(key).and_then(Value::as_u64);
        if let (Some(since), Some(took)) = (number("at"), number("took_ms")) {
            self.worked.recorded(since.saturating_add(took));
        }
    }

    /// What models have answered in the step that is not done. One that failed and was taken up
    /// again goes on with what it had.
    pub fn unfinished(&self) -> &[Answered] {
        &self.answers.0
    }

    /// What its calls took, with those of the step that is not done.
    pub fn took(&self) -> Took {
        let mut took = Took::of(&self.trace);
        // A step that failed has told of its answers, as far as it had them then.
        let last = self.trace.last().filter(|it| it.contains_key("error"));
        let told = last.and_then(usage_of).unwrap_or_default();
        let mut rest = self.answers.usage();
        rest.input = rest.input.saturating_sub(told.input);
        rest.output = rest.output.saturating_sub(told.output);
        let told_cached = told.cached.unwrap_or_default();
        rest.cached = rest.cached.map(|cached| cached.saturating_sub(told_cached));
        if (rest.input, rest.output) == (0, 0) {
            return took;
        }
        took.add(rest);
        if let Some((tokens, window)) = self.answers.peak() {
            took.call(tokens, window);
        }
        if let Some(last) = self.answers.0.last() {
            *took.models.entry(last.model.clone()).or_default() += rest;
        }
        took
    }

    /// How far it has come.
    pub fn so_far(&self, definitions: &dyn Definitions) -> SoFar {
        SoFar {
            steps: self.trace.len() as u64,
            took: self.took(),
            step_id: self.step_id(definitions),
            worked: self.worked,
        }
    }

    /// The step that it is in; nothing after the last.
    pub fn step_id(&self, definitions: &dyn Definitions) -> Option<String> {
        if self.is_over {
            return None;
        }
        let entry = || Some(definitions.graph(&self.begun)?.entry);
        self.next.clone().or_else(entry)
    }

    /// The messages that the model was asked with in the n-th step, counted from 1; nothing if it
    /// was not asked in it.
    ///
    /// What was sent as it was planned is not kept: it follows from what the run knew then.
    pub fn asked(&self, number: usize, definitions: &dyn Definitions) -> Option<Value> {
        let event = self.trace.get(number.checked_sub(1)?)?;
        if let Some(asked) = event.get(ASKED) {
            return Some(asked.clone());
        }
        // Without a window nothing was sent.
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

/// The member of an event with the messages that were sent, where they are others than those that
/// follow from the state.
pub const ASKED: &str = "asked";

/// The member of a run's options that only pipelines have.
pub(crate) const KIND: &str = "pipeline";

pub(crate) fn fields(state: &State) -> Map<String, Value> {
    match serde_json::to_value(state) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
