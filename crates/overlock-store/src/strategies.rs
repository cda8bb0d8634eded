//! Which strategies have worked for the models of a server.
//!
//! Clients choose the names of models, so the number of results and the length of names are bounded
//! here.

use crate::StoreError;

/// Reads results of strategies. They are added by
/// [`Writes::add_strategy_result`](crate::Writes::add_strategy_result).
pub trait Strategies {
    /// The results of all models of a server, the oldest first.
    fn strategy_results(&self, server: &str) -> Result<Vec<StrategyResult>, StoreError>;
}

/// The results of the strategies of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyResult {
    /// The model.
    pub model: String,
    /// When the run ended, in milliseconds since 1970.
    pub at: u64,
    /// The results, in the format of the caller.
    pub results: String,
}

/// The most results stored for one model of a server.
pub(crate) const PER_MODEL: i64 = 50;

/// The most results stored in all: those of a hundred models.
pub(crate) const IN_ALL: i64 = 100 * PER_MODEL;

/// The longest name of a server or model whose results are stored, in bytes.
const LONGEST_NAME: usize = 256;

/// Whether results under these names are stored.
pub(crate) fn are_stored(server: &str, model: &str) -> bool {
    server.len().max(model.len()) <= LONGEST_NAME
}
