//! `overlock complete`: one whole JSON document from a model whose answers are cut.

mod prompt;
mod record;
mod result;
mod schema;
mod show;
mod upstream;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use overlock_budget::{ChatRequest, Found};
use overlock_model::{Continuation, Drive, Reason, complete};
use overlock_store::{RunId, Store};
use tokio::time::Instant;

use super::models::note_unknown;
use super::parse_tokens;
use crate::config::{Asking, Config, ConfigSource, Progress};
use crate::counter::Named;
use crate::ending::{Ending, Failure};
use crate::output::Notes;
use crate::runs;
use record::Recorder;
use result::Finished;
use schema::Schema;

/// Have a model write one whole JSON document
///
/// Asks the model, and asks on for as long as its document is cut, until it is whole: the pieces
/// are joined where they overlap, and nothing is lost or doubled. The document goes to standard
/// output. What happens goes to standard error. If the document cannot be made whole, its valid
/// part is printed, and the reason is told.
///
/// A run is recorded after every answer: one that was killed goes on with --resume, and no answer
/// is paid for twice.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock complete 'List all rivers of Europe as JSON' \\\n      \
    --model llama3.2:3b --upstream http://127.0.0.1:11434/v1 > rivers.json\n\n\
    Exit codes: 0 whole; 1 partial or failed; 2 bad usage or unreadable input.")]
pub(crate) struct Complete {
    /// What to ask; standard input if it is `-`
    #[arg(value_name = "PROMPT", conflicts_with_all = ["file", "resume"])]
    prompt: Option<String>,
    /// Read what to ask from this file: a text, or a chat request in JSON
    #[arg(short, long, value_name = "FILE", conflicts_with = "resume")]
    file: Option<PathBuf>,
    /// The model [default: the one a request names, else `budget.model` of the configuration]
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    model: Option<String>,
    /// Where the model is, up to the version [default: `upstream.url` of the configuration]
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// The environment variable that holds the key [default: `upstream.key_variable`]
    #[arg(long, value_name = "NAME")]
    key_variable: Option<String>,
    /// Hold the document to this JSON Schema, and say where it differs
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The tokens of one answer [default: as requested, else `budget.max_tokens`]
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true,
          conflicts_with = "resume")]
    max_tokens: Option<u64>,
    /// The tokens of all answers together [default: `complete.max_output_tokens`]
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true,
          conflicts_with = "resume")]
    max_output: Option<u64>,
    /// How to ask for the rest [default: `complete.asking`, else auto]
    #[arg(long, value_name = "HOW", value_parser = asking_parser(), conflicts_with = "resume")]
    protocol: Option<Asking>,
    /// Who tells how far it has come: ask the model each time; count in the document what the model
    /// once named; or off [default: `complete.progress`, else ask]
    #[arg(long, value_name = "WHO", value_parser = progress_parser())]
    kpi: Option<Progress>,
    #[command(flatten)]
    named: Named,
    /// Where to record the run [default: `store.url`, else runs.db in the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Go on with a run that has not ended well; `overlock inspect` lists them
    #[arg(long, value_name = "RUN")]
    resume: Option<RunId>,
    /// Write the document to this file
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Answer with one JSON object: the document and how it came about
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// What is asked, of which model, as far as it has come.
struct Task {
    id: RunId,
    model: String,
    request: ChatRequest,
    run: Continuation,
}

