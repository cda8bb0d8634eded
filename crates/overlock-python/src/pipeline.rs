//! Pipelines, checked and run with any Python callable as the model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, future, stream};
use overlock_budget::{
    Approximate, ChatCounter, CountTokens, Encoding, Models, PlanOptions, Sharing,
};
use overlock_llm::{Backend, BackendError, Call, ContinuationOptions, Event, Events, Usage};
use overlock_pipeline::{
    Checked, Embed, Environment, Measure, Measures, ModelClient, ReadOptions, RepositoryError,
    Severity,
};
use overlock_runs::{
    Begun, EndedPipeline, PipelineConditions, PipelineOutcome, PipelineRun, Recording, RunsError,
    State,
};
use overlock_store::{Access, RunId, RunIdError, Store};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value};

use crate::count::count;
use crate::embedder::Embedder;
use crate::error::Raise;
use crate::raised::{Raised, callable};
use crate::request;
use crate::result::make;
use crate::store;
use crate::tokens::Counter;
use crate::utf8::Utf8;

/// A pipeline, defined by a YAML file of steps.
///
/// A file with errors raises `BadPipeline` with all of them; `Pipeline.check` returns them instead.
/// The model is any callable, as for `complete`.
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
///
/// A recorded run can be resumed after any failure or interruption:
///
///     >>> import pathlib, tempfile
///     >>> store = pathlib.Path(tempfile.mkdtemp()) / "runs.db"
///     >>> def unreachable(request):
///     ...     raise ConnectionError("gone")
///     >>> run = pipeline.run(unreachable, "What is it?", store=store)
///     >>> run.outcome, run.exception
///     ('failed', ConnectionError('gone'))
///     >>> overlock.Pipeline.resume(lambda request: "Forty-two.", run.run, store=store).answer
///     'Forty-two.'
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
        Self::read(py, text, file, settings, prompts, folder.as_deref())
    }

    /// All errors and warnings of a pipeline, in the order of the file.
    #[staticmethod]
    #[pyo3(signature = (text, *, file = "pipeline.yaml", settings = None, prompts = None,
                        folder = None))]
    fn check<'py>(
        py: Python<'py>,
        text: Utf8,
        file: &str,
        settings: Option<&Bound<'py, PyAny>>,
        prompts: Option<BTreeMap<String, String>>,
        folder: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyList>> {
        let settings = members(py, settings)?;
        let checked = py.detach(|| checked(file, &text, &settings, prompts, folder.as_deref()));
        let problems = PyList::empty(py);
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
                problem.render(file, &text),
            );
            problems.append(make(py, "Problem", fields)?)?;
        }
        Ok(problems)
    }

    /// The name of the pipeline.
    #[getter]
    fn name(&self) -> &str {
        &self.read.name
    }

    /// The ids of the steps.
    #[getter]
    fn steps(&self) -> Vec<&str> {
        self.read.steps.iter().map(|step| &*step.id).collect()
    }

    /// The steps as a Mermaid graph.
    fn graph(&self) -> String {
        overlock_pipeline::graph(&self.read)
    }

    /// Runs the pipeline with a callable as the model. `store` is a file, `sqlite://FILE` or
    /// `postgres://…`; without one nothing is stored. `state` is the initial state. `embed`
    /// computes vectors for semantic search, as in `index`.
    #[pyo3(signature = (call, question = "", *, store = None, state = None, session_id = None,
                        repository = None, embed = None, embed_model = None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        call: Py<PyAny>,
        question: &str,
        store: Option<PathBuf>,
        state: Option<&Bound<'py, PyAny>>,
        session_id: Option<String>,
        repository: Option<String>,
        embed: Option<Py<PyAny>>,
        embed_model: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        callable("call", call.bind(py))?;
        let mut state = match state {
            Some(state) => read_state(py, state)?,
            None => State::default(),
        };
        if !question.is_empty() {
            question.clone_into(&mut state.user_question);
        }
        state.session_id = session_id.or(state.session_id);
        state.repository = repository.or(state.repository);
        let raised = Raised::default();
        let embedder = Embedder::new(py, embed, embed_model, &raised)?;
        let model = CallableModel {
            call,
            raised: &raised,
        };
        let id = RunId::now();
        let ended = py.detach(|| {
            let task = self.new_run(&id, state, store.as_deref(), embedder.as_ref())?;
            self.execute(task, &model, embedder.as_ref())
        });
        drop((model, embedder));
        run_object(py, &id, ended, raised)
    }

    /// Resumes a recorded run that failed, was interrupted or killed. Finished steps and recorded
    /// answers are not repeated. The run continues with its own pipeline, or with a corrected one
    /// passed as `pipeline`.
    #[staticmethod]
    #[pyo3(signature = (call, run, *, store, pipeline = None, embed = None, embed_model = None))]
    fn resume<'py>(
        py: Python<'py>,
        call: Py<PyAny>,
        run: &str,
        store: PathBuf,
        pipeline: Option<PyRef<'py, Self>>,
        embed: Option<Py<PyAny>>,
        embed_model: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        callable("call", call.bind(py))?;
        let id: RunId = run.parse().map_err(|error: RunIdError| {
            Raise::bad_request("no-run", error.to_string()).into_error(py)
        })?;
        let recorded = py.detach(|| recorded(&id, &store));
        let (store, run_so_far) = recorded.map_err(|raise| raise.into_error(py))?;
        let begun = &run_so_far.begun;
        let own;
        let pipeline = if let Some(given) = &pipeline {
            &**given
        } else {
            let (text, settings) = (begun.text.clone(), begun.settings.clone());
            let prompts = Some(begun.prompts.clone());
            own = Self::read(py, text, &begun.file, settings, prompts, None)?;
            &own
        };
        let raised = Raised::default();
        let embed_model = embed_model.or_else(|| {
            let of_run = run_so_far.conditions.embed.clone();
            of_run.filter(|_| embed.is_some())
        });
        let embedder = Embedder::new(py, embed, embed_model, &raised)?;
        let model = CallableModel {
            call,
            raised: &raised,
        };
        let ended = py.detach(|| {
            let recording = run_so_far.take_up(&store, &id);
            let recording = recording.map_err(|error| unreadable(&error))?;
            let task = Task {
                store,
                run_so_far,
                recording,
            };
            pipeline.execute(task, &model, embedder.as_ref())
        });
        drop((model, embedder));
        run_object(py, &id, ended, raised)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((&str,), Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        options.set_item("file", &self.file)?;
        options.set_item("settings", request::object(py, &self.settings)?)?;
        options.set_item("prompts", &self.prompts)?;
        Ok(((&self.text,), options))
    }

    fn __repr__(&self) -> String {
        let (name, steps) = (&self.read.name, self.read.steps.len());
        format!("<overlock.Pipeline {name:?}, {steps} steps>")
    }
}

