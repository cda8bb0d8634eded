//! `overlock inspect`: recorded runs, and what happened in one of them.

use clap::Args;
use overlock_json::Cut;
use overlock_pipeline::RecordedDefinitions;
use overlock_runs::{
    AnswerLimit, CallBudget, ListedRun, Pricing, RecordedRun, RecordedStep, ShownPipelineRun, Text,
};
use overlock_store::{RunId, RunSummary};

use super::pipeline::Story;

use crate::config::ConfigSource;
use crate::draw::{self, Join, grouped, grouped_tokens};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};
use crate::runs;

/// Look at recorded runs
///
/// Without a name: the latest runs. With one: what was asked, every answer with its cut and how it
/// was joined, and how the run ended; and what it cost, where `overlock.toml` has the prices of its
/// models.
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
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "run",
          value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    /// Where the runs are recorded, `sqlite://FILE` or `postgres://…` [default: `store.url`, else
    /// runs.db in the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Answer with JSON: an array of runs, or one run
    #[arg(long)]
    json: bool,
    /// Show the text that each answer added, as far as it is kept
    #[arg(long, requires_all = ["run", "json"])]
    text: bool,
    #[command(flatten)]
    config: ConfigSource,
}

impl Inspect {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        let store = runs::open_to_read(self.store.as_deref(), &config)?;
        match (&self.run, store.as_deref()) {
            (Some(id), Some(store)) => {
                let run = store.run(id).map_err(|source| Failure::Store { source })?;
                match run
                    .as_ref()
                    .and_then(|run| ShownPipelineRun::of(run, Text::Shown, &RecordedDefinitions))
                {
                    Some(shown) => {
                        let shown = shown.map_err(runs::unreadable)?;
                        self.show_pipeline(&shown.priced(&config.pricing()))?;
                    }
                    None => self.show(&runs::read(store, id)?, &config.pricing())?,
                }
            }
            (Some(id), None) => return Err(Failure::NoRun { id: id.to_string() }),
            (None, Some(store)) => {
                let latest = runs::latest(store, self.last)?;
                self.list(&latest, &config.pricing(), &mut notes)?;
            }
            (None, None) => self.list(&[], &config.pricing(), &mut notes)?,
        }
        Ok(Ending::Whole)
    }

    fn list(
        &self,
        runs: &[RunSummary],
        pricing: &Pricing,
        notes: &mut Notes,
    ) -> Result<(), Failure> {
        let mut results = Results::new();
        if self.json {
            let listed: Vec<ListedRun> = runs
                .iter()
                .map(|run| ListedRun::from(run).priced(pricing))
                .collect();
            return results.object(&listed);
        }
        if runs.is_empty() {
            notes.note("no run has been recorded yet; `overlock complete` records its own");
        }
        for run in runs {
            let listed = ListedRun::from(run);
            let ended = ended(&listed);
            let (count, model) = (run.steps, draw::plain(&run.model));
            let told = match &listed.pipeline {
                Some(name) => format!("{count:>4} records  {}, {model}", draw::plain(name)),
                None => format!("{count:>4} answers  {model}"),
            };
            results.line(&format!("{}  {ended:<24}  {told}", run.id))?;
        }
        Ok(())
    }

    /// A run of a pipeline: the story of its steps.
    fn show_pipeline(&self, shown: &ShownPipelineRun<'_>) -> Result<(), Failure> {
        let mut results = Results::new();
        if self.json {
            return results.object(shown);
        }
        let listed = &shown.listed;
        results.line(&format!("run: {}", listed.id))?;
        let name = listed.pipeline.as_deref().unwrap_or_default();
        results.line(&format!("pipeline: {}", draw::plain(name)))?;
        results.line(&format!("model: {}", draw::plain(listed.model)))?;
        results.line(&format!("outcome: {}", ended(listed)))?;
        tell_cost(&mut results, listed)?;
        if let (Some(step), Some(error)) = (&shown.step_id, &shown.error) {
            let (step, error) = (draw::plain(step), draw::plain(error));
            results.line(&format!("error: step `{step}`: {error}"))?;
        }
        let width = if results.is_terminal() {
            draw::terminal_width()
        } else {
            usize::MAX
        };
        for event in &shown.trace {
            for line in Story::of(event, width).lines() {
                results.line(&line)?;
            }
        }
        Ok(())
    }

    fn show(&self, recorded: &RecordedRun, pricing: &Pricing) -> Result<(), Failure> {
        let mut results = Results::new();
        let text = if self.text {
            Text::Shown
        } else {
            Text::LeftOut
        };
        let mut shown = recorded.shown(text).map_err(runs::unreadable)?;
        shown.listed = shown.listed.priced(pricing);
        if self.json {
            return results.object(&shown);
        }
        let listed = shown.listed;
        results.line(&format!("run: {}", recorded.summary.id))?;
        results.line(&format!("model: {}", draw::plain(&recorded.summary.model)))?;
        if let Some(upstream) = &recorded.conditions.upstream {
            results.line(&format!("upstream: {}", draw::plain(upstream)))?;
        }
        results.line(&format!("outcome: {}", ended(&listed)))?;
        let is_text = |recorded: &RecordedStep| recorded.plain_text;
        let is_text = recorded.steps.iter().all(is_text);
        let tokens = listed.tally.as_ref().map_or(0, |tally| tally.output_tokens);
        results.line(&format!("tokens: {}", grouped_tokens(tokens)))?;
        tell_cost(&mut results, &listed)?;
        if let Some(bytes) = recorded.bytes() {
            let kind = if is_text { "text" } else { "document" };
            results.line(&format!("{kind}: {} bytes", grouped(bytes)))?;
        }
        if let Some(cut) = recorded.steps.last().and_then(|step| step.cut.as_ref()) {
            results.line(&format!("cut: {}", where_cut(cut)))?;
        }
        for step in &recorded.steps {
            results.line(&line(step))?;
            for more in step
                .budget
                .iter()
                .map(planned)
                .chain(step.cut.iter().map(stood))
            {
                results.line(&format!("      {more}"))?;
            }
        }
        Ok(())
    }
}

