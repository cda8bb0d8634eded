//! `overlock complete`: one whole JSON document from a model whose answers are cut.

mod interrupt;
mod prompt;
mod record;
mod result;
mod schema;
mod show;
mod target;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{Continuation, Deadline, Drive, DriveError, Reason, complete};
use overlock_runs::{Conditions, quoted};
use overlock_store::{Access, Claim, RunId, Store, Work};
use tokio::time::Instant;

use super::models::note_unknown;
use super::parse_tokens;
use crate::config::{Config, ConfigSource, Progress, StrategySetting};
use crate::counter::Named;
use crate::ending::{Ending, Failure, chain};
use crate::output::Notes;
use crate::runs;
use crate::strategies::{self, ServerModel};
use crate::upstream::{self, Connection, UpstreamSource};
use interrupt::{Interrupt, Interruptible};
use record::Recorder;
use result::Finished;
use schema::Schema;
use target::Target;

/// Have a model write one whole JSON document
///
/// Asks the model, and asks on for as long as its document is cut, until it is whole: the pieces
/// are joined where they overlap, and nothing is lost or doubled. The document goes to standard
/// output. What happens goes to standard error. If the document cannot be made whole, its valid
/// part is printed, and the reason is told.
///
/// A run is recorded after every answer: one that was killed or called off with Ctrl-C goes on with
/// --resume, and no answer that was recorded is paid for twice.
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
    #[command(flatten)]
    upstream: UpstreamSource,
    /// Hold the document to this JSON Schema, and say where it differs [default: the one it was
    /// begun with, for --resume]
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The tokens of one answer [default: as requested, else `budget.max_tokens`]
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true,
          conflicts_with = "resume")]
    max_tokens: Option<u64>,
    /// The tokens of all answers together [default: `complete.max_output_tokens`]
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true)]
    max_output: Option<u64>,
    /// Continuation strategy [default: `complete.strategy`, else auto]
    #[arg(long, value_name = "NAME", value_parser = strategy_parser(), conflicts_with = "resume")]
    strategy: Option<StrategySetting>,
    /// Who tells how far it has come: ask the model each time; count in the document what the model
    /// once named; or off [default: `complete.progress`, else ask]
    #[arg(long, value_name = "WHO", value_parser = progress_parser())]
    kpi: Option<Progress>,
    #[command(flatten)]
    named: Named,
    /// Where to record the run, `sqlite://FILE` or `postgres://…` [default: `store.url`, else
    /// runs.db in the user's data folder]
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
    conditions: Conditions,
    /// Where it is recorded, if it is already.
    store: Option<Arc<dyn Store>>,
}

/// A run that this process may write to.
struct Claimed {
    store: Arc<dyn Store>,
    claim: Claim,
    /// Whoever looks at the run sees that somebody works on it, and when nobody does any more.
    _work: Option<Work>,
}

