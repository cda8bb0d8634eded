//! Which strategies have worked for a model, and in which order should they be tried next?
//!
//! A run reports one result for each strategy that it used. The last results of a model on a
//! server make its [`StrategyHistory`], which reorders the strategies. The time is passed in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::backend::Finding;
use crate::continuation::{Failure, Step, StepResult};
use crate::strategy::Strategy;

/// Whether each strategy that a run used worked in it.
///
/// A strategy worked if at least as many of its answers were joined as failed. An answer failed if
/// it could not be joined, or if the upstream refused the call although it took a call with another
/// strategy. Broken streams, timeouts, content filters and limits are not failures of a strategy.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StrategyResults(BTreeMap<Strategy, bool>);

impl StrategyResults {
    /// Whether the run has no result for any strategy.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a strategy worked; `None` if the run did not use it.
    pub fn worked(&self, strategy: Strategy) -> Option<bool> {
        self.0.get(&strategy).copied()
    }
}

impl FromIterator<(Strategy, bool)> for StrategyResults {
    fn from_iter<T: IntoIterator<Item = (Strategy, bool)>>(results: T) -> Self {
        Self(results.into_iter().collect())
    }
}

/// Counts the answers to each strategy in one run.
#[derive(Debug, Default)]
pub(crate) struct StrategyTally(BTreeMap<Strategy, AnswerCounts>);

#[derive(Debug, Default)]
struct AnswerCounts {
    joined: u32,
    failed: u32,
    refused: u32,
}

impl StrategyTally {
    /// Counts an answer, unless something other than its strategy made it fail.
    pub(crate) fn add(&mut self, step: &Step) {
        let Some(strategy) = step.strategy else {
            return;
        };
        let counts = self.0.entry(strategy).or_default();
        match &step.result {
            StepResult::Grown { .. } => counts.joined += 1,
            StepResult::Failed { failure, .. } => {
                counts.failed += u32::from(is_of_strategy(failure, step));
            }
        }
    }

    /// Counts a call that the upstream refused for another reason than its size.
    pub(crate) fn add_refusal(&mut self, strategy: Strategy) {
        self.0.entry(strategy).or_default().refused += 1;
    }

    pub(crate) fn results(&self) -> StrategyResults {
        let result = |(strategy, counts): (&Strategy, &AnswerCounts)| {
            // An upstream that rejects every call does not reject the strategy.
            let takes_others = self
                .0
                .iter()
                .any(|(other, counts)| other != strategy && counts.joined + counts.failed > 0);
            let refused = if takes_others { counts.refused } else { 0 };
            let failed = counts.failed + refused;
            (counts.joined + failed > 0).then_some((*strategy, counts.joined >= failed))
        };
        self.0.iter().filter_map(result).collect()
    }
}

/// Whether the failure of an answer says something about its strategy.
fn is_of_strategy(failure: &Failure, step: &Step) -> bool {
    let finish = step.end.finish.as_deref();
    if step.end.broken.is_some() || finish == Some("content_filter") {
        return false;
    }
    match failure {
        // An answer cut at its limit may have had no room for new text.
        Failure::Empty | Failure::Repeat => finish != Some("length"),
        Failure::NoJson
        | Failure::Unclear
        | Failure::Ambiguous
        | Failure::NoMatch { .. }
        | Failure::MarkerInAnswer => true,
        Failure::Declined
        | Failure::Cancelled
        | Failure::Refused { .. }
        | Failure::Uncorrected { .. }
        | Failure::NoKpis { .. } => false,
    }
}

/// The results of the last 50 runs with one model on one version of a server.
///
/// [`order`](Self::order) starts from the prior order of the strategies and changes it by two
/// rules:
///
/// 1. A strategy moves behind another one only on clear evidence: it was used in at least four of
///    the runs, and the 95 % confidence interval (Wilson score) of its success rate lies entirely
///    below that of the other. Four failures against four successes are enough; five failures in
///    fifty runs are not. Results older than the last 50 runs do not count, so that a strategy
///    that fell behind is tried again.
/// 2. A strategy that failed in its last two runs is demoted: it comes last until an hour after
///    the last failure, and then returns to its place by rule 1.
///
/// ```
/// use overlock_llm::{StrategyHistory, Strategy};
///
/// let hour = 60 * 60 * 1000;
/// let prior = [Strategy::Overlap, Strategy::Remainder];
/// let mut history = StrategyHistory::default();
/// for at in [1, 2] {
///     history.add(at, [(Strategy::Overlap, false), (Strategy::Remainder, true)].into_iter().collect());
/// }
/// assert_eq!(history.order(&prior, 3), [Strategy::Remainder, Strategy::Overlap]);
/// assert_eq!(history.order(&prior, 3 + hour), prior);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StrategyHistory {
    /// When each run ended, in milliseconds since 1970, and its results. At most [`MOST_RUNS`].
    runs: BTreeSet<(u64, StrategyResults)>,
}