/// What a run cost, if that is known.
fn tell_cost(results: &mut Results, run: &ListedRun) -> Result<(), Failure> {
    match &run.cost {
        Some(cost) => results.line(&format!("cost: {} {}", cost.amount, cost.currency)),
        None => Ok(()),
    }
}

/// How a run ended, in two words.
fn ended(run: &ListedRun) -> String {
    match (run.outcome, run.reason) {
        (None, _) => "not ended".to_owned(),
        (Some(outcome), None) => outcome.to_owned(),
        (Some(outcome), Some(reason)) => format!("{outcome}, {}", reason.name()),
    }
}

fn where_cut(cut: &Cut) -> String {
    let path = draw::path(&cut.path, draw::SENTENCE_COLUMNS);
    format!("{} at {path}", cut.place.phrase())
}

/// Where the document stood after a step.
fn stood(cut: &Cut) -> String {
    format!("cut {}", where_cut(cut))
}

fn planned(budget: &CallBudget) -> String {
    let messages = match budget.message_count {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    };
    let memories = match budget.memory_count {
        0 => String::new(),
        1 => ", 1 memory".to_owned(),
        count => format!(", {count} memories"),
    };
    let answer = grouped_tokens(budget.adjusted_max_tokens);
    let answer = match budget.limit {
        Some(AnswerLimit { sent: None, .. }) => {
            format!("no limit out ({answer} planned)")
        }
        _ => format!("{answer} at most out"),
    };
    format!(
        "{} tokens in, {answer}, {messages}{memories}",
        grouped_tokens(budget.input_token_count),
    )
}

fn line(recorded: &RecordedStep) -> String {
    let step = &recorded.step;
    let way = match step.way {
        Some(way) => way.name(),
        None if step.kpis.is_some() => "kpis",
        None if step.is_correction() => "correct",
        None => "prompt",
    };
    let tokens = grouped_tokens(step.tokens);
    let told = draw::plain(&Join::from(&step.result).phrase());
    let kpi = step
        .kpi
        .map_or(String::new(), |kpi| format!(", {kpi} % by its own account"));
    format!(
        "{:>4}  {way:<9}  {tokens:>7} tokens  {told}{kpi}",
        step.iteration
    )
}
