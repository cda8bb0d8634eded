//! A test environment: a store in memory, a counter of words, and a model that takes its answers
//! from a list.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::future::{self, BoxFuture, FutureExt};
use futures_util::{StreamExt, stream};
use overlock_budget::{ChatCounter, CountTokens, Found, Keep, PlanOptions, Provenance};
use overlock_llm::{Backend, BackendError, Call, ContinuationOptions, Event, Events, Usage};
use overlock_store::{RunId, Store};
use serde_json::{Map, Value};

use crate::actions::Action;
use crate::engine::{Environment, ModelClient, Models, run};
use crate::file::{Pipeline, Prompts, Step};
use overlock_runs::State;
use overlock_runs::{Begun, EndedPipeline, PipelineConditions, PipelineRun};

/// Counts words as tokens.
pub(crate) struct Words;

impl CountTokens for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count_up_to(&self, text: &str, limit: u64) -> Option<u64> {
        let count = text.split_whitespace().count() as u64;
        (count <= limit).then_some(count)
    }

    fn truncate_to<'text>(&self, text: &'text str, _tokens: u64, _keep: Keep) -> &'text str {
        text
    }
}

/// A backend that answers from a list and records the requests. A final `✂` cuts an answer.
#[derive(Default)]
pub(crate) struct Replies {
    answers: Mutex<VecDeque<String>>,
    pub(crate) asked: Mutex<Vec<Map<String, Value>>>,
}

impl Replies {
    pub(crate) fn of(answers: &[&str]) -> Self {
        let answers = answers.iter().map(|answer| (*answer).to_owned());
        Self {
            answers: Mutex::new(answers.collect()),
            asked: Mutex::default(),
        }
    }
}

impl Backend for Replies {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        self.asked
            .lock()
            .expect("no test panics")
            .push(call.request);
        let answer = self.answers.lock().expect("no test panics").pop_front();
        let answer = answer.expect("there is an answer for every call");
        let (text, finish) = match answer.strip_suffix('✂') {
            Some(cut) => (cut.to_owned(), "length"),
            None => (answer, "stop"),
        };
        let usage = Usage {
            input: 10,
            output: Words.count(&text),
            cached: None,
        };
        let events = [
            Event::Text(text),
            Event::Finish(finish.to_owned()),
            Event::Usage(usage),
        ];
        future::ready(Ok(stream::iter(events.map(Ok)).boxed())).boxed()
    }
}

/// The same model for every name.
pub(crate) struct OneModel<'a> {
    pub(crate) backend: &'a Replies,
    pub(crate) found: Found,
}

impl Models for OneModel<'_> {
    fn client(&self, _model: &str) -> Result<ModelClient<'_>, String> {
        Ok(ModelClient {
            backend: self.backend,
            counter: ChatCounter::with_counter(&self.found, &Words),
            plan: PlanOptions::for_model(&self.found.model),
            continuation: ContinuationOptions::default(),
        })
    }
}

/// Adds fields to a step.
pub(crate) fn with(mut step: Value, more: Value) -> Value {
    if let (Value::Object(step), Value::Object(more)) = (&mut step, more) {
        step.extend(more);
    }
    step
}

/// A step from its configuration.
pub(crate) fn step(config: Value) -> Step {
    let Value::Object(mut config) = config else {
        panic!("a step is an object");
    };
    let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
    let id = text(config.remove("id")).expect("a step has an id");
    let action = text(config.remove("action")).expect("a step has an action");
    let next = text(config.remove("next"));
    let end = config.remove("end").is_some_and(|end| end == true);
    let action = Action::read(&action, Value::Object(config)).expect("there is such an action");
    Step {
        id,
        action: action.expect("it is configured well"),
        next,
        end,
    }
}

/// A pipeline that begins with its first step.
pub(crate) fn pipeline(mut settings: Value, steps: Vec<Value>) -> Pipeline {
    let steps: Vec<Step> = steps.into_iter().map(step).collect();
    settings["entry_step_id"] = steps[0].id.as_str().into();
    Pipeline {
        name: "test".to_owned(),
        settings: serde_json::from_value(settings).expect("these are settings"),
        steps,
    }
}

/// When every test run begins.
pub(crate) const BEGAN_AT: u64 = 1_763_251_200_000;

/// A store, a scripted model and prompts to run pipelines with.
pub(crate) struct TestBed {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) replies: Replies,
    pub(crate) prompts: Prompts,
    counter: &'static dyn CountTokens,
}

impl TestBed {
    pub(crate) fn new(answers: &[&str]) -> Self {
        Self {
            store: overlock_store::in_memory().expect("memory is there"),
            replies: Replies::of(answers),
            prompts: Prompts::new(),
            counter: &Words,
        }
    }

    /// Uses another counter.
    pub(crate) fn counted_by(self, counter: &'static dyn CountTokens) -> Self {
        Self { counter, ..self }
    }

    /// Runs a pipeline from a state to its end.
    pub(crate) fn run(&self, pipeline: &Pipeline, state: State) -> EndedPipeline {
        let begun = Begun {
            name: pipeline.name.clone(),
            file: "test.yaml".to_owned(),
            text: String::new(),
            prompts: self.prompts.clone(),
            settings: Map::new(),
            state,
        };
        let new_run = PipelineRun::new(begun, PipelineConditions::default(), BEGAN_AT);
        let id = RunId::new(BEGAN_AT, 7);
        let mut recording = new_run
            .begin(&self.store, &id, "gpt-4o")
            .expect("it is recorded");
        let models = OneModel {
            backend: &self.replies,
            found: overlock_budget::Models::default().find("gpt-4o"),
        };
        let world = Environment {
            store: &*self.store,
            models: &models,
            embedder: None,
            prompts: &self.prompts,
            counter: self.counter,
            counter_name: self.counter.name(),
            provenance: Provenance::Exact,
            began_at: BEGAN_AT,
            clock: &|| BEGAN_AT,
        };
        let ended = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("there is a runtime")
            .block_on(run(pipeline, new_run, &world, &mut recording, &mut ()))
            .expect("the store works");
        // The record must agree with the result.
        let recorded = self
            .store
            .run(&id)
            .expect("the store works")
            .expect("it was begun");
        let read = PipelineRun::read(&recorded).expect("it can be read");
        assert_eq!(read.state, ended.state, "the recorded state differs");
        ended
    }
}
