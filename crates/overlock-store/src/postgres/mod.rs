//! Keeps everything in `PostgreSQL`, for any number of machines.
//!
//! All tables are in one schema of a database. Every write is a transaction that is committed before
//! it returns.

mod connection;
mod locks;
mod pool;
mod runs;
mod schema;
mod text;
mod tls;

use std::sync::Arc;

use crate::address::PostgresAddress;
use crate::error::StoreError;
use crate::store::{Access, Store};
use connection::Connector;
use locks::Locks;
use pool::Pool;

/// A store in a database.
#[derive(Debug)]
pub(crate) struct Postgres {
    pool: Arc<Pool>,
    locks: Arc<Locks>,
    schema: String,
}

impl Store for Postgres {}

impl Postgres {
    /// Opens the store at an address.
    pub(crate) fn open(address: &PostgresAddress, access: Access) -> Result<Self, StoreError> {
        let connector = Connector::new(address, access);
        let connector = connector.map_err(|source| StoreError::Open {
            place: address.to_string(),
            source,
        })?;
        let pool = Arc::new(Pool::new(connector));
        schema::open(&pool, address, access)?;
        Ok(Self {
            locks: Locks::new(Arc::clone(&pool), &address.schema),
            schema: address.schema.clone(),
            pool,
        })
    }
}
