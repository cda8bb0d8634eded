//! Runs a pipeline, one step at a time.
//!
//! The state after a step is on the disk before the next one begins. A step that fails has changed
//! nothing: the run ends where it was, and can be taken up there.

#[cfg(test)]
mod tests;

use std::mem::take;

use futures_util::future::BoxFuture;
use overlock_budget::{ChatCounter, CountTokens, PlanOptions, Provenance};
use overlock_llm::{Backend, BackendError, ContinuationOptions, Retry, StrategyResults};
use overlock_runs::{
    EndedPipeline, Mail, PipelineEnding, PipelineOutcome, PipelineRun, Recording, State, Took,
    TraceEvent,
};
use overlock_store::{Store, StoreError};
use serde_json::{Map, Value, json};

use crate::actions::{ActionError, Next, Work};
use crate::file::{Pipeline, Prompts, Step};
use crate::record::Answers;
use crate::settings::InboxRule;

/// What a run is done with.
pub struct World<'a> {
    /// Where nodes, conversations and memories are.
    pub store: &'a dyn Store,
    /// Who can be asked.
    pub models: &'a dyn Models,
    /// Who makes vectors of queries, if anybody does.
    pub embedder: Option<&'a dyn Embed>,
    /// The prompts that steps name.
    pub prompts: &'a Prompts,
    /// Who counts the context.
    pub counter: &'a dyn CountTokens,
    /// What that counter is called.
    pub counter_name: &'a str,
    /// What its figures are worth.
    pub provenance: Provenance,
    /// When the run began, in milliseconds since 1970.
    pub began_at: u64,
    /// The time.
    pub clock: &'a (dyn Fn() -> u64 + Sync),
}

/// Finds whoever speaks for a model.
pub trait Models: Sync {
    /// The model of this name, or why it cannot be asked.
    fn speaker(&self, model: &str) -> Result<Speaker<'_>, String>;

    /// An answer of a model was continued, which has shown this about the strategies for it.
    fn learnt(&self, model: &str, results: &StrategyResults) {
        let _ = (model, results);
    }
}

/// A model that can be asked.
pub struct Speaker<'a> {
    /// Who is asked.
    pub backend: &'a dyn Backend,
    /// Who counts for it.
    pub counter: ChatCounter<'a>,
    /// What a call is planned by.
    pub plan: PlanOptions,
    /// How a document is gone on with.
    pub continuation: ContinuationOptions,
}

/// Makes a vector of a text.
pub trait Embed: Sync {
    /// The model that does.
    fn model(&self) -> &str;

    /// The vector of a text.
    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Vec<f32>, BackendError>>;
}

/// Hears what happens while it happens.
pub trait Watch: Send {
    /// A step begins.
    fn entered(&mut self, step: &Step, state: &State) {
        let _ = (step, state);
    }

    /// A model is asked, for the n-th time in this step.
    fn asking(&mut self, step_id: &str, iteration: u32) {
        let _ = (step_id, iteration);
    }

    /// A model did not answer, and is asked again after a while.
    fn retrying(&mut self, step_id: &str, retry: &Retry) {
        let _ = (step_id, retry);
    }

    /// A piece of an answer has arrived.
    fn heard(&mut self, step_id: &str, piece: &str) {
        let _ = (step_id, piece);
    }

    /// A step is done, and recorded.
    fn stepped(&mut self, event: &TraceEvent) {
        let _ = event;
    }
}

impl Watch for () {}