/// The maximum of runs in a history.
const MOST_RUNS: usize = 50;

/// A strategy with fewer results keeps its place.
const FEWEST_RESULTS: u32 = 4;

/// How long a strategy is demoted, in milliseconds.
const DEMOTION: u64 = 60 * 60 * 1000;

/// The quantile of the normal distribution for a confidence of 95 %.
const Z: f64 = 1.96;

/// The subject of findings about the order of the strategies.
const STRATEGY: &str = "strategy";

impl StrategyHistory {
    /// Adds a run that ended at a time, in milliseconds since 1970. Adding a run twice changes
    /// nothing, so that the histories of several processes can be merged.
    pub fn add(&mut self, at: u64, results: StrategyResults) {
        if results.is_empty() {
            return;
        }
        self.runs.insert((at, results));
        if self.runs.len() > MOST_RUNS {
            self.runs.pop_first();
        }
    }

    /// These strategies in the order in which they should be tried at a time.
    pub fn order(&self, prior: &[Strategy], now: u64) -> Vec<Strategy> {
        let mut left = prior.to_vec();
        let mut order = Vec::with_capacity(left.len());
        // `is_worse` is a strict partial order, so there is always a best one.
        while let Some(best) = left
            .iter()
            .position(|strategy| !left.iter().any(|other| self.is_worse(*strategy, *other)))
        {
            order.push(left.remove(best));
        }
        order.sort_by_key(|strategy| self.demoted_for(*strategy, now).is_some());
        order
    }

    /// The order of the strategies for a model and the figures behind it; `None` if it is the
    /// prior order and no strategy is demoted.
    pub fn finding(&self, model: &str, prior: &[Strategy], now: u64) -> Option<Finding> {
        let order = self.order(prior, now);
        let demoted = |strategy: &Strategy| Some((*strategy, self.demoted_for(*strategy, now)?));
        let demoted: Vec<_> = order.iter().filter_map(demoted).collect();
        if order == prior && demoted.is_empty() {
            return None;
        }
        let figures = order.iter().map(|strategy| {
            let (worked, used) = self.figures(*strategy);
            format!("{} worked in {worked} of {used}", strategy.name())
        });
        let figures: Vec<String> = figures.collect();
        let mut source = format!("the last {} runs: {}", self.runs.len(), figures.join(", "));
        for (strategy, left) in demoted {
            let minutes = left.div_ceil(60 * 1000);
            let name = strategy.name();
            let _ = write!(
                source,
                "; {name} failed twice in a row and is tried last for {minutes} more minutes"
            ); // writing to a string cannot fail
        }
        let names: Vec<&str> = order.iter().map(|strategy| strategy.name()).collect();
        Some(Finding {
            subject: STRATEGY,
            value: format!("{} for `{model}`", names.join(", ")),
            source,
        })
    }

    /// In how many runs a strategy worked, and in how many it was used.
    fn figures(&self, strategy: Strategy) -> (u32, u32) {
        self.results(strategy)
            .fold((0, 0), |(worked, used), (_, result)| {
                (worked + u32::from(result), used + 1)
            })
    }

    /// Whether a strategy worked, with the time, the latest run first.
    fn results(&self, strategy: Strategy) -> impl Iterator<Item = (u64, bool)> {
        let runs = self.runs.iter().rev();
        runs.filter_map(move |(at, results)| Some((*at, results.worked(strategy)?)))
    }

    /// Whether the success rate of a strategy is clearly below that of another.
    fn is_worse(&self, strategy: Strategy, other: Strategy) -> bool {
        let (worked, used) = self.figures(strategy);
        let (other_worked, other_used) = self.figures(other);
        used >= FEWEST_RESULTS
            && other_used > 0
            && interval(worked, used).1 < interval(other_worked, other_used).0
    }

