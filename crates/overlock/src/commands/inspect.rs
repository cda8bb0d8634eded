//! `overlock inspect`: lists recorded runs, or shows one of them.

use clap::Args;
use overlock_json::Cut;
use overlock_llm::Usage;
use overlock_pipeline::RecordedDefinitions;
use overlock_runs::{
    AnswerLimit, CallBudget, ListedRun, Pricing, RecordedRun, RecordedStep, ShownPipelineRun, Text,
};
use overlock_store::{RunId, RunSummary};

use super::pipeline::StepSummary;
use crate::config::ConfigSource;
use crate::draw::{self, Join, grouped, grouped_tokens};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};
use crate::runs;

/// List recorded runs, or show one
///
/// Without RUN: the latest runs. With RUN: each answer with its cut and its seam, or each step of a
/// pipeline, and how the run ended. Costs are shown for models that have prices in overlock.toml.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock inspect\n  \
    $ overlock inspect 019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31 --json\n\n\
    Exit codes: 0 done; 2 bad usage, or no such run.")]
pub(crate) struct Inspect {
    /// The run to show
    #[arg(value_name = "RUN")]
    run: Option<RunId>,
    /// The number of runs to list
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "run",
          value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    /// The store for runs, `sqlite://FILE` or `postgres://…` [default: `store.url`, else runs.db in
    /// the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Print JSON: an array of runs, or one run
    #[arg(long)]
    json: bool,
    /// Include the text that each answer added, if it was recorded
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
        Ok(Ending::Done)
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
            notes.note("no run has been recorded yet");
            notes.hint("`overlock complete`, `overlock run` and `overlock serve` record runs");
        }
        for run in runs {
            let listed = ListedRun::from(run);
            let ended = ended(&listed);
            let (count, model) = (run.steps, draw::plain(&run.model));
            let details = match &listed.pipeline {
                Some(name) => format!("{count:>4} records  {}, {model}", draw::plain(name)),
                None => format!("{count:>4} answers  {model}"),
            };
            results.line(&format!("{}  {ended:<24}  {details}", run.id))?;
        }
        Ok(())
    }

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
        print_cost(&mut results, listed)?;
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
            for line in StepSummary::new(event, width).lines() {
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
        print_cost(&mut results, &listed)?;
        if let Some(bytes) = recorded.bytes() {
            let kind = if is_text { "text" } else { "document" };
            results.line(&format!("{kind}: {} bytes", grouped(bytes)))?;
        }
        if let Some(cut) = recorded.steps.last().and_then(|step| step.cut.as_ref()) {
            results.line(&format!("cut: {}", where_cut(cut)))?;
        }
        for step in &recorded.steps {
            results.line(&step_line(step))?;
            for more in step
                .budget
                .iter()
                .map(|budget| budget_line(budget, step.reported))
                .chain(step.cut.iter().map(cut_line))
            {
                results.line(&format!("      {more}"))?;
            }
        }
        Ok(())
    }
}

fn print_cost(results: &mut Results, run: &ListedRun) -> Result<(), Failure> {
    match &run.cost {
        Some(cost) => results.line(&format!("cost: {} {}", cost.amount, cost.currency)),
        None => Ok(()),
    }
}

fn ended(run: &ListedRun) -> String {
    match (run.outcome, run.reason) {
        (None, _) => "unfinished".to_owned(),
        (Some(outcome), None) => outcome.to_owned(),
        (Some(outcome), Some(reason)) => format!("{outcome}, {}", reason.name()),
    }
}

fn where_cut(cut: &Cut) -> String {
    let path = draw::path(&cut.path, draw::SENTENCE_COLUMNS);
    format!("{} at {path}", cut.place.phrase())
}

fn cut_line(cut: &Cut) -> String {
    format!("cut {}", where_cut(cut))
}

fn budget_line(budget: &CallBudget, reported: Option<Usage>) -> String {
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
        _ => format!("at most {answer} out"),
    };
    let counted = budget.input_token_count;
    let billed = reported.map(|usage| usage.input);
    let billed = billed.filter(|billed| *billed > 0 && *billed != counted);
    let billed = billed.map_or(String::new(), |billed| {
        format!(" ({} billed)", grouped_tokens(billed))
    });
    format!(
        "{} tokens in{billed}, {answer}, {messages}{memories}",
        grouped_tokens(counted),
    )
}

fn step_line(recorded: &RecordedStep) -> String {
    let step = &recorded.step;
    let kind = match step.strategy {
        Some(strategy) => strategy.name(),
        None if step.kpis.is_some() => "kpis",
        None if step.is_correction() => "correct",
        None => "prompt",
    };
    let tokens = grouped_tokens(step.tokens);
    let join = draw::plain(&Join::from(&step.result).phrase());
    let kpi = step.kpi.map_or(String::new(), |kpi| {
        format!(", {kpi} % according to the model")
    });
    format!(
        "{:>4}  {kind:<9}  {tokens:>7} tokens  {join}{kpi}",
        step.iteration
    )
}
