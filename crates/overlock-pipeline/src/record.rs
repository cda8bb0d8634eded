//! What is kept of a run, so that another process can go on with it.
//!
//! After every step the store has what the step changed and what the trace tells of it; within a
//! step every answer of a model is there before anything follows from it. A run is read back by
//! doing the same changes again.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Not;
use std::sync::Arc;

use futures_util::future::{self, BoxFuture, FutureExt};
use overlock_budget::Plan;
use overlock_model::{
    Ask, CallEnd, Continuation, Observe, ObserveText, Retried, Retry, Step, StepResult,
    StrategyResults, TextContinuation, Usage,
};
use overlock_store::{Claim, NewRun, Run, RunId, Store, StoreError, Work};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::actions::Action;
use crate::engine::{Ended, Outcome, Watch};
use crate::file::{Measure, Measures, Pipeline, Prompts, ReadOptions, read};
use crate::state::State;

/// One event of a trace: what a step did, and why.
pub type TraceEvent = Map<String, Value>;

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
    pub prompts: Prompts,
    /// The settings that were set for this run.
    pub settings: Map<String, Value>,
    /// What the run knew at first.
    pub state: State,
}

/// What else whoever takes a run up has to know. A key is never among it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Where the model is.
    pub upstream: Option<String>,
    /// The model that makes vectors.
    pub embed: Option<String>,
}

