//! `overlock run`: runs a pipeline, step by step, to its answer.

mod show;
mod story;
mod voices;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use overlock_budget::Provenance;
use overlock_pipeline::{Action, Pipeline, World};
use overlock_runs::{
    Begun, EndedPipeline, PipelineConditions, PipelineOutcome, PipelineRun, State, TraceEvent,
    TracedRun, send_run,
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
use crate::signals::called_off;
use crate::traces;
use crate::upstream::UpstreamSource;
use show::Show;
pub(crate) use story::Story;
use voices::{Embedder, Voices};

/// Run a pipeline
///
/// Checks the file, then does its steps one after the other. The state is recorded after every
/// step, and every answer of a model as it comes: a run that was killed or called off with Ctrl-C
/// goes on with --resume, and no answer that was recorded is paid for twice. The answer goes to
/// standard output, what happens to standard error.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock index src --store sqlite://code.db\n  \
    $ overlock run answer.yaml --question 'Who closes an order?' \\\n      \
    --store sqlite://code.db --upstream http://127.0.0.1:11434/v1 --explain\n\n\
    Exit codes: 0 the run came to its end; 1 a step failed, or the pipeline is wrong; 2 bad usage \
    or unreadable input.")]
pub(crate) struct Run {
    /// The pipeline; standard input if it is `-`; with --resume in place of the one it began with
    #[arg(value_name = "PIPELINE", required_unless_present = "resume")]
    pipeline: Option<PathBuf>,
    /// What the user asks
    #[arg(long, short, value_name = "TEXT", conflicts_with = "resume")]
    question: Option<String>,
    /// Where nodes, conversations and runs are kept, `sqlite://FILE` or `postgres://…` [default:
    /// `store.url`, else runs.db in the user's data folder]; it must exist if the pipeline searches
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    upstream: UpstreamSource,
    /// The embedding model that made the vectors of the index, for searches by meaning
    #[arg(long, value_name = "MODEL")]
    embed: Option<String>,
    /// Set a setting of the pipeline (`max_context_tokens=8000`), or a variable
    /// (`variables.tone=short`); a value is JSON, or else a text
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    set: Vec<(String, Value)>,
    /// Begin with this state: a JSON object with `node_texts`, `context_blocks`, `inbox` and so on
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    state: Option<PathBuf>,
    /// The conversation that the question is part of: a room of the store
    #[arg(long, value_name = "ROOM", conflicts_with = "resume")]
    session: Option<String>,
    /// The repository that is searched
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    repository: Option<String>,
    /// Go on with a run that has not come to its end; `overlock inspect` lists them
    #[arg(long, value_name = "RUN")]
    resume: Option<RunId>,
    /// Tell the story of the run: what every step decided, and where every token went
    #[arg(long)]
    explain: bool,
    /// Answer with one JSON object: outcome, state and trace
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// The answer to machines.
#[derive(Serialize)]
struct Answer<'a> {
    run: &'a str,
    #[serde(flatten)]
    outcome: &'a PipelineOutcome,
    state: &'a State,
    trace: &'a [TraceEvent],
}

/// A run that is about to begin, or to go on.
struct Task {
    id: RunId,
    file: PipelineFile,
    taken: PipelineRun,
    store: Arc<dyn Store>,
}

/// A recorded run that somebody wants to go on with.
enum Resumed {
    /// It has not come to its end.
    Open(Box<Task>),
    /// It has, so that there is nothing to do.
    Over(Box<EndedPipeline>),
}

impl Run {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let task = match &self.resume {
            Some(id) => match self.resumed(id, &config, &mut notes)? {
                Resumed::Open(task) => Some(*task),
                Resumed::Over(ended) => {
                    notes.note(format_args!(
                        "run `{id}` has come to its end before: this is what came of it"
                    ));
                    return self.tell(id, &ended, &mut notes);
                }
            },
            None => self.begun(&config, &mut notes)?,
        };
        let Some(task) = task else {
            return Ok(Ending::Partial);
        };
        let Some(pipeline) = task.file.pipeline(&mut notes) else {
            return Ok(Ending::Partial);
        };
        self.go(&task, pipeline, &config, &mut notes)
    }

    /// A run that begins; nothing if the pipeline is wrong, which has been told then.
    fn begun(&self, config: &Config, notes: &mut Notes) -> Result<Option<Task>, Failure> {
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
                file.object()?;
            }
            file.tell(notes);
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
        let taken = PipelineRun::new(
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
        Ok(Some(Task {
            id: runs::new_id(),
            file,
            taken,
            store,
        }))
    }

    /// A recorded run, as far as it has come.
    fn resumed(&self, id: &RunId, config: &Config, notes: &mut Notes) -> Result<Resumed, Failure> {
        let store = runs::open(self.store.as_deref(), config, Access::Write)?;
        let recorded = store.run(id).map_err(|source| Failure::Store { source })?;
        let Some(recorded) = recorded else {
            return Err(Failure::NoRun { id: id.to_string() });
        };
        let taken = PipelineRun::read(&recorded).map_err(runs::unreadable)?;
        let outcome = recorded.summary.outcome.as_deref();
        let outcome = outcome.and_then(|outcome| serde_json::from_str(outcome).ok());
        if let Some(outcome @ PipelineOutcome::Complete) = outcome {
            return Ok(Resumed::Over(Box::new(EndedPipeline {
                outcome,
                state: taken.state,
                trace: taken.trace,
            })));
        }
        let begun = &taken.begun;
        let mut settings = begun.settings.clone();
        for (name, value) in &self.set {
            if name.starts_with(VARIABLES) {
                return Err(Failure::Usage {
                    message: "the variables of a run that goes on are what they are".into(),
                    hint: "with --resume, --set is for settings of the pipeline".into(),
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
        Ok(Resumed::Open(Box::new(Task {
            id: id.clone(),
            file,
            taken,
            store,
        })))
    }

    fn go(
        &self,
        task: &Task,
        pipeline: &Pipeline,
        config: &Config,
        notes: &mut Notes,
    ) -> Result<Ending, Failure> {
        let Task {
            id,
            file,
            taken,
            store,
        } = task;
        let conditions = &taken.conditions;
        let model = pipeline
            .settings
            .model
            .as_deref()
            .or(config.budget.model.as_deref());
        let counter = counter(pipeline, model, config, notes)?;
        let voices = Voices::open(
            pipeline,
            model,
            &self.upstream,
            conditions.upstream.as_deref(),
            config,
            &**store,
        )?;
        let embed = self.embed.as_deref().or(conditions.embed.as_deref());
        let embedder = Embedder::open(
            embed,
            &self.upstream,
            conditions.upstream.as_deref(),
            config,
        )?;
        let clock = runs::now;
        let world = World {
            store: &**store,
            models: &voices,
            embedder: embedder.as_ref().map(|embedder| embedder as _),
            prompts: &file.checked.prompts,
            counter: counter.tokens.as_ref(),
            counter_name: &counter.name,
            provenance: counter.provenance,
            began_at: taken.began_at,
            clock: &clock,
        };
        let url = config.serve.traces_url.as_deref();
        let url = url.filter(|_| traces::may_be_sent(notes));
        let collector = url.map(traces::traces).transpose()?;
        let failed = |source| Failure::Store { source };
        let mut recording = match self.resume {
            Some(_) => taken.take_up(store, id).map_err(runs::unreadable),
            None => taken
                .begin(store, id, model.unwrap_or_default())
                .map_err(failed),
        }?;
        let mut show = Show::new(self.explain);
        show.begin(id, pipeline, taken);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let ended = runtime.block_on(async {
            tokio::select! {
                // Asked first, so that it listens before anything is done.
                biased;
                signal = called_off() => Err(signal),
                ended = overlock_pipeline::run(pipeline, taken.clone(), &world, &mut recording, &mut show) => Ok(ended),
            }
        });
        show.end();
        let ended = match ended {
            Ok(ended) => ended.map_err(failed)?,
            Err(signal) => {
                let ended = recording.call_off(runs::now(), &pipeline.settings.entry_step_id);
                let ended = ended.map_err(runs::unreadable)?;
                self.tell(id, &ended, notes)?;
                return Ok(Ending::Stopped(signal));
            }
        };
        if let Some(collector) = collector {
            let traced = TracedRun {
                run: id.as_str(),
                pipeline: &pipeline.name,
                outcome: &ended.outcome,
                events: &ended.trace,
            };
            let sent = runtime.block_on(send_run(&collector, &traced));
            sent.map_err(|source| Failure::Traces { source })?;
        }
        self.tell(id, &ended, notes)
    }

    fn tell(
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
            results.object(&Answer {
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
                "mail was never taken: `{}` for `{}`",
                mail.topic, mail.target_step_id
            ));
        }
        match outcome {
            PipelineOutcome::Complete => {
                if state.answer.is_none() && !self.json {
                    notes.note("the run came to its end without an answer");
                    notes.hint("the action `finalize` makes the answer; --json shows the state");
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
                let command = self.resuming(id);
                notes.hint(format_args!(
                    "once that is mended, go on with {command}; a mended PIPELINE and --set are taken then"
                ));
            }
            PipelineOutcome::Cancelled { step_id } => {
                notes.note(format_args!("called off in step `{step_id}`"));
                notes.hint(format_args!("go on with {}", self.resuming(id)));
            }
        }
        Ok(Ending::whole_if(*outcome == PipelineOutcome::Complete))
    }

    /// The command that goes on with a run.
    fn resuming(&self, id: &RunId) -> String {
        let store = self.store.as_deref().map(runs::shown_address);
        let store = store.map_or(String::new(), |store| format!(" --store {store}"));
        format!("overlock run --resume {id}{store}")
    }
}

/// What the names of variables begin with.
const VARIABLES: &str = "variables.";

/// Who counts the context: whoever the settings name, else the model's own tokenizer.
fn counter(
    pipeline: &Pipeline,
    model: Option<&str>,
    config: &Config,
    notes: &mut Notes,
) -> Result<Counter, Failure> {
    let named = pipeline.settings.token_counter.as_deref();
    if let Some(counter) = named.and_then(Counter::named) {
        return Ok(counter);
    }
    let models = config.models();
    let name = model.unwrap_or_default();
    let counter = Counter::for_model(name, &models.find(name), config)?.bounded();
    let counts = |action: &Action| {
        matches!(
            action,
            Action::ManageContextBudget(_) | Action::FetchNodeTexts(_)
        )
    };
    if counter.provenance != Provenance::Exact
        && pipeline.steps.iter().any(|step| counts(&step.action))
    {
        let whose = match model {
            Some(name) => format!("the tokenizer of `{name}` is not at hand"),
            None => "no model is named".to_owned(),
        };
        notes.note(format_args!(
            "{whose}: the context is counted by {}",
            counter.name
        ));
        notes.hint("name another counter with `settings.token_counter`, or the model");
    }
    Ok(counter)
}

fn read_state(path: &Path, notes: &mut Notes) -> Result<State, Failure> {
    let read = input::read(path, notes)?;
    let wrong = |error: serde_json::Error| Failure::Usage {
        message: format!("{} is no state of a pipeline: {error}", read.name),
        hint: "give a JSON object with fields such as `user_question`, `node_texts` (objects with \
               `id`, `path`, `text`), `context_blocks` (texts), `inbox`"
            .into(),
    };
    let mut state: Map<String, Value> = serde_json::from_slice(&read.bytes).map_err(wrong)?;
    // What a run has told is not what the next one tells.
    state.remove("trace");
    serde_json::from_value(Value::Object(state)).map_err(wrong)
}

fn parse_set(argument: &str) -> Result<(String, Value), String> {
    let Some((key, value)) = argument.split_once('=') else {
        return Err("must be KEY=VALUE, as in max_context_tokens=8000".to_owned());
    };
    let key = key.trim();
    if key.is_empty() || key == VARIABLES {
        return Err("must begin with the name of a setting or of a variable".to_owned());
    }
    if key
        .strip_prefix(VARIABLES)
        .is_some_and(|name| name.contains('.'))
    {
        return Err("the name of a variable has no dot, as in variables.tone=short".to_owned());
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}
