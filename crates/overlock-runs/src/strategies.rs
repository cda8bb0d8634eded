//! Stores the results of continuation strategies.

use overlock_llm::{StrategyHistory, StrategyResults};
use overlock_store::StrategyResult;

/// The results of a run with a model, to be stored.
pub fn stored_result(model: &str, at: u64, results: &StrategyResults) -> StrategyResult {
    StrategyResult {
        model: model.to_owned(),
        at,
        results: serde_json::to_string(results).unwrap_or_default(),
    }
}

/// Adds a stored result to the history of its model. A result in an unknown format is ignored.
pub fn add_stored(history: &mut StrategyHistory, stored: &StrategyResult) {
    if let Ok(results) = serde_json::from_str(&stored.results) {
        history.add(stored.at, results);
    }
}
