//! Stores runs in `PostgreSQL`.
//!
//! A failed statement aborts its transaction with all other writes in it. So expected conflicts use
//! `ON CONFLICT DO NOTHING`, and statements do not wait for locks where two transactions could
//! deadlock.

use std::collections::HashSet;

use tokio_postgres::Row;

use super::locks::lock_key;
use super::pool::{Connection, Values};
use super::text::{self, escaped, unescaped};
use super::{Postgres, strategies};
use crate::error::StoreError;
use crate::runs::{
    AFTER_ALL, Begun, Claim, EndedRun, NewRun, Run, RunId, RunSummary, Runs, Since, Work, Writes,
};
use crate::store::{signed, unsigned};
use crate::strategies::{StrategyResult, are_stored};

impl Runs for Postgres {
    fn transact(&self, work: &mut dyn FnMut(&mut dyn Writes)) -> Result<(), StoreError> {
        self.pool.write(|connection| {
            let mut writes = PostgresWrites {
                connection,
                schema: &self.schema,
                failure: None,
            };
            work(&mut writes);
            // `COMMIT` of an aborted transaction rolls it back without an error.
            writes.failure.map_or(Ok(()), Err)
        })
    }

    fn work_on(&self, id: &RunId) -> Result<Option<Work>, StoreError> {
        Ok(self.locks.try_lock(id)?.map(Work::new))
    }

    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.pool.read(|connection| run(connection, id))
    }

    fn since(&self, id: &RunId, steps: u32) -> Result<Option<Since>, StoreError> {
        let find = format!(
            "SELECT {SUMMARY}, ARRAY(SELECT body FROM steps WHERE run = runs.id AND number > $2 \
             ORDER BY number) AS bodies FROM runs WHERE id = $1"
        );
        self.pool.read(|connection| {
            let row = connection.query_opt(&find, &[&id.as_str(), &i64::from(steps)])?;
            let Some(row) = row else {
                return Ok(None);
            };
            let bodies: Vec<String> = row.try_get("bodies")?;
            Ok(Some(Since {
                summary: summary(&row)?,
                steps: bodies.into_iter().map(unescaped).collect(),
            }))
        })
    }

    fn worked_on(&self, ids: &[RunId]) -> Result<HashSet<RunId>, StoreError> {
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        // The key of an advisory lock is stored in two halves.
        let find = "SELECT (classid::bigint << 32) | objid::bigint AS key FROM pg_locks \
                    WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        self.pool.read(|connection| {
            let rows = connection.query(find, &[])?;
            let held: HashSet<i64> = rows.iter().map(|row| row.get("key")).collect();
            let is_held = |id: &&RunId| held.contains(&self.locks.key(id));
            Ok(ids.iter().filter(is_held).cloned().collect())
        })
    }

    fn before(&self, id: Option<&RunId>, count: u32) -> Result<Vec<RunSummary>, StoreError> {
        let find = format!("SELECT {SUMMARY} FROM runs WHERE id < $1 ORDER BY id DESC LIMIT $2");
        let id = id.map_or(AFTER_ALL, RunId::as_str);
        self.pool.read(|connection| {
            let rows = connection.query(&find, &[&id, &i64::from(count)])?;
            rows.iter().map(summary).collect()
        })
    }
}

/// Writes in one transaction.
struct PostgresWrites<'a> {
    connection: &'a Connection,
    schema: &'a str,
    /// The error of the first failed statement. Those after it have no effect.
    failure: Option<StoreError>,
}

