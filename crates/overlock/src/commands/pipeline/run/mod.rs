//! `overlock run`: runs a pipeline.

mod models;
mod progress;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use overlock_budget::Provenance;
use overlock_pipeline::{Action, Environment, Pipeline};
use overlock_runs::{
    Begun, EndedPipeline, PipelineConditions, PipelineOutcome, PipelineRun, State, TraceEvent,
    TracedRun, Traces, TracesError, send_run,
};
use overlock_store::{Access, RunId, Store};
use serde::Serialize;
use serde_json::{Map, Value};

use super::file::PipelineFile;
use crate::config::{Config, ConfigSource};
use crate::counter::Counter;
use crate::ending::{Ending, Failure};
use crate::input;
use crate::output::{Notes, Results};
use crate::runs;
use crate::signals::stop_signal;
use crate::traces;
use crate::upstream::UpstreamSource;
use models::{PipelineModels, QueryEmbedder};
use progress::StepProgress;
pub(crate) use summary::StepSummary;

/// Run a pipeline
///
/// Validates the file, then runs its steps. The answer goes to standard output, progress to
/// standard error.
///
/// The state is recorded after every step, and every model answer when it is complete. --resume
/// continues a run that was killed or cancelled with Ctrl-C, and repeats no recorded call.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock index src --store sqlite://code.db\n  \
    $ overlock run answer.yaml --question 'Who closes an order?' \\\n      \
    --store sqlite://code.db --upstream http://127.0.0.1:11434/v1 --explain\n\n\
    Exit codes: 0 complete; 1 a step failed, or the pipeline is invalid; 2 bad usage or unreadable\n\
    input.")]
pub(crate) struct Run {
    /// The pipeline file; `-` reads standard input; with --resume, replaces the recorded pipeline
    #[arg(value_name = "PIPELINE", required_unless_present = "resume")]
    pipeline: Option<PathBuf>,
    /// The user's question
    #[arg(long, short, value_name = "TEXT", conflicts_with = "resume")]
    question: Option<String>,
    /// The store for source code, conversations and runs, `sqlite://FILE` or `postgres://…`; must
    /// exist if the pipeline searches [default: `store.url`, else runs.db in the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    upstream: UpstreamSource,
    /// The embedding model of the index, for semantic searches
    #[arg(long, value_name = "MODEL")]
    embed: Option<String>,
    /// Change a setting of the pipeline (`max_context_tokens=8000`) or a variable
    /// (`variables.tone=short`); a value that is not JSON is text
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    set: Vec<(String, Value)>,
    /// Start with this state: a JSON object with `node_texts`, `context_blocks`, `inbox` and so on
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    state: Option<PathBuf>,
    /// The room of the conversation that the question belongs to
    #[arg(long, value_name = "ROOM", conflicts_with = "resume")]
    session: Option<String>,
    /// The repository to search
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    repository: Option<String>,
    /// Resume an unfinished run; `overlock inspect` lists the runs
    #[arg(long, value_name = "RUN")]
    resume: Option<RunId>,
    /// Show what each step decided and how it used its tokens
    #[arg(long)]
    explain: bool,
    /// Print one JSON object: outcome, state and trace
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// The output of `--json`.
#[derive(Serialize)]
struct RunReport<'a> {
    run: &'a str,
    #[serde(flatten)]
    outcome: &'a PipelineOutcome,
    state: &'a State,
    trace: &'a [TraceEvent],
}

/// A new or resumed run.
struct PipelineTask {
    id: RunId,
    file: PipelineFile,
    run: PipelineRun,
    store: Arc<dyn Store>,
}

/// A recorded run.
enum Resumed {
    Unfinished(Box<PipelineTask>),
    Complete(Box<EndedPipeline>),
}

