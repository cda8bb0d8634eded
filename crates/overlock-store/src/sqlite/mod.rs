//! Keeps runs in an SQLite file.
//!
//! Every write is a transaction that is on the disk before it returns, and several processes may
//! have the file open: what was acknowledged survives whatever happens to this one. Only the last
//! process that claimed a run can write to it, so that two that go on with the same run, one of
//! which was thought to be dead, cannot mix their answers.

mod file;
mod live;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{
    CachedStatement, Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params,
};

use crate::address::StoreAddress;
use crate::run::{Claim, EndedRun, NewRun, Run, RunId, RunSummary};
use file::VERSION;
pub use live::Work;

/// A store of runs.
#[derive(Debug)]
pub struct Store {
    connection: Mutex<Connection>,
    /// The file, if other processes can open it too.
    path: Option<PathBuf>,
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To record runs. A store is made if there is none.
    Make,
    /// To go on with runs. There must be a store.
    Write,
    /// To look at runs. There must be a store, and nothing of it is changed.
    Read,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is none.
    #[error("there is no store `{}`", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// There is no folder for it, and none can be made.
    #[error("could not make the folder `{}`", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file cannot be made or written.
    #[error("could not write to `{}`", path.display())]
    Make {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file cannot be opened.
    #[error("could not open the store `{}`", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
    /// A newer version has written it.
    #[error(
        "the store was written by a newer version (its tables are version {found}, this knows {VERSION})"
    )]
    Newer {
        /// The version of its tables.
        found: i64,
    },
    /// It belongs to another program.
    #[error("`{}` is the database of another program", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else has taken the run up since.
    #[error("another process is going on with run `{id}`")]
    Superseded {
        /// The run.
        id: RunId,
    },
    /// A step does not follow the last one.
    #[error("step {number} of run `{id}` does not follow the last one that was recorded")]
    OutOfOrder {
        /// The run.
        id: RunId,
        /// The number.
        number: u32,
    },
    /// Reading or writing failed.
    #[error("the store could not be read or written")]
    Database(#[from] rusqlite::Error),
}

impl Store {
    /// Opens a store.
    pub fn open(address: &StoreAddress, access: Access) -> Result<Self, StoreError> {
        let StoreAddress::Sqlite(path) = address;
        let connection = file::open(path, access)?;
        if access == Access::Make {
            live::sweep(path);
        }
        Ok(Self::of(connection, Some(path.clone())))
    }

    /// A store that is gone with the process.
    pub fn in_memory() -> Result<Self, StoreError> {
        let connection = file::in_memory()?;
        Ok(Self::of(connection, None))
    }

    fn of(connection: Connection, path: Option<PathBuf>) -> Self {
        Self {
            connection: Mutex::new(connection),
            path,
        }
    }

    /// The right to work on a run, which nobody else has meanwhile; nothing if somebody has it.
    /// Whoever dies has it no more.
    pub fn work_on(&self, id: &RunId) -> Result<Option<Work>, StoreError> {
        match &self.path {
            Some(path) => Work::begin(path, id),
            None => Ok(Some(Work::alone())),
        }
    }

    /// Records that a run begins.
    pub fn begin(&self, run: &NewRun<'_>) -> Result<Claim, StoreError> {
        self.together(|writes| writes.begin(run))?
    }

    /// Claims a run, to go on with it: from now on nobody who claimed it before can write to it.
    pub fn take_up(&self, id: &RunId) -> Result<Option<(Run, Claim)>, StoreError> {
        self.together(|writes| writes.take_up(id))?
    }

    /// Records a step of a run, counted from 1.
    pub fn add_step(&self, claim: &Claim, step: u32, body: &str) -> Result<(), StoreError> {
        self.together(|writes| writes.add_step(claim, step, body))?
    }

    /// Records how a run ended; one that is taken up again ends again.
    pub fn end(&self, claim: &Claim, at: u64, outcome: &str) -> Result<(), StoreError> {
        self.together(|writes| writes.end(claim, at, outcome))?
    }

    /// Makes several writes that are on the disk together, which costs as much as one of them. One
    /// that fails does not keep the others from it.
    pub fn together<T>(&self, work: impl FnOnce(&Writes<'_>) -> T) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let writes = Writes { transaction };
        let done = work(&writes);
        writes.transaction.commit()?;
        Ok(done)
    }

    /// All that is kept of a run.
    pub fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        // In a transaction, or a step may come between the run and its steps.
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        Ok(run(&transaction, id)?)
    }

    /// The latest runs, the last one first: their names sort by time.
    pub fn latest(&self, count: u32) -> Result<Vec<RunSummary>, StoreError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached(&format!(
            "SELECT {SUMMARY} FROM runs ORDER BY id DESC LIMIT ?1"
        ))?;
        let runs = query.query_map([count], summary)?;
        Ok(runs.collect::<Result<_, _>>()?)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A transaction that panicked was rolled back.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes that are made together.
pub struct Writes<'a> {
    transaction: Transaction<'a>,
}