impl Writes for PostgresWrites<'_> {
    fn begin(&mut self, run: &NewRun<'_>) -> Result<Claim, StoreError> {
        let begun = self.row(
            "INSERT INTO runs (id, began_at, model, request, options, conditions) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING claim",
            &[
                &run.id.as_str(),
                &signed(run.at),
                &escaped(run.model),
                &escaped(run.request),
                &escaped(run.options),
                &escaped(run.conditions),
            ],
        )?;
        let id = run.id.clone();
        match begun {
            Some(row) => Ok(Claim {
                id,
                number: row.try_get("claim")?,
            }),
            None => Err(StoreError::RunExists { id }),
        }
    }

    fn begin_once(
        &mut self,
        key: &str,
        digest: &str,
        run: &NewRun<'_>,
    ) -> Result<Begun, StoreError> {
        // Two transactions that wait for several keys in different order would deadlock.
        let lock = "SELECT pg_try_advisory_xact_lock($1) AS is_held";
        let is_held = self.row(lock, &[&lock_key(self.schema, "key", key)])?;
        if !is_held.is_some_and(|row| row.get("is_held")) {
            return Ok(Begun::Concurrent);
        }
        let key = text::digest(key);
        let find = "SELECT digest, run FROM keys WHERE key = $1";
        let Some(known) = self.row(find, &[&key])? else {
            let claim = self.begin(run)?;
            let add = "INSERT INTO keys (key, digest, run) VALUES ($1, $2, $3)";
            self.changed(add, &[&key, &escaped(digest), &run.id.as_str()])?;
            return Ok(Begun::Started(claim));
        };
        if unescaped(known.try_get("digest")?) == digest {
            Ok(Begun::Exists(parsed(known.try_get("run")?)?))
        } else {
            Ok(Begun::Mismatch)
        }
    }

    fn take_up(&mut self, id: &RunId) -> Result<Option<(Run, Claim)>, StoreError> {
        let claim = "UPDATE runs SET claim = claim + 1 WHERE id = $1 RETURNING claim";
        let Some(row) = self.row(claim, &[&id.as_str()])? else {
            return Ok(None);
        };
        // A second statement sees what was committed while the first one waited for the row.
        let run = run(self.connection, id);
        let Some(run) = self.checked(run)? else {
            return Ok(None);
        };
        let claim = Claim {
            id: id.clone(),
            number: row.try_get("claim")?,
        };
        Ok(Some((run, claim)))
    }

    fn add_step(&mut self, claim: &Claim, step: u32, body: &str) -> Result<(), StoreError> {
        // Locks the run until the commit, so that a process that claims it then sees this step.
        let added = self.changed(
            "INSERT INTO steps (run, number, body) SELECT id, $3, $4 FROM runs \
             WHERE id = $1 AND claim = $2 \
             AND $3 = 1 + (SELECT coalesce(max(number), 0) FROM steps WHERE run = $1) \
             FOR NO KEY UPDATE OF runs",
            &[
                &claim.id.as_str(),
                &claim.number,
                &i64::from(step),
                &escaped(body),
            ],
        )?;
        if added == 1 {
            return Ok(());
        }
        self.check(claim)?;
        Err(StoreError::OutOfOrder {
            id: claim.id.clone(),
            number: step,
        })
    }

    fn end(&mut self, claim: &Claim, at: u64, outcome: &str) -> Result<(), StoreError> {
        let ended = self.changed(
            "UPDATE runs SET ended_at = $3, outcome = $4 WHERE id = $1 AND claim = $2",
            &[
                &claim.id.as_str(),
                &claim.number,
                &signed(at),
                &escaped(outcome),
            ],
        )?;
        if ended == 1 {
            return Ok(());
        }
        self.check(claim)
    }

    fn add_ended(&mut self, run: &EndedRun<'_>) -> Result<(), StoreError> {
        let begun = &run.begun;
        let steps: Vec<_> = run.steps.iter().map(|step| escaped(step)).collect();
        let added = self.row(
            "WITH run AS (INSERT INTO runs \
             (id, began_at, model, request, options, conditions, ended_at, outcome) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING id), \
             added AS (INSERT INTO steps (run, number, body) SELECT id, number, body \
             FROM run, unnest($9::text[]) WITH ORDINALITY AS step (body, number)) \
             SELECT count(*) AS count FROM run",
            &[
                &begun.id.as_str(),
                &signed(begun.at),
                &escaped(begun.model),
                &escaped(begun.request),
                &escaped(begun.options),
                &escaped(begun.conditions),
                &signed(run.at),
                &escaped(run.outcome),
                &steps,
            ],
        )?;
        if added.is_some_and(|row| row.get::<_, i64>("count") == 1) {
            return Ok(());
        }
        Err(StoreError::RunExists {
            id: begun.id.clone(),
        })
    }

    fn store_answer(&mut self, claim: &Claim, answer: &str) -> Result<(), StoreError> {
        let keep = "UPDATE runs SET answer = $3 WHERE id = $1 AND claim = $2";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&claim.id.as_str(), &claim.number, &escaped(answer)];
        if self.changed(keep, &values)? == 1 {
            return Ok(());
        }
        self.check(claim)
    }

    fn add_strategy_result(
        &mut self,
        server: &str,
        result: &StrategyResult,
    ) -> Result<(), StoreError> {
        if !are_stored(server, &result.model) {
            return Ok(());
        }
        let added = strategies::add(self.connection, server, result);
        self.checked(added)
    }
}

