//! A connection to a server, for threads that may wait.
//!
//! The client is an asynchronous one. One thread of the store drives all its connections, and
//! whoever asks something waits for the answer on a thread of their own, whatever else runs there:
//! there is no runtime in which that could not be done, and a connection that is dropped anywhere is
//! closed by the thread that drives it.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Statement};

use super::tls::Tls;
use crate::address::{Encryption, PostgresAddress};
use crate::error::{Cause, StoreError};
use crate::store::Access;

/// How long one statement may take, unless it is known to take longer.
const STATEMENT: Duration = Duration::from_secs(30);

/// How long a statement waits for what somebody else has locked.
const LOCK: Duration = Duration::from_secs(10);

/// How long a transaction may be left open: whoever does so keeps others from writing.
const IDLE: Duration = Duration::from_mins(1);

/// How long nothing may be heard from a machine before it is taken for gone.
const SILENCE: Duration = Duration::from_secs(30);

/// Makes connections, and drives them.
pub(super) struct Connector {
    config: Config,
    tls: Tls,
    timeout: Duration,
    driver: runtime::Handle,
    /// The thread that drives ends when this is dropped.
    _until: oneshot::Sender<()>,
}

/// A connection.
pub(super) struct Connection {
    client: Client,
    /// What the server has read already, by its text.
    statements: Mutex<HashMap<String, Statement>>,
}

impl Connector {
    /// Is ready to connect; nothing is done yet.
    pub(super) fn new(address: &PostgresAddress, access: Access) -> Result<Self, Cause> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let driver = runtime.handle().clone();
        let (until, dropped) = oneshot::channel::<()>();
        thread::Builder::new()
            .name("postgres".into())
            .spawn(move || runtime.block_on(dropped).unwrap_or_default())?;
        Ok(Self {
            config: config(address, access),
            tls: Tls::new(address)?,
            timeout: address.connect_timeout,
            driver,
            _until: until,
        })
    }

    pub(super) fn connect(&self) -> Result<Connection, Cause> {
        let (config, tls, limit) = (self.config.clone(), self.tls.clone(), self.timeout);
        // Timers and sockets belong to the thread that drives them.
        let connected = self.driver.spawn(async move {
            // The client's own limit is for reaching the machine, and not for being answered.
            let connected = timeout(limit, config.connect(tls)).await;
            let silent = |_| format!("the server did not answer within {limit:?}");
            let (client, connection) = connected.map_err(silent)??;
            tokio::spawn(connection);
            Ok::<_, Cause>(client)
        });
        let client = wait(connected)??;
        Ok(Connection {
            client,
            statements: Mutex::default(),
        })
    }

    /// Does something later that nobody waits for.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.driver.spawn(work);
    }
}

impl Debug for Connector {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connector")
    }
}

impl Debug for Connection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connection")
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
        .connect_timeout(address.connect_timeout)
        .keepalives_idle(SILENCE)
        .tcp_user_timeout(SILENCE)
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
            STATEMENT.as_millis(),
            LOCK.as_millis(),
            IDLE.as_millis(),
        ));
    config
}

/// What a statement is given.
pub(super) type Values<'a> = [&'a (dyn ToSql + Sync)];

impl Connection {
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Statements without values, one after the other.
    pub(super) fn batch(&self, statements: &str) -> Result<(), tokio_postgres::Error> {
        wait(self.client.batch_execute(statements))
    }

    pub(super) fn query(
        &self,
        statement: &str,
        values: &Values<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        wait(self.client.query(&self.prepared(statement)?, values))
    }

    pub(super) fn query_one(
        &self,
        statement: &str,
        values: &Values<'_>,
    ) -> Result<Row, tokio_postgres::Error> {
        wait(self.client.query_one(&self.prepared(statement)?, values))
    }

    pub(super) fn query_opt(
        &self,
        statement: &str,
        values: &Values<'_>,
    ) -> Result<Option<Row>, tokio_postgres::Error> {
        wait(self.client.query_opt(&self.prepared(statement)?, values))
    }

    /// How many rows it changed.
    pub(super) fn execute(
        &self,
        statement: &str,
        values: &Values<'_>,
    ) -> Result<u64, tokio_postgres::Error> {
        wait(self.client.execute(&self.prepared(statement)?, values))
    }

    /// The client, to ask without waiting.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// A statement that is read by the server once, and made again and again.
    pub(super) fn prepared(&self, statement: &str) -> Result<Statement, tokio_postgres::Error> {
        let mut known = self
            .statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(statement) {
            return Ok(known.clone());
        }
        let prepared = wait(self.client.prepare(statement))?;
        known.insert(statement.to_owned(), prepared.clone());
        Ok(prepared)
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(Box::new(error))
    }
}

/// Waits for what another thread does.
pub(super) fn wait<T>(work: impl Future<Output = T>) -> T {
    struct Sleeper(Thread);

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