    /// For how many more milliseconds a strategy is demoted, if it is.
    fn demoted_for(&self, strategy: Strategy, now: u64) -> Option<u64> {
        let mut last = self.results(strategy);
        let (Some((at, false)), Some((_, false))) = (last.next(), last.next()) else {
            return None;
        };
        // A clock that was set back must not demote for longer.
        let left = DEMOTION.checked_sub(now.abs_diff(at))?;
        (left > 0).then_some(left)
    }
}

/// The Wilson score interval of a success rate.
fn interval(worked: u32, used: u32) -> (f64, f64) {
    let used = f64::from(used);
    let rate = f64::from(worked) / used;
    let spread = Z * Z / used;
    let centre = rate + spread / 2.0;
    let margin = (spread * (rate * (1.0 - rate) + spread / 4.0)).sqrt();
    let scale = 1.0 + spread;
    ((centre - margin) / scale, (centre + margin) / scale)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::continuation::StepEnd;
    use crate::strategy::Strategy;
    use proptest::strategy::Strategy as _;

    const STRATEGIES: [Strategy; 3] = [Strategy::Prefill, Strategy::Overlap, Strategy::Remainder];
    const MINUTE: u64 = 60 * 1000;

    fn history(runs: &[&[(Strategy, bool)]]) -> StrategyHistory {
        let mut history = StrategyHistory::default();
        for (at, results) in (1..).zip(runs) {
            history.add(at * MINUTE, results.iter().copied().collect());
        }
        history
    }

    /// The order long after the last run, when nothing is demoted any more.
    #[track_caller]
    fn check_learnt(history: &StrategyHistory, order: &[Strategy]) {
        assert_eq!(
            history.order(&STRATEGIES, 1000 * MINUTE),
            order,
            "{history:?}"
        );
    }

    #[test]
    fn four_clear_failures_move_a_strategy_back_and_three_do_not() {
        let run: &[(Strategy, bool)] = &[(Strategy::Prefill, false), (Strategy::Overlap, true)];
        check_learnt(&history(&[run; 3]), &STRATEGIES);
        let order = [Strategy::Overlap, Strategy::Prefill, Strategy::Remainder];
        check_learnt(&history(&[run; 4]), &order);
    }

    #[test]
    fn a_few_random_failures_do_not_change_a_good_order() {
        let good: &[(Strategy, bool)] = &[(Strategy::Prefill, true)];
        let bad: &[(Strategy, bool)] = &[(Strategy::Prefill, false), (Strategy::Overlap, true)];
        let runs = (0..50).map(|number| if number % 5 == 0 { bad } else { good });
        let history = history(&runs.collect::<Vec<_>>());
        assert_eq!(history.figures(Strategy::Prefill), (40, 50));
        assert_eq!(history.figures(Strategy::Overlap), (10, 10));
        check_learnt(&history, &STRATEGIES);
    }

    #[test]
    fn failures_age_out_after_fifty_runs_so_that_a_strategy_is_tried_again() {
        let failed: &[(Strategy, bool)] = &[(Strategy::Prefill, false), (Strategy::Overlap, true)];
        let later: &[(Strategy, bool)] = &[(Strategy::Overlap, true)];
        let mut runs = vec![failed; 4];
        runs.resize(46, later);
        check_learnt(
            &history(&runs),
            &[Strategy::Overlap, Strategy::Prefill, Strategy::Remainder],
        );
        runs.resize(54, later);
        check_learnt(&history(&runs), &STRATEGIES);
    }

    #[test]
    fn one_failure_more_after_the_hour_demotes_again() {
        let mut history = history(&[&[(Strategy::Prefill, false)], &[(Strategy::Prefill, false)]]);
        let last = [Strategy::Overlap, Strategy::Remainder, Strategy::Prefill];
        assert_eq!(history.order(&STRATEGIES, 61 * MINUTE), last);
        assert_eq!(history.order(&STRATEGIES, 62 * MINUTE), STRATEGIES);
        let failed = [(Strategy::Prefill, false), (Strategy::Overlap, true)];
        history.add(63 * MINUTE, failed.into_iter().collect());
        assert_eq!(history.order(&STRATEGIES, 122 * MINUTE), last);
        let worked = [(Strategy::Prefill, true)];
        history.add(124 * MINUTE, worked.into_iter().collect());
        history.add(125 * MINUTE, failed.into_iter().collect());
        assert_eq!(history.order(&STRATEGIES, 126 * MINUTE), STRATEGIES);
    }

    #[test]
    fn a_clock_that_was_set_back_demotes_for_no_longer_than_an_hour() {
        let history = history(&[&[(Strategy::Prefill, false)], &[(Strategy::Prefill, false)]]);
        assert_eq!(history.order(&STRATEGIES, 0)[0], Strategy::Overlap);
        let mut later = StrategyHistory::default();
        for (at, results) in history.runs {
            later.add(at + DEMOTION, results);
        }
        assert_eq!(later.order(&STRATEGIES, 0), STRATEGIES);
    }

    #[test]
    fn the_order_is_explained_with_figures_where_it_differs() {
        let run: &[(Strategy, bool)] = &[(Strategy::Overlap, false), (Strategy::Remainder, true)];
        let history = history(&[run; 2]);
        let prior = [Strategy::Overlap, Strategy::Remainder];
        let finding = history.finding("m", &prior, 2 * MINUTE);
        assert_eq!(
            finding.expect("it differs").to_string(),
            "strategy: remainder, overlap for `m` (the last 2 runs: remainder worked in 2 of 2, \
             overlap worked in 0 of 2; overlap failed twice in a row and is tried last for 60 more \
             minutes)"
        );
        assert_eq!(history.finding("m", &prior, 100 * MINUTE), None);
        let demoted_at_the_end = [Strategy::Remainder, Strategy::Overlap];
        let finding = history.finding("m", &demoted_at_the_end, 2 * MINUTE);
        assert!(finding.is_some());
    }

    #[test]
    fn results_are_stored_by_name() {
        let results: StrategyResults = [(Strategy::Overlap, false), (Strategy::Remainder, true)]
            .into_iter()
            .collect();
        let stored = serde_json::to_string(&results).expect("JSON");
        assert_eq!(stored, r#"{"overlap":false,"remainder":true}"#);
        let read: StrategyResults = serde_json::from_str(&stored).expect("it was written so");
        assert_eq!(read, results);
    }

    fn grown() -> StepResult {
        StepResult::Grown {
            seam: "exact".to_owned(),
            overlap: 0,
            offset: 0,
            added_bytes: 1,
            added: String::new(),
            half_character: Vec::new(),
            scanned: 0,
        }
    }

    fn step(strategy: Option<Strategy>, result: StepResult, end: StepEnd) -> Step {
        Step {
            end,
            ..Step::new(2, strategy, 1, result)
        }
    }

    fn failed(failure: Failure) -> StepResult {
        StepResult::Failed { failure, raw: None }
    }

    fn finish(finish: &str) -> StepEnd {
        StepEnd {
            finish: Some(finish.to_owned()),
            ..StepEnd::default()
        }
    }

    #[track_caller]
    fn check_failure(failure: Failure, end: StepEnd, result: Option<bool>) {
        let mut tally = StrategyTally::default();
        let case = format!("{failure:?} {end:?}");
        tally.add(&step(Some(Strategy::Overlap), failed(failure), end));
        assert_eq!(tally.results().worked(Strategy::Overlap), result, "{case}");
    }

    #[test]
    fn only_failures_caused_by_a_strategy_count_against_it() {
        let no_match = || Failure::NoMatch {
            message: "it does not fit".to_owned(),
        };
        for failure in [
            no_match(),
            Failure::Empty,
            Failure::Repeat,
            Failure::Ambiguous,
        ] {
            check_failure(failure, finish("stop"), Some(false));
        }
        check_failure(no_match(), finish("length"), Some(false));
        check_failure(Failure::Repeat, finish("length"), None);
        check_failure(Failure::Empty, finish("length"), None);
        check_failure(no_match(), finish("content_filter"), None);
        check_failure(Failure::Declined, finish("stop"), None);
        check_failure(Failure::Cancelled, StepEnd::default(), None);
        let broken = StepEnd {
            broken: Some("the connection was reset".to_owned()),
            ..StepEnd::default()
        };
        check_failure(no_match(), broken, None);
    }

    #[test]
    fn the_first_answer_says_nothing_about_strategies() {
        let mut tally = StrategyTally::default();
        tally.add(&step(None, grown(), StepEnd::default()));
        assert!(tally.results().is_empty());
    }

    #[test]
    fn most_answers_decide_whether_a_strategy_worked_in_a_run() {
        let mut tally = StrategyTally::default();
        let mut add = |result| tally.add(&step(Some(Strategy::Overlap), result, finish("stop")));
        add(failed(Failure::Ambiguous));
        add(grown());
        assert_eq!(tally.results().worked(Strategy::Overlap), Some(true));
        let mut add = |result| tally.add(&step(Some(Strategy::Overlap), result, finish("stop")));
        add(failed(Failure::Repeat));
        assert_eq!(tally.results().worked(Strategy::Overlap), Some(false));
    }

    #[test]
    fn a_refusal_counts_only_if_another_strategy_is_accepted() {
        let mut tally = StrategyTally::default();
        tally.add_refusal(Strategy::Prefill);
        tally.add_refusal(Strategy::Overlap);
        assert!(tally.results().is_empty());
        tally.add(&step(
            Some(Strategy::Remainder),
            grown(),
            StepEnd::default(),
        ));
        let results = tally.results();
        assert_eq!(results.worked(Strategy::Prefill), Some(false));
        assert_eq!(results.worked(Strategy::Remainder), Some(true));
    }

    fn any_results() -> impl proptest::strategy::Strategy<Value = StrategyResults> {
        let strategy = prop::sample::select(STRATEGIES.to_vec());
        let results = prop::collection::vec((strategy, any::<bool>()), 0..4);
        results.prop_map(|results| results.into_iter().collect())
    }

    fn any_history() -> impl proptest::strategy::Strategy<Value = StrategyHistory> {
        let run = (0..200 * MINUTE, any_results());
        prop::collection::vec(run, 0..80).prop_map(|runs| {
            let mut history = StrategyHistory::default();
            for (at, results) in runs {
                history.add(at, results);
            }
            history
        })
    }

    proptest! {
        #[test]
        fn the_order_is_a_permutation_of_the_allowed_strategies(
            history in any_history(),
            allowed in prop::sample::subsequence(STRATEGIES.to_vec(), 0..=3).prop_shuffle(),
            now in 0..300 * MINUTE,
        ) {
            let order = history.order(&allowed, now);
            prop_assert_eq!(order.len(), allowed.len());
            prop_assert!(allowed.iter().all(|strategy| order.contains(strategy)));
        }

        #[test]
        fn without_evidence_the_order_is_the_prior(
            prior in Just(STRATEGIES.to_vec()).prop_shuffle(),
            now in any::<u64>(),
        ) {
            prop_assert_eq!(StrategyHistory::default().order(&prior, now), prior);
        }

        #[test]
        fn two_failures_in_a_row_put_a_strategy_last_for_an_hour(
            history in any_history(),
            strategy in prop::sample::select(STRATEGIES.to_vec()),
            after in 0..DEMOTION,
        ) {
            let mut history = history;
            let (one, two) = (201 * MINUTE, 202 * MINUTE);
            // The others are not demoted, so that the last place is free.
            let results = STRATEGIES.map(|other| (other, other != strategy));
            for at in [one, two] {
                history.add(at, results.into_iter().collect());
            }
            prop_assert_eq!(history.order(&STRATEGIES, two + after)[2], strategy);
            // After the hour only the evidence counts.
            let later = history.order(&STRATEGIES, two + DEMOTION);
            let learnt = history.order(&STRATEGIES, u64::MAX);
            prop_assert_eq!(later, learnt);
        }

        #[test]
        fn memory_is_bounded_and_the_latest_runs_stay(history in any_history()) {
            let mut history = history;
            for at in 0..60 {
                history.add(1000 * MINUTE + at, [(Strategy::Overlap, true)].into_iter().collect());
            }
            prop_assert_eq!(history.runs.len(), MOST_RUNS);
            prop_assert_eq!(history.figures(Strategy::Overlap), (50, 50));
        }

        #[test]
        fn a_run_that_is_added_twice_counts_once(history in any_history()) {
            let mut again = history.clone();
            for (at, results) in history.runs.clone() {
                again.add(at, results);
            }
            prop_assert_eq!(again, history);
        }
    }
}