impl PostgresWrites<'_> {
    fn row(&mut self, statement: &str, values: &Values<'_>) -> Result<Option<Row>, StoreError> {
        let row = self.connection.query_opt(statement, values);
        self.checked(row.map_err(StoreError::from))
    }

    fn changed(&mut self, statement: &str, values: &Values<'_>) -> Result<u64, StoreError> {
        let changed = self.connection.execute(statement, values);
        self.checked(changed.map_err(StoreError::from))
    }

    /// Remembers the first error.
    fn checked<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        result.map_err(|error| {
            let message = error.to_string();
            self.failure.get_or_insert(error);
            StoreError::Database(message.into())
        })
    }

    /// Checks that a claim is the latest one.
    fn check(&mut self, claim: &Claim) -> Result<(), StoreError> {
        let holds = "SELECT 1 FROM runs WHERE id = $1 AND claim = $2";
        match self.row(holds, &[&claim.id.as_str(), &claim.number])? {
            Some(_) => Ok(()),
            None => Err(StoreError::Superseded {
                id: claim.id.clone(),
            }),
        }
    }
}

/// The record of a run, read in one statement.
fn run(connection: &Connection, id: &RunId) -> Result<Option<Run>, StoreError> {
    let row = connection.query_opt(
        &format!(
            "SELECT {SUMMARY}, request, conditions, answer, \
             ARRAY(SELECT body FROM steps WHERE run = runs.id ORDER BY number) AS bodies \
             FROM runs WHERE id = $1"
        ),
        &[&id.as_str()],
    )?;
    let Some(row) = row else {
        return Ok(None);
    };
    let bodies: Vec<String> = row.try_get("bodies")?;
    let answer: Option<String> = row.try_get("answer")?;
    Ok(Some(Run {
        summary: summary(&row)?,
        request: unescaped(row.try_get("request")?),
        conditions: unescaped(row.try_get("conditions")?),
        answer: answer.map(unescaped),
        steps: bodies.into_iter().map(unescaped).collect(),
    }))
}

/// The columns of a [`RunSummary`].
const SUMMARY: &str = "id, began_at, ended_at, model, options, outcome, \
                       CASE WHEN ended_at IS NULL THEN conditions END AS open_conditions, \
                       (SELECT count(*) FROM steps WHERE run = runs.id) AS steps";

fn summary(row: &Row) -> Result<RunSummary, StoreError> {
    let ended_at: Option<i64> = row.try_get("ended_at")?;
    let outcome: Option<String> = row.try_get("outcome")?;
    let open_conditions: Option<String> = row.try_get("open_conditions")?;
    Ok(RunSummary {
        id: parsed(row.try_get("id")?)?,
        began_at: unsigned(row.try_get("began_at")?),
        ended_at: ended_at.map(unsigned),
        model: unescaped(row.try_get("model")?),
        options: unescaped(row.try_get("options")?),
        outcome: outcome.map(unescaped),
        open_conditions: open_conditions.map(unescaped),
        steps: unsigned(row.try_get("steps")?),
    })
}

fn parsed(id: &str) -> Result<RunId, StoreError> {
    let id = id.parse();
    id.map_err(|error: crate::RunIdError| StoreError::Database(error.into()))
}
