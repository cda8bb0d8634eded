//! Runs a pipeline, one step at a time.
//!
//! The state after a step is stored before the next step begins. A failed step changes nothing, so
//! the run can be resumed from there.

#[cfg(test)]
mod tests;

use std::mem::take;

use futures_util::future::BoxFuture;
use overlock_budget::{ChatCounter, CountTokens, PlanOptions, Provenance};
use overlock_llm::{Backend, BackendError, ContinuationOptions, Retry, StrategyResults};
use overlock_runs::{
    EndedPipeline, Mail, PipelineOutcome, PipelineRun, Recording, RunUsage, State, TraceEvent,
};
use overlock_store::{Store, StoreError};
use serde_json::{Map, Value, json};

use crate::actions::{ActionError, Next, Work};
use crate::file::{Pipeline, Prompts, Step};
use crate::record::Answers;
use crate::settings::InboxRule;

/// What a run needs in addition to the pipeline.
pub struct Environment<'a> {
    /// The store of nodes, conversations and memories.
    pub store: &'a dyn Store,
    /// The models that steps call.
    pub models: &'a dyn Models,
    /// The embedding model, for semantic search.
    pub embedder: Option<&'a dyn Embed>,
    /// The prompt files that steps name.
    pub prompts: &'a Prompts,
    /// Counts the context.
    pub counter: &'a dyn CountTokens,
    /// The name of that counter.
    pub counter_name: &'a str,
    /// The accuracy of its counts.
    pub provenance: Provenance,
    /// When the run began, in milliseconds since 1970.
    pub began_at: u64,
    /// The current time in milliseconds since 1970.
    pub clock: &'a (dyn Fn() -> u64 + Sync),
}

/// Finds models by name.
pub trait Models: Sync {
    /// The model of this name, or why it cannot be called.
    fn client(&self, model: &str) -> Result<ModelClient<'_>, String>;

    /// Takes what a continued answer has shown about the strategies for a model.
    fn learnt(&self, model: &str, results: &StrategyResults) {
        let _ = (model, results);
    }
}

/// A model that can be called.
pub struct ModelClient<'a> {
    /// Sends the requests.
    pub backend: &'a dyn Backend,
    /// Counts for the model.
    pub counter: ChatCounter<'a>,
    /// How requests are planned.
    pub plan: PlanOptions,
    /// How documents are continued.
    pub continuation: ContinuationOptions,
}

/// Computes the vector of a text.
pub trait Embed: Sync {
    /// The name of the model.
    fn model(&self) -> &str;

    /// The vector of a text.
    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Vec<f32>, BackendError>>;
}

/// Observes a run.
pub trait Watch: Send {
    /// A step begins.
    fn entered(&mut self, step: &Step, state: &State) {
        let _ = (step, state);
    }

    /// A model is called, for the n-th time in this step.
    fn asking(&mut self, step_id: &str, iteration: u32) {
        let _ = (step_id, iteration);
    }

    /// A call failed and will be retried.
    fn retrying(&mut self, step_id: &str, retry: &Retry) {
        let _ = (step_id, retry);
    }

    /// A piece of an answer has arrived.
    fn received(&mut self, step_id: &str, piece: &str) {
        let _ = (step_id, piece);
    }

    /// A step has finished and is recorded.
    fn stepped(&mut self, event: &TraceEvent) {
        let _ = event;
    }
}

impl Watch for () {}

/// Runs a pipeline from its current step to its end. Only a failure to record is an error.
///
/// Dropping the future aborts the current step. The run then ends at its last recorded step, and
/// [`Recording::cancel`] records the cancellation.
pub async fn run(
    pipeline: &Pipeline,
    run_so_far: PipelineRun,
    world: &Environment<'_>,
    recording: &mut Recording,
    watch: &mut dyn Watch,
) -> Result<EndedPipeline, StoreError> {
    let PipelineRun {
        mut state,
        next,
        mut trace,
        answers: mut stored_answers,
        mut worked,
        is_over,
        ..
    } = run_so_far;
    recording.record_resume((world.clock)(), &mut worked)?;
    let entry = pipeline.settings.entry_step_id.clone();
    let mut at = (!is_over).then(|| next.unwrap_or(entry));
    let (outcome, why) = loop {
        let Some(step_id) = at else {
            break (end_of(pipeline, &state, &trace), None);
        };
        // Lets a task that cancels the run proceed.
        tokio::task::yield_now().await;
        let done = trace.iter().filter(|event| !event.contains_key("error"));
        if done.count() as u64 >= pipeline.settings.max_steps {
            break (too_long(step_id, pipeline.settings.max_steps), None);
        }
        let Some(step) = pipeline.step(&step_id) else {
            let outcome = failed(step_id, "the pipeline has no such step".to_owned(), None);
            break (outcome, None);
        };
        watch.entered(step, &state);
        let mut after = state.clone();
        after.take_mail(&step.id);
        let began_at = (world.clock)();
        let answers = take(&mut stored_answers);
        let answers = Answers::new(&step.id, answers, recording, watch, world.clock);
        let (result, notes) = perform(pipeline, step, &mut after, answers, world).await;
        let ended_at = (world.clock)();
        worked.recorded(ended_at);
        let mut event = Event {
            step,
            began_at,
            took: ended_at.saturating_sub(began_at),
            before: &state,
            after: &after,
        }
        .with_notes(recording.id().as_str(), trace.len() + 1, notes);
        at = match result {
            Ok(_) if step.end => None,
            Ok(Next::To(target)) => Some(target),
            Ok(Next::Onward) => step.next.clone(),
            Err(error) => {
                event.insert("error".to_owned(), chain(&error).into());
                recording.failed(&event)?;
                watch.stepped(&event);
                trace.push(event);
                let outcome = failed(step_id, chain(&error), error.hint());
                break (outcome, Some(brief(&error)));
            }
        };
        event.insert("next".to_owned(), at.as_deref().into());
        recording.stepped(at.as_deref(), &state, &after, &event)?;
        state = after;
        watch.stepped(&event);
        trace.push(event);
    };
    let (name, took) = (pipeline.name.clone(), RunUsage::of(&trace));
    let ended = EndedPipeline {
        outcome,
        state,
        trace,
    };
    recording.end((world.clock)(), ended, name, took, worked, why)
}

