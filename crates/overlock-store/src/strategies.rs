//! Which strategies have worked for the models of a server.
//!
//! Names of models come from clients, so that the number of results and the length of names are
//! bounded here, for whoever writes.

use crate::StoreError;

/// What a store keeps of strategies. Results are added by
/// [`Writes::add_strategy_result`](crate::Writes::add_strategy_result).
pub trait Strategies {
    /// The results of all models of a server, the oldest first.
    fn strategy_results(&self, server: &str) -> Result<Vec<StrategyResult>, StoreError>;
}

/// What one run has shown about strategies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyResult {
    /// The model.
    pub model: String,
    /// When the run ended, in milliseconds since 1970.
    pub at: u64,
    /// The results, in the words of whoever added them.
    pub results: String,
}

/// So many results of one model of a server are kept.
pub(crate) const PER_MODEL: i64 = 50;

/// So many results are kept in all, which are those of a hundred models.
pub(crate) const IN_ALL: i64 = 100 * PER_MODEL;

/// Results are kept if no name is longer, in bytes.
const LONGEST_NAME: usize = 256;

/// Whether results under these names are kept.
pub(crate) fn are_kept(server: &str, model: &str) -> bool {
    server.len().max(model.len()) <= LONGEST_NAME
}
