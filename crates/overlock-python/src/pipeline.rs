//! Pipelines: checked before they run, and run with any Python callable as the model.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, future, stream};
use overlock_budget::{
    Approximate, ChatCounter, CountTokens, Encoding, Models, PlanOptions, Sharing,
};
use overlock_model::{Backend, BackendError, Call, ContinuationOptions, Event, Events, Usage};
use overlock_pipeline::{
    Begun, Checked, Conditions, Ended, Measure, Measures, Outcome, ReadOptions, Severity, Speaker,
    State, Taken, World,
};
use overlock_store::{Access, RunId, Store, StoreAddress};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde_json::{Map, Value};

use crate::error::Raise;
use crate::request;
use crate::result::make;
use crate::tokens::Counter;

/// A pipeline that can be run: a YAML file of steps.
///
/// Everything that is wrong with it is told at once, as `BadPipeline`, and `Pipeline.check` tells
/// it without raising. The model is any callable, as for `complete`.
///
///     >>> import overlock
///     >>> pipeline = overlock.Pipeline('''
///     ... pipeline:
///     ...   name: ask
///     ...   settings: { entry_step_id: ask, max_context_tokens: 1000, model: gpt-4o-mini }
///     ...   steps:
///     ...     - id: ask
///     ...       action: call_model
///     ...       prompt: Answer the question.
///     ...       user_parts: { question: { source: user_question, template: "{}" } }
///     ...       max_output_tokens: 100
///     ...       next: end
///     ...     - id: end
///     ...       action: finalize
///     ...       end: true
///     ... ''')
///     >>> run = pipeline.run(lambda request: "Forty-two.", "What is it?")
///     >>> run.outcome, run.answer
///     ('complete', 'Forty-two.')
#[pyclass(module = "overlock", frozen)]
pub(crate) struct Pipeline {
    file: String,
    text: String,
    settings: Map<String, Value>,
    prompts: BTreeMap<String, String>,
    read: overlock_pipeline::Pipeline,
}