/// Performs one step; the notes are for its trace event, also after an error.
async fn perform<'a>(
    pipeline: &'a Pipeline,
    step: &'a Step,
    state: &'a mut State,
    answers: Answers<'a>,
    world: &'a Environment<'a>,
) -> (Result<Next, ActionError>, Map<String, Value>) {
    let mut work = Work {
        step_id: &step.id,
        has_next: step.next.is_some(),
        pipeline_name: &pipeline.name,
        settings: &pipeline.settings,
        world,
        state,
        answers,
        notes: Map::new(),
    };
    let result = step.action.perform(&mut work).await;
    (result, work.into_notes())
}

/// The outcome of a run that has taken all the steps it may.
fn too_long(step_id: String, max_steps: u64) -> PipelineOutcome {
    let help = "put a `loop_guard` into the loop, or set a larger settings.max_steps";
    failed(
        step_id,
        format!("the run reached its limit of {max_steps} steps"),
        Some(help.to_owned()),
    )
}

/// The outcome of a run after its last step.
fn end_of(pipeline: &Pipeline, state: &State, trace: &[TraceEvent]) -> PipelineOutcome {
    let strict = pipeline.settings.inbox == InboxRule::Strict;
    if !strict || state.inbox.is_empty() {
        return PipelineOutcome::Complete;
    }
    let last = trace
        .last()
        .and_then(|event| event.get("step_id")?.as_str());
    let left: Vec<String> = state
        .inbox
        .iter()
        .map(|mail| format!("`{}` for `{}`", mail.topic, mail.target_step_id))
        .collect();
    failed(
        last.unwrap_or_default().to_owned(),
        format!("mail was not delivered: {}", left.join(", ")),
        Some("route the run to the steps it is for, or remove `inbox: strict`".to_owned()),
    )
}

fn failed(step_id: String, error: String, hint: Option<String>) -> PipelineOutcome {
    PipelineOutcome::Failed {
        step_id,
        error,
        hint,
    }
}

/// An error with its causes, on one line.
fn chain(error: &ActionError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// A short reason for a failure, without model output.
fn brief(error: &ActionError) -> String {
    let text = match error {
        ActionError::BudgetMisconfig {
            incoming_tokens,
            max,
        } => format!("the new texts alone take {incoming_tokens} tokens of at most {max}"),
        ActionError::Model(BackendError::Status {
            status, message, ..
        }) => format!("the upstream answered {status}: {message}"),
        ActionError::Model(error) => error.to_string(),
        error => chain(error),
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_BRIEF) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The maximum length of a short reason in characters.
const MOST_BRIEF: usize = 200;

/// The inputs of a trace event.
struct Event<'a> {
    step: &'a Step,
    began_at: u64,
    took: u64,
    before: &'a State,
    after: &'a State,
}

impl Event<'_> {
    fn with_notes(&self, run_id: &str, number: usize, notes: Map<String, Value>) -> TraceEvent {
        let name = self.step.action.name();
        let mut event = Map::new();
        let mut add = |key: &str, value: Value| {
            event.insert(key.to_owned(), value);
        };
        add("event_type", name.to_uppercase().into());
        add("run_id", run_id.into());
        add("number", number.into());
        add("step_id", self.step.id.as_str().into());
        add("action", name.into());
        add("at", self.began_at.into());
        add("took_ms", self.took.into());
        for (key, value) in notes {
            add(&key, value);
        }
        let consumed = &self.after.inbox_last_consumed;
        // A step appends the mail it sends, so all after the older mail is new.
        let older = self.before.inbox.len() - consumed.len().min(self.before.inbox.len());
        let sent = &self.after.inbox[older.min(self.after.inbox.len())..];
        if !consumed.is_empty() || !sent.is_empty() {
            let inbox = json!({ "consumed": topics(consumed), "sent": topics(sent) });
            add("inbox", inbox);
        }
        add("in", summary(self.before));
        add("out", summary(self.after));
        event
    }
}

fn topics(mail: &[Mail]) -> Vec<Value> {
    let mail = mail.iter();
    mail.map(|mail| json!({ "target_step_id": mail.target_step_id, "topic": mail.topic }))
        .collect()
}

/// The sizes of a state's fields.
fn summary(state: &State) -> Value {
    json!({
        "search_hits": state.search_hits.len(),
        "graph_nodes": state.graph_nodes.len(),
        "node_texts": state.node_texts.len(),
        "context_blocks": state.context_blocks.len(),
        "history": state.history.len(),
        "memories": state.memories.len(),
        "inbox": state.inbox.len(),
        "response_chars": state.last_model_response.as_ref().map(|text| text.chars().count()),
    })
}
