//! Filters runs and adds up their totals.

use std::collections::{BTreeMap, HashMap};

use overlock_budget::{Cost, Prices};
use overlock_llm::Reason;
use serde::Serialize;

use crate::cost::{Pricing, RunCost};
use crate::runs::ListedRun;
use crate::tally::Tally;

/// The states of runs in a list.
const STATES: [&str; 6] = [
    "complete",
    "partial",
    "failed",
    "cancelled",
    "running",
    "interrupted",
];

/// A filter of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Runs in one of these states; any state if empty.
    states: Vec<&'static str>,
    /// Runs that contain all of these words, in lower case.
    words: Vec<String>,
}

/// An unknown state in a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not a run state; the states are {}", STATES.join(", "))]
pub struct StateError {
    /// The word.
    pub word: String,
}

impl RunFilter {
    /// Parses a comma-separated list of states and a list of words.
    ///
    /// ```
    /// use overlock_runs::RunFilter;
    ///
    /// assert!(RunFilter::read("cancelled,interrupted", "gpt-4o").is_ok());
    /// assert!(RunFilter::read("whole", "").is_err());
    /// ```
    pub fn read(states: &str, words: &str) -> Result<Self, StateError> {
        let states = states.split(',').filter(|word| !word.is_empty());
        let states = states.map(|word| {
            let known = STATES.into_iter().find(|state| *state == word);
            known.ok_or_else(|| StateError {
                word: word.to_owned(),
            })
        });
        // Long names in a list are shortened with an ellipsis, and may be pasted from there.
        let words = words.split_whitespace();
        let words = words.map(|word| word.trim_matches('…').to_lowercase());
        Ok(Self {
            states: states.collect::<Result<_, _>>()?,
            words: words.collect(),
        })
    }

    /// Whether it matches every run.
    pub fn is_any(&self) -> bool {
        self.states.is_empty() && self.words.is_empty()
    }

    /// Whether it matches a run.
    pub fn has(&self, run: &ListedRun<'_>) -> bool {
        let state = state(run);
        if !self.states.is_empty() && !self.states.contains(&state) {
            return false;
        }
        if self.words.is_empty() {
            return true;
        }
        let text = searched(run, state).to_lowercase();
        self.words.iter().all(|word| text.contains(word))
    }
}

/// The state of a run in a list.
fn state(run: &ListedRun<'_>) -> &'static str {
    match run.outcome {
        // Cancelled runs can be partial or failed.
        Some(_) if run.reason == Some(Reason::Cancelled) => "cancelled",
        Some(outcome) => outcome,
        None if run.interrupted => "interrupted",
        None => "running",
    }
}

/// The text of a run that is searched: its names, state, reason, the step at which it stopped, and
/// its errors.
fn searched(run: &ListedRun<'_>, state: &str) -> String {
    let mut text = [run.id.as_str(), run.model, state].join(" ");
    let models = run.used.iter().flat_map(BTreeMap::keys).map(String::as_str);
    let stopped_at = run.stopped_at.iter();
    let fault = run.upstream_fault.as_ref();
    let status = fault
        .and_then(|fault| fault.status)
        .map(|it| it.to_string());
    let more = models
        .chain(run.pipeline.as_deref())
        .chain(run.reason.map(Reason::name))
        .chain(
            stopped_at.flat_map(|at| [&*at.step_id, &*at.error, at.why.as_deref().unwrap_or("")]),
        )
        .chain(status.as_deref())
        .chain(fault.map(|fault| &*fault.message))
        .chain(run.unfit.as_ref().map(|unfit| &*unfit.message));
    for word in more {
        text.push(' ');
        text.push_str(word);
    }
    text
}

/// The totals of several runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// The number of runs examined.
    pub looked_at: u64,
    /// Whether all runs were examined.
    pub is_all: bool,
    /// The number of matching runs.
    pub runs: u64,
    /// The number of matching runs by state.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// The tokens of their prompts.
    pub input_tokens: u64,
    /// The tokens of their answers.
    pub output_tokens: u64,
    /// Tokens paid relative to one uncut answer each, over the runs where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ratio: Option<f64>,
    /// The share of input tokens from a prompt cache, over the runs whose providers report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_hit_rate: Option<f64>,
    /// The number of runs whose models have prices.
    pub priced: u64,
    /// The number of runs with calls of unknown cost.
    pub unpriced: u64,
    /// The total cost of the priced runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<RunCost>,
}

/// Adds up runs.
pub struct TotalsBuilder<'a> {
    pricing: &'a Pricing,
    totals: Totals,
    cost: Cost,
    /// The tokens of runs whose overhead is known.
    compared: Tally,
    /// The tokens of runs whose cached input tokens are known.
    cached: Tally,
    /// The looked-up prices by model.
    prices: HashMap<String, Option<Prices>>,
}

impl<'a> TotalsBuilder<'a> {
    /// Starts with no runs.
    pub fn new(pricing: &'a Pricing) -> Self {
        Self {
            pricing,
            totals: Totals::default(),
            cost: Cost::default(),
            compared: Tally::default(),
            cached: Tally::default(),
            prices: HashMap::new(),
        }
    }

    /// Examines a run, and counts it if it matches.
    pub fn look_at(&mut self, run: &ListedRun<'_>, wanted: &RunFilter) {
        self.totals.looked_at += 1;
        if !wanted.has(run) {
            return;
        }
        self.totals.runs += 1;
        *self.totals.outcomes.entry(state(run)).or_default() += 1;
        if let Some(tally) = &run.tally {
            let sums = &mut self.totals;
            sums.input_tokens = sums.input_tokens.saturating_add(tally.input_tokens);
            sums.output_tokens = sums.output_tokens.saturating_add(tally.output_tokens);
            if tally.cost_ratio().is_some() {
                self.compared += tally;
            }
            if tally.cache_hit_rate().is_some() {
                self.cached += tally;
            }
        }
        if let Some(cost) = self.cost_of(run) {
            self.totals.priced += 1;
            self.cost = [self.cost, cost].into_iter().sum();
        } else if run.tally.is_some_and(|tally| tally.is_of_calls()) {
            self.totals.unpriced += 1;
        }
    }

    fn cost_of(&mut self, run: &ListedRun<'_>) -> Option<Cost> {
        let mut sum = None;
        for (model, usage) in run.usage_by_model() {
            let cost = self.prices_of(model)?;
            let cost = cost.cost(usage.input, usage.cached.unwrap_or_default(), usage.output);
            sum = Some([sum.unwrap_or_default(), cost].into_iter().sum());
        }
        sum
    }

    fn prices_of(&mut self, model: &str) -> Option<Prices> {
        if let Some(known) = self.prices.get(model) {
            return *known;
        }
        let prices = self.pricing.prices(model);
        self.prices.insert(model.to_owned(), prices);
        prices
    }

    /// The totals; `is_all` if all runs were examined.
    pub fn summed(self, is_all: bool) -> Totals {
        let cost = (self.totals.priced > 0).then(|| self.pricing.run_cost(self.cost));
        Totals {
            is_all,
            cost,
            cost_ratio: self.compared.cost_ratio(),
            cache_hit_rate: self.cached.cache_hit_rate(),
            ..self.totals
        }
    }
}
