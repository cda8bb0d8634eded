//! The success of strategies with the models of the upstream.
//!
//! Results are kept in memory and written to the store without waiting. Each discovery of the
//! upstream reads the store, so that gateways and commands with one store share results.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use overlock_llm::{Finding, Strategy, StrategyHistory, StrategyResults};
use overlock_store::StrategyResult;

use overlock_runs::add_stored;

/// The most models with results. Names come from clients, so their number is limited.
const MOST_MODELS: usize = 256;

/// The longest name of a model with results.
const LONGEST_NAME: usize = 256;

/// The time limit for reading the store.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// The results of strategies with the models of one version of a server.
#[derive(Default)]
pub(crate) struct KnownStrategies {
    state: RwLock<ServerStrategies>,
}

#[derive(Default)]
struct ServerStrategies {
    /// The identity of the server.
    server: String,
    models: HashMap<String, StrategyHistory>,
}

impl KnownStrategies {
    pub(crate) fn order(&self, model: &str, prior: Vec<Strategy>, now: u64) -> Vec<Strategy> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        match state.models.get(model) {
            Some(history) => history.order(&prior, now),
            None => prior,
        }
    }

    /// Adds the results of a run and returns the identity of the server.
    pub(crate) fn add(&self, model: &str, at: u64, results: StrategyResults) -> String {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(history) = state.history(model) {
            history.add(at, results);
        }
        state.server.clone()
    }

    /// Adds results from the store. Another version of the server discards earlier results.
    pub(crate) fn merge(&self, server: &str, stored: &[StrategyResult]) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.server != server {
            state.models.clear();
            server.clone_into(&mut state.server);
        }
        for result in stored {
            if let Some(history) = state.history(&result.model) {
                add_stored(history, result);
            }
        }
    }

    pub(crate) fn findings(&self, prior: &[Strategy], now: u64) -> Vec<Finding> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let mut models: Vec<_> = state.models.iter().collect();
        models.sort_unstable_by_key(|(model, _)| *model);
        let models = models.into_iter();
        models
            .filter_map(|(model, history)| history.finding(model, prior, now))
            .collect()
    }
}

impl ServerStrategies {
    /// The history of a model, unless the limits are reached.
    fn history(&mut self, model: &str) -> Option<&mut StrategyHistory> {
        if model.len() > LONGEST_NAME {
            return None;
        }
        if !self.models.contains_key(model) && self.models.len() >= MOST_MODELS {
            return None;
        }
        Some(self.models.entry(model.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use overlock_llm::strategies_for_prefill;

    use super::*;
    use overlock_runs::stored_result;

    fn failed() -> StrategyResults {
        let results = [(Strategy::Overlap, false), (Strategy::Remainder, true)];
        results.into_iter().collect()
    }

    #[test]
    fn another_version_of_a_server_discards_results() {
        let known = KnownStrategies::default();
        let prior = strategies_for_prefill(false);
        known.merge("server 1", &[]);
        for at in [1, 2] {
            assert_eq!(known.add("model", at, failed()), "server 1");
        }
        let learnt = [Strategy::Remainder, Strategy::Overlap];
        assert_eq!(known.order("model", prior.clone(), 3), learnt);
        assert_eq!(known.order("other", prior.clone(), 3), prior);
        known.merge("server 1", &[]);
        assert_eq!(known.order("model", prior.clone(), 3), learnt);
        known.merge("server 2", &[]);
        assert_eq!(known.order("model", prior.clone(), 3), prior);
        let stored = [1, 2].map(|at| stored_result("model", at, &failed()));
        known.merge("server 2", &stored);
        assert_eq!(known.order("model", prior.clone(), 3), learnt);
    }

    #[test]
    fn ignores_results_of_a_later_version() {
        let known = KnownStrategies::default();
        let mut stored = [1, 2].map(|at| stored_result("model", at, &failed()));
        stored[1].results = r#"{"overlap": false, "frames": true}"#.to_owned();
        known.merge("server", &stored);
        let prior = strategies_for_prefill(false);
        assert_eq!(known.order("model", prior.clone(), 3), prior);
    }

    #[test]
    fn limits_the_remembered_names() {
        let known = KnownStrategies::default();
        known.add(&"x".repeat(LONGEST_NAME + 1), 1, failed());
        for number in 0..2 * MOST_MODELS {
            known.add(&format!("model-{number}"), 1, failed());
        }
        let state = known.state.read().expect("no panic");
        assert_eq!(state.models.len(), MOST_MODELS);
        assert!(state.models.keys().all(|name| name.len() <= LONGEST_NAME));
    }
}
