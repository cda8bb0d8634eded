//! The [`Store`] trait and how a store is opened.
//!
//! Calls block on a disk or on the network, so asynchronous code must make them on another thread.

use std::fmt::Debug;
use std::sync::Arc;

use crate::address::StoreAddress;
use crate::conversations::Conversations;
use crate::error::StoreError;
use crate::memories::Memories;
use crate::nodes::Nodes;
use crate::postgres::Postgres;
use crate::runs::{Runs, Writes, transact};
use crate::sqlite::Sqlite;
use crate::strategies::Strategies;

/// A store. Any number of threads may use it at once.
pub trait Store:
    Runs + Nodes + Conversations + Memories + Strategies + Debug + Send + Sync
{
}

impl dyn Store + '_ {
    /// Makes several writes in one transaction, which costs as much as one of them. A rejected write
    /// does not affect the others.
    pub fn transaction<T>(&self, work: impl FnOnce(&mut dyn Writes) -> T) -> Result<T, StoreError> {
        transact(self, work)
    }
}

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For writing. A missing store is created.
    Create,
    /// For writing to an existing store.
    Write,
    /// For reading an existing store, which is not changed.
    Read,
}

/// Opens a store.
pub fn open(address: &StoreAddress, access: Access) -> Result<Arc<dyn Store>, StoreError> {
    match address {
        StoreAddress::Sqlite(path) => Ok(Arc::new(Sqlite::open(path, access)?)),
        StoreAddress::Postgres(address) => Ok(Arc::new(Postgres::open(address, access)?)),
    }
}

/// What a database contains.
pub(crate) enum Content {
    Nothing,
    Store { version: i64 },
    SomethingElse,
}

impl Content {
    /// Whether it is a store whose tables this version of the program can use.
    pub(crate) fn is_store(&self, known: i64, place: &str) -> Result<bool, StoreError> {
        match self {
            Self::Nothing => Ok(false),
            &Self::Store { version: found } if found > known => {
                Err(StoreError::Newer { found, known })
            }
            Self::Store { .. } => Ok(true),
            Self::SomethingElse => Err(StoreError::Foreign {
                place: place.to_owned(),
            }),
        }
    }
}

/// A number for a column: databases have no unsigned integers.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number of a column.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Opens a store in memory, which ends with the process.
pub fn in_memory() -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(Sqlite::in_memory()?))
}