/// A new or resumed run.
struct Task {
    store: Arc<dyn Store>,
    run_so_far: PipelineRun,
    recording: Recording,
}

impl Pipeline {
    fn read(
        py: Python<'_>,
        text: String,
        file: &str,
        settings: Map<String, Value>,
        prompts: Option<BTreeMap<String, String>>,
        folder: Option<&Path>,
    ) -> PyResult<Self> {
        let checked = py.detach(|| checked(file, &text, &settings, prompts, folder));
        let Some(read) = checked.pipeline else {
            let errors = checked.problems.iter();
            let errors = errors.filter(|problem| problem.severity == Severity::Error);
            let messages: Vec<_> = errors.map(|problem| problem.render(file, &text)).collect();
            let raise = Raise::new("BadPipeline", "bad-pipeline", messages.join("\n"));
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

    fn model(&self) -> &str {
        self.read.settings.model.as_deref().unwrap_or_default()
    }

    /// Starts a run.
    fn new_run(
        &self,
        id: &RunId,
        state: State,
        store: Option<&Path>,
        embedder: Option<&Embedder<'_>>,
    ) -> Result<Task, Raise> {
        let store = match store {
            Some(address) => store::open(&address.to_string_lossy(), self.read.store_access())?,
            None => overlock_store::in_memory().map_err(|error| store::failed(&error))?,
        };
        let searchable = self.read.check_repositories(&state, &*store);
        searchable.map_err(|error| unsearchable(&error))?;
        let run_so_far = PipelineRun::new(
            Begun {
                name: self.read.name.clone(),
                file: self.file.clone(),
                text: self.text.clone(),
                prompts: self.prompts.clone(),
                settings: self.settings.clone(),
                state,
            },
            PipelineConditions {
                upstream: None,
                embed: embedder.map(|embedder| embedder.model().to_owned()),
            },
            now(),
        );
        let recording = run_so_far.begin(&store, id, self.model());
        Ok(Task {
            recording: recording.map_err(|error| store::failed(&error))?,
            store,
            run_so_far,
        })
    }

    /// Runs a task to its end.
    fn execute(
        &self,
        task: Task,
        model: &CallableModel<'_>,
        embedder: Option<&Embedder<'_>>,
    ) -> Result<EndedPipeline, Raise> {
        let Task {
            store,
            run_so_far,
            mut recording,
        } = task;
        let named = self.read.settings.token_counter.as_deref();
        let counter = named
            .and_then(Counter::built_in)
            .unwrap_or_else(|| Counter::for_model(&Models::default().find(self.model())));
        let world = Environment {
            store: &*store,
            models: model,
            embedder: embedder.map(|embedder| embedder as _),
            prompts: &self.prompts,
            counter: counter.tokens.as_ref(),
            counter_name: counter.tokens.name(),
            provenance: counter.provenance,
            began_at: run_so_far.began_at,
            clock: &now,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Raise::bad_request("runtime", error.to_string()))?;
        let mut observer = ();
        let run = overlock_pipeline::run(
            &self.read,
            run_so_far,
            &world,
            &mut recording,
            &mut observer,
        );
        let ended = runtime.block_on(run);
        ended.map_err(|error| store::failed(&error))
    }
}

/// A recorded run and its store.
fn recorded(id: &RunId, store: &Path) -> Result<(Arc<dyn Store>, PipelineRun), Raise> {
    let store = store::open(&store.to_string_lossy(), Access::Write)?;
    let Some(run) = store.run(id).map_err(|error| store::failed(&error))? else {
        let message = format!("there is no run `{id}` in this store");
        return Err(Raise::bad_request("no-run", message));
    };
    let run_so_far = PipelineRun::read(&run).map_err(|error| unreadable(&error))?;
    Ok((store, run_so_far))
}

fn unreadable(error: &RunsError) -> Raise {
    let code = match error {
        RunsError::Store(_) => "store",
        RunsError::Busy { .. } => "busy",
        _ => "bad-run",
    };
    Raise::bad_request(code, error.to_string())
}

fn unsearchable(error: &RepositoryError) -> Raise {
    let code = match error {
        RepositoryError::Store(_) => "store",
        RepositoryError::Unknown { .. } | RepositoryError::Empty => "no-repository",
    };
    let help = error.hint().into_iter().collect();
    Raise::bad_request(code, error.to_string()).with_help(help)
}

/// A finished run as a Python object.
fn run_object<'py>(
    py: Python<'py>,
    id: &RunId,
    ended: Result<EndedPipeline, Raise>,
    raised: Raised,
) -> PyResult<Bound<'py, PyAny>> {
    let raised = raised.into_last(py).inspect_err(|error| {
        // The note helps to resume an interrupted run. Python before 3.11 has no notes.
        let note = format!("the run of the pipeline is `{id}`");
        let _ = error.value(py).call_method1("add_note", (note,));
    })?;
    let ended = ended.map_err(|raise| raise.into_error(py))?;
    let (step_id, error, hint) = match &ended.outcome {
        PipelineOutcome::Complete => (None, None, None),
        PipelineOutcome::Failed {
            step_id,
            error,
            hint,
        } => (Some(step_id), Some(error), hint.as_ref()),
        PipelineOutcome::Cancelled { step_id } => (Some(step_id), None, None),
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
        (None, None) => Err("pass it in `prompts`, or pass its `folder`".to_owned()),
    };
    let options = ReadOptions {
        settings,
        model: None,
        prompt: &prompt,
        measures: &Known,
    };
    overlock_pipeline::read(file, text, &options)
}

