//! One door to whatever keeps things.
//!
//! A store waits for a disk or for another machine: whoever must not wait asks it on a thread of
//! its own.

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

/// A store, which any number of threads may use at once.
pub trait Store:
    Runs + Nodes + Conversations + Memories + Strategies + Debug + Send + Sync
{
}

impl dyn Store + '_ {
    /// Makes several writes that are on the disk together, which costs as much as one of them. One
    /// that is refused does not keep the others from it.
    pub fn together<T>(&self, work: impl FnOnce(&mut dyn Writes) -> T) -> Result<T, StoreError> {
        transact(self, work)
    }
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To write to it. A store is made if there is none.
    Make,
    /// To go on with what is there. There must be a store.
    Write,
    /// To look at it. There must be a store, and nothing of it is changed.
    Read,
}

/// Opens a store.
pub fn open(address: &StoreAddress, access: Access) -> Result<Arc<dyn Store>, StoreError> {
    match address {
        StoreAddress::Sqlite(path) => Ok(Arc::new(Sqlite::open(path, access)?)),
        StoreAddress::Postgres(address) => Ok(Arc::new(Postgres::open(address, access)?)),
    }
}

/// A store that is gone with the process.
pub fn in_memory() -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(Sqlite::in_memory()?))
}
