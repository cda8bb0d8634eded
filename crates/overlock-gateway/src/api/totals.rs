//! Which runs are looked for, and what did they take together?

use std::collections::{BTreeMap, HashMap};

use overlock_budget::{Cost, Prices};
use overlock_model::Reason;
use serde::Serialize;

use super::cost::{Pricing, RunCost};
use super::runs::{ListedRun, Tally};

/// What a run can be called in a list: how it ended, or that it has not.
const STATES: [&str; 6] = [
    "complete",
    "partial",
    "failed",
    "cancelled",
    "running",
    "left",
];

/// The runs that are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// In one of these states; in any, if there are none.
    states: Vec<&'static str>,
    /// With all of these words, which are in small letters.
    words: Vec<String>,
}

/// A word that is no state of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is no state of a run: there are {}", STATES.join(", "))]
pub struct StateError {
    /// The word.
    pub word: String,
}

impl Wanted {
    /// Runs in one of these states, with commas between, and with all of these words.
    ///
    /// ```
    /// use overlock_gateway::api::Wanted;
    ///
    /// assert!(Wanted::read("cancelled,left", "gpt-4o").is_ok());
    /// assert!(Wanted::read("whole", "").is_err());
    /// ```
    pub fn read(states: &str, words: &str) -> Result<Self, StateError> {
        let states = states.split(',').filter(|word| !word.is_empty());
        let states = states.map(|word| {
            let known = STATES.into_iter().find(|state| *state == word);
            known.ok_or_else(|| StateError {
                word: word.to_owned(),
            })
        });
        // What is too long for a list is shown with dots at its end.
        let words = words.split_whitespace();
        let words = words.map(|word| word.trim_matches('…').to_lowercase());
        Ok(Self {
            states: states.collect::<Result<_, _>>()?,
            words: words.collect(),
        })
    }

    /// Whether every run is wanted.
    pub fn is_any(&self) -> bool {
        self.states.is_empty() && self.words.is_empty()
    }

    /// Whether a run is wanted.
    pub fn has(&self, run: &ListedRun<'_>) -> bool {
        let state = state(run);
        if !self.states.is_empty() && !self.states.contains(&state) {
            return false;
        }
        if self.words.is_empty() {
            return true;
        }
        let text = told(run, state).to_lowercase();
        self.words.iter().all(|word| text.contains(word))
    }
}

/// What a run is called in a list.
fn state(run: &ListedRun<'_>) -> &'static str {
    match run.outcome {
        // Whatever was there by then.
        Some(_) if run.reason == Some(Reason::Cancelled) => "cancelled",
        Some(outcome) => outcome,
        None if run.left => "left",
        None => "running",
    }
}

/// All that is told of a run by which it may be found: its names, and the words of the page.
fn told(run: &ListedRun<'_>, state: &str) -> String {
    // As people are told it.
    let word = match state {
        "complete" => "whole",
        "cancelled" => "stopped",
        "left" => "broken off",
        other => other,
    };
    let called = match &run.pipeline {
        Some(pipeline) => format!("{pipeline} · {}", run.model),
        None => run.model.to_owned(),
    };
    let models = run.used.iter().flatten().map(|(model, _)| model.as_str());
    let models: Vec<&str> = models.collect();
    [
        run.id.as_str(),
        &called,
        &models.join(" "),
        state,
        word,
        run.reason.map_or("", |reason| reason.name()),
        run.stopped_at.as_ref().map_or("", |at| &at.told),
        run.unfit.as_ref().map_or("", |unfit| &unfit.message),
        &line(run),
    ]
    .join(" ")
}

/// The line below the name of a run in the list of the page, without what is told only while it
/// runs.
fn line(run: &ListedRun<'_>) -> String {
    let fault = run.upstream_fault.as_ref().map(|fault| {
        let status = fault.status.map(|status| format!("{status} "));
        format!("{}{}", status.unwrap_or_default(), fault.message)
    });
    let why = match (&run.unfit, run.reason, &run.stopped_at) {
        (Some(unfit), ..) => format!(
            "{} {} too many for the window",
            grouped(unfit.overflow),
            if unfit.overflow == 1 {
                "token"
            } else {
                "tokens"
            },
        ),
        (None, Some(reason), _) => match fault {
            Some(fault) => format!("{}: {fault}", in_words(reason)),
            None => in_words(reason).to_owned(),
        },
        (None, None, Some(at)) => match &at.why {
            Some(why) => format!("in {}: {why}", at.step_id),
            None => format!("in {}", at.step_id),
        },
        (None, None, None) if run.elsewhere => {
            "not at this gateway, but perhaps at another".to_owned()
        }
        (None, None, None) => String::new(),
    };
    let cut = run.cut.as_ref().map(|cut| {
        let path = if cut.path.is_empty() {
            "the root"
        } else {
            &cut.path
        };
        format!("stops {} at {path}", cut.place.phrase())
    });
    let dropped = run.tally.map_or(0, |tally| tally.dropped_messages);
    let left_out = (dropped > 0).then(|| {
        let messages = if dropped == 1 { "message" } else { "messages" };
        format!("{} older {messages} left out", grouped(dropped))
    });
    let parts = [Some(why), cut, left_out].into_iter().flatten();
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

/// Why a run ended before its document was whole, in the few words of the page.
const fn in_words(reason: Reason) -> &'static str {
    match reason {
        Reason::MergeFailures => "answers could not be joined",
        Reason::NoProgress => "answers added nothing new",
        Reason::Repeating => "model repeats itself",
        Reason::KpiStalled => "no progress by the model’s own count",
        Reason::IterationLimit => "limit on attempts",
        Reason::TokenLimit => "limit on tokens",
        Reason::Deadline => "time limit",
        Reason::Window => "window full",
        Reason::Cancelled => "client disconnected",
        Reason::ModelError => "model error",
        Reason::ContentFilter => "content filter",
        Reason::Refusal => "declined",
        Reason::NoJson => "no JSON in the answer",
        Reason::NotContinued => "cut off, not continued",
        Reason::NoFinish => "no end was told",
        Reason::SchemaViolation => "schema violated",
    }
}

/// A number as the page writes it, with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut told = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

/// What runs took together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// How many were looked at.
    pub looked_at: u64,
    /// Whether these are all that there are.
    pub is_all: bool,
    /// How many of them were wanted.
    pub runs: u64,
    /// How many of those are in which state.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// The tokens of their prompts.
    pub input_tokens: u64,
    /// The tokens of their answers.
    pub output_tokens: u64,
    /// Tokens paid relative to one uncut answer each, of those where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ratio: Option<f64>,
    /// The share of input tokens from a prompt cache, of those whose providers report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_hit_rate: Option<f64>,
    /// How many of them have models with prices.
    pub priced: u64,
    /// How many of them asked a model of which it is not known what that cost.
    pub unpriced: u64,
    /// What those cost together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<RunCost>,
}

