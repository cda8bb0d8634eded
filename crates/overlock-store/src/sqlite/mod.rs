//! Keeps everything in an SQLite file.
//!
//! Every write is a transaction that is on the disk before it returns, and several processes may
//! have the file open.

mod file;
mod live;
mod runs;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::error::StoreError;
use crate::store::{Access, Store};

/// A store in a file, or in memory.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: Mutex<Connection>,
    /// The file, if other processes can open it too.
    path: Option<PathBuf>,
}

impl Store for Sqlite {}

impl Sqlite {
    /// Opens the store in a file.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let connection = file::open(path, access)?;
        if access == Access::Make {
            live::sweep(path);
        }
        Ok(Self::of(connection, Some(path.to_owned())))
    }

    /// A store that is gone with the process.
    pub(crate) fn in_memory() -> Result<Self, StoreError> {
        let connection = file::in_memory()?;
        Ok(Self::of(connection, None))
    }

    fn of(connection: Connection, path: Option<PathBuf>) -> Self {
        Self {
            connection: Mutex::new(connection),
            path,
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
