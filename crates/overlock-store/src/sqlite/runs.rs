//! Stores runs in SQLite.

use std::collections::HashSet;

use rusqlite::{
    CachedStatement, Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params,
};

use super::{Sqlite, live, strategies};
use crate::error::StoreError;
use crate::runs::{
    AFTER_ALL, Begun, Claim, EndedRun, NewRun, Run, RunId, RunSummary, Runs, Since, Work, Writes,
};
use crate::store::{signed, unsigned};
use crate::strategies::{StrategyResult, are_stored};

impl Runs for Sqlite {
    fn transact(&self, work: &mut dyn FnMut(&mut dyn Writes)) -> Result<(), StoreError> {
        let connection = self.connection();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
        work(&mut SqliteWrites {
            connection: &connection,
            insert_ended: None,
        });
        transaction.commit()?;
        Ok(())
    }

    fn work_on(&self, id: &RunId) -> Result<Option<Work>, StoreError> {
        match &self.path {
            Some(path) => Ok(live::try_lock(path, id)?.map(Work::new)),
            None => Ok(Some(Work::new(live::InMemory))),
        }
    }

    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        // In a transaction, or a step may be added between the two queries.
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        Ok(run(&transaction, id)?)
    }

    fn since(&self, id: &RunId, steps: u32) -> Result<Option<Since>, StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let find = format!("SELECT {SUMMARY} FROM runs WHERE id = ?1");
        let found = transaction
            .prepare_cached(&find)?
            .query_row([id.as_str()], summary);
        let Some(summary) = found.optional()? else {
            return Ok(None);
        };
        let steps = bodies(&transaction, id, steps)?;
        Ok(Some(Since { summary, steps }))
    }

    fn worked_on(&self, ids: &[RunId]) -> Result<HashSet<RunId>, StoreError> {
        match &self.path {
            Some(path) => live::locked(path, ids),
            None => Ok(HashSet::new()),
        }
    }

    fn before(&self, id: Option<&RunId>, count: u32) -> Result<Vec<RunSummary>, StoreError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached(&format!(
            "SELECT {SUMMARY} FROM runs WHERE id < ?1 ORDER BY id DESC LIMIT ?2"
        ))?;
        let id = id.map_or(AFTER_ALL, RunId::as_str);
        let runs = query.query_map(params![id, count], summary)?;
        Ok(runs.collect::<Result<_, _>>()?)
    }
}

/// Writes in one transaction.
struct SqliteWrites<'a> {
    connection: &'a Connection,
    /// Prepared for the first ended run.
    insert_ended: Option<InsertEnded<'a>>,
}

/// The statement that adds an ended run. Only texts that differ from the previous run are bound again:
/// most runs have the same ones.
struct InsertEnded<'a> {
    statement: CachedStatement<'a>,
    /// The texts that are bound.
    bound: [String; TEXT_PARAMETERS.len()],
}

impl Writes for SqliteWrites<'_> {
    fn begin(&mut self, run: &NewRun<'_>) -> Result<Claim, StoreError> {
        let number = self
            .prepared(
                "INSERT INTO runs (id, began_at, model, request, options, conditions) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING RETURNING claim",
            )?
            .query_row(
                params![
                    run.id.as_str(),
                    signed(run.at),
                    run.model,
                    run.request,
                    run.options,
                    run.conditions
                ],
                |row| row.get(0),
            )
            .optional()?;
        let id = run.id.clone();
        match number {
            Some(number) => Ok(Claim { id, number }),
            None => Err(StoreError::RunExists { id }),
        }
    }

    fn begin_once(
        &mut self,
        key: &str,
        digest: &str,
        run: &NewRun<'_>,
    ) -> Result<Begun, StoreError> {
        let known: Option<(String, String)> = self
            .prepared("SELECT digest, run FROM keys WHERE key = ?1")?
            .query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((known_digest, id)) = known else {
            let claim = self.begin(run)?;
            self.prepared("INSERT INTO keys (key, digest, run) VALUES (?1, ?2, ?3)")?
                .execute(params![key, digest, run.id.as_str()])?;
            return Ok(Begun::Started(claim));
        };
        if known_digest == digest {
            Ok(Begun::Exists(parsed(&id)?))
        } else {
            Ok(Begun::Mismatch)
        }
    }

    fn take_up(&mut self, id: &RunId) -> Result<Option<(Run, Claim)>, StoreError> {
        let number = self
            .prepared("UPDATE runs SET claim = claim + 1 WHERE id = ?1 RETURNING claim")?
            .query_row([id.as_str()], |row| row.get(0))
            .optional()?;
        let (Some(number), Some(run)) = (number, run(self.connection, id)?) else {
            return Ok(None);
        };
        let id = id.clone();
        Ok(Some((run, Claim { id, number })))
    }

    fn add_step(&mut self, claim: &Claim, step: u32, body: &str) -> Result<(), StoreError> {
        let added = self
            .prepared(
                "INSERT INTO steps (run, number, body) SELECT id, ?3, ?4 FROM runs \
             WHERE id = ?1 AND claim = ?2 \
             AND ?3 = 1 + (SELECT coalesce(max(number), 0) FROM steps WHERE run = ?1)",
            )?
            .execute(params![claim.id.as_str(), claim.number, step, body])?;
        if added == 1 {
            return Ok(());
        }
        check(self.connection, claim)?;
        Err(StoreError::OutOfOrder {
            id: claim.id.clone(),
            number: step,
        })
    }

    fn end(&mut self, claim: &Claim, at: u64, outcome: &str) -> Result<(), StoreError> {
        let ended = self
            .prepared("UPDATE runs SET ended_at = ?3, outcome = ?4 WHERE id = ?1 AND claim = ?2")?
            .execute(params![
                claim.id.as_str(),
                claim.number,
                signed(at),
                outcome
            ])?;
        if ended == 1 {
            return Ok(());
        }
        check(self.connection, claim)
    }

    fn add_ended(&mut self, run: &EndedRun<'_>) -> Result<(), StoreError> {
        let begun = &run.begun;
        let mut insert = match self.insert_ended.take() {
            Some(insert) => insert,
            None => InsertEnded::new(self.connection)?,
        };
        let texts = [
            begun.model,
            begun.request,
            begun.options,
            begun.conditions,
            run.outcome,
        ];
        let added = insert.execute(begun.id, signed(begun.at), signed(run.at), texts)?;
        self.insert_ended = Some(insert);
        if added == 0 {
            let id = begun.id.clone();
            return Err(StoreError::RunExists { id });
        }
        for (number, body) in (1_u32..).zip(run.steps) {
            self.prepared("INSERT INTO steps (run, number, body) VALUES (?1, ?2, ?3)")?
                .execute(params![begun.id.as_str(), number, body])?;
        }
        Ok(())
    }

    fn store_answer(&mut self, claim: &Claim, answer: &str) -> Result<(), StoreError> {
        let updated = self
            .prepared("UPDATE runs SET answer = ?3 WHERE id = ?1 AND claim = ?2")?
            .execute(params![claim.id.as_str(), claim.number, answer])?;
        if updated == 1 {
            return Ok(());
        }
        check(self.connection, claim)
    }

    fn add_strategy_result(
        &mut self,
        server: &str,
        result: &StrategyResult,
    ) -> Result<(), StoreError> {
        if are_stored(server, &result.model) {
            strategies::add(self.connection, server, result)?;
        }
        Ok(())
    }
}

