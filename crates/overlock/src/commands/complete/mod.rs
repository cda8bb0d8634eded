//! `overlock complete`: gets one complete JSON document from a model whose answers are cut.

mod interrupt;
mod progress;
mod prompt;
mod record;
mod result;
mod schema;
mod target;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use overlock_budget::{Model, PlanOptions, Request, WindowSource};
use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{Continuation, Deadline, Drive, DriveError, Reason, StopCause, complete};
use overlock_runs::{Conditions, quoted};
use overlock_store::{Access, Claim, RunId, Store, Work};
use tokio::time::Instant;

use super::models::note_unknown;
use super::{choice_parser, parse_tokens};
use crate::config::{Api, Config, ConfigSource, ProgressSetting, StrategySetting};
use crate::counter::EncodingArgs;
use crate::ending::{Ending, Failure, error_chain};
use crate::output::Notes;
use crate::runs;
use crate::strategies::{self, ServerModel};
use crate::upstream::{self, Connection, UpstreamSource};
use interrupt::{Interrupt, Interruptible};
use record::Recorder;
use result::Finished;
use schema::DocumentSchema;
use target::Target;

/// Get one complete JSON document from a model
///
/// Calls the model again while its document is cut, and joins the answers where they overlap. The
/// document goes to standard output, progress to standard error. If the document cannot be
/// completed, its valid part is printed with the reason.
///
/// Every answer is recorded. --resume continues a run that was killed or cancelled with Ctrl-C, and
/// repeats no recorded call.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock complete 'List all rivers of Europe as JSON' \\\n      \
    --model llama3.2:3b --upstream http://127.0.0.1:11434/v1 > rivers.json\n\n\
    Exit codes: 0 complete; 1 partial or failed; 2 bad usage or unreadable input.")]
pub(crate) struct Complete {
    /// The prompt; `-` reads standard input
    #[arg(value_name = "PROMPT", conflicts_with_all = ["file", "resume"])]
    prompt: Option<String>,
    /// Read the prompt from this file: text, or a chat request as JSON
    #[arg(short, long, value_name = "FILE", conflicts_with = "resume")]
    file: Option<PathBuf>,
    /// The model [default: the model of the request, else `budget.model` of the configuration]
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    model: Option<String>,
    #[command(flatten)]
    upstream: UpstreamSource,
    /// Require this JSON Schema, and list violations [default with --resume: the recorded schema]
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Answer tokens of one call [default: as in the request, else `budget.max_tokens`]
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true,
          conflicts_with = "resume")]
    max_tokens: Option<u64>,
    /// Answer tokens of all calls together [default: `complete.max_output_tokens`]
    #[arg(long, value_name = "N", value_parser = parse_tokens, allow_negative_numbers = true)]
    max_output: Option<u64>,
    /// The continuation strategy [default: `complete.strategy`, else auto]
    #[arg(long, value_name = "NAME", value_parser = choice_parser(StrategySetting::ALL, StrategySetting::name), conflicts_with = "resume")]
    strategy: Option<StrategySetting>,
    /// How progress is measured: `ask` the model for a percentage in every answer, or count in the
    /// document what the model names once (`measured`) [default: `complete.progress`, else ask]
    #[arg(long, value_name = "HOW", value_parser = choice_parser(ProgressSetting::ALL, ProgressSetting::name))]
    kpi: Option<ProgressSetting>,
    #[command(flatten)]
    encoding: EncodingArgs,
    /// The store for runs, `sqlite://FILE` or `postgres://…` [default: `store.url`, else runs.db in
    /// the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Resume an unfinished run; `overlock inspect` lists the runs
    #[arg(long, value_name = "RUN")]
    resume: Option<RunId>,
    /// Write the document to this file
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Print one JSON object: the document, the outcome and every step
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// A new or resumed run.
struct CompleteTask {
    id: RunId,
    model: String,
    request: ChatRequest,
    run: Continuation,
    conditions: Conditions,
    /// The store, if the run is recorded already.
    store: Option<Arc<dyn Store>>,
}

/// A run that this process may write to.
struct Claimed {
    store: Arc<dyn Store>,
    claim: Claim,
    /// Marks the run as in progress until this process ends.
    _work: Option<Work>,
}

impl Claimed {
    /// Ends a run, and records its end. Returns what stopped it, and why it could not be recorded.
    fn end(
        &self,
        run: &mut Continuation,
        driven: Option<Result<Option<StopCause>, DriveError>>,
    ) -> Result<(Option<StopCause>, Option<String>), Failure> {
        let (stop_cause, unrecorded) = match driven {
            Some(Ok(stop_cause)) => (stop_cause, None),
            Some(Err(DriveError::Observe(error))) => (None, Some(error_chain(error.as_ref()))),
            Some(Err(source)) => return Err(Failure::Run { source }),
            None => (None, None),
        };
        // Ends a run that was interrupted or could not be recorded; others have ended.
        run.stop(Reason::Cancelled);
        if let (Some(outcome), None) = (run.outcome(), &unrecorded) {
            let ended = runs::end(&*self.store, &self.claim, outcome, stop_cause.as_ref());
            return Ok((stop_cause, ended.err().map(|error| error_chain(&error))));
        }
        Ok((stop_cause, unrecorded))
    }
}