impl Run {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let task = match &self.resume {
            Some(id) => match self.resumed_task(id, &config, &mut notes)? {
                Resumed::Unfinished(task) => Some(*task),
                Resumed::Complete(ended) => {
                    notes.note(format_args!(
                        "run `{id}` is already complete; this is its result"
                    ));
                    return self.print(id, &ended, &mut notes);
                }
            },
            None => self.new_task(&config, &mut notes)?,
        };
        let Some(task) = task else {
            return Ok(Ending::Partial);
        };
        let Some(pipeline) = task.file.pipeline(&mut notes) else {
            return Ok(Ending::Partial);
        };
        self.execute(&task, pipeline, &config, &mut notes)
    }

    /// A new run, or `None` after the problems of an invalid pipeline were printed.
    fn new_task(
        &self,
        config: &Config,
        notes: &mut Notes,
    ) -> Result<Option<PipelineTask>, Failure> {
        let path = self.pipeline.as_deref().unwrap_or_else(|| "-".as_ref());
        let (variables, settings) = self
            .set
            .iter()
            .cloned()
            .partition(|(key, _)| key.starts_with(VARIABLES));
        let (variables, settings): (Map<String, Value>, Map<String, Value>) = (variables, settings);
        let file = PipelineFile::read(path, &settings, config, notes)?;
        let Some(pipeline) = &file.checked.pipeline else {
            if self.json {
                file.print_json()?;
            }
            file.note_problems(notes);
            return Ok(None);
        };
        let mut state = match &self.state {
            Some(path) => read_state(path, notes)?,
            None => State::default(),
        };
        if let Some(question) = &self.question {
            state.user_question.clone_from(question);
        }
        state.session_id = self.session.clone().or(state.session_id);
        state.repository = self.repository.clone().or(state.repository);
        for (key, value) in variables {
            let name = key[VARIABLES.len()..].to_owned();
            state.variables.insert(name, value);
        }
        let store = runs::open(self.store.as_deref(), config, pipeline.store_access())?;
        pipeline.check_repositories(&state, &*store)?;
        let name = &pipeline.name;
        let address = crate::upstream::address(&self.upstream, config, None).ok();
        let run = PipelineRun::new(
            Begun {
                name: name.clone(),
                file: file.name.clone(),
                text: file.text.clone(),
                prompts: file.checked.prompts.clone(),
                settings,
                state,
            },
            PipelineConditions {
                upstream: address.and_then(|address| address.recordable()),
                embed: self.embed.clone(),
            },
            runs::now(),
        );
        Ok(Some(PipelineTask {
            id: runs::new_id(),
            file,
            run,
            store,
        }))
    }

    fn resumed_task(
        &self,
        id: &RunId,
        config: &Config,
        notes: &mut Notes,
    ) -> Result<Resumed, Failure> {
        let store = runs::open(self.store.as_deref(), config, Access::Write)?;
        let recorded = store.run(id).map_err(|source| Failure::Store { source })?;
        let Some(recorded) = recorded else {
            return Err(Failure::NoRun { id: id.to_string() });
        };
        let run = PipelineRun::read(&recorded).map_err(runs::unreadable)?;
        let outcome = recorded.summary.outcome.as_deref();
        let outcome = outcome.and_then(|outcome| serde_json::from_str(outcome).ok());
        if let Some(outcome @ PipelineOutcome::Complete) = outcome {
            return Ok(Resumed::Complete(Box::new(EndedPipeline {
                outcome,
                state: run.state,
                trace: run.trace,
            })));
        }
        let begun = &run.begun;
        let mut settings = begun.settings.clone();
        for (name, value) in &self.set {
            if name.starts_with(VARIABLES) {
                return Err(Failure::Usage {
                    message: "--resume cannot change the variables of a run".into(),
                    hint: "with --resume, use --set only for settings of the pipeline".into(),
                });
            }
            settings.insert(name.clone(), value.clone());
        }
        let file = match &self.pipeline {
            Some(path) => PipelineFile::read(path, &settings, config, notes)?,
            None => {
                PipelineFile::recorded(&begun.file, &begun.text, &begun.prompts, &settings, config)
            }
        };
        Ok(Resumed::Unfinished(Box::new(PipelineTask {
            id: id.clone(),
            file,
            run,
            store,
        })))
    }

    fn execute(
        &self,
        task: &PipelineTask,
        pipeline: &Pipeline,
        config: &Config,
        notes: &mut Notes,
    ) -> Result<Ending, Failure> {
        let PipelineTask {
            id,
            file,
            run,
            store,
        } = task;
        let conditions = &run.conditions;
        let model = pipeline.settings.model.as_deref();
        let model = model.or(config.budget.model.as_deref());
        let counter = counter(pipeline, model, config, notes)?;
        let models = PipelineModels::open(
            pipeline,
            model,
            &self.upstream,
            conditions.upstream.as_deref(),
            config,
            &**store,
        )?;
        let embed = self.embed.as_deref().or(conditions.embed.as_deref());
        let recorded = conditions.upstream.as_deref();
        let embedder = QueryEmbedder::open(embed, &self.upstream, recorded, config)?;
        let clock = runs::now;
        let world = Environment {
            store: &**store,
            models: &models,
            embedder: embedder.as_ref().map(|embedder| embedder as _),
            prompts: &file.checked.prompts,
            counter: counter.tokens.as_ref(),
            counter_name: &counter.name,
            provenance: counter.provenance,
            began_at: run.began_at,
            clock: &clock,
        };
        let collector = traces::collector(config, notes)?;
        let failed = |source| Failure::Store { source };
        let mut recording = match self.resume {
            Some(_) => run.take_up(store, id).map_err(runs::unreadable),
            None => run
                .begin(store, id, model.unwrap_or_default())
                .map_err(failed),
        }?;
        let mut show = StepProgress::new(self.explain);
        show.begin(id, pipeline, run);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let ended = runtime.block_on(async {
            tokio::select! {
                // Polled first, so that it listens before the first step.
                biased;
                signal = stop_signal() => Err(signal),
                ended = overlock_pipeline::run(pipeline, run.clone(), &world, &mut recording, &mut show) => Ok(ended),
            }
        });
        show.end();
        let ended = match ended {
            Ok(ended) => ended.map_err(failed)?,
            Err(signal) => {
                let ended = recording.cancel(runs::now(), &pipeline.settings.entry_step_id);
                let ended = ended.map_err(runs::unreadable)?;
                self.print(id, &ended, notes)?;
                return Ok(Ending::Stopped(signal));
            }
        };
        if let Some(collector) = collector {
            let sent = runtime.block_on(send_trace(&collector, id, pipeline, &ended));
            sent.map_err(|source| Failure::Traces { source })?;
        }
        self.print(id, &ended, notes)
    }

    fn print(
        &self,
        id: &RunId,
        ended: &EndedPipeline,
        notes: &mut Notes,
    ) -> Result<Ending, Failure> {
        let EndedPipeline {
            outcome,
            state,
            trace,
        } = ended;
        let mut results = Results::new();
        if self.json {
            results.object(&RunReport {
                run: id.as_str(),
                outcome,
                state,
                trace,
            })?;
        } else if let (PipelineOutcome::Complete, Some(answer)) = (outcome, &state.answer) {
            results.document(&[answer.as_bytes()])?;
        }
        let left = state.inbox.iter();
        for mail in left.filter(|_| *outcome == PipelineOutcome::Complete) {
            notes.note(format_args!(
                "unread mail: `{}` for `{}`",
                mail.topic, mail.target_step_id
            ));
        }
        match outcome {
            PipelineOutcome::Complete => {
                if state.answer.is_none() && !self.json {
                    notes.note("the run is complete, but has no answer");
                    notes.hint("add a step with the action `finalize`; --json shows the state");
                }
            }
            PipelineOutcome::Failed {
                step_id,
                error,
                hint,
            } => {
                notes.error(format_args!("step `{step_id}` failed: {error}"));
                if let Some(hint) = hint {
                    notes.hint(hint);
                }
                let command = self.resume_command(id);
                notes.hint(format_args!(
                    "after fixing it, run {command}; you can pass a changed PIPELINE or --set"
                ));
            }
            PipelineOutcome::Cancelled { step_id } => {
                notes.note(format_args!("cancelled in step `{step_id}`"));
                notes.hint(format_args!("resume with {}", self.resume_command(id)));
            }
        }
        Ok(Ending::done_if(*outcome == PipelineOutcome::Complete))
    }

    fn resume_command(&self, id: &RunId) -> String {
        let store = self.store.as_deref().map(runs::shown_address);
        let store = store.map_or(String::new(), |store| format!(" --store {store}"));
        format!("overlock run --resume {id}{store}")
    }
}

