//! `overlock inspect`: recorded runs, and what happened in one of them.

use clap::Args;
use overlock_model::{Continuation, Outcome, Step, StepResult};
use overlock_store::{RunId, RunSummary};
use serde::Serialize;
use serde_json::Value;

use crate::config::ConfigSource;
use crate::draw::{grouped, grouped_tokens};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};
use crate::runs::{self, Recorded};

/// Look at recorded runs
///
/// Without a name: the latest runs. With one: what was asked, every answer with its cut and how it
/// was joined, and how the run ended.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock inspect\n  \
    $ overlock inspect 1jmzq9z8r2k7d --json\n\n\
    Exit codes: 0 done; 2 bad usage, or no such run.")]
pub(crate) struct Inspect {
    /// The run to look at
    #[arg(value_name = "RUN")]
    run: Option<RunId>,
    /// How many runs to list
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "run")]
    last: u32,
    /// Where the runs are recorded [default: `store.url`, else runs.db in the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Answer with JSON: an array of runs, or one run
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// A run in a list, for machines.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    summary: &'a RunSummary,
    #[serde(flatten)]
    outcome: Option<Outcome>,
}

/// One run, for machines.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    listed: Listed<'a>,
    request: Value,
    output_tokens: u64,
    bytes: usize,
    iterations: Vec<Step>,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let store = runs::open(self.store.as_deref(), &config)?;
        match &self.run {
            Some(id) => self.show(runs::read(&store, id)?)?,
            None => self.list(&runs::latest(&store, self.last)?, &mut notes)?,
        }
        Ok(Ending::Whole)
    }

    fn list(&self, runs: &[RunSummary], notes: &mut Notes) -> Result<(), Failure> {
        let mut results = Results::new();
        if self.json {
            let listed: Vec<Listed> = runs.iter().map(Listed::of).collect();
            return results.object(&listed);
        }
        if runs.is_empty() {
            notes.note("no run has been recorded yet; `overlock complete` records its own");
        }
        for run in runs {
            let listed = Listed::of(run);
            let ended = listed.ended();
            let answers = run.steps;
            results.line(&format!(
                "{}  {ended:<24}  {answers:>4} answers  {}",
                run.id, run.model
            ))?;
        }
        Ok(())
    }

    fn show(&self, recorded: Recorded) -> Result<(), Failure> {
        let mut results = Results::new();
        let id = &recorded.summary.id;
        let run = Continuation::resume(recorded.options, &recorded.steps)
            .map_err(|error| Failure::damaged_run(id, &error))?;
        let listed = Listed::of(&recorded.summary);
        if self.json {
            return results.object(&Shown {
                listed,
                request: recorded.request.into_value(),
                output_tokens: run.output_tokens(),
                bytes: run.text().len(),
                iterations: recorded.steps.iter().map(Step::without_text).collect(),
            });
        }
        results.line(&format!("run: {}", recorded.summary.id))?;
        results.line(&format!("model: {}", recorded.model))?;
        results.line(&format!("outcome: {}", listed.ended()))?;
        results.line(&format!("tokens: {}", grouped_tokens(run.output_tokens())))?;
        results.line(&format!("document: {} bytes", grouped(run.text().len())))?;
        if let Some(cut) = run.base().and_then(overlock_json::Base::cut) {
            results.line(&format!("cut: {} at {}", cut.place.name(), cut.path))?;
        }
        for step in &recorded.steps {
            results.line(&line(step))?;
        }
        Ok(())
    }
}

impl<'a> Listed<'a> {
    fn of(summary: &'a RunSummary) -> Self {
        Self {
            outcome: runs::outcome(summary),
            summary,
        }
    }

    /// How the run ended, in two words.
    fn ended(&self) -> String {
        match &self.outcome {
            None => "not ended".to_owned(),
            Some(outcome) => match outcome.reason() {
                None => outcome.name().to_owned(),
                Some(reason) => format!("{}, {}", outcome.name(), reason.name()),
            },
        }
    }
}

fn line(step: &Step) -> String {
    let way = match step.way {
        Some(way) => way.name(),
        None if step.kpis.is_some() => "kpis",
        None => "prompt",
    };
    let tokens = grouped_tokens(step.tokens);
    let told = match &step.result {
        StepResult::Failed { failure, .. } => format!("refused: {failure}"),
        StepResult::Grown {
            seam,
            overlap,
            added_bytes,
            ..
        } => format!(
            "{seam}, {} characters repeated, {} bytes new",
            grouped(*overlap),
            grouped(*added_bytes)
        ),
    };
    let kpi = step
        .kpi
        .map_or(String::new(), |kpi| format!(", {kpi} % by its own account"));
    format!(
        "{:>4}  {way:<9}  {tokens:>7} tokens  {told}{kpi}",
        step.iteration
    )
}