impl Complete {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let schema = self.schema.as_deref().map(Schema::read).transpose()?;
        let store = runs::open(self.store.as_deref(), &config)?;
        let task = match &self.resume {
            Some(id) => self.resumed(&store, id)?,
            None => self.begun(&config, &store, schema.as_ref(), &mut notes)?,
        };
        let finished = self.drive(task, &config, &store, &mut notes)?;
        finished.tell(&self, schema.as_ref(), &mut notes)
    }

    /// A run that begins, recorded before anything is asked.
    fn begun(
        &self,
        config: &Config,
        store: &Store,
        schema: Option<&Schema>,
        notes: &mut Notes,
    ) -> Result<Task, Failure> {
        let (model, request) = prompt::read(self, config, schema, notes)?;
        let found = config.models().find(&model);
        let can_prefill = upstream::can_prefill(config, &found);
        let mut complete = config.complete.clone();
        complete.asking = self.protocol.unwrap_or(complete.asking);
        complete.progress = self.kpi.unwrap_or(complete.progress);
        complete.max_output_tokens = self.max_output.or(complete.max_output_tokens);
        if complete.asking == Asking::Prefill && !can_prefill {
            return Err(Failure::Usage {
                message: "this upstream cannot be given the beginning of an answer".into(),
                hint: "leave out --protocol prefill, or say with `upstream.prefill` in \
                       overlock.toml how it is given"
                    .into(),
            });
        }
        if complete.max_output_tokens == Some(0) {
            return Err(Failure::Usage {
                message: "no answer has 0 tokens".into(),
                hint: "give --max-output a number from 1 on, or leave it out".into(),
            });
        }
        let options = complete.options(&found.model, can_prefill);
        let (at, drawn) = (now(), drawn());
        let id = RunId::new(at, drawn);
        runs::begin(store, &id, at, &model, &request, &options)?;
        Ok(Task {
            id,
            model,
            request,
            run: Continuation::new(options),
        })
    }

    /// A recorded run, as far as it has come.
    fn resumed(&self, store: &Store, id: &RunId) -> Result<Task, Failure> {
        let recorded = runs::read(store, id)?;
        let mut options = recorded.options;
        if let Some(progress) = self.kpi {
            options.kpi = progress.kpi();
        }
        let mut run = Continuation::resume(options, &recorded.steps)
            .map_err(|error| Failure::damaged_run(id, &error))?;
        run.try_again();
        Ok(Task {
            id: id.clone(),
            model: recorded.model,
            request: recorded.request,
            run,
        })
    }

    fn drive(
        &self,
        task: Task,
        config: &Config,
        store: &Store,
        notes: &mut Notes,
    ) -> Result<Finished, Failure> {
        let Task {
            id,
            model,
            request,
            mut run,
        } = task;
        let models = config.models();
        let found: Found = models.find(&model);
        note_unknown(&model, &models, notes);
        let (counter, files) = self.named.counter_for(&model, &found, config)?;
        counter.note(notes);
        let template = counter.template(files)?;
        let chat = counter.of_requests(&found, template.as_ref());
        let backend = upstream::backend(self, config, &found)?;
        let plan = config.budget.plan_options(&found.model);
        let begun = std::time::Instant::now();
        let mut recorder = Recorder::new(store, &id, &run);
        recorder.show.begin(&id, &model, &run);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let obstacle = runtime.block_on(async {
            let deadline = config.complete.deadline_seconds;
            let drive = Drive {
                backend: backend.as_ref(),
                request: &request,
                counter: &chat,
                plan: &plan,
                deadline: deadline.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
                most_answer_bytes: MOST_ANSWER_BYTES,
                live: false,
            };
            tokio::select! {
                driven = complete(&mut run, &drive, &mut recorder) => Some(driven),
                _ = tokio::signal::ctrl_c() => None,
            }
        });
        let obstacle = if let Some(driven) = obstacle {
            driven.map_err(|source| Failure::Run { source })?
        } else {
            run.stop(Reason::Cancelled);
            None
        };
        let steps = recorder.into_steps();
        let outcome = run.outcome().cloned();
        if let Some(outcome) = &outcome {
            runs::end(store, &id, now(), outcome)?;
        }
        Ok(Finished {
            id,
            model,
            run,
            steps,
            obstacle,
            took: begun.elapsed(),
        })
    }
}

/// Of one answer no more than this is read.
const MOST_ANSWER_BYTES: usize = 64 << 20;

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let milliseconds = since.unwrap_or_default().as_millis();
    u64::try_from(milliseconds).unwrap_or(u64::MAX)
}

/// A number drawn at random, from the randomness that every hash map begins with.
fn drawn() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

fn progress_parser() -> impl TypedValueParser<Value = Progress> {
    PossibleValuesParser::new(Progress::ALL.map(Progress::name)).map(|name| {
        let mut all = Progress::ALL.into_iter();
        all.find(|progress| progress.name() == name)
            .expect("only these names are possible")
    })
}

fn asking_parser() -> impl TypedValueParser<Value = Asking> {
    PossibleValuesParser::new(Asking::ALL.map(Asking::name)).map(|name| {
        let found = Asking::ALL.into_iter().find(|asking| asking.name() == name);
        found.expect("only these names are possible")
    })
}
