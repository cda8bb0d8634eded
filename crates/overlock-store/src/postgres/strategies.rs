//! Stores the results of strategies in `PostgreSQL`.

use super::Postgres;
use super::pool::Connection;
use super::text::{escaped, unescaped};
use crate::error::StoreError;
use crate::store::{signed, unsigned};
use crate::strategies::{IN_ALL, PER_MODEL, Strategies, StrategyResult};

impl Strategies for Postgres {
    fn strategy_results(&self, server: &str) -> Result<Vec<StrategyResult>, StoreError> {
        self.pool.read(|connection| {
            let rows = connection.query(
                "SELECT model, at, results FROM strategy_results WHERE server = $1 ORDER BY key",
                &[&escaped(server)],
            )?;
            let results = rows.iter().map(|row| {
                Ok(StrategyResult {
                    model: unescaped(row.try_get("model")?),
                    at: unsigned(row.try_get("at")?),
                    results: unescaped(row.try_get("results")?),
                })
            });
            results.collect()
        })
    }
}

/// Adds results and deletes the oldest ones above the limits. Rows that another transaction is deleting
/// are skipped, so that two transactions with several results cannot deadlock.
pub(super) fn add(
    connection: &Connection,
    server: &str,
    result: &StrategyResult,
) -> Result<(), StoreError> {
    let (server, model) = (escaped(server), escaped(&result.model));
    connection.execute(
        "INSERT INTO strategy_results (server, model, at, results) VALUES ($1, $2, $3, $4)",
        &[
            &server,
            &model,
            &signed(result.at),
            &escaped(&result.results),
        ],
    )?;
    connection.execute(
        "DELETE FROM strategy_results WHERE key IN \
         (SELECT key FROM strategy_results WHERE server = $1 AND model = $2 AND key <= \
         (SELECT key FROM strategy_results WHERE server = $1 AND model = $2 \
         ORDER BY key DESC LIMIT 1 OFFSET $3) FOR UPDATE SKIP LOCKED)",
        &[&server, &model, &PER_MODEL],
    )?;
    connection.execute(
        "DELETE FROM strategy_results WHERE key IN \
         (SELECT key FROM strategy_results WHERE key <= \
         (SELECT key FROM strategy_results ORDER BY key DESC LIMIT 1 OFFSET $1) \
         FOR UPDATE SKIP LOCKED)",
        &[&IN_ALL],
    )?;
    Ok(())
}