/// Runs a pipeline from where it is to its end. Only what cannot be recorded is an error.
///
/// Dropping the future ends the step that is being done; the run then is what it was after the last
/// one that was recorded, and [`Recording::call_off`] says so for good.
pub async fn run(
    pipeline: &Pipeline,
    taken: PipelineRun,
    world: &World<'_>,
    recording: &mut Recording,
    watch: &mut dyn Watch,
) -> Result<EndedPipeline, StoreError> {
    let PipelineRun {
        mut state,
        next,
        mut trace,
        answers: mut kept,
        mut worked,
        is_over,
        ..
    } = taken;
    recording.going_on((world.clock)(), &mut worked)?;
    let entry = pipeline.settings.entry_step_id.clone();
    let mut at = if is_over {
        None
    } else {
        Some(next.unwrap_or(entry))
    };
    let (outcome, why) = loop {
        let Some(step_id) = at else {
            break (end_of(pipeline, &state, &trace), None);
        };
        // Between two steps is time for whoever wants the run to stop.
        tokio::task::yield_now().await;
        let done = trace.iter().filter(|event| !event.contains_key("error"));
        if done.count() as u64 >= pipeline.settings.max_steps {
            let outcome = too_long(step_id, pipeline.settings.max_steps);
            break (outcome, None);
        }
        let Some(step) = pipeline.step(&step_id) else {
            let outcome = failed(step_id, "there is no such step".to_owned(), None);
            break (outcome, None);
        };
        watch.entered(step, &state);
        let before = state.clone();
        let mut after = state.clone();
        after.take_mail(&step.id);
        let began_at = (world.clock)();
        let mut work = Work {
            step_id: &step.id,
            has_next: step.next.is_some(),
            pipeline_name: &pipeline.name,
            settings: &pipeline.settings,
            world,
            counter: world.counter,
            counter_name: world.counter_name,
            provenance: world.provenance,
            state: &mut after,
            answers: Answers::new(&step.id, take(&mut kept), recording, watch, world.clock),
            told: Map::new(),
        };
        let performed = step.action.perform(&mut work).await;
        let told = work.into_told();
        let ended_at = (world.clock)();
        let took = ended_at.saturating_sub(began_at);
        worked.recorded(ended_at);
        let mut event = Event {
            step,
            began_at,
            took,
            before: &before,
            after: &after,
        }
        .told(recording.id().as_str(), trace.len() + 1, told);
        at = match performed {
            Ok(_) if step.end => None,
            Ok(Next::To(target)) => Some(target),
            Ok(Next::Onward) => step.next.clone(),
            Err(error) => {
                // What the step had told so far may be what explains it.
                event.insert("error".to_owned(), chain(&error).into());
                recording.failed(&event)?;
                watch.stepped(&event);
                trace.push(event);
                let outcome = failed(step_id, chain(&error), error.hint());
                break (outcome, Some(brief(&error)));
            }
        };
        event.insert("next".to_owned(), at.as_deref().into());
        recording.stepped(at.as_deref(), &before, &after, &event)?;
        state = after;
        watch.stepped(&event);
        trace.push(event);
    };
    let ending = PipelineEnding {
        outcome: outcome.clone(),
        pipeline: pipeline.name.clone(),
        took: Took::of(&trace),
        steps: trace.len() as u64,
        paused_ms: worked.paused_ms,
        paused_at_most: worked.paused_at_most,
        why,
    };
    recording.end((world.clock)(), &ending)?;
    Ok(EndedPipeline {
        outcome,
        state,
        trace,
    })
}

/// How a run ends that has taken as many steps as it may.
fn too_long(step_id: String, max_steps: u64) -> PipelineOutcome {
    let help = "put a `loop_guard` into the loop, or set a larger settings.max_steps";
    failed(
        step_id,
        format!("the run took {max_steps} steps, which is the limit"),
        Some(help.to_owned()),
    )
}

/// How a run ends that has nowhere to go on.
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
        format!("mail was never taken: {}", left.join(", ")),
        Some("lead the run to the steps it is for, or leave out `inbox: strict`".to_owned()),
    )
}

fn failed(step_id: String, error: String, hint: Option<String>) -> PipelineOutcome {
    PipelineOutcome::Failed {
        step_id,
        error,
        hint,
    }
}

/// An error with all that caused it, in one line.
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

/// Why a step could not be done, in a few words, without any that a model said.
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

/// What a list says of a failure has so many characters at most.
const MOST_BRIEF: usize = 200;

/// What a step did, seen from outside.
struct Event<'a> {
    step: &'a Step,
    began_at: u64,
    took: u64,
    before: &'a State,
    after: &'a State,
}

impl Event<'_> {
    fn told(&self, run_id: &str, number: usize, told: Map<String, Value>) -> TraceEvent {
        let name = self.step.action.name();
        let mut event = Map::new();
        let mut tell = |key: &str, value: Value| {
            event.insert(key.to_owned(), value);
        };
        tell("event_type", name.to_uppercase().into());
        tell("run_id", run_id.into());
        tell("number", number.into());
        tell("step_id", self.step.id.as_str().into());
        tell("action", name.into());
        tell("at", self.began_at.into());
        tell("took_ms", self.took.into());
        for (key, value) in told {
            tell(&key, value);
        }
        let consumed = &self.after.inbox_last_consumed;
        // What was there before and is not this step's stays in front of what is sent.
        let kept = self.before.inbox.len() - consumed.len().min(self.before.inbox.len());
        let sent = &self.after.inbox[kept.min(self.after.inbox.len())..];
        if !consumed.is_empty() || !sent.is_empty() {
            tell(
                "inbox",
                json!({ "consumed": topics(consumed), "sent": topics(sent) }),
            );
        }
        tell("in", summary(self.before));
        tell("out", summary(self.after));
        event
    }
}

fn topics(mail: &[Mail]) -> Vec<Value> {
    let mail = mail.iter();
    mail.map(|mail| json!({ "target_step_id": mail.target_step_id, "topic": mail.topic }))
        .collect()
}

/// What a state holds, in figures.
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