/// Adds runs up.
pub struct Adding<'a> {
    pricing: &'a Pricing,
    totals: Totals,
    cost: Cost,
    /// The tokens of runs whose overhead is known.
    compared: Tally,
    /// The tokens of runs whose cached input tokens are known.
    cached: Tally,
    /// What was found for each model.
    prices: HashMap<String, Option<Prices>>,
}

impl<'a> Adding<'a> {
    /// Nothing yet.
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

    /// One more that was looked at, and may be wanted.
    pub fn look_at(&mut self, run: &ListedRun<'_>, wanted: &Wanted) {
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
        for (model, usage) in run.took() {
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

    /// The sums, of all runs that there are or of the last ones.
    pub fn summed(self, is_all: bool) -> Totals {
        let cost = (self.totals.priced > 0).then(|| self.pricing.told(self.cost));
        Totals {
            is_all,
            cost,
            cost_ratio: self.compared.cost_ratio(),
            cache_hit_rate: self.cached.cache_hit_rate(),
            ..self.totals
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;

    /// The words of the page, which speaks for itself.
    const PAGE: &str = include_str!("../../page/words.js");

    /// The members of a table of the page, each with the last text of its value.
    fn table<T: DeserializeOwned>(name: &str) -> Vec<(T, String)> {
        let (_, table) = PAGE
            .split_once(&format!("const {name} = {{\n"))
            .expect("a table");
        let (table, _) = table.split_once("\n};").expect("its end");
        let mut members: Vec<String> = Vec::new();
        for line in table.lines() {
            match members.last_mut() {
                Some(member) if line.starts_with("   ") => {
                    member.push_str(line);
                }
                Some(member) if line == "  ]," => member.push_str(line),
                _ => members.push(line.to_owned()),
            }
        }
        let read = members.iter().map(|member| {
            let (name, value) = member.split_once(':').expect("a name");
            let name = Value::from(name.trim().trim_matches('\''));
            let words = value.rsplit('\'').nth(1).expect("a text");
            (
                serde_json::from_value(name).expect("a known name"),
                words.to_owned(),
            )
        });
        read.collect()
    }

    #[test]
    fn runs_are_found_by_the_words_that_the_page_shows() {
        let reasons = table::<Reason>("REASONS");
        assert_eq!(reasons.len(), 16);
        for (reason, words) in reasons {
            assert_eq!(in_words(reason), words, "{reason:?}");
        }
        let places = table::<overlock_json::Place>("PLACES");
        assert_eq!(places.len(), 11);
        for (one, words) in places {
            assert_eq!(one.phrase(), words, "{one:?}");
        }
    }

    #[test]
    fn numbers_are_written_as_on_the_page() {
        let told = [0, 70, 1000, 48_230, 1_234_567].map(grouped);
        assert_eq!(told, ["0", "70", "1,000", "48,230", "1,234,567"]);
    }
}
