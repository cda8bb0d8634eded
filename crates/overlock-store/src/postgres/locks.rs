//! Is somebody working on a run?
//!
//! A run that is worked on is a lock that a connection holds. The server lets go of it when that
//! connection ends, however it ends, so that nobody waits for the dead. If it ends although this
//! process lives, because the server was started again, others may take the run up; then the claim
//! of whoever had it before is not the last one, and they cannot write to it any more.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::connection::Connection;
use super::pool::Pool;
use crate::error::StoreError;
use crate::runs::{Hold, RunId};

/// So long letting go of a run may take before it is left to the server.
const PATIENCE: Duration = Duration::from_secs(1);

/// Holds runs, all of them over one connection.
#[derive(Debug)]
pub(super) struct Locks {
    pool: Arc<Pool>,
    /// Locks are a whole database's.
    schema: String,
    connection: Mutex<Option<Arc<Connection>>>,
    /// To the server, whoever holds a lock may take it again.
    held: Mutex<HashSet<RunId>>,
}

/// A run that is held until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    locks: Arc<Locks>,
    /// Nothing until the server has said so.
    connection: Option<Arc<Connection>>,
    id: RunId,
}

impl Locks {
    pub(super) fn new(pool: Arc<Pool>, schema: &str) -> Arc<Self> {
        Arc::new(Self {
            pool,
            schema: schema.to_owned(),
            connection: Mutex::default(),
            held: Mutex::default(),
        })
    }

    /// Holds a run; nothing if somebody else does.
    pub(super) fn hold(self: &Arc<Self>, id: &RunId) -> Result<Option<Held>, StoreError> {
        if !lock(&self.held).insert(id.clone()) {
            return Ok(None);
        }
        let mut held = Held {
            locks: Arc::clone(self),
            connection: None,
            id: id.clone(),
        };
        let (mut connection, mut asked) = self.ask(id)?;
        if asked.is_err() && connection.is_closed() {
            // The server has closed it while nobody looked.
            (connection, asked) = self.ask(id)?;
        }
        if !asked? {
            return Ok(None);
        }
        held.connection = Some(connection);
        Ok(Some(held))
    }

    /// Asks for a run, over which connection.
    fn ask(&self, id: &RunId) -> Result<(Arc<Connection>, Result<bool, StoreError>), StoreError> {
        let connection = self.connection()?;
        let ask = "SELECT pg_try_advisory_lock($1) AS is_held";
        let row = connection.query_one(ask, &[&self.number(id)]);
        let is_held = row.and_then(|row| row.try_get("is_held"));
        Ok((connection, is_held.map_err(StoreError::from)))
    }

    fn connection(&self) -> Result<Arc<Connection>, StoreError> {
        let mut known = lock(&self.connection);
        if let Some(connection) = known.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let connection = self.pool.connector.connect();
        let connection = Arc::new(connection.map_err(StoreError::Database)?);
        *known = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// The number of the lock on a run.
    pub(super) fn number(&self, id: &RunId) -> i64 {
        number(&self.schema, "run", id.as_str())
    }
}

impl Hold for Held {
    fn is_held(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| !connection.is_closed())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.let_go(connection);
        }
        lock(&self.locks.held).remove(&self.id);
    }
}

impl Held {
    fn let_go(&self, connection: Arc<Connection>) {
        let number = self.locks.number(&self.id);
        let (sender, done) = mpsc::channel();
        self.locks.pool.connector.spawn(async move {
            let let_go = "SELECT pg_advisory_unlock($1)";
            // A connection that is gone has let go of everything.
            let _ = connection.client().execute(let_go, &[&number]).await;
            let _ = sender.send(());
        });
        // Whoever asks next finds it free, wherever they are. A server that does not answer at all
        // is not waited for.
        let _ = done.recv_timeout(PATIENCE);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a lock on something with a name in a schema.
pub(super) fn number(schema: &str, what: &str, name: &str) -> i64 {
    let mut digest = Sha256::new();
    // No name of a schema has a character 0.
    for part in [schema, "\0", what, "\0", name] {
        digest.update(part);
    }
    let digest = digest.finalize();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(bytes)
}
