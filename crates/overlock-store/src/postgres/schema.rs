//! Opens or creates the tables. Nothing is written before the schema is known to be a store or empty.

use super::pool::{Connection, Pool};
use super::vectors;
use crate::address::PostgresAddress;
use crate::error::{Cause, StoreError};
use crate::store::{Access, Content};

/// The version of the tables.
const VERSION: i64 = 1;

const TABLES: &str = include_str!("tables.sql");
const NODES: &str = include_str!("nodes.sql");

/// The first key of the advisory lock for creating tables; the second one is a hash of the schema.
const CREATE_LOCK: i32 = 0x4F76_6C6B;

/// Finds the store of an address, or creates it.
pub(super) fn open(
    pool: &Pool,
    address: &PostgresAddress,
    access: Access,
) -> Result<(), StoreError> {
    let is_store = |connection: &Connection| {
        content(connection, &address.schema)?.is_store(VERSION, &address.to_string())
    };
    // An error of the connection names the address.
    let exists = pool.read(is_store).map_err(|error| match error {
        StoreError::Database(source) => StoreError::Open {
            place: address.to_string(),
            source,
        },
        other => other,
    })?;
    if exists {
        return Ok(());
    }
    if access != Access::Create {
        return Err(StoreError::Missing {
            place: address.to_string(),
        });
    }
    pool.write(|connection| {
        let lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
        connection.execute(lock, &[&CREATE_LOCK, &address.schema])?;
        // Another process may have created it meanwhile.
        if is_store(connection)? {
            return Ok(());
        }
        let schema = &address.schema;
        let find = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
        // `CREATE SCHEMA IF NOT EXISTS` needs a permission that using an existing one does not.
        if connection.query_opt(find, &[schema])?.is_none() {
            connection.batch(&format!("CREATE SCHEMA {schema}"))?;
        }
        connection.batch(TABLES)?;
        connection.batch(NODES)?;
        connection.execute("INSERT INTO store (version) VALUES ($1)", &[&VERSION])?;
        Ok(())
    })
}

/// Whether vectors can be stored, which needs the extension `vector`. Creates the extension if this is
/// possible.
pub(super) fn find_vectors(
    pool: &Pool,
    address: &PostgresAddress,
    access: Access,
) -> Result<bool, StoreError> {
    let table = format!("{}.vectors", address.schema);
    let has_table = |connection: &Connection| {
        let find = "SELECT to_regclass($1) IS NOT NULL AS exists";
        let row = connection.query_one(find, &[&table])?;
        Ok(row.try_get("exists")?)
    };
    if pool.read(has_table)? || access == Access::Read {
        return pool.read(has_table);
    }
    // The extension is shared by all schemas of a database.
    let lock = "SELECT pg_advisory_xact_lock($1, 0)";
    let created = pool.write(|connection| {
        connection.execute(lock, &[&CREATE_LOCK])?;
        connection.batch("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")?;
        Ok(())
    });
    let is_known = pool.read(|connection| {
        let find = "SELECT to_regtype('vector') IS NOT NULL AS is_known";
        Ok(connection
            .query_one(find, &[])?
            .try_get::<_, bool>("is_known")?)
    })?;
    match created {
        _ if is_known => {}
        // A server that refuses has no vectors; other errors are reported.
        Err(StoreError::Database(cause)) if is_refusal(&cause) => return Ok(false),
        Err(StoreError::Forbidden { .. }) | Ok(()) => return Ok(false),
        Err(error) => return Err(error),
    }
    pool.write(|connection| {
        connection.execute(lock, &[&CREATE_LOCK])?;
        Ok(connection.batch(vectors::TABLE)?)
    })?;
    Ok(true)
}

/// Whether the server itself reported the error.
fn is_refusal(cause: &Cause) -> bool {
    let error = cause.downcast_ref::<tokio_postgres::Error>();
    error.is_some_and(|error| error.as_db_error().is_some())
}

fn content(connection: &Connection, schema: &str) -> Result<Content, StoreError> {
    // Tables of extensions in the schema do not count.
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
    // With the name of the schema, so that a missing permission is not reported as a missing table.
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

/// The error code for a table without such a column.
const UNDEFINED_COLUMN: &str = "42703";
