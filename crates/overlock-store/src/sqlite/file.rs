//! Opens the file of a store. Nothing is written before it is known to be a store or empty.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::StoreError;
use crate::store::{Access, Content};

/// The version of the tables.
const VERSION: i64 = 1;

/// The application id in the header of the file.
const APPLICATION: i64 = 0x4F76_6C6B;

const TABLES: [&str; 2] = [include_str!("tables.sql"), include_str!("nodes.sql")];

/// How long to wait for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Opens a file, and creates the store if `access` says so.
pub(super) fn open(path: &Path, access: Access) -> Result<Connection, StoreError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(StoreError::IsFolder { path: path.into() }),
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            let path = path.to_owned();
            return Err(StoreError::Inaccessible { path, source });
        }
        _ if access == Access::Create => create(path)?,
        Err(_) => return Err(StoreError::Missing { place: place(path) }),
        Ok(_) => {}
    }
    let wrong = |source| unopened(path, source);
    // A read-only connection cannot change the file of another program, not even by a checkpoint.
    let (reader, content) = retry_while_busy(|| inspect(path)).map_err(wrong)?;
    let is_store = content.is_store(VERSION, &place(path))?;
    if access == Access::Read {
        if is_store {
            // Otherwise a transaction for writing could begin.
            let updated = reader.pragma_update(None, "query_only", true);
            updated.map_err(wrong)?;
            return Ok(reader);
        }
        return Err(StoreError::Missing { place: place(path) });
    }
    drop(reader);
    let mut writer = retry_while_busy(|| connect_to_write(path)).map_err(wrong)?;
    if !is_store {
        create_tables(&mut writer).map_err(wrong)?;
    }
    Ok(writer)
}

/// Why a file cannot be opened. SQLite does not report the error of the system.
fn unopened(path: &Path, source: rusqlite::Error) -> StoreError {
    let place = place(path);
    let source = match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => {
            let source = source.into();
            return StoreError::Damaged { place, source };
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => match fs::File::open(path) {
            Err(source) => source.into(),
            Ok(_) => source.into(),
        },
        _ => source.into(),
    };
    StoreError::Open { place, source }
}

/// The path for messages.
fn place(path: &Path) -> String {
    path.display().to_string()
}

/// Tries again while another process has locked the whole file. The busy timeout of SQLite does not
/// cover a process that is changing the journal mode, as the first one to open the file does.
fn retry_while_busy<T>(attempt: impl Fn() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < until => thread::sleep(RETRY_PAUSE),
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Creates the file and its folders with permissions for the owner only.
fn create(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    if let Some(folder) = folder {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(folder)
            .map_err(|source| StoreError::CreateFolder {
                path: folder.to_owned(),
                source,
            })?;
    }
    let mut options = fs::OpenOptions::new();
    // SQLite gives its other files the permissions of this one.
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .map_err(|source| StoreError::CreateFile {
            path: path.to_owned(),
            source,
        })?;
    Ok(())
}

/// A path that SQLite does not read as `:memory:` or as a URI.
fn plain(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

fn connect_to_write(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(plain(path), flags)?;
    connection.busy_handler(Some(wait_for_writer))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Waits for another writer. SQLite's own handler soon pauses 100 ms between attempts, and then misses
/// the short gaps between the transactions of a process that writes without rest.
fn wait_for_writer(attempts: i32) -> bool {
    thread::sleep(RETRY_PAUSE);
    RETRY_PAUSE * attempts.unsigned_abs() < BUSY_TIMEOUT
}

/// A read-only connection, and what the file contains.
fn inspect(path: &Path) -> rusqlite::Result<(Connection, Content)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let inspect = |path: &Path, flags| {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // In one transaction, or another process may create the tables between two queries.
        let transaction = connection.unchecked_transaction()?;
        let content = content(&transaction)?;
        drop(transaction);
        Ok((connection, content))
    };
    let found: rusqlite::Result<_> = inspect(&plain(path), flags);
    // SQLite creates further files even to read. Without permission for that, a file without a log is
    // complete and can be opened as immutable.
    let is_forbidden = matches!(
        found
            .as_ref()
            .err()
            .and_then(rusqlite::Error::sqlite_error_code),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)
    );
    let log = PathBuf::from(format!("{}-wal", path.display()));
    if is_forbidden && !log.exists() {
        return inspect(
            Path::new(&immutable_uri(path)),
            flags | OpenFlags::SQLITE_OPEN_URI,
        );
    }
    found
}

/// The URI to open a file that does not change meanwhile.
fn immutable_uri(path: &Path) -> String {
    let path = plain(path).display().to_string();
    let path = path
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{path}?immutable=1")
}

fn content(connection: &Connection) -> rusqlite::Result<Content> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == APPLICATION {
        return Ok(Content::Store { version });
    }
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (application, version, objects) == (0, 0, 0) {
        return Ok(Content::Nothing);
    }
    Ok(Content::SomethingElse)
}

fn create_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have created them meanwhile.
    if matches!(content(&transaction)?, Content::Store { .. }) {
        return Ok(());
    }
    for tables in TABLES {
        transaction.execute_batch(tables)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(())
}

/// Opens a store in memory.
pub(super) fn in_memory() -> Result<Connection, StoreError> {
    let mut connection = Connection::open_in_memory()?;
    create_tables(&mut connection)?;
    Ok(connection)
}
