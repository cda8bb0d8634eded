//! The `PostgreSQL` engine: a store in one schema of a database, shared by any number of machines.
//!
//! Every write is a transaction that is committed before it returns.

mod changes;
mod conversations;
mod graph;
mod locks;
mod memories;
mod nodes;
mod pool;
mod resolve;
mod runs;
mod schema;
mod search;
mod strategies;
mod text;
mod tls;
mod vectors;

use std::str::FromStr;
use std::sync::Arc;

use tokio_postgres::Row;

use crate::address::PostgresAddress;
use crate::error::StoreError;
use crate::store::{Access, Store};
use locks::Locks;
use pool::Pool;

/// A store in a database.
#[derive(Debug)]
pub(crate) struct Postgres {
    pool: Arc<Pool>,
    locks: Arc<Locks>,
    schema: String,
    /// The address without the password, for messages.
    place: String,
    /// Whether the server has pgvector.
    has_vectors: bool,
}

impl Store for Postgres {}

impl Postgres {
    /// Opens the store at an address.
    pub(crate) fn open(address: &PostgresAddress, access: Access) -> Result<Self, StoreError> {
        let pool = Pool::new(address, access).map_err(|source| StoreError::Open {
            place: address.to_string(),
            source,
        })?;
        let pool = Arc::new(pool);
        schema::open(&pool, address, access)?;
        let has_vectors = schema::find_vectors(&pool, address, access)?;
        Ok(Self {
            locks: Locks::new(Arc::clone(&pool), &address.schema),
            schema: address.schema.clone(),
            place: address.to_string(),
            has_vectors,
            pool,
        })
    }
}

/// Parses a text column.
fn parsed<T>(row: &Row, column: &str) -> Result<T, StoreError>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    let name: &str = row.try_get(column)?;
    name.parse()
        .map_err(|error: T::Err| StoreError::Database(error.into()))
}
