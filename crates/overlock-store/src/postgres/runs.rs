//! Keeps runs in `PostgreSQL`.
//!
//! A statement that fails spoils its transaction, and all that is written together with it. So what
//! may be refused is written so that it changes nothing then, and is no failure; and nothing that is
//! written together waits for others who might wait for it.

use std::collections::HashSet;

use tokio_postgres::Row;

use super::connection::{Connection, Values};
use super::locks::number as lock_number;
use super::text::{self, given, kept};
use super::{Postgres, signed, strategies, unsigned};
use crate::error::StoreError;
use crate::runs::{
    AFTER_ALL, Begun, Claim, EndedRun, NewRun, Run, RunId, RunSummary, Runs, Since, Work, Writes,
};
use crate::strategies::{StrategyResult, are_kept};

impl Runs for Postgres {
    fn transact(&self, work: &mut dyn FnMut(&mut dyn Writes)) -> Result<(), StoreError> {
        self.pool.write(|connection| {
            let mut writes = InTransaction {
                connection,
                schema: &self.schema,
                failure: None,
            };
            work(&mut writes);
            // What is committed after a failure is nothing, without a word.
            writes.failure.map_or(Ok(()), Err)
        })
    }

    fn work_on(&self, id: &RunId) -> Result<Option<Work>, StoreError> {
        Ok(self.locks.hold(id)?.map(Work::holding))
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
                steps: bodies.into_iter().map(given).collect(),
            }))
        })
    }

    fn worked_on(&self, ids: &[RunId]) -> Result<HashSet<RunId>, StoreError> {
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        // A lock on a number is told in two halves.
        let find = "SELECT (classid::bigint << 32) | objid::bigint AS number FROM pg_locks \
                    WHERE locktype = 'advisory' AND objsubid = 1 AND granted \
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        self.pool.read(|connection| {
            let rows = connection.query(find, &[])?;
            let held: HashSet<i64> = rows.iter().map(|row| row.get("number")).collect();
            let is_held = |id: &&RunId| held.contains(&self.locks.number(id));
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

/// Writes that are one transaction.
struct InTransaction<'a> {
    connection: &'a Connection,
    schema: &'a str,
    /// The first statement that failed. None after it does anything.
    failure: Option<StoreError>,
}