/// The windows and counters of the built-in models.
struct Known;

impl Measures for Known {
    fn measure(&self, model: &str, text: &str) -> Option<Measure> {
        let found = Models::default().find(model);
        let counter = Counter::for_model(&found);
        let tokens = counter.tokens.count(text);
        Some(Measure {
            window: found.model.window,
            is_shared: found.model.sharing == Sharing::Shared,
            tokens,
            margin: counter.provenance.margin(tokens),
        })
    }

    fn is_counter(&self, name: &str) -> bool {
        name == Approximate.name() || Encoding::from_name(name).is_some()
    }
}

/// A Python callable that answers for every model.
struct CallableModel<'a> {
    call: Py<PyAny>,
    raised: &'a Raised,
}

impl overlock_pipeline::Models for CallableModel<'_> {
    fn client(&self, model: &str) -> Result<ModelClient<'_>, String> {
        let found = Models::default().find(model);
        Ok(ModelClient {
            backend: self,
            counter: ChatCounter::for_model(&found),
            plan: PlanOptions::for_model(&found.model),
            continuation: ContinuationOptions::default(),
        })
    }
}

impl Backend for CallableModel<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let answered = Python::attach(|py| self.ask(py, call.request));
        let answered = answered.map_err(|error| self.raised.keep("the callable", error));
        let events = answered
            .map(|events| -> Events<'_> { Box::pin(stream::iter(events.into_iter().map(Ok))) });
        future::ready(events).boxed()
    }
}

impl CallableModel<'_> {
    fn ask(&self, py: Python<'_>, request: Map<String, Value>) -> PyResult<Vec<Event>> {
        let request = request::object(py, &Value::Object(request))?;
        let answer = self.call.bind(py).call1((request,))?;
        let reply = py
            .import("overlock._replies")?
            .call_method1("reply_of", (answer,))?;
        let text: Utf8 = reply.getattr("text")?.extract()?;
        let tokens: Option<u64> = count(&reply.getattr("tokens")?)?;
        let usage = tokens.map(|output| {
            Event::Usage(Usage {
                input: 0,
                output,
                cached: None,
            })
        });
        Ok([Some(Event::Text(text.to_owned())), usage]
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

/// Reads an argument that Python's `json` can serialize.
fn read_json<T: serde::de::DeserializeOwned>(
    py: Python<'_>,
    given: &Bound<'_, PyAny>,
    what: &str,
) -> PyResult<T> {
    let written: Utf8 = py
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
