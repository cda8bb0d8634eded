//! The SQLite engine: a store in one file.
//!
//! Every write is a transaction that is on the disk before it returns. Several processes can use the
//! file.

mod conversations;
mod file;
mod graph;
mod live;
mod memories;
mod nodes;
mod resolve;
mod runs;
mod search;
mod strategies;
mod vectors;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use crate::error::StoreError;
use crate::store::{Access, Store};
use vectors::Codes;

/// The size of the cache of prepared statements.
const STATEMENTS: usize = 64;

/// A store in a file, or in memory.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: Mutex<Connection>,
    /// The file; nothing for a store in memory.
    path: Option<PathBuf>,
    /// The codes that vector searches compare first.
    codes: Codes,
}

impl Store for Sqlite {}

impl Sqlite {
    /// Opens the store in a file.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let connection = file::open(path, access)?;
        if access == Access::Create {
            live::sweep(path);
        }
        Ok(Self::new(connection, Some(path.to_owned())))
    }

    /// Opens a store in memory.
    pub(crate) fn in_memory() -> Result<Self, StoreError> {
        let connection = file::in_memory()?;
        Ok(Self::new(connection, None))
    }

    fn new(connection: Connection, path: Option<PathBuf>) -> Self {
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Self {
            connection: Mutex::new(connection),
            path,
            codes: Codes::default(),
        }
    }

    /// Reads in one transaction.
    fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let done = connection
            .transaction()
            .map_err(StoreError::from)
            .and_then(|transaction| work(&transaction));
        done.map_err(|error| self.explained(error))
    }

    /// Writes in one transaction, which is rolled back if `work` fails.
    fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let done = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(StoreError::from)
            .and_then(|transaction| {
                let done = work(&transaction)?;
                transaction.commit()?;
                Ok(done)
            });
        done.map_err(|error| self.explained(error))
    }

    /// Turns known errors of the database into ones that name the file and what to do.
    fn explained(&self, error: StoreError) -> StoreError {
        let StoreError::Database(source) = error else {
            return error;
        };
        let code = source
            .downcast_ref::<rusqlite::Error>()
            .and_then(rusqlite::Error::sqlite_error_code);
        let place = || {
            let path = self.path.as_deref();
            path.map_or_else(|| "memory".to_owned(), |path| path.display().to_string())
        };
        match code {
            Some(ErrorCode::DiskFull) => StoreError::Full {
                place: place(),
                source,
            },
            Some(ErrorCode::ReadOnly) => StoreError::ReadOnly {
                place: place(),
                source,
            },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged {
                place: place(),
                source,
            },
            _ => StoreError::Database(source),
        }
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A transaction that panicked was rolled back.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(Box::new(error))
    }
}