#[pymethods]
impl Pipeline {
    #[new]
    #[pyo3(signature = (text, *, file = "pipeline.yaml", settings = None, prompts = None,
                        folder = None))]
    fn new(
        py: Python<'_>,
        text: String,
        file: &str,
        settings: Option<&Bound<'_, PyAny>>,
        prompts: Option<BTreeMap<String, String>>,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        let settings = members(py, settings)?;
        let checked = py.detach(|| checked(file, &text, &settings, prompts, folder.as_deref()));
        let Some(read) = checked.pipeline else {
            let errors = checked.problems.iter();
            let errors = errors.filter(|problem| problem.severity == Severity::Error);
            let told: Vec<_> = errors.map(|problem| problem.render(file, &text)).collect();
            let raise = Raise::new("BadPipeline", "bad-pipeline", told.join("\n"));
            return Err(raise.into_error(py));
        };
        Ok(Self {
            file: file.to_owned(),
            text,
            settings,
            prompts: checked.prompts,
            read,
        })
    }

    /// Everything that is wrong with a pipeline, and what is doubtful, in the order of the file.
    #[staticmethod]
    #[pyo3(signature = (text, *, file = "pipeline.yaml", settings = None, prompts = None,
                        folder = None))]
    fn check<'py>(
        py: Python<'py>,
        text: &str,
        file: &str,
        settings: Option<&Bound<'py, PyAny>>,
        prompts: Option<BTreeMap<String, String>>,
        folder: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyList>> {
        let settings = members(py, settings)?;
        let checked = py.detach(|| checked(file, text, &settings, prompts, folder.as_deref()));
        let told = PyList::empty(py);
        for problem in &checked.problems {
            let severity = match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            let fields = (
                severity,
                problem.line,
                problem.column,
                problem.message.as_str(),
                problem.help.as_deref(),
                problem.render(file, text),
            );
            told.append(make(py, "Problem", fields)?)?;
        }
        Ok(told)
    }

    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        &self.read.name
    }

    /// The ids of its steps.
    #[getter]
    fn steps(&self) -> Vec<&str> {
        self.read.steps.iter().map(|step| &*step.id).collect()
    }

    /// Its steps as a Mermaid graph.
    fn graph(&self) -> String {
        overlock_pipeline::graph(&self.read)
    }

    /// Runs it with a callable as the model. `store` is a file, `sqlite://FILE` or
    /// `postgres://…`; without one nothing is kept. `state` is what the run knows at its beginning.
    #[pyo3(signature = (call, question = "", *, store = None, state = None, session_id = None,
                        repository = None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        call: Py<PyAny>,
        question: &str,
        store: Option<&str>,
        state: Option<&Bound<'py, PyAny>>,
        session_id: Option<String>,
        repository: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut state = match state {
            Some(state) => read_state(py, state)?,
            None => State::default(),
        };
        if !question.is_empty() {
            question.clone_into(&mut state.user_question);
        }
        state.session_id = session_id.or(state.session_id);
        state.repository = repository.or(state.repository);
        let voice = Voice {
            call,
            raised: Mutex::new(None),
        };
        let id = RunId::new(now(), RandomState::new().build_hasher().finish());
        let ended = py.detach(|| self.go(&voice, &id, state, store));
        let raised = voice.raised.into_inner();
        let raised = raised.unwrap_or_else(PoisonError::into_inner);
        // Whoever pressed Ctrl-C means the program, and not the model.
        if let Some(error) = &raised
            && !error.is_instance_of::<PyException>(py)
        {
            return Err(error.clone_ref(py));
        }
        let ended = ended.map_err(|told| Raise::bad_request("store", told).into_error(py))?;
        let (step_id, error, hint) = match &ended.outcome {
            Outcome::Complete => (None, None, None),
            Outcome::Failed {
                step_id,
                error,
                hint,
            } => (Some(step_id), Some(error), hint.as_ref()),
            Outcome::Cancelled { step_id } => (Some(step_id), None, None),
        };
        let fields = (
            id.as_str(),
            ended.outcome.name(),
            ended.state.answer.as_deref(),
            step_id,
            error,
            hint,
            request::object(py, &ended.state)?,
            request::object(py, &ended.trace)?,
            raised.map(|error| error.into_value(py)),
        );
        make(py, "PipelineRun", fields)
    }
}

impl Pipeline {
    /// Runs it; the error says what is wrong with the store.
    fn go(
        &self,
        voice: &Voice,
        id: &RunId,
        state: State,
        store: Option<&str>,
    ) -> Result<Ended, String> {
        let store = open(store)?;
        let settings = &self.read.settings;
        let model = settings.model.as_deref().unwrap_or_default();
        let named = settings
            .token_counter
            .as_deref()
            .and_then(Counter::built_in);
        let counter = named.unwrap_or_else(|| Counter::for_model(&Models::default().find(model)));
        let taken = Taken::new(
            Begun {
                name: self.read.name.clone(),
                file: self.file.clone(),
                text: self.text.clone(),
                prompts: self.prompts.clone(),
                settings: self.settings.clone(),
                state,
            },
            Conditions::default(),
            now(),
        );
        let told = |error: overlock_store::StoreError| error.to_string();
        let mut recording = taken.begin(&store, id, model).map_err(told)?;
        let world = World {
            store: &*store,
            models: voice,
            embedder: None,
            prompts: &self.prompts,
            counter: counter.tokens.as_ref(),
            counter_name: counter.tokens.name(),
            provenance: counter.provenance,
            began_at: taken.began_at,
            clock: &now,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let mut unwatched = ();
        let run = overlock_pipeline::run(&self.read, taken, &world, &mut recording, &mut unwatched);
        runtime.block_on(run).map_err(told)
    }
}

fn open(store: Option<&str>) -> Result<Arc<dyn Store>, String> {
    let Some(address) = store else {
        return overlock_store::in_memory().map_err(|error| error.to_string());
    };
    let address = if address.contains("://") {
        address
            .parse()
            .map_err(|error: overlock_store::AddressError| error.to_string())?
    } else {
        StoreAddress::Sqlite(address.into())
    };
    overlock_store::open(&address, Access::Make).map_err(|error| error.to_string())
}

fn checked(
    file: &str,
    text: &str,
    settings: &Map<String, Value>,
    prompts: Option<BTreeMap<String, String>>,
    folder: Option<&Path>,
) -> Checked {
    let prompts = prompts.unwrap_or_default();
    let prompt = |directory: &str, key: &str| match (prompts.get(key), folder) {
        (Some(prompt), _) => Ok(prompt.clone()),
        (None, Some(folder)) => {
            let path = folder.join(directory).join(format!("{key}.txt"));
            std::fs::read_to_string(&path)
                .map_err(|error| format!("`{}` cannot be read: {error}", path.display()))
        }
        (None, None) => Err("give it in `prompts`, or the `folder` they are in".to_owned()),
    };
    let options = ReadOptions {
        settings,
        model: None,
        prompt: &prompt,
        measures: &Known,
    };
    overlock_pipeline::read(file, text, &options)
}

/// What is built in is known of models.
struct Known;

impl Measures for Known {
    fn measure(&self, model: &str, text: &str) -> Option<Measure> {
        let found = Models::default().find(model);
        let counter = Counter::for_model(&found);
        Some(Measure {
            window: found.model.window,
            is_shared: found.model.sharing == Sharing::Shared,
            tokens: counter.tokens.count(text),
            margin: counter.provenance.margin(),
        })
    }