impl Complete {
    /// The command that goes on with a run, reached and recorded as this one was; with another
    /// measure of its progress, if one is named.
    fn resuming(&self, id: &RunId, kpi: Option<Progress>) -> String {
        let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--kpi", kpi.map(|kpi| kpi.name().to_owned())),
            ("--upstream", self.upstream.upstream.clone()),
            ("--key-variable", self.upstream.key_variable.clone()),
            ("--encoding", self.named.encoding.clone()),
            ("--tokenizer", text(&self.named.tokenizer)),
            ("--store", self.store.as_deref().map(runs::shown_address)),
            ("--config", text(&self.config.config)),
            ("--output", text(&self.output)),
        ];
        let mut command = format!("overlock complete --resume {id}");
        for (flag, value) in flags {
            if let Some(value) = value {
                command = format!("{command} {flag} {}", quoted(&value));
            }
        }
        command
    }

    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let target = self.output.as_deref().map(Target::find).transpose()?;
        let schema = self.schema.as_deref().map(Schema::read).transpose()?;
        let task = match &self.resume {
            Some(id) => self.resumed(id, &config)?,
            None => self.begun(&config, schema.as_ref(), &mut notes)?,
        };
        let schema = match (schema, &task.conditions.schema) {
            (None, Some(recorded)) => Some(Schema::recorded(&task.id, recorded.clone())?),
            (schema, _) => schema,
        };
        let finished = if task.run.outcome().is_some() {
            Finished::before(task.id, task.model, task.run)
        } else {
            self.drive(task, &config, &mut notes)?
        };
        finished.tell(&self, schema.as_ref(), target.as_ref(), &mut notes)
    }

    /// The continuation strategy.
    fn strategy(&self, config: &Config) -> StrategySetting {
        self.strategy.unwrap_or(config.complete.strategy)
    }

    /// A run that begins.
    fn begun(
        &self,
        config: &Config,
        schema: Option<&Schema>,
        notes: &mut Notes,
    ) -> Result<Task, Failure> {
        let address = upstream::address(&self.upstream, config, None)?;
        let (model, request) = prompt::read(self, config, schema, notes)?;
        let Connection { can_prefill, .. } = Connection::open(&address, config, &model)?;
        let mut complete = config.complete.clone();
        complete.strategy = self.strategy(config);
        complete.progress = self.kpi.unwrap_or(complete.progress);
        complete.max_output_tokens = self.max_output.or(complete.max_output_tokens);
        if complete.strategy == StrategySetting::Prefill && !can_prefill {
            return Err(Failure::Usage {
                message: "this upstream cannot be given the beginning of an answer".into(),
                hint: "leave out --strategy prefill, or say with `upstream.prefill` in \
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
        let options = complete.options(can_prefill);
        let id = runs::new_id();
        Ok(Task {
            model,
            request,
            run: Continuation::new(options),
            conditions: Conditions {
                upstream: address.recordable(),
                schema: schema.map(|schema| schema.value().clone()),
                is_held: false,
                worker: Some(id.to_string()),
            },
            id,
            store: None,
        })
    }

    /// A recorded run, as far as it has come.
    fn resumed(&self, id: &RunId, config: &Config) -> Result<Task, Failure> {
        let store = runs::open(self.store.as_deref(), config, Access::Write)?;
        let recorded = runs::read(&*store, id)?;
        let request = runs::request(&recorded)?;
        let mut options = config.complete.raised(recorded.options, self.max_output);
        if let Some(progress) = self.kpi {
            options.kpi = progress.kpi();
        }
        let steps = recorded.steps.iter().map(|recorded| &recorded.step);
        let mut run = Continuation::resume(options, steps)
            .map_err(|error| Failure::damaged_run(id, &error))?;
        run.try_again();
        Ok(Task {
            id: id.clone(),
            model: recorded.summary.model,
            request,
            run,
            conditions: recorded.conditions,
            store: Some(store),
        })
    }

    /// Records that the run begins, or claims it, once nothing else stands in the way.
    fn recorded(&self, task: &mut Task, config: &Config, server: &str) -> Result<Claimed, Failure> {
        let id = &task.id;
        let work_on = |store: &dyn Store| store.work_on(id).ok().flatten();
        if let Some(store) = task.store.take() {
            let work = work_on(&*store);
            let claim = runs::take_up(&*store, id, task.run.iterations())?;
            return Ok(Claimed {
                store,
                claim,
                _work: work,
            });
        }
        let store = runs::open(self.store.as_deref(), config, Access::Make)?;
        let work = work_on(&*store);
        let (model, request) = (&task.model, &task.request);
        if self.strategy(config) == StrategySetting::Auto {
            let mut options = task.run.options().clone();
            options.ways = strategies::order(&*store, ServerModel { server, model }, &options.ways);
            task.run = Continuation::new(options);
        }
        let options = task.run.options();
        let claim = runs::begin(&*store, id, model, request, options, &task.conditions)?;
        Ok(Claimed {
            store,
            claim,
            _work: work,
        })
    }

    fn drive(
        &self,
        mut task: Task,
        config: &Config,
        notes: &mut Notes,
    ) -> Result<Finished, Failure> {
        let address =
            upstream::address(&self.upstream, config, task.conditions.upstream.as_deref())?;
        let Connection {
            found,
            backend,
            server,
            ..
        } = Connection::open(&address, config, &task.model)?;
        note_unknown(&task.model, &config.models(), notes);
        let (counter, files) = self.named.counter_for(&task.model, &found, config)?;
        counter.note(notes);
        let template = counter.template(files)?;
        let chat = counter.of_requests(&found, template.as_ref());
        let interrupt = Interrupt::new();
        let backend = Interruptible {
            backend,
            interrupt: interrupt.clone(),
        };
        let plan = config.budget.plan_options(&found.model);
        let claimed = self.recorded(&mut task, config, &server)?;
        let Claimed { store, claim, .. } = &claimed;
        let Task {
            id,
            model,
            request,
            mut run,
            ..
        } = task;
        let begun = std::time::Instant::now();
        let mut recorder = Recorder::new(&**store, claim, &found, interrupt.clone());
        recorder.show.begin(&id, &model, &run);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let driven = runtime.block_on(async {
            let deadline = config.complete.deadline();
            let deadline = deadline.and_then(|after| Instant::now().checked_add(after));
            let drive = Drive {
                backend: &backend,
                request: &request,
                counter: &chat,
                plan: &plan,
                deadline: deadline.as_ref().map(|it| it as &dyn Deadline),
                most_answer_bytes: runs::MOST_ANSWER_BYTES,
                live: false,
            };
            tokio::select! {
                biased;
                driven = complete(&mut run, &drive, &mut recorder) => Some(driven),
                () = interrupt.stopped() => None,
            }
        });
        recorder.show.end();
        if let Some(results) = recorder.learnt.take() {
            let (server, model) = (server.as_str(), model.as_str());
            strategies::add(&**store, ServerModel { server, model }, &results);
        }
        let steps = recorder.into_steps();
        let (obstacle, mut unrecorded) = match driven {
            Some(Ok(obstacle)) => (obstacle, None),
            Some(Err(DriveError::Observe(error))) => (None, Some(chain(error.as_ref()))),
            Some(Err(source)) => return Err(Failure::Run { source }),
            None => (None, None),
        };
        // What has come is told, whatever became of the rest.
        run.stop(Reason::Cancelled);
        if let (Some(outcome), None) = (run.outcome(), &unrecorded) {
            let ended = runs::end(&**store, claim, outcome, obstacle.as_ref());
            unrecorded = ended.err().map(|error| chain(&error));
        }
        Ok(Finished {
            id,
            model,
            run,
            steps,
            address: Some(address),
            obstacle,
            unrecorded,
            took: Some(begun.elapsed()),
        })
    }
}

fn progress_parser() -> impl TypedValueParser<Value = Progress> {
    PossibleValuesParser::new(Progress::ALL.map(Progress::name)).map(|name| {
        let mut all = Progress::ALL.into_iter();
        all.find(|progress| progress.name() == name)
            .expect("only these names are possible")
    })
}

fn strategy_parser() -> impl TypedValueParser<Value = StrategySetting> {
    PossibleValuesParser::new(StrategySetting::ALL.map(StrategySetting::name)).map(|name| {
        let found = StrategySetting::ALL
            .into_iter()
            .find(|strategy| strategy.name() == name);
        found.expect("only these names are possible")
    })
}