impl Writes for InTransaction<'_> {
    fn begin(&mut self, run: &NewRun<'_>) -> Result<Claim, StoreError> {
        let begun = self.row(
            "INSERT INTO runs (id, began_at, model, request, options, conditions) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING claim",
            &[
                &run.id.as_str(),
                &signed(run.at),
                &kept(run.model),
                &kept(run.request),
                &kept(run.options),
                &kept(run.conditions),
            ],
        )?;
        let id = run.id.clone();
        match begun {
            Some(row) => Ok(Claim {
                id,
                number: row.try_get("claim")?,
            }),
            None => Err(StoreError::Taken { id }),
        }
    }

    fn begin_once(
        &mut self,
        key: &str,
        digest: &str,
        run: &NewRun<'_>,
    ) -> Result<Begun, StoreError> {
        // Two that begin several keys each, in another order, would wait for one another.
        let number = lock_number(self.schema, "key", key);
        let lock = "SELECT pg_try_advisory_xact_lock($1) AS is_held";
        let is_held = self.row(lock, &[&number])?;
        if !is_held.is_some_and(|row| row.get("is_held")) {
            return Ok(Begun::Meanwhile);
        }
        let key = text::digest(key);
        let find = "SELECT digest, run FROM keys WHERE key = $1";
        let Some(known) = self.row(find, &[&key])? else {
            let claim = self.begin(run)?;
            let add = "INSERT INTO keys (key, digest, run) VALUES ($1, $2, $3)";
            self.changed(add, &[&key, &kept(digest), &run.id.as_str()])?;
            return Ok(Begun::Now(claim));
        };
        if given(known.try_get("digest")?) == digest {
            Ok(Begun::Before(parsed(known.try_get("run")?)?))
        } else {
            Ok(Begun::Otherwise)
        }
    }

    fn take_up(&mut self, id: &RunId) -> Result<Option<(Run, Claim)>, StoreError> {
        let claim = "UPDATE runs SET claim = claim + 1 WHERE id = $1 RETURNING claim";
        let Some(row) = self.row(claim, &[&id.as_str()])? else {
            return Ok(None);
        };
        // In a statement of its own, which sees what was written while the first one waited.
        let run = run(self.connection, id);
        let Some(run) = self.tried(run)? else {
            return Ok(None);
        };
        let claim = Claim {
            id: id.clone(),
            number: row.try_get("claim")?,
        };
        Ok(Some((run, claim)))
    }

    fn add_step(&mut self, claim: &Claim, step: u32, body: &str) -> Result<(), StoreError> {
        // The run stays as it is until this is committed, or whoever takes it up would not see it.
        let added = self.changed(
            "INSERT INTO steps (run, number, body) SELECT id, $3, $4 FROM runs \
             WHERE id = $1 AND claim = $2 \
             AND $3 = 1 + (SELECT coalesce(max(number), 0) FROM steps WHERE run = $1) \
             FOR NO KEY UPDATE OF runs",
            &[
                &claim.id.as_str(),
                &claim.number,
                &i64::from(step),
                &kept(body),
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
                &kept(outcome),
            ],
        )?;
        if ended == 1 {
            return Ok(());
        }
        self.check(claim)
    }

    fn tell(&mut self, run: &EndedRun<'_>) -> Result<(), StoreError> {
        let begun = &run.begun;
        let steps: Vec<_> = run.steps.iter().map(|step| kept(step)).collect();
        let told = self.row(
            "WITH told AS (INSERT INTO runs \
             (id, began_at, model, request, options, conditions, ended_at, outcome) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING id), \
             added AS (INSERT INTO steps (run, number, body) SELECT id, number, body \
             FROM told, unnest($9::text[]) WITH ORDINALITY AS step (body, number)) \
             SELECT count(*) AS count FROM told",
            &[
                &begun.id.as_str(),
                &signed(begun.at),
                &kept(begun.model),
                &kept(begun.request),
                &kept(begun.options),
                &kept(begun.conditions),
                &signed(run.at),
                &kept(run.outcome),
                &steps,
            ],
        )?;
        if told.is_some_and(|row| row.get::<_, i64>("count") == 1) {
            return Ok(());
        }
        Err(StoreError::Taken {
            id: begun.id.clone(),
        })
    }

    fn keep_answer(&mut self, claim: &Claim, answer: &str) -> Result<(), StoreError> {
        let keep = "UPDATE runs SET answer = $3 WHERE id = $1 AND claim = $2";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&claim.id.as_str(), &claim.number, &kept(answer)];
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
        if !are_kept(server, &result.model) {
            return Ok(());
        }
        let added = strategies::add(self.connection, server, result);
        self.tried(added)
    }
}

impl InTransaction<'_> {
    fn row(&mut self, statement: &str, values: &Values<'_>) -> Result<Option<Row>, StoreError> {
        let row = self.connection.query_opt(statement, values);
        self.tried(row.map_err(StoreError::from))
    }

    fn changed(&mut self, statement: &str, values: &Values<'_>) -> Result<u64, StoreError> {
        let changed = self.connection.execute(statement, values);
        self.tried(changed.map_err(StoreError::from))
    }

    /// Remembers a failure.
    fn tried<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        result.map_err(|error| {
            let told = error.to_string();
            self.failure.get_or_insert(error);
            StoreError::Database(told.into())
        })
    }

    /// Whether a claim still holds.
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

/// A run as it is at one moment.
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
        request: given(row.try_get("request")?),
        conditions: given(row.try_get("conditions")?),
        answer: answer.map(given),
        steps: bodies.into_iter().map(given).collect(),
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
        model: given(row.try_get("model")?),
        options: given(row.try_get("options")?),
        outcome: outcome.map(given),
        open_conditions: open_conditions.map(given),
        steps: unsigned(row.try_get("steps")?),
    })
}

fn parsed(id: &str) -> Result<RunId, StoreError> {
    let id = id.parse();
    id.map_err(|error: crate::RunIdError| StoreError::Database(error.into()))
}