impl Complete {
    /// The command that resumes a run with the same server and store, and with another measure of
    /// progress if one is given.
    fn resume_command(&self, id: &RunId, kpi: Option<ProgressSetting>) -> String {
        let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--kpi", kpi.map(|kpi| kpi.name().to_owned())),
            ("--upstream", self.upstream.upstream.clone()),
            ("--key-variable", self.upstream.key_variable.clone()),
            ("--encoding", self.encoding.encoding.clone()),
            ("--tokenizer", text(&self.encoding.tokenizer)),
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
        let schema = self
            .schema
            .as_deref()
            .map(DocumentSchema::read)
            .transpose()?;
        let task = match &self.resume {
            Some(id) => self.resumed_task(id, &config)?,
            None => self.new_task(&config, schema.as_ref(), &mut notes)?,
        };
        let schema = match (schema, &task.conditions.schema) {
            (None, Some(recorded)) => Some(DocumentSchema::recorded(&task.id, recorded.clone())?),
            (schema, _) => schema,
        };
        let finished = if task.run.outcome().is_some() {
            Finished::already_ended(task.id, task.model, task.run)
        } else {
            self.drive(task, &config, &mut notes)?
        };
        finished.print(&self, schema.as_ref(), target.as_ref(), &mut notes)
    }

    fn strategy(&self, config: &Config) -> StrategySetting {
        self.strategy.unwrap_or(config.complete.strategy)
    }

    fn new_task(
        &self,
        config: &Config,
        schema: Option<&DocumentSchema>,
        notes: &mut Notes,
    ) -> Result<CompleteTask, Failure> {
        let address = upstream::address(&self.upstream, config, None)?;
        let (model, request) = prompt::read(self, config, schema, notes)?;
        let Connection { can_prefill, .. } = Connection::open(&address, config, &model)?;
        let mut complete = config.complete.clone();
        complete.strategy = self.strategy(config);
        complete.progress = self.kpi.unwrap_or(complete.progress);
        complete.max_output_tokens = self.max_output.or(complete.max_output_tokens);
        if complete.strategy == StrategySetting::Prefill && !can_prefill {
            return Err(Failure::Usage {
                message: "the upstream does not support prefill".into(),
                hint:
                    "remove --strategy prefill, or set `upstream.prefill` in overlock.toml to how \
                       the upstream takes a prefill"
                        .into(),
            });
        }
        if complete.max_output_tokens == Some(0) {
            return Err(Failure::Usage {
                message: "--max-output must be at least 1".into(),
                hint: "give a larger number, or remove --max-output".into(),
            });
        }
        let options = complete.options(can_prefill);
        let id = runs::new_id();
        Ok(CompleteTask {
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

    fn resumed_task(&self, id: &RunId, config: &Config) -> Result<CompleteTask, Failure> {
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
        Ok(CompleteTask {
            id: id.clone(),
            model: recorded.summary.model,
            request,
            run,
            conditions: recorded.conditions,
            store: Some(store),
        })
    }

    /// Records a new run, or claims a recorded one. Everything that can fail earlier has been done.
    fn claim(
        &self,
        task: &mut CompleteTask,
        config: &Config,
        server: &str,
    ) -> Result<Claimed, Failure> {
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
        let store = runs::open(self.store.as_deref(), config, Access::Create)?;
        let work = work_on(&*store);
        let (model, request) = (&task.model, &task.request);
        if self.strategy(config) == StrategySetting::Auto {
            let mut options = task.run.options().clone();
            options.strategies =
                strategies::order(&*store, ServerModel { server, model }, &options.strategies);
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
        mut task: CompleteTask,
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
        if found.window_source() != WindowSource::Server {
            note_unknown(&task.model, &config.models(), notes);
        }
        let (counter, files) = self.encoding.counter_for(&task.model, &found, config)?;
        counter.note(notes);
        let template = counter.template(files)?;
        let chat = counter.of_requests(&found, template.as_ref());
        let interrupt = Interrupt::new();
        let backend = Interruptible {
            backend,
            interrupt: interrupt.clone(),
        };
        let plan = plan_options(config, &found.model, &task.request);
        let claimed = self.claim(&mut task, config, &server)?;
        let Claimed { store, claim, .. } = &claimed;
        let CompleteTask {
            id,
            model,
            request,
            mut run,
            ..
        } = task;
        let started = std::time::Instant::now();
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
        let (stop_cause, unrecorded) = claimed.end(&mut run, driven)?;
        Ok(Finished {
            id,
            model,
            run,
            steps,
            address: Some(address),
            stop_cause,
            unrecorded,
            took: Some(started.elapsed()),
        })
    }
}

/// How the window is divided. Messages demands an answer limit: without one in the request or the
/// configuration, it is the most that the model can write.
fn plan_options(config: &Config, model: &Model, request: &ChatRequest) -> PlanOptions {
    let plan = config.budget.plan_options(model);
    let is_set =
        request.outline().requested.is_some() || plan.requested != PlanOptions::default().requested;
    let is_messages = config.upstream.api == Api::Messages;
    PlanOptions {
        grow: plan.grow || is_messages && !is_set && plan.answer_cap.is_some(),
        ..plan
    }
}
