//! Pipeline runs, recorded through a separate store connection, as by another process.
//!
//! The model has a list of replies and gives each one after a permit.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, mem};

use futures_util::future::{self, BoxFuture, FutureExt};
use futures_util::{StreamExt, stream};
use overlock_budget::{ChatCounter, Found, Models as Table, PlanOptions, Provenance};
use overlock_index::{Ignored, IndexOptions, index};
use overlock_llm::{Backend, BackendError, Call, ContinuationOptions, Event, Events, Usage};
use overlock_pipeline::{
    Environment, Measure, Measures, ModelClient, Models, Pipeline, Prompts, ReadOptions, Watch,
    read, run,
};
use overlock_runs::{
    Begun, EndedPipeline, PipelineConditions, PipelineRun, Recording, Role, State, Turn,
};
use overlock_store::{Access, RunId, Store, StoreAddress, open};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, oneshot};

const MODEL: &str = "gpt-4o-mini";

/// A folder with a store and an indexed sample project.
pub(crate) struct Stage {
    folder: TempDir,
    begun: AtomicU64,
}

/// A pipeline run.
#[derive(Clone, Copy)]
pub(crate) struct Play<'a> {
    /// A file among the examples.
    pub(crate) example: &'a str,
    pub(crate) question: &'a str,
    /// The context budget in tokens, if it differs from the file.
    pub(crate) max_context_tokens: Option<u64>,
    /// The model of the first `call_model` step, if it differs from the file.
    pub(crate) first_model: Option<&'a str>,
    /// The chat history.
    pub(crate) history: &'a [&'a str],
    pub(crate) replies: &'a [Reply],
}

