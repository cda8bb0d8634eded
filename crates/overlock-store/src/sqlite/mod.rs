//! Keeps runs in an SQLite file.
//!
//! Every write is a transaction that is on the disk before it returns, and several processes may
//! have the file open: what was acknowledged survives whatever happens to this one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::address::StoreAddress;
use crate::run::{NewRun, Run, RunId, RunSummary};

/// How the tables look; a file of a later version is not touched.
const VERSION: i64 = 1;

const TABLES: &str = include_str!("tables.sql");

/// How long another process that is writing is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A store of runs.
#[derive(Debug)]
pub struct Store {
    connection: Mutex<Connection>,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no folder for it, and none can be made.
    #[error("could not make the folder `{}`", path.display())]
    Folder {
        /// The folder.
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
    /// The run has a step of this number already: somebody else is driving it.
    #[error("run `{id}` already has a step {number}: another process is going on with it")]
    StepExists {
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
    /// Opens a store, and makes it if there is none.
    pub fn open(address: &StoreAddress) -> Result<Self, StoreError> {
        let StoreAddress::Sqlite(path) = address;
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(|source| StoreError::Folder {
                path: folder.to_owned(),
                source,
            })?;
        }
        let open = |path: &Path| {
            let connection = Connection::open(path)?;
            connection.busy_timeout(PATIENCE)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "foreign_keys", true)?;
            Ok(connection)
        };
        let connection = open(path).map_err(|source| StoreError::Open {
            path: path.clone(),
            source,
        })?;
        Self::with_tables(connection)
    }

    /// A store that is gone with the process.
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::with_tables(Connection::open_in_memory()?)
    }

    fn with_tables(mut connection: Connection) -> Result<Self, StoreError> {
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found > VERSION {
            return Err(StoreError::Newer { found });
        }
        if found < VERSION {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()?;
        Ok(Self {
            connection: Mutex::new(connection),
        })
    }

    /// Records that a run begins.
    pub fn begin(&self, run: &NewRun<'_>) -> Result<(), StoreError> {
        self.connection().execute(
            "INSERT INTO runs (id, began_at, model, request, options) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                run.id.as_str(),
                number(run.at),
                run.model,
                run.request,
                run.options
            ],
        )?;
        Ok(())
    }

    /// Records a step of a run, counted from 1.
    pub fn add_step(&self, id: &RunId, step: u32, body: &str) -> Result<(), StoreError> {
        let added = self.connection().execute(
            "INSERT OR IGNORE INTO steps (run, number, body) VALUES (?1, ?2, ?3)",
            params![id.as_str(), step, body],
        )?;
        if added == 0 {
            return Err(StoreError::StepExists {
                id: id.clone(),
                number: step,
            });
        }
        Ok(())
    }

    /// Records how a run ended; one that was taken up again ends again.
    pub fn end(&self, id: &RunId, at: u64, outcome: &str) -> Result<(), StoreError> {
        self.connection().execute(
            "UPDATE runs SET ended_at = ?2, outcome = ?3 WHERE id = ?1",
            params![id.as_str(), number(at), outcome],
        )?;
        Ok(())
    }

    /// All that is kept of a run.
    pub fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        let connection = self.connection();
        let found = connection
            .query_row(
                &format!("SELECT {SUMMARY}, request, options FROM runs WHERE id = ?1"),
                [id.as_str()],
                |row| {
                    let texts: (String, String) = (row.get("request")?, row.get("options")?);
                    Ok((summary(row)?, texts))
                },
            )
            .optional()?;
        let Some((summary, (request, options))) = found else {
            return Ok(None);
        };
        let mut query =
            connection.prepare_cached("SELECT body FROM steps WHERE run = ?1 ORDER BY number")?;
        let steps = query.query_map([id.as_str()], |row| row.get(0))?;
        Ok(Some(Run {
            summary,
            request,
            options,
            steps: steps.collect::<Result<_, _>>()?,
        }))
    }

    /// The latest runs, the last one first.
    pub fn latest(&self, count: u32) -> Result<Vec<RunSummary>, StoreError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached(&format!(
            "SELECT {SUMMARY} FROM runs ORDER BY began_at DESC, id DESC LIMIT ?1"
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

/// The columns of a [`RunSummary`].
const SUMMARY: &str = "id, began_at, ended_at, model, outcome, \
                       (SELECT count(*) FROM steps WHERE run = runs.id) AS steps";

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let id: String = row.get("id")?;
    let unsigned = |number: i64| u64::try_from(number).unwrap_or_default();
    let ended_at: Option<i64> = row.get("ended_at")?;
    Ok(RunSummary {
        id: id.parse().map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                0,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })?,
        began_at: unsigned(row.get("began_at")?),
        ended_at: ended_at.map(unsigned),
        model: row.get("model")?,
        outcome: row.get("outcome")?,
        steps: unsigned(row.get("steps")?),
    })
}