impl SqliteWrites<'_> {
    /// A cached prepared statement.
    fn prepared(&self, statement: &str) -> Result<CachedStatement<'_>, StoreError> {
        Ok(self.connection.prepare_cached(statement)?)
    }
}

/// The parameters of [`InsertEnded`] that are texts.
const TEXT_PARAMETERS: [usize; 5] = [4, 5, 6, 7, 8];

impl<'a> InsertEnded<'a> {
    fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare_cached(
            "INSERT INTO runs (id, began_at, ended_at, model, request, options, conditions, outcome) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
        )?;
        for parameter in TEXT_PARAMETERS {
            statement.raw_bind_parameter(parameter, "")?;
        }
        Ok(Self {
            statement,
            bound: Default::default(),
        })
    }

    /// Returns how many runs were added: none if there is one with this id.
    fn execute(
        &mut self,
        id: &RunId,
        began_at: i64,
        ended_at: i64,
        texts: [&str; TEXT_PARAMETERS.len()],
    ) -> rusqlite::Result<usize> {
        self.statement.raw_bind_parameter(1, id.as_str())?;
        self.statement.raw_bind_parameter(2, began_at)?;
        self.statement.raw_bind_parameter(3, ended_at)?;
        let parameters = TEXT_PARAMETERS.into_iter().zip(&mut self.bound);
        for ((parameter, bound), text) in parameters.zip(texts) {
            if bound != text {
                self.statement.raw_bind_parameter(parameter, text)?;
                text.clone_into(bound);
            }
        }
        self.statement.raw_execute()
    }
}

fn run(connection: &Connection, id: &RunId) -> rusqlite::Result<Option<Run>> {
    let found = connection
        .query_row(
            &format!("SELECT {SUMMARY}, request, conditions, answer FROM runs WHERE id = ?1"),
            [id.as_str()],
            |row| {
                Ok(Run {
                    summary: summary(row)?,
                    request: row.get("request")?,
                    conditions: row.get("conditions")?,
                    answer: row.get("answer")?,
                    steps: Vec::new(),
                })
            },
        )
        .optional()?;
    let Some(mut run) = found else {
        return Ok(None);
    };
    run.steps = bodies(connection, id, 0)?;
    Ok(Some(run))
}

/// The steps of a run after the first `after`.
fn bodies(connection: &Connection, id: &RunId, after: u32) -> rusqlite::Result<Vec<String>> {
    let steps = "SELECT body FROM steps WHERE run = ?1 AND number > ?2 ORDER BY number";
    let mut query = connection.prepare_cached(steps)?;
    let steps = query.query_map(params![id.as_str(), after], |row| row.get(0))?;
    steps.collect()
}

/// Checks that a claim is the latest one.
fn check(connection: &Connection, claim: &Claim) -> Result<(), StoreError> {
    let holds = connection.query_row(
        "SELECT count(*) FROM runs WHERE id = ?1 AND claim = ?2",
        params![claim.id.as_str(), claim.number],
        |row| row.get::<_, i64>(0),
    )?;
    if holds == 1 {
        return Ok(());
    }
    Err(StoreError::Superseded {
        id: claim.id.clone(),
    })
}

/// The columns of a [`RunSummary`].
const SUMMARY: &str = "id, began_at, ended_at, model, options, outcome, \
                       CASE WHEN ended_at IS NULL THEN conditions END AS open_conditions, \
                       (SELECT count(*) FROM steps WHERE run = runs.id) AS steps";

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let id: String = row.get("id")?;
    let ended_at: Option<i64> = row.get("ended_at")?;
    Ok(RunSummary {
        id: parsed(&id)?,
        began_at: unsigned(row.get("began_at")?),
        ended_at: ended_at.map(unsigned),
        model: row.get("model")?,
        options: row.get("options")?,
        outcome: row.get("outcome")?,
        open_conditions: row.get("open_conditions")?,
        steps: unsigned(row.get("steps")?),
    })
}

fn parsed(id: &str) -> rusqlite::Result<RunId> {
    id.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}