/// A reply of the model.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    /// A text; one that ends with `✂` is cut off.
    Says(&'static str),
    /// The same without usage.
    SaysUncounted(&'static str),
    /// An error of the upstream.
    Declines(&'static str),
    Refuses(&'static str),
    /// The upstream is unreachable.
    Unreachable,
}

/// A run in progress.
pub(crate) struct Playing {
    pub(crate) id: RunId,
    /// The messages of every call.
    pub(crate) asked: Arc<Mutex<Vec<Value>>>,
    permits: Arc<Semaphore>,
    stop: oneshot::Sender<Stop>,
    thread: JoinHandle<Option<EndedPipeline>>,
}

/// How a run is stopped.
enum Stop {
    /// It is cancelled, which is recorded.
    CalledOff,
    /// Its process is killed.
    Killed,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let sources = folder.path().join("src");
        fs::create_dir(&sources).expect("a folder for sources");
        for (name, text) in SHOP {
            fs::write(sources.join(name), text).expect("a file");
        }
        let stage = Self {
            folder,
            begun: AtomicU64::new(1),
        };
        let store = stage.store();
        let options = IndexOptions::default();
        index(&*store, "shop", &sources, options, &mut Ignored).expect("it is indexed");
        stage
    }

    /// The store, as each process opens it.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        let file = self.folder.path().join("store.db");
        open(&StoreAddress::Sqlite(file), Access::Create).expect("a store")
    }

    /// Begins a run.
    pub(crate) fn play(&self, play: &Play<'_>) -> Playing {
        let file = examples().join(play.example);
        let mut text = fs::read_to_string(&file).expect("there is such an example");
        if let Some(model) = play.first_model {
            let step = "      action: call_model\n";
            text = text.replacen(step, &format!("{step}      model: {model}\n"), 1);
        }
        let most = play.max_context_tokens.iter();
        let settings: Map<String, Value> = most
            .map(|most| ("max_context_tokens".to_owned(), json!(most)))
            .collect();
        let options = ReadOptions {
            settings: &settings,
            model: None,
            prompt: &|_, key| {
                let path = examples().join("prompts").join(key).with_extension("txt");
                fs::read_to_string(path).map_err(|error| error.to_string())
            },
            measures: &Unmeasured,
        };
        let checked = read(play.example, &text, &options);
        let pipeline = checked.pipeline.expect("the example is right");
        let begun = Begun {
            name: pipeline.name.clone(),
            file: format!("examples/{}", play.example),
            text,
            prompts: checked.prompts,
            settings,
            state: State {
                user_question: play.question.to_owned(),
                history: play.history.iter().map(|text| turn(text)).collect(),
                ..State::default()
            },
        };
        let taken = PipelineRun::new(begun, PipelineConditions::default(), now());
        let id = RunId::new(now(), self.begun.fetch_add(1, Ordering::Relaxed));
        let store = self.store();
        let recording = taken.begin(&store, &id, MODEL).expect("it is recorded");
        start(store, taken, pipeline, recording, play.replies)
    }

    /// Resumes a run.
    pub(crate) fn resume(&self, id: &RunId, replies: &[Reply]) -> Playing {
        let store = self.store();
        let recorded = store.run(id).expect("it can be read").expect("it is there");
        let taken = PipelineRun::read(&recorded).expect("it is a run of a pipeline");
        let begun = &taken.begun;
        let options = ReadOptions {
            settings: &begun.settings,
            model: None,
            prompt: &|_, key| Ok(begun.prompts[key].clone()),
            measures: &Unmeasured,
        };
        let checked = read(&begun.file, &begun.text, &options);
        let pipeline = checked.pipeline.expect("it was right when it began");
        let recording = taken.take_up(&store, id).expect("no process works on it");
        start(store, taken, pipeline, recording, replies)
    }
}

impl Playing {
    /// Lets the model give this many more answers.
    pub(crate) fn release(&self, answers: usize) {
        self.permits.add_permits(answers);
    }

    /// Lets the run finish.
    pub(crate) fn end(self) -> EndedPipeline {
        self.release(1000);
        // Dropping the sender would stop the run.
        let _stop = self.stop;
        self.thread.join().expect("no panic").expect("an end")
    }

    /// Cancels the run.
    pub(crate) fn cancel(self) {
        let _ = self.stop.send(Stop::CalledOff);
        self.thread.join().expect("no panic").expect("an end");
    }

    /// Ends the run as if its process were killed.
    pub(crate) fn kill(self) {
        let _ = self.stop.send(Stop::Killed);
        assert!(self.thread.join().expect("no panic").is_none());
    }
}

fn start(
    store: Arc<dyn Store>,
    taken: PipelineRun,
    pipeline: Pipeline,
    recording: Recording,
    replies: &[Reply],
) -> Playing {
    let (stop, stopped) = oneshot::channel();
    let permits = Arc::new(Semaphore::new(0));
    let asked = Arc::<Mutex<Vec<Value>>>::default();
    let scripted = Scripted {
        replies: Mutex::new(replies.iter().copied().collect()),
        asked: Arc::clone(&asked),
        permits: Arc::clone(&permits),
        found: Table::default().find(MODEL),
    };
    let id = recording.id().clone();
    let thread = thread::spawn(move || {
        let prompts = taken.begun.prompts.clone();
        let play = perform(&*store, taken, &pipeline, &prompts, recording, &scripted);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(play(stopped))
    });
    Playing {
        id,
        asked,
        permits,
        stop,
        thread,
    }
}

/// Runs a pipeline until it ends or is stopped.
fn perform<'a>(
    store: &'a dyn Store,
    taken: PipelineRun,
    pipeline: &'a Pipeline,
    prompts: &'a Prompts,
    mut recording: Recording,
    scripted: &'a Scripted,
) -> impl AsyncFnOnce(oneshot::Receiver<Stop>) -> Option<EndedPipeline> + 'a {
    async move |stopped| {
        let counter = ChatCounter::for_model(&scripted.found);
        let world = Environment {
            store,
            models: scripted,
            embedder: None,
            prompts,
            counter: counter.tokens(),
            counter_name: counter.tokens().name(),
            provenance: Provenance::Exact,
            began_at: taken.began_at,
            clock: &now,
        };
        let nobody: &mut dyn Watch = &mut ();
        let ended = {
            tokio::select! {
                ended = run(pipeline, taken, &world, &mut recording, nobody) => Ok(ended.expect("it is recorded")),
                stop = stopped => Err(stop.expect("it is held until the end")),
            }
        };
        match ended {
            Ok(ended) => Some(ended),
            Err(Stop::Killed) => None,
            Err(Stop::CalledOff) => {
                let ended = recording.cancel(now(), &pipeline.settings.entry_step_id);
                Some(ended.expect("it is recorded"))
            }
        }
    }
}

