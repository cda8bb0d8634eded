//! Is there a store in this database, and of which version? Nothing is written before that is
//! known.

use super::connection::Connection;
use super::pool::Pool;
use crate::address::PostgresAddress;
use crate::error::StoreError;
use crate::store::Access;

/// How the tables look.
const VERSION: i64 = 1;

const TABLES: &str = include_str!("tables.sql");

/// Whoever makes or changes tables holds this lock, with a number for the schema.
const MAKING: i32 = 0x4F76_6C6B;

/// What a schema holds.
enum Content {
    Nothing,
    Store { version: i64 },
    SomethingElse,
}

/// Finds the store of an address, or makes it, or brings it up to date.
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
    if known == Some(VERSION) {
        return Ok(());
    }
    if access == Access::Read || (known.is_none() && access == Access::Write) {
        return Err(StoreError::Missing {
            place: address.to_string(),
        });
    }
    pool.write(|connection| {
        let lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
        connection.execute(lock, &[&MAKING, &address.schema])?;
        // Another process may have been faster.
        if found(connection, address)?.is_none() {
            let schema = &address.schema;
            connection.batch(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"))?;
            connection.batch(TABLES)?;
            connection.execute("INSERT INTO store (version) VALUES ($1)", &[&VERSION])?;
        }
        Ok(())
    })
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
    let version = connection.query_opt("SELECT max(version) AS version FROM store", &[]);
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
