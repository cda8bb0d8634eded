//! Pipelines: checked before they run, and run with any Python callable as the model.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
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
    Checked, Embed, Measure, Measures, ReadOptions, RepositoryError, Severity, Speaker, World,
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
///
/// A run that is recorded goes on where it was, whatever ended it:
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

    /// Everything that is wrong with a pipeline, and what is doubtful, in the order of the file.
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
                problem.render(file, &text),
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
    /// `embed` makes vectors of texts for searches by meaning, as for `index`.
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
        let voice = Voice {
            call,
            raised: &raised,
        };
        let id = RunId::new(now(), RandomState::new().build_hasher().finish());
        let ended = py.detach(|| {
            let task = self.begun(&id, state, store.as_deref(), embedder.as_ref())?;
            self.go(task, &voice, embedder.as_ref())
        });
        drop((voice, embedder));
        told(py, &id, ended, raised)
    }

    /// Goes on with a recorded run that failed, was interrupted or killed: no step that was done is
    /// done again, and no answer that was recorded is asked for again. It goes on with the pipeline
    /// that it began with, or with another one, in which something was mended.
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
        let (store, taken) = recorded.map_err(|raise| raise.into_error(py))?;
        let begun = &taken.begun;
        let as_begun;
        let pipeline = if let Some(given) = &pipeline {
            &**given
        } else {
            let (text, settings) = (begun.text.clone(), begun.settings.clone());
            let prompts = Some(begun.prompts.clone());
            as_begun = Self::read(py, text, &begun.file, settings, prompts, None)?;
            &as_begun
        };
        let raised = Raised::default();
        let embed_model = embed_model.or_else(|| {
            let of_run = taken.conditions.embed.clone();
            of_run.filter(|_| embed.is_some())
        });
        let embedder = Embedder::new(py, embed, embed_model, &raised)?;
        let voice = Voice {
            call,
            raised: &raised,
        };
        let ended = py.detach(|| {
            let recording = taken.take_up(&store, &id);
            let recording = recording.map_err(|error| unreadable(&error))?;
            let task = Task {
                store,
                taken,
                recording,
            };
            pipeline.go(task, &voice, embedder.as_ref())
        });
        drop((voice, embedder));
        told(py, &id, ended, raised)
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

/// A run that is about to begin, or to go on.
struct Task {
    store: Arc<dyn Store>,
    taken: PipelineRun,
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

    fn model(&self) -> &str {
        self.read.settings.model.as_deref().unwrap_or_default()
    }

    /// A run that begins.
    fn begun(
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
        let taken = PipelineRun::new(
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
        let recording = taken.begin(&store, id, self.model());
        Ok(Task {
            recording: recording.map_err(|error| store::failed(&error))?,
            store,
            taken,
        })
    }

    /// Runs it from where it is to its end.
    fn go(
        &self,
        task: Task,
        voice: &Voice<'_>,
        embedder: Option<&Embedder<'_>>,
    ) -> Result<EndedPipeline, Raise> {
        let Task {
            store,
            taken,
            mut recording,
        } = task;
        let named = self.read.settings.token_counter.as_deref();
        let counter = named
            .and_then(Counter::built_in)
            .unwrap_or_else(|| Counter::for_model(&Models::default().find(self.model())));
        let world = World {
            store: &*store,
            models: voice,
            embedder: embedder.map(|embedder| embedder as _),
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
            .map_err(|error| Raise::bad_request("runtime", error.to_string()))?;
        let mut unwatched = ();
        let run = overlock_pipeline::run(&self.read, taken, &world, &mut recording, &mut unwatched);
        let ended = runtime.block_on(run);
        ended.map_err(|error| store::failed(&error))
    }
}

/// A recorded run, as far as it has come, and the store that it is in.
fn recorded(id: &RunId, store: &Path) -> Result<(Arc<dyn Store>, PipelineRun), Raise> {
    let store = store::open(&store.to_string_lossy(), Access::Write)?;
    let Some(run) = store.run(id).map_err(|error| store::failed(&error))? else {
        let told = format!("there is no run `{id}` in this store");
        return Err(Raise::bad_request("no-run", told));
    };
    let taken = PipelineRun::read(&run).map_err(|error| unreadable(&error))?;
    Ok((store, taken))
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

/// What became of a run, as Python reads it.
fn told<'py>(
    py: Python<'py>,
    id: &RunId,
    ended: Result<EndedPipeline, Raise>,
    raised: Raised,
) -> PyResult<Bound<'py, PyAny>> {
    let raised = raised.into_last(py).inspect_err(|error| {
        // Whoever interrupts a run may want to go on with it. Older versions have no notes.
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
struct Voice<'a> {
    call: Py<PyAny>,
    raised: &'a Raised,
}

impl overlock_pipeline::Models for Voice<'_> {
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

impl Backend for Voice<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let answered = Python::attach(|py| self.ask(py, call.request));
        let answered = answered.map_err(|error| self.raised.keep("the callable", error));
        let events = answered
            .map(|events| -> Events<'_> { Box::pin(stream::iter(events.into_iter().map(Ok))) });
        future::ready(events).boxed()
    }
}

impl Voice<'_> {
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

/// Something that Python's `json` can write.
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
