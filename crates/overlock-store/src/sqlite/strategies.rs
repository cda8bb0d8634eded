//! Stores the results of strategies in SQLite.

use rusqlite::{Connection, params};

use super::Sqlite;
use crate::error::StoreError;
use crate::store::{signed, unsigned};
use crate::strategies::{IN_ALL, PER_MODEL, Strategies, StrategyResult};

impl Strategies for Sqlite {
    fn strategy_results(&self, server: &str) -> Result<Vec<StrategyResult>, StoreError> {
        self.read(|transaction| {
            let mut select = transaction.prepare_cached(
                "SELECT model, at, results FROM strategy_results WHERE server = ?1 ORDER BY key",
            )?;
            let results = select.query_map([server], |row| {
                Ok(StrategyResult {
                    model: row.get(0)?,
                    at: unsigned(row.get(1)?),
                    results: row.get(2)?,
                })
            })?;
            Ok(results.collect::<Result<_, _>>()?)
        })
    }
}

/// Adds results and deletes the oldest ones above the limits.
pub(super) fn add(
    connection: &Connection,
    server: &str,
    result: &StrategyResult,
) -> rusqlite::Result<()> {
    let StrategyResult { model, at, results } = result;
    connection
        .prepare_cached(
            "INSERT INTO strategy_results (server, model, at, results) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![server, model, signed(*at), results])?;
    connection
        .prepare_cached(
            "DELETE FROM strategy_results WHERE server = ?1 AND model = ?2 AND key <= \
             (SELECT key FROM strategy_results WHERE server = ?1 AND model = ?2 \
             ORDER BY key DESC LIMIT 1 OFFSET ?3)",
        )?
        .execute(params![server, model, PER_MODEL])?;
    connection
        .prepare_cached(
            "DELETE FROM strategy_results WHERE key <= \
             (SELECT key FROM strategy_results ORDER BY key DESC LIMIT 1 OFFSET ?1)",
        )?
        .execute([IN_ALL])?;
    Ok(())
}