async fn send_trace(
    collector: &Traces,
    id: &RunId,
    pipeline: &Pipeline,
    ended: &EndedPipeline,
) -> Result<(), TracesError> {
    let run = TracedRun {
        run: id.as_str(),
        pipeline: &pipeline.name,
        outcome: &ended.outcome,
        events: &ended.trace,
    };
    send_run(collector, &run).await
}

/// The prefix of variables in `--set`.
const VARIABLES: &str = "variables.";

/// The counter of the context: the one in the settings, else the model's own tokenizer.
fn counter(
    pipeline: &Pipeline,
    model: Option<&str>,
    config: &Config,
    notes: &mut Notes,
) -> Result<Counter, Failure> {
    let setting = pipeline.settings.token_counter.as_deref();
    if let Some(counter) = setting.and_then(Counter::named) {
        return Ok(counter);
    }
    let models = config.models();
    let name = model.unwrap_or_default();
    let counter = Counter::for_model(name, &models.find(name), config)?;
    let counts = |action: &Action| {
        matches!(
            action,
            Action::ManageContextBudget(_) | Action::FetchNodeTexts(_)
        )
    };
    if counter.provenance != Provenance::Exact
        && pipeline.steps.iter().any(|step| counts(&step.action))
    {
        let reason = match model {
            Some(name) => format!("no tokenizer for `{name}`"),
            None => "no model given".to_owned(),
        };
        notes.note(format_args!(
            "{reason}: the context is counted with {}",
            counter.name
        ));
        notes.hint("set `settings.token_counter` or the model");
    }
    Ok(counter)
}

fn read_state(path: &Path, notes: &mut Notes) -> Result<State, Failure> {
    let read = input::read(path, notes)?;
    let wrong = |error: serde_json::Error| Failure::Usage {
        message: format!("{} is not a pipeline state: {error}", read.name),
        hint: "give a JSON object with fields such as `user_question`, `node_texts` (objects with \
               `id`, `path`, `text`), `context_blocks` (texts), `inbox`"
            .into(),
    };
    let mut state: Map<String, Value> = serde_json::from_slice(&read.bytes).map_err(wrong)?;
    // The trace belongs to the run that wrote the state.
    state.remove("trace");
    serde_json::from_value(Value::Object(state)).map_err(wrong)
}

fn parse_set(argument: &str) -> Result<(String, Value), String> {
    let Some((key, value)) = argument.split_once('=') else {
        return Err("must be KEY=VALUE, as in max_context_tokens=8000".to_owned());
    };
    let key = key.trim();
    if key.is_empty() || key == VARIABLES {
        return Err("must start with the name of a setting or a variable".to_owned());
    }
    if key
        .strip_prefix(VARIABLES)
        .is_some_and(|name| name.contains('.'))
    {
        return Err(
            "a variable name must not contain a dot, as in variables.tone=short".to_owned(),
        );
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}