/// A time as SQLite keeps it.
fn number(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(store: &Store, at: u64) -> RunId {
        let id = RunId::new(at, at);
        let run = NewRun {
            id: &id,
            at,
            model: "a-model",
            request: r#"{"messages": []}"#,
            options: "{}",
        };
        store.begin(&run).expect("a run begins");
        id
    }

    #[test]
    fn gives_back_what_it_was_given() {
        let store = Store::in_memory().expect("a store");
        let id = begin(&store, 1000);
        for number in 1..=3 {
            store
                .add_step(&id, number, &format!("step {number}"))
                .expect("a step");
        }
        store.end(&id, 2000, "complete").expect("an end");
        let run = store
            .run(&id)
            .expect("it can be read")
            .expect("it is there");
        assert_eq!(run.steps, ["step 1", "step 2", "step 3"]);
        assert_eq!(run.summary.outcome.as_deref(), Some("complete"));
        assert_eq!(
            (run.summary.began_at, run.summary.ended_at),
            (1000, Some(2000))
        );
        assert_eq!(run.summary.steps, 3);
    }

    #[test]
    fn a_step_is_recorded_once() {
        let store = Store::in_memory().expect("a store");
        let id = begin(&store, 1000);
        store.add_step(&id, 1, "mine").expect("a step");
        let error = store.add_step(&id, 1, "yours").expect_err("it is taken");
        assert!(matches!(error, StoreError::StepExists { number: 1, .. }));
        assert_eq!(
            store.run(&id).expect("read").expect("there").steps,
            ["mine"]
        );
    }

    #[test]
    fn lists_the_latest_first() {
        let store = Store::in_memory().expect("a store");
        let ids: Vec<RunId> = [10, 30, 20].map(|at| begin(&store, at)).to_vec();
        let latest = store.latest(2).expect("a list");
        let latest: Vec<&RunId> = latest.iter().map(|run| &run.id).collect();
        assert_eq!(latest, [&ids[1], &ids[2]]);
    }

    #[test]
    fn another_process_sees_what_was_acknowledged() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = StoreAddress::Sqlite(folder.path().join("deep/runs.db"));
        let [one, other] = [(); 2].map(|()| Store::open(&address).expect("a store"));
        let id = begin(&one, 1000);
        one.add_step(&id, 1, "step").expect("a step");
        assert_eq!(
            other.run(&id).expect("read").expect("there").steps,
            ["step"]
        );
        other.add_step(&id, 2, "step").expect("both may write");
        assert_eq!(one.run(&id).expect("read").expect("there").steps.len(), 2);
    }

    #[test]
    fn a_file_of_a_later_version_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runs.db");
        let connection = Connection::open(&path).expect("a file");
        connection
            .pragma_update(None, "user_version", 99)
            .expect("a version");
        let error = Store::open(&StoreAddress::Sqlite(path)).expect_err("it is too new");
        assert!(matches!(error, StoreError::Newer { found: 99 }), "{error}");
    }

    #[test]
    fn a_file_that_is_no_store_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("runs.db");
        fs::write(&path, "hello, this is not a database at all").expect("a file");
        let error = Store::open(&StoreAddress::Sqlite(path)).expect_err("it is no database");
        assert!(error.to_string().contains("runs.db"), "{error}");
    }
}
