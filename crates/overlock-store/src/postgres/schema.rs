//! Is there a store in this database, and of which version? Nothing is written before that is
//! known.

use super::connection::Connection;
use super::pool::Pool;
use super::vectors;
use crate::address::PostgresAddress;
use crate::error::{Cause, StoreError};
use crate::store::Access;

/// How the tables look.
const VERSION: i64 = 1;

const TABLES: &str = include_str!("tables.sql");
const NODES: &str = include_str!("nodes.sql");

/// Whoever makes or changes tables holds this lock, with a number for the schema.
const MAKING: i32 = 0x4F76_6C6B;

/// What a schema holds.
enum Content {
    Nothing,
    Store { version: i64 },
    SomethingElse,
}

/// Finds the store of an address, or makes it.
pub(super) fn open(
    pool: &Pool,
    address: &PostgresAddress,
    access: Access,
) -> Result<(), StoreError> {
    let known = pool.read(|connection| found(connection, address));
    // Whoever cannot even connect wants to know to what.
    let known = known.map_err(|error| match error {
        StoreError::Database(source) => StoreError::Open {
            place: address.to_string(),
            source,
        },
        other => other,
    })?;
    if known.is_some() {
        return Ok(());
    }
    if access != Access::Make {
        return Err(StoreError::Missing {
            place: address.to_string(),
        });
    }
    pool.write(|connection| {
        let lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
        connection.execute(lock, &[&MAKING, &address.schema])?;
        // Another process may have been faster.
        if found(connection, address)?.is_some() {
            return Ok(());
        }
        let schema = &address.schema;
        let is_there = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
        // Whoever may only use one that is there may not even ask for it to be made.
        if connection.query_opt(is_there, &[schema])?.is_none() {
            connection.batch(&format!("CREATE SCHEMA {schema}"))?;
        }
        connection.batch(TABLES)?;
        connection.batch(NODES)?;
        connection.execute("INSERT INTO store (version) VALUES ($1)", &[&VERSION])?;
        Ok(())
    })
}

/// Whether vectors can be kept, which takes an extension of the server. It is made if it can be.
pub(super) fn find_vectors(
    pool: &Pool,
    address: &PostgresAddress,
    access: Access,
) -> Result<bool, StoreError> {
    let table = format!("{}.vectors", address.schema);
    let has_table = |connection: &Connection| {
        let find = "SELECT to_regclass($1) IS NOT NULL AS is_there";
        let row = connection.query_one(find, &[&table])?;
        Ok(row.try_get("is_there")?)
    };
    if pool.read(has_table)? || access == Access::Read {
        return pool.read(has_table);
    }
    // It is one for all schemas of a database.
    let lock = "SELECT pg_advisory_xact_lock($1, 0)";
    let made = pool.write(|connection| {
        connection.execute(lock, &[&MAKING])?;
        connection.batch("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")?;
        Ok(())
    });
    let is_known = pool.read(|connection| {
        let find = "SELECT to_regtype('vector') IS NOT NULL AS is_known";
        Ok(connection
            .query_one(find, &[])?
            .try_get::<_, bool>("is_known")?)
    })?;
    match made {
        _ if is_known => {}
        // A server that refuses has no vectors, one that is gone has nothing.
        Err(StoreError::Database(cause)) if is_refusal(&cause) => return Ok(false),
        Err(StoreError::Forbidden { .. }) | Ok(()) => return Ok(false),
        Err(error) => return Err(error),
    }
    pool.write(|connection| {
        connection.execute(lock, &[&MAKING])?;
        Ok(connection.batch(vectors::TABLE)?)
    })?;
    Ok(true)
}

/// Whether a server said that it will not do something.
fn is_refusal(cause: &Cause) -> bool {
    let error = cause.downcast_ref::<tokio_postgres::Error>();
    error.is_some_and(|error| error.as_db_error().is_some())
}

/// The version of the store, if there is one.
fn found(connection: &Connection, address: &PostgresAddress) -> Result<Option<i64>, StoreError> {
    match content(connection, &address.schema)? {
        Content::Nothing => Ok(None),
        Content::SomethingElse => Err(StoreError::Foreign {
            place: address.to_string(),
        }),
        Content::Store { version } if version > VERSION => Err(StoreError::Newer {
            found: version,
            known: VERSION,
        }),
        Content::Store { version } => Ok(Some(version)),
    }
}

fn content(connection: &Connection, schema: &str) -> Result<Content, StoreError> {
    // Extensions that were made in the schema are nobody's tables.
    let tables = "SELECT c.relname::text AS name FROM pg_class c \
                  JOIN pg_namespace n ON n.oid = c.relnamespace \
                  WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') \
                  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')";
    let tables = connection.query(tables, &[&schema])?;
    let tables: Vec<String> = tables.iter().map(|row| row.get("name")).collect();
    if tables.is_empty() {
        return Ok(Content::Nothing);
    }
    if !["store", "runs", "steps"]
        .iter()
        .all(|ours| tables.iter().any(|table| table == ours))
    {
        return Ok(Content::SomethingElse);
    }
    // With the schema, or one that may not be used would be said to have no such table.
    let find = format!("SELECT max(version) AS version FROM {schema}.store");
    let version = connection.query_opt(&find, &[]);
    match version {
        Ok(row) => match row.and_then(|row| row.get("version")) {
            Some(version) => Ok(Content::Store { version }),
            None => Ok(Content::SomethingElse),
        },
        Err(error)
            if error
                .code()
                .is_some_and(|code| code.code() == UNDEFINED_COLUMN) =>
        {
            Ok(Content::SomethingElse)
        }
        Err(error) => Err(error.into()),
    }
}

/// How the server says that a table looks otherwise.
const UNDEFINED_COLUMN: &str = "42703";
