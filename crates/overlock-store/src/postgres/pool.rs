//! The connections to a server, for threads that block.
//!
//! The client is asynchronous. One thread of the store drives all its connections, and callers block
//! their own thread until they have the result. So a store works inside and outside of a runtime.

use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Manager, ManagerConfig, Object, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Row};

use super::tls;
use crate::address::{Encryption, PostgresAddress};
use crate::error::{Cause, StoreError};
use crate::store::Access;

/// The most connections of a store, without the one for the locks of runs.
const MAX_CONNECTIONS: usize = 8;

/// How long to wait for a free connection.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The time limit of a statement, except those that write an index.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a statement waits for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a transaction may be idle, since its locks can block other writers.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a machine may be silent before its connections are closed.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// The connections of a store, and the thread that drives them.
pub(super) struct Pool {
    connections: deadpool_postgres::Pool,
    driver: runtime::Handle,
    /// The driver thread ends when this is dropped.
    _until: oneshot::Sender<()>,
    connect_timeout: Duration,
    /// The address without the password, for messages.
    place: String,
}

/// A connection, which returns to the pool when this is dropped.
pub(super) struct Connection(Object);

/// The parameters of a statement.
pub(super) type Values<'a> = [&'a (dyn ToSql + Sync)];

impl Pool {
    /// Prepares the pool. It connects when a connection is needed.
    pub(super) fn new(address: &PostgresAddress, access: Access) -> Result<Self, Cause> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let driver = runtime.handle().clone();
        let (until, dropped) = oneshot::channel::<()>();
        thread::Builder::new()
            .name("postgres".into())
            .spawn(move || runtime.block_on(dropped).unwrap_or_default())?;
        let options = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager =
            Manager::from_config(config(address, access), tls::connector(address)?, options);
        let connections = deadpool_postgres::Pool::builder(manager)
            .max_size(MAX_CONNECTIONS)
            .wait_timeout(Some(WAIT_TIMEOUT))
            .create_timeout(Some(address.connect_timeout))
            .runtime(Runtime::Tokio1)
            .build()?;
        Ok(Self {
            connections,
            driver,
            _until: until,
            connect_timeout: address.connect_timeout,
            place: address.to_string(),
        })
    }

    /// Reads. If the server has closed the idle connection, reads again over another one.
    pub(super) fn read<T>(
        &self,
        work: impl Fn(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            let connection = self.get()?;
            let result = work(&connection);
            if result.is_err() && connection.was_closed_while_idle() {
                continue;
            }
            return result.map_err(|error| self.explained(error));
        }
    }

    /// Writes in a transaction, which is rolled back if `work` fails.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut transaction = Transaction {
            connection: self.open("BEGIN")?,
            is_open: true,
        };
        let result = work(&transaction.connection).and_then(|done| {
            transaction.commit()?;
            Ok(done)
        });
        result.map_err(|error| self.explained(error))
    }

    /// A connection over which a first statement was run. If the server has closed the idle connection,
    /// takes another one.
    fn open(&self, first: &str) -> Result<Connection, StoreError> {
        loop {
            let connection = self.get()?;
            match connection.batch(first) {
                Ok(()) => return Ok(connection),
                Err(_) if connection.was_closed_while_idle() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn get(&self) -> Result<Connection, StoreError> {
        // Timers and sockets belong to the driver thread.
        let _context = self.driver.enter();
        let connection = wait(self.connections.get()).map_err(|error| match error {
            PoolError::Backend(error) => Cause::from(error),
            PoolError::Timeout(TimeoutType::Create) => {
                let limit = self.connect_timeout;
                format!("the server did not answer within {limit:?}").into()
            }
            PoolError::Timeout(_) => {
                format!("all {MAX_CONNECTIONS} connections to the server are busy").into()
            }
            error => error.into(),
        });
        connection.map(Connection).map_err(StoreError::Database)
    }

    /// A connection that does not return to the pool.
    pub(super) fn detached(&self) -> Result<ClientWrapper, StoreError> {
        Ok(Object::take(self.open("")?.0))
    }

    /// Runs a future on the driver thread.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.driver.spawn(work);
    }

    /// Turns known errors of the server into ones that name the store.
    fn explained(&self, error: StoreError) -> StoreError {
        let StoreError::Database(source) = error else {
            return error;
        };
        let code = source
            .downcast_ref::<tokio_postgres::Error>()
            .and_then(tokio_postgres::Error::code);
        let is = |known| code == Some(&known);
        let place = self.place.clone();
        if is(SqlState::INSUFFICIENT_PRIVILEGE) {
            StoreError::Forbidden { place, source }
        } else if is(SqlState::DISK_FULL) {
            StoreError::Full { place, source }
        } else if is(SqlState::READ_ONLY_SQL_TRANSACTION) {
            StoreError::ReadOnly { place, source }
        } else {
            StoreError::Database(source)
        }
    }
}

impl Debug for Pool {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// A transaction, which is rolled back when this is dropped, also after a panic.
struct Transaction {
    connection: Connection,
    is_open: bool,
}

impl Transaction {
    fn commit(&mut self) -> Result<(), tokio_postgres::Error> {
        self.connection.batch("COMMIT")?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.is_open {
            // This fails only if the connection is closed, which ends the transaction too.
            let _ = self.connection.batch("ROLLBACK");
        }
    }
}

fn config(address: &PostgresAddress, access: Access) -> Config {
    let mut config = Config::new();
    let password = match &address.password {
        Some(password) => Some(password.0.clone()),
        None => std::env::var("PGPASSWORD").ok(),
    };
    if let Some(password) = password {
        config.password(password);
    }
    let only_reads = if access == Access::Read { "on" } else { "off" };
    config
        .user(&address.user)
        .host(&address.host)
        .port(address.port)
        .dbname(&address.database)
        .application_name("overlock")
        .keepalives_idle(SILENCE_TIMEOUT)
        .tcp_user_timeout(SILENCE_TIMEOUT)
        .ssl_mode(match address.encryption {
            Encryption::Disable => SslMode::Disable,
            Encryption::Prefer => SslMode::Prefer,
            Encryption::Require => SslMode::Require,
        })
        .options(format!(
            "-c search_path={},public -c statement_timeout={} -c lock_timeout={} \
             -c idle_in_transaction_session_timeout={} -c client_min_messages=error \
             -c default_transaction_read_only={only_reads} \
             -c hnsw.ef_search=200 -c hnsw.iterative_scan=strict_order",
            address.schema,
            STATEMENT_TIMEOUT.as_millis(),
            LOCK_TIMEOUT.as_millis(),
            IDLE_TIMEOUT.as_millis(),
        ));
    config
}

impl Connection {
    /// Whether the server closed it after an earlier use.
    fn was_closed_while_idle(&self) -> bool {
        self.0.is_closed() && Object::metrics(&self.0).recycle_count > 0
    }

    /// Runs several statements without parameters.
    pub(super) fn batch(&self, statements: &str) -> Result<(), tokio_postgres::Error> {
        wait(self.0.batch_execute(statements))
    }

    pub(super) fn query(
        &self,
        statement: &str,
        values: &Values<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        wait(async {
            let statement = self.0.prepare_cached(statement).await?;
            self.0.query(&statement, values).await
        })
    }

    pub(super) fn query_one(
        &self,
        statement: &str,
        values: &Values<'_>,
    ) -> Result<Row, tokio_postgres::Error> {
        wait(async {
            let statement = self.0.prepare_cached(statement).await?;
            self.0.query_one(&statement, values).await
        })
    }

    pub(super) fn query_opt(
        &self,
        statement: &str,
        values: &Values<'_>,
    ) -> Result<Option<Row>, tokio_postgres::Error> {
        wait(async {
            let statement = self.0.prepare_cached(statement).await?;
            self.0.query_opt(&statement, values).await
        })
    }

    /// Returns the number of changed rows.
    pub(super) fn execute(
        &self,
        statement: &str,
        values: &Values<'_>,
    ) -> Result<u64, tokio_postgres::Error> {
        wait(async {
            let statement = self.0.prepare_cached(statement).await?;
            self.0.execute(&statement, values).await
        })
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(Box::new(error))
    }
}

/// Blocks this thread until a future is ready.
pub(super) fn wait<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}