    fn is_counter(&self, name: &str) -> bool {
        name == Approximate.name() || Encoding::from_name(name).is_some()
    }
}

/// A Python callable that speaks for every model.
struct Voice {
    call: Py<PyAny>,
    /// What it raised last.
    raised: Mutex<Option<PyErr>>,
}

impl overlock_pipeline::Models for Voice {
    fn speaker(&self, model: &str) -> Result<Speaker<'_>, String> {
        let found = Models::default().find(model);
        Ok(Speaker {
            backend: self,
            counter: ChatCounter::for_model(&found),
            plan: PlanOptions::for_model(&found.model),
            continuation: ContinuationOptions::default(),
        })
    }
}

impl Backend for Voice {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events, BackendError>> {
        let answered = Python::attach(|py| self.ask(py, call.request)).map_err(|error| {
            let reason = error.to_string();
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            let host = "the callable".to_owned();
            BackendError::Unreachable { host, reason }
        });
        let events =
            answered.map(|events| -> Events { Box::pin(stream::iter(events.into_iter().map(Ok))) });
        future::ready(events).boxed()
    }
}

impl Voice {
    fn ask(&self, py: Python<'_>, request: Map<String, Value>) -> PyResult<Vec<Event>> {
        let request = request::object(py, &Value::Object(request))?;
        let answer = self.call.bind(py).call1((request,))?;
        let reply = py
            .import("overlock._replies")?
            .call_method1("reply_of", (answer,))?;
        let (text, tokens): (String, Option<u64>) = reply.extract()?;
        let usage = tokens.map(|output| {
            Event::Usage(Usage {
                input: 0,
                output,
                cached: 0,
            })
        });
        Ok([Some(Event::Text(text)), usage]
            .into_iter()
            .flatten()
            .collect())
    }
}

fn members(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Map<String, Value>> {
    match given {
        Some(given) => read_json(py, given, "settings"),
        None => Ok(Map::new()),
    }
}

fn read_state(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<State> {
    read_json(py, given, "state")
}

/// Something that Python's `json` can write.
fn read_json<T: serde::de::DeserializeOwned>(
    py: Python<'_>,
    given: &Bound<'_, PyAny>,
    what: &str,
) -> PyResult<T> {
    let written: String = py
        .import("json")?
        .call_method1("dumps", (given,))?
        .extract()?;
    serde_json::from_str(&written).map_err(|error| {
        Raise::bad_request("bad-request", format!("`{what}` cannot be used: {error}"))
            .into_error(py)
    })
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
