//! Which connection is free?

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::{Connection, Connector};
use crate::error::StoreError;

/// So many connections a store has at most, besides the one that holds what is worked on.
const MOST: usize = 8;

/// How long it is waited for one that is free.
const PATIENCE: Duration = Duration::from_secs(30);

/// How the server says that a user may not do something.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// How it says that there is no room.
const DISK_FULL: &str = "53100";

/// How it says that nothing may be written there.
const READ_ONLY: &str = "25006";

/// Connections that are used again.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) connector: Connector,
    /// How the store is named to people.
    place: String,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Connection>,
    /// How many there are, free or not.
    open: usize,
}

impl Pool {
    pub(super) fn new(connector: Connector, place: String) -> Self {
        Self {
            connector,
            place,
            state: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Reads, on a connection that the server may have closed while nobody looked: then it is done
    /// again on another.
    pub(super) fn read<T>(
        &self,
        work: impl Fn(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            let lent = self.lend()?;
            let done = work(lent.connection());
            if done.is_err() && lent.is_old && lent.connection().is_closed() {
                continue;
            }
            lent.give_back();
            return done.map_err(|error| self.explained(error));
        }
    }

    /// Does work in a transaction, which is kept if the work succeeds.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let lent = self.begin()?;
        match work(lent.connection()) {
            Ok(done) => {
                lent.connection().batch("COMMIT")?;
                lent.give_back();
                Ok(done)
            }
            Err(error) => {
                // A connection that cannot even do that is not used again.
                if lent.connection().batch("ROLLBACK").is_ok() {
                    lent.give_back();
                }
                Err(self.explained(error))
            }
        }
    }

    /// An error of the server in words that say which store it is about.
    fn explained(&self, error: StoreError) -> StoreError {
        let StoreError::Database(source) = error else {
            return error;
        };
        let code = source
            .downcast_ref::<tokio_postgres::Error>()
            .and_then(tokio_postgres::Error::code)
            .map(|code| code.code().to_owned());
        let place = self.place.clone();
        match code.as_deref() {
            Some(INSUFFICIENT_PRIVILEGE) => StoreError::Forbidden { place, source },
            Some(DISK_FULL) => StoreError::Full { place, source },
            Some(READ_ONLY) => StoreError::ReadOnly { place, source },
            _ => StoreError::Database(source),
        }
    }

    /// A connection in a transaction. That the server has closed one while nobody looked is found
    /// out by beginning, before anything is done in it.
    fn begin(&self) -> Result<Lent<'_>, StoreError> {
        loop {
            let lent = self.lend()?;
            match lent.connection().batch("BEGIN") {
                Ok(()) => return Ok(lent),
                Err(_) if lent.is_old && lent.connection().is_closed() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn lend(&self) -> Result<Lent<'_>, StoreError> {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state();
        loop {
            if let Some(connection) = state.free.pop() {
                if connection.is_closed() {
                    state.open -= 1;
                    continue;
                }
                return Ok(self.lent(connection, true));
            }
            if state.open < MOST {
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let busy = format!("all {MOST} connections to the server were busy for too long");
                return Err(StoreError::Database(busy.into()));
            }
            let waited = self.freed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.open += 1;
        drop(state);
        match self.connector.connect() {
            Ok(connection) => Ok(self.lent(connection, false)),
            Err(error) => {
                self.closed();
                Err(StoreError::Database(error))
            }
        }
    }

    fn lent(&self, connection: Connection, is_old: bool) -> Lent<'_> {
        Lent {
            pool: self,
            connection: Some(connection),
            is_old,
        }
    }

    fn closed(&self) {
        self.state().open -= 1;
        self.freed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It is whole between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that somebody has for now. One that is not given back is closed, which undoes what
/// was not committed.
struct Lent<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    /// Whether it was used before.
    is_old: bool,
}

impl Lent<'_> {
    fn connection(&self) -> &Connection {
        let connection = self.connection.as_ref();
        connection.expect("only what is given back has none")
    }

    fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.state().free.push(connection);
            self.pool.freed.notify_one();
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if self.connection.take().is_some() {
            self.pool.closed();
        }
    }
}
