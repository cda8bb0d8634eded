//! Which strategies have worked for a model: read from the store before a run, and added after it.
//!
//! A run does not depend on either: what cannot be read is unknown, and what cannot be written is
//! learnt again.

use overlock_llm::{Strategy, StrategyHistory, StrategyResults};
use overlock_runs::{add_stored, stored_result};
use overlock_store::{Store, Writes};

use crate::runs;

/// A model on a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerModel<'a> {
    /// What the server is known by.
    pub(crate) server: &'a str,
    pub(crate) model: &'a str,
}

/// These strategies in the order that was learnt.
pub(crate) fn order(store: &dyn Store, of: ServerModel<'_>, prior: &[Strategy]) -> Vec<Strategy> {
    let stored = store.strategy_results(of.server).unwrap_or_default();
    let mut history = StrategyHistory::default();
    for result in stored.iter().filter(|result| result.model == of.model) {
        add_stored(&mut history, result);
    }
    history.order(prior, runs::now())
}

/// Adds what a run has shown.
pub(crate) fn add(store: &dyn Store, of: ServerModel<'_>, results: &StrategyResults) {
    let stored = stored_result(of.model, runs::now(), results);
    let add = |writes: &mut dyn Writes| writes.add_strategy_result(of.server, &stored);
    let _ = store.together(add);
}
