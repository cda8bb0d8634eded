//! Continuation strategies that worked for a model: read from the store before a run, and updated
//! after it.
//!
//! Store errors are ignored, since a run only needs this to choose a better first strategy.

use overlock_llm::{Strategy, StrategyHistory, StrategyResults};
use overlock_runs::{add_stored, stored_result};
use overlock_store::{Store, Writes};

use crate::runs;

/// A model on a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerModel<'a> {
    /// The identity of the server.
    pub(crate) server: &'a str,
    pub(crate) model: &'a str,
}

/// Orders strategies by how well they have worked.
pub(crate) fn order(store: &dyn Store, on: ServerModel<'_>, prior: &[Strategy]) -> Vec<Strategy> {
    let stored = store.strategy_results(on.server).unwrap_or_default();
    let mut history = StrategyHistory::default();
    for result in stored.iter().filter(|result| result.model == on.model) {
        add_stored(&mut history, result);
    }
    history.order(prior, runs::now())
}

/// Adds the results of a run.
pub(crate) fn add(store: &dyn Store, on: ServerModel<'_>, results: &StrategyResults) {
    let stored = stored_result(on.model, runs::now(), results);
    let add = |writes: &mut dyn Writes| writes.add_strategy_result(on.server, &stored);
    let _ = store.transaction(add);
}