impl Writes<'_> {
    /// Records that a run begins.
    pub fn begin(&self, run: &NewRun<'_>) -> Result<Claim, StoreError> {
        let number = self
            .prepared(
                "INSERT INTO runs (id, began_at, model, request, options, conditions) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING claim",
            )?
            .query_row(
                params![
                    run.id.as_str(),
                    number(run.at),
                    run.model,
                    run.request,
                    run.options,
                    run.conditions
                ],
                |row| row.get(0),
            )?;
        Ok(Claim {
            id: run.id.clone(),
            number,
        })
    }

    /// Records that a run begins, unless one has under the same key. The digest tells whether that
    /// one was asked the same.
    pub fn begin_once(
        &self,
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
            return Ok(Begun::Now(claim));
        };
        if known_digest == digest {
            Ok(Begun::Before(parsed(&id)?))
        } else {
            Ok(Begun::Otherwise)
        }
    }

    /// Claims a run, to go on with it: from now on nobody who claimed it before can write to it.
    pub fn take_up(&self, id: &RunId) -> Result<Option<(Run, Claim)>, StoreError> {
        let number = self
            .prepared("UPDATE runs SET claim = claim + 1 WHERE id = ?1 RETURNING claim")?
            .query_row([id.as_str()], |row| row.get(0))
            .optional()?;
        let (Some(number), Some(run)) = (number, run(&self.transaction, id)?) else {
            return Ok(None);
        };
        let id = id.clone();
        Ok(Some((run, Claim { id, number })))
    }

    /// Records a step of a run, counted from 1.
    pub fn add_step(&self, claim: &Claim, step: u32, body: &str) -> Result<(), StoreError> {
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
        check(&self.transaction, claim)?;
        Err(StoreError::OutOfOrder {
            id: claim.id.clone(),
            number: step,
        })
    }

    /// Records how a run ended; one that is taken up again ends again.
    pub fn end(&self, claim: &Claim, at: u64, outcome: &str) -> Result<(), StoreError> {
        let ended = self
            .prepared("UPDATE runs SET ended_at = ?3, outcome = ?4 WHERE id = ?1 AND claim = ?2")?
            .execute(params![
                claim.id.as_str(),
                claim.number,
                number(at),
                outcome
            ])?;
        if ended == 1 {
            return Ok(());
        }
        check(&self.transaction, claim)
    }

    /// Records a run that is over, with all its steps, in as few writes as there can be.
    pub fn tell(&self, run: &EndedRun<'_>) -> Result<(), StoreError> {
        let begun = &run.begun;
        self.prepared(
            "INSERT INTO runs (id, began_at, model, request, options, conditions, ended_at, outcome) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            begun.id.as_str(),
            number(begun.at),
            begun.model,
            begun.request,
            begun.options,
            begun.conditions,
            number(run.at),
            run.outcome
        ])?;
        for (number, body) in (1_u32..).zip(run.steps) {
            self.prepared("INSERT INTO steps (run, number, body) VALUES (?1, ?2, ?3)")?
                .execute(params![begun.id.as_str(), number, body])?;
        }
        Ok(())
    }

    /// Keeps what was answered in the end, for whoever asks the same again.
    pub fn keep_answer(&self, claim: &Claim, answer: &str) -> Result<(), StoreError> {
        let kept = self
            .prepared("UPDATE runs SET answer = ?3 WHERE id = ?1 AND claim = ?2")?
            .execute(params![claim.id.as_str(), claim.number, answer])?;
        if kept == 1 {
            return Ok(());
        }
        check(&self.transaction, claim)
    }

    /// A statement that is read by the database once, and made again and again.
    fn prepared(&self, statement: &str) -> Result<CachedStatement<'_>, StoreError> {
        Ok(self.transaction.prepare_cached(statement)?)
    }
}

/// Whether a run began under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It did now.
    Now(Claim),
    /// This one did before, and was asked the same.
    Before(RunId),
    /// One did before that was asked something else.
    Otherwise,
}

fn run(connection: &Connection, id: &RunId) -> rusqlite::Result<Option<Run>> {
    let found = connection
        .query_row(
            &format!(
                "SELECT {SUMMARY}, request, options, conditions, answer FROM runs WHERE id = ?1"
            ),
            [id.as_str()],
            |row| {
                Ok(Run {
                    summary: summary(row)?,
                    request: row.get("request")?,
                    options: row.get("options")?,
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
    let mut query =
        connection.prepare_cached("SELECT body FROM steps WHERE run = ?1 ORDER BY number")?;
    let steps = query.query_map([id.as_str()], |row| row.get(0))?;
    run.steps = steps.collect::<Result<_, _>>()?;
    Ok(Some(run))
}

/// Whether a claim still holds.
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
const SUMMARY: &str = "id, began_at, ended_at, model, outcome, \
                       (SELECT count(*) FROM steps WHERE run = runs.id) AS steps";

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let id: String = row.get("id")?;
    let unsigned = |number: i64| u64::try_from(number).unwrap_or_default();
    let ended_at: Option<i64> = row.get("ended_at")?;
    Ok(RunSummary {
        id: parsed(&id)?,
        began_at: unsigned(row.get("began_at")?),
        ended_at: ended_at.map(unsigned),
        model: row.get("model")?,
        outcome: row.get("outcome")?,
        steps: unsigned(row.get("steps")?),
    })
}

fn parsed(id: &str) -> rusqlite::Result<RunId> {
    id.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// A time as SQLite keeps it.
fn number(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}
