//! Locks of runs.
//!
//! A locked run is an advisory lock of a connection. The server releases it when the connection ends,
//! also after a crash. If the connection ends before the process, because the server restarted,
//! another process can resume the run. The claim of the first one is then no longer the latest, so its
//! writes are rejected.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use sha2::{Digest, Sha256};

use super::pool::{Pool, wait};
use crate::error::StoreError;
use crate::runs::{RunId, RunLock};

/// How long to wait for the server to unlock a run.
const UNLOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Locks runs, all of them over one connection.
#[derive(Debug)]
pub(super) struct Locks {
    pool: Arc<Pool>,
    /// Part of each key, since advisory locks belong to the whole database.
    schema: String,
    connection: Mutex<Option<Arc<ClientWrapper>>>,
    /// The runs that this process has locked: one connection can lock the same run twice.
    held: Mutex<HashSet<RunId>>,
}

/// The lock of a run, held until this is dropped.
#[derive(Debug)]
pub(super) struct AdvisoryLock {
    locks: Arc<Locks>,
    /// Nothing until the server has locked the run.
    connection: Option<Arc<ClientWrapper>>,
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

    /// Locks a run; nothing if it is locked already.
    pub(super) fn try_lock(
        self: &Arc<Self>,
        id: &RunId,
    ) -> Result<Option<AdvisoryLock>, StoreError> {
        if !lock(&self.held).insert(id.clone()) {
            return Ok(None);
        }
        let mut lock = AdvisoryLock {
            locks: Arc::clone(self),
            connection: None,
            id: id.clone(),
        };
        let (mut connection, mut locked) = self.request(id)?;
        if locked.is_err() && connection.is_closed() {
            // The server closed the connection while it was idle.
            (connection, locked) = self.request(id)?;
        }
        if !locked? {
            return Ok(None);
        }
        lock.connection = Some(connection);
        Ok(Some(lock))
    }

    /// Requests the lock of a run. Returns the connection and whether the run is locked now.
    fn request(
        &self,
        id: &RunId,
    ) -> Result<(Arc<ClientWrapper>, Result<bool, StoreError>), StoreError> {
        let connection = self.connection()?;
        let lock = "SELECT pg_try_advisory_lock($1) AS is_held";
        let row = wait(connection.query_one(lock, &[&self.key(id)]));
        let is_held = row.and_then(|row| row.try_get("is_held"));
        Ok((connection, is_held.map_err(StoreError::from)))
    }

    fn connection(&self) -> Result<Arc<ClientWrapper>, StoreError> {
        let mut known = lock(&self.connection);
        if let Some(connection) = known.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(self.pool.detached()?);
        *known = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// The key of the lock of a run.
    pub(super) fn key(&self, id: &RunId) -> i64 {
        lock_key(&self.schema, "run", id.as_str())
    }
}

impl RunLock for AdvisoryLock {
    fn is_held(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| !connection.is_closed())
    }
}

impl Drop for AdvisoryLock {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.unlock(connection);
        }
        lock(&self.locks.held).remove(&self.id);
    }
}

impl AdvisoryLock {
    fn unlock(&self, connection: Arc<ClientWrapper>) {
        let key = self.locks.key(&self.id);
        let (sender, done) = mpsc::channel();
        self.locks.pool.spawn(async move {
            let unlock = "SELECT pg_advisory_unlock($1)";
            // A closed connection has released all its locks.
            let _ = connection.execute(unlock, &[&key]).await;
            let _ = sender.send(());
        });
        // Waits, so that the next request anywhere finds the run unlocked, unless the server hangs.
        let _ = done.recv_timeout(UNLOCK_TIMEOUT);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key of the advisory lock of a named object of a schema.
pub(super) fn lock_key(schema: &str, kind: &str, name: &str) -> i64 {
    let mut digest = Sha256::new();
    // Names of schemas do not contain the character 0.
    for part in [schema, "\0", kind, "\0", name] {
        digest.update(part);
    }
    let digest = digest.finalize();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(bytes)
}