/// How a run ended and what it took, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ending {
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What the pipeline is called.
    pub pipeline: String,
    /// What it took.
    #[serde(flatten)]
    pub took: Took,
    /// How many steps it took; 0 in records that did not tell.
    #[serde(default)]
    pub steps: u64,
    /// How many milliseconds nobody worked on it, before it was taken up again.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub paused_ms: u64,
    /// Whether somebody may have worked in some of that time: see [`Worked::paused_at_most`].
    #[serde(default, skip_serializing_if = "Not::not")]
    pub paused_at_most: bool,
    /// Why it failed, in a few words that no model said; nothing in records that did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_nothing(count: &u64) -> bool {
    *count == 0
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
    pub(crate) fn of(trace: &[TraceEvent]) -> Self {
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
            let used = match usage_of(event) {
                Some(used) => used,
                // Nobody answered, so nothing was taken.
                None if event.contains_key("error") => continue,
                // Records of earlier versions tell only what was planned.
                None => Usage {
                    input,
                    output,
                    cached: None,
                },
            };
            all.add(used);
            let window = event.get("window").and_then(|window| window.get("tokens"));
            // Records of earlier versions do not tell of each call.
            let peak = number("peak_tokens").unwrap_or(input.saturating_add(output));
            all.call(peak, window.and_then(Value::as_u64));
        }
        all
    }

    /// Adds what calls took.
    fn add(&mut self, used: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(used.input);
        self.output_tokens = self.output_tokens.saturating_add(used.output);
    }

    /// A call that took so much of a window.
    fn call(&mut self, tokens: u64, window: Option<u64>) {
        if tokens >= self.peak_tokens {
            self.peak_tokens = tokens;
            self.window = window.unwrap_or_default();
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
    /// Something was recorded that had been worked on since a time.
    pub(crate) fn recorded(&mut self, since: u64, at: u64) {
        // Records of earlier versions do not tell when a run was taken up.
        self.paused(self.last_at, since);
        self.last_at = self.last_at.max(at);
    }

    /// Somebody took it up that had ended at a time; without one nobody knows when it was left.
    fn taken_up(&mut self, at: u64, ended_at: Option<u64>) {
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
enum Entry {
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
        /// The tokens of the window, in records that tell.
        window: Option<u64>,
        /// The model, in records that tell.
        model: Option<String>,
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

/// Who counted what a call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    /// Whoever answered.
    Provider,
    /// Whoever asked, since the provider did not tell.
    Us,
}

/// An answer, with what it took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// What was answered.
    pub answer: StoredAnswer,
    /// What the call took.
    #[serde(default)]
    pub usage: Usage,
    /// Who says so, in records that tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<CountedBy>,
    /// The tokens of the window, in records that tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The model, in records that tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Since when whoever recorded it was at its step, and when they did, in records that tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked: Option<[u64; 2]>,
}

impl StoredAnswer {
    pub(crate) fn of_text(run: &TextContinuation) -> Self {
        Self::Text {
            text: run.text().to_owned(),
            tokens: run.output_tokens(),
            is_cut: run.is_cut(),
        }
    }
}

/// A run as far as it has come.
#[derive(Clone, Debug)]
pub struct Taken {
    /// What it was begun with.
    pub begun: Begun,
    /// What else it depends on.
    pub conditions: Conditions,
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
    pub(crate) answers: Kept,
}

/// What models have answered in a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Vec<Answered>);

impl Kept {
    /// What all of it took.
    fn usage(&self) -> Usage {
        let mut all = Usage::default();
        for answered in &self.0 {
            all += answered.usage;
        }
        all
    }

    /// The tokens of the call that took the most of its window, and those of that window.
    fn peak(&self) -> Option<(u64, Option<u64>)> {
        let calls = self.0.iter().map(|answered| {
            let Usage { input, output, .. } = answered.usage;
            (input.saturating_add(output), answered.window)
        });
        calls.max_by_key(|(tokens, _)| *tokens)
    }
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process works on it.
    #[error("run `{id}` is being worked on by another process")]
    Busy {
        /// The run.
        id: RunId,
    },
    /// It is no run of a pipeline.
    #[error("run `{id}` is not a run of a pipeline")]
    Other {
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
}

impl Taken {
    /// A run that begins.
    pub fn new(begun: Begun, conditions: Conditions, began_at: u64) -> Self {
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
            answers: Kept::default(),
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
    pub fn read(run: &Run) -> Result<Self, ReadError> {
        let id = &run.summary.id;
        if Self::pipeline_name(&run.summary.options).is_none() {
            return Err(ReadError::Other { id: id.clone() });
        }
        let damaged = |source| ReadError::Damaged {
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
                    if let Some([since, at]) = answered.worked {
                        taken.worked.recorded(since, at);
                    }
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
                    let Kept(answers) = std::mem::take(&mut taken.answers);
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
            self.worked.recorded(since, since.saturating_add(took));
        }
    }

    /// The pipeline as it is run, without a look at prompts and windows.
    pub fn pipeline(&self) -> Option<Pipeline> {
        let begun = &self.begun;
        let options = ReadOptions {
            settings: &begun.settings,
            model: Some(""),
            prompt: &|_, key| Ok(begun.prompts.get(key).cloned().unwrap_or_default()),
            measures: &Unmeasured,
        };
        read(&begun.file, &begun.text, &options).pipeline
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
        // Records of earlier versions do not tell the model of an answer.
        let last = self.answers.0.last().and_then(|it| it.model.clone());
        if let Some(model) = last.or_else(|| self.asked_model()) {
            *took.models.entry(model).or_default() += rest;
        }
        took
    }

    /// How far it has come.
    pub fn so_far(&self) -> SoFar {
        SoFar {
            steps: self.trace.len() as u64,
            took: self.took(),
            step_id: self.step_id(),
            worked: self.worked,
        }
    }

    /// The step that it is in; nothing after the last.
    pub fn step_id(&self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let entry = || Some(self.pipeline()?.settings.entry_step_id);
        self.next.clone().or_else(entry)
    }

    /// The model of the step that is not done.
    fn asked_model(&self) -> Option<String> {
        let pipeline = self.pipeline()?;
        let step = self
            .next
            .as_ref()
            .unwrap_or(&pipeline.settings.entry_step_id);
        let Action::CallModel(call) = &pipeline.step(step)?.action else {
            return None;
        };
        let model = call.model.as_ref().or(pipeline.settings.model.as_ref());
        model.cloned()
    }

    /// The messages that the model was asked with in the n-th step, counted from 1; nothing if it
    /// was not asked in it.
    ///
    /// What was sent as it was planned is not kept: it follows from what the run knew then.
    pub fn asked(&self, number: usize) -> Option<Value> {
        let event = self.trace.get(number.checked_sub(1)?)?;
        if let Some(asked) = event.get(ASKED) {
            return Some(asked.clone());
        }
        // Without a window nothing was sent. Earlier versions did not keep what was sent otherwise
        // than it was planned.
        let window = event.get("window")?;
        let count = |key: &str| window.get(key).and_then(Value::as_u64).unwrap_or_default();
        if count("dropped_messages") > 0 || count("memory_count") > 0 {
            return None;
        }
        let mut state = fields(&self.begun.state);
        for changed in self.changes.get(..number - 1)? {
            state.extend(changed.clone());
        }
        let mut state: State = serde_json::from_value(Value::Object(state)).ok()?;
        let step_id = event.get("step_id")?.as_str()?;
        state.take_mail(step_id);
        let pipeline = self.pipeline()?;
        let Action::CallModel(call) = &pipeline.step(step_id)?.action else {
            return None;
        };
        Some(call.messages(&self.begun.prompts, &state).ok()?.list)
    }

    /// Records that the run begins.
    #[expect(clippy::missing_panics_doc, reason = "what is recorded is plain data")]
    pub fn begin(
        &self,
        store: &Arc<dyn Store>,
        id: &RunId,
        model: &str,
    ) -> Result<Recording, StoreError> {
        let plain = "what is recorded is plain data";
        let claim = store.begin(&NewRun {
            id,
            at: self.began_at,
            model,
            request: &serde_json::to_string(&self.begun).expect(plain),
            options: &serde_json::json!({ KIND: self.begun.name }).to_string(),
            conditions: &serde_json::to_string(&self.conditions).expect(plain),
        })?;
        Ok(Recording {
            store: Arc::clone(store),
            claim,
            entries: 0,
            taken_up: None,
            _work: store.work_on(id)?,
        })
    }

    /// Claims the run, to go on with it.
    pub fn take_up(&self, store: &Arc<dyn Store>, id: &RunId) -> Result<Recording, ReadError> {
        let work = store.work_on(id)?;
        if work.is_none() {
            return Err(ReadError::Busy { id: id.clone() });
        }
        match store.take_up(id)? {
            Some((run, claim)) if run.steps.len() == self.entries as usize => Ok(Recording {
                store: Arc::clone(store),
                claim,
                entries: self.entries,
                taken_up: Some(TakenUp {
                    // An end that it had before it was taken up the last time is over.
                    ended_at: (run.summary.ended_at).filter(|at| *at >= self.worked.last_at),
                }),
                _work: work,
            }),
            _ => Err(StoreError::Superseded { id: id.clone() }.into()),
        }
    }
}

/// Whoever only looks at a pipeline has no models.
struct Unmeasured;

impl Measures for Unmeasured {
    fn measure(&self, _model: &str, _text: &str) -> Option<Measure> {
        None
    }

    fn is_counter(&self, _name: &str) -> bool {
        true
    }
}

/// The member of an event with the messages that were sent, where they are others than those that
/// follow from the state.
pub(crate) const ASKED: &str = "asked";

/// The member of a run's options that only pipelines have.
const KIND: &str = "pipeline";

/// The right to write to a run, and how much is written.
#[derive(Debug)]
pub struct Recording {
    store: Arc<dyn Store>,
    claim: Claim,
    entries: u32,
    /// What is to be told of a run that somebody goes on with.
    taken_up: Option<TakenUp>,
    /// Nobody else works on the run meanwhile.
    _work: Option<Work>,
}

/// A run that was begun before.
#[derive(Clone, Copy, Debug)]
struct TakenUp {
    /// When it ended, if it had.
    ended_at: Option<u64>,
}

impl Recording {
    /// The run.
    pub fn id(&self) -> &RunId {
        self.claim.id()
    }

    fn add(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let body = serde_json::to_string(entry).expect("an entry is plain data");
        self.store.add_step(&self.claim, self.entries + 1, &body)?;
        self.entries += 1;
        Ok(())
    }

    /// Keeps that somebody goes on now with a run that was begun before.
    pub(crate) fn going_on(&mut self, at: u64, worked: &mut Worked) -> Result<(), StoreError> {
        let Some(TakenUp { ended_at }) = self.taken_up.take() else {
            return Ok(());
        };
        self.add(&Entry::TakenUp { at, ended_at })?;
        worked.taken_up(at, ended_at);
        Ok(())
    }

    /// Keeps what a step did.
    pub(crate) fn stepped(
        &mut self,
        next: Option<&str>,
        was: &State,
        is: &State,
        event: &TraceEvent,
    ) -> Result<(), StoreError> {
        let (was, mut changed) = (fields(was), fields(is));
        changed.retain(|field, value| was.get(field) != Some(value));
        self.add(&Entry::Step {
            next: next.map(str::to_owned),
            changed,
            event: event.clone(),
        })
    }

    /// Keeps why a step could not be done.
    pub(crate) fn failed(&mut self, event: &TraceEvent) -> Result<(), StoreError> {
        self.add(&Entry::Failed {
            event: event.clone(),
        })
    }

    /// Keeps that somebody called the run off, and says how far it had come. Whoever runs it must
    /// have been stopped before.
    pub fn call_off(&self, at: u64, pipeline: &Pipeline) -> Result<Ended, ReadError> {
        let Some(run) = self.store.run(self.id())? else {
            return Err(ReadError::Other {
                id: self.id().clone(),
            });
        };
        let taken = Taken::read(&run)?;
        // What was answered in the step that is not done was paid for, too.
        let took = taken.took();
        let Taken {
            state,
            next,
            trace,
            worked,
            ..
        } = taken;
        let step_id = next.unwrap_or_else(|| pipeline.settings.entry_step_id.clone());
        let outcome = Outcome::Cancelled { step_id };
        let ending = Ending {
            outcome: outcome.clone(),
            pipeline: pipeline.name.clone(),
            took,
            steps: trace.len() as u64,
            paused_ms: worked.paused_ms,
            paused_at_most: worked.paused_at_most,
            why: None,
        };
        self.end(at, &ending)?;
        Ok(Ended {
            outcome,
            state,
            trace,
        })
    }

    /// Keeps how the run ended.
    pub(crate) fn end(&self, at: u64, ending: &Ending) -> Result<(), StoreError> {
        let ending = serde_json::to_string(ending).expect("an ending is plain data");
        self.store.end(&self.claim, at, &ending)
    }
}

fn fields(state: &State) -> Map<String, Value> {
    match serde_json::to_value(state) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// What models have answered in a step, kept as it comes.
pub(crate) struct Answers<'a> {
    step_id: &'a str,
    kept: Kept,
    /// The tokens of the prompt that is being answered.
    pub(crate) asking: u64,
    /// Those of the window that it is in.
    pub(crate) window: Option<u64>,
    /// Who is asked.
    pub(crate) model: Option<String>,
    /// The time, and when it was at the beginning of the step.
    clock: &'a (dyn Fn() -> u64 + Sync),
    began_at: u64,
    /// What the last call took that went on with a text, and who says so.
    pub(crate) last: (Usage, CountedBy),
    /// The calls that were not answered, by this process.
    pub(crate) retried: Option<Retried>,
    /// What the run for the document has shown about its strategies.
    pub(crate) learnt: Option<StrategyResults>,
    recording: &'a mut Recording,
    watch: &'a mut dyn Watch,
}

impl<'a> Answers<'a> {
    /// Those of a step of which some were given before.
    pub(crate) fn new(
        step_id: &'a str,
        kept: Kept,
        recording: &'a mut Recording,
        watch: &'a mut dyn Watch,
        clock: &'a (dyn Fn() -> u64 + Sync),
    ) -> Self {
        Self {
            step_id,
            kept,
            asking: 0,
            window: None,
            model: None,
            clock,
            began_at: clock(),
            last: (Usage::default(), CountedBy::Us),
            retried: None,
            learnt: None,
            recording,
            watch,
        }
    }

    /// What all of them took.
    pub(crate) fn usage(&self) -> Usage {
        self.kept.usage()
    }

    /// How many calls there were, how many of their answers could not be joined if any, and where
    /// there were several what the first took, whose window is told.
    pub(crate) fn calls(&self) -> Map<String, Value> {
        let answers = &self.kept.0;
        let mut told = Map::new();
        told.insert("calls".to_owned(), answers.len().into());
        let is_refused = |answered: &&Answered| match &answered.answer {
            StoredAnswer::Document(step) => matches!(step.result, StepResult::Failed { .. }),
            StoredAnswer::Text { .. } => false,
        };
        let refused = answers.iter().filter(is_refused).count();
        if refused > 0 {
            told.insert("refused".to_owned(), refused.into());
        }
        if let [first, _, ..] = answers.as_slice() {
            let output = first.usage.output.into();
            told.insert("first_output_tokens".to_owned(), output);
        }
        told
    }

    /// The tokens of the call that took the most of its window.
    pub(crate) fn peak_tokens(&self) -> Option<u64> {
        Some(self.kept.peak()?.0)
    }

    /// Who says so; nothing if that is not known of all of them. Of several those who told less.
    pub(crate) fn counted_by(&self) -> Option<CountedBy> {
        let by: Option<Vec<CountedBy>> = self.kept.0.iter().map(|it| it.counted_by).collect();
        let by = by?;
        Some(if by.contains(&CountedBy::Us) {
            CountedBy::Us
        } else {
            CountedBy::Provider
        })
    }

    /// Whether any was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.0.is_empty()
    }

    /// The steps on the way to a document.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let stored = self.kept.0.iter();
        stored
            .filter_map(|answered| match &answered.answer {
                StoredAnswer::Document(step) => Some(step.as_ref().clone()),
                StoredAnswer::Text { .. } => None,
            })
            .collect()
    }

    /// A text, its tokens, and whether there is more of it.
    pub(crate) fn text(&self) -> Option<(String, u64, bool)> {
        let mut stored = self.kept.0.iter().rev();
        stored.find_map(|answered| match &answered.answer {
            StoredAnswer::Text {
                text,
                tokens,
                is_cut,
            } => Some((text.clone(), *tokens, *is_cut)),
            StoredAnswer::Document(_) => None,
        })
    }

    /// What a call took by its provider, or by our own count of its answer.
    pub(crate) fn took(&self, end: &CallEnd, output: u64) -> (Usage, CountedBy) {
        let counted = Usage {
            input: self.asking,
            output,
            cached: None,
        };
        let told = end.usage.map(|usage| (usage, CountedBy::Provider));
        told.unwrap_or((counted, CountedBy::Us))
    }

    /// Keeps an answer, and what its call took.
    pub(crate) fn keep(
        &mut self,
        answer: StoredAnswer,
        (usage, by): (Usage, CountedBy),
    ) -> Result<(), StoreError> {
        let answered = Answered {
            answer,
            usage,
            counted_by: Some(by),
            window: self.window,
            model: self.model.clone(),
            worked: Some([self.began_at, (self.clock)()]),
        };
        self.recording.add(&Entry::Answer {
            step_id: self.step_id.to_owned(),
            answered: answered.clone(),
        })?;
        self.kept.0.push(answered);
        Ok(())
    }
}

impl Observe for Answers<'_> {
    fn asking(&mut self, ask: &Ask, plan: &Plan) {
        self.asking = plan.input_token_count;
        self.window = Some(plan.window);
        self.watch.asking(self.step_id, ask.iteration);
    }

    fn retrying(&mut self, retry: &Retry) {
        Retried::add(&mut self.retried, retry);
        self.watch.retrying(self.step_id, retry);
    }

    fn heard(&mut self, piece: &str) {
        self.watch.heard(self.step_id, piece);
    }

    fn stepped<'a>(
        &'a mut self,
        _run: &'a Continuation,
        step: &'a Step,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let usage = self.took(end, step.tokens);
        let kept = self.keep(StoredAnswer::Document(Box::new(step.clone())), usage);
        future::ready(kept.map_err(Into::into)).boxed()
    }

    fn learnt(&mut self, results: StrategyResults) {
        self.learnt = Some(results);
    }
}

impl ObserveText for Answers<'_> {
    fn called<'a>(
        &'a mut self,
        _step: &'a Step,
        usage: Usage,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let by = end.usage.map_or(CountedBy::Us, |_| CountedBy::Provider);
        self.last = (usage, by);
        future::ready(Ok(())).boxed()
    }
}