/// A model with a list of replies, each given after a permit.
struct Scripted {
    replies: Mutex<VecDeque<Reply>>,
    asked: Arc<Mutex<Vec<Value>>>,
    permits: Arc<Semaphore>,
    found: Found,
}

impl Models for Scripted {
    fn client(&self, _model: &str) -> Result<ModelClient<'_>, String> {
        Ok(ModelClient {
            backend: self,
            counter: ChatCounter::for_model(&self.found),
            plan: PlanOptions::for_model(&self.found.model),
            continuation: ContinuationOptions::default(),
        })
    }
}

impl Backend for Scripted {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let messages = call.request["messages"].clone();
        self.asked.lock().expect("no panic").push(messages);
        async {
            mem::forget(self.permits.acquire().await.expect("it is never closed"));
            let reply = self.replies.lock().expect("no panic").pop_front();
            match reply.expect("there is an answer for every call") {
                Reply::Refuses(message) => Err(BackendError::Status {
                    host: "127.0.0.1".to_owned(),
                    status: 401,
                    message: message.to_owned(),
                    retry_after: None,
                    size: None,
                }),
                Reply::Unreachable => Err(BackendError::Unreachable {
                    host: "127.0.0.1".to_owned(),
                    reason: "Connection refused".to_owned(),
                }),
                Reply::Says(text) => Ok(text_events(text)),
                Reply::Declines(text) => {
                    let end = Event::Finish("stop".to_owned());
                    let events = [Event::Refusal(text.to_owned()), end];
                    Ok(stream::iter(events.map(Ok)).boxed())
                }
                Reply::SaysUncounted(text) => {
                    let events = text_events(text);
                    let reported = |event: &Result<Event, BackendError>| {
                        future::ready(!matches!(event, Ok(Event::Usage(_))))
                    };
                    Ok(events.filter(reported).boxed())
                }
            }
        }
        .boxed()
    }
}

fn text_events(text: &str) -> Events<'static> {
    let (text, finish) = match text.strip_suffix('✂') {
        Some(cut) => (cut, "length"),
        None => (text, "stop"),
    };
    let usage = Usage {
        input: 400,
        output: text.split_whitespace().count() as u64,
        cached: None,
    };
    let events = [
        Event::Text(text.to_owned()),
        Event::Finish(finish.to_owned()),
        Event::Usage(usage),
    ];
    stream::iter(events.map(Ok)).boxed()
}

/// No measures.
struct Unmeasured;

impl Measures for Unmeasured {
    fn measure(&self, _model: &str, _text: &str) -> Option<Measure> {
        None
    }

    fn is_counter(&self, _name: &str) -> bool {
        true
    }
}

fn turn(text: &str) -> Turn {
    Turn {
        role: Role::User,
        name: None,
        content: text.to_owned(),
    }
}

/// The folder of examples of this repository.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.expect("it is later").as_millis()).expect("not that late")
}

const SHOP: [(&str, &str); 3] = [
    (
        "Orders.cs",
        "namespace Shop;\n\n/// <summary>Keeps orders.</summary>\nclass Orders(Log log)\n{\n    \
         // An order that is closed stays closed, whatever else happens to it later on.\n    \
         public void Close(int id)\n    {\n        log.Note(id);\n        \
         Run(\"UPDATE dbo.Orders SET Closed = 1\");\n    }\n}\n",
    ),
    (
        "Log.cs",
        "namespace Shop;\nclass Log\n{\n    public void Note(int id) { }\n}\n",
    ),
    (
        "orders.sql",
        "-- All orders that there ever were, closed or not.\nCREATE TABLE dbo.Orders (\n    \
         Id int PRIMARY KEY, -- its number\n    Closed bit NOT NULL -- whether it is closed\n)\nGO\n\
         CREATE PROCEDURE dbo.CloseOrder @Id int AS\nBEGIN\n    -- Closing is for ever.\n    \
         UPDATE dbo.Orders SET Closed = 1 WHERE Id = @Id\nEND\nGO\n",
    ),
];
