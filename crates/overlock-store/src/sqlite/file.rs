//! Is this file a store, and of which version? Nothing is written before that is known.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::StoreError;
use crate::store::Access;

/// How the tables look.
const VERSION: i64 = 1;

/// Marks a file as ours, where SQLite has room for it.
const APPLICATION: i64 = 0x4F76_6C6B;

const TABLES: [&str; 2] = [include_str!("tables.sql"), include_str!("nodes.sql")];

/// How long another process that is writing is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the pause is between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// What a file holds.
enum Content {
    Nothing,
    Store { version: i64 },
    SomethingElse,
}

/// Opens a file for what is to be done with it.
pub(super) fn open(path: &Path, access: Access) -> Result<Connection, StoreError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(StoreError::IsFolder { path: path.into() }),
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            let path = path.to_owned();
            return Err(StoreError::Hidden { path, source });
        }
        _ if access == Access::Make => make(path)?,
        Err(_) => return Err(StoreError::Missing { place: place(path) }),
        Ok(_) => {}
    }
    let wrong = |source| unopened(path, source);
    // Even a connection that writes nothing may tidy up behind another; one that cannot write
    // cannot.
    let (reader, content) = patiently(|| look_into(path)).map_err(wrong)?;
    let is_store = match content {
        Content::SomethingElse => return Err(StoreError::Foreign { place: place(path) }),
        Content::Store { version } if version > VERSION => {
            return Err(StoreError::Newer {
                found: version,
                known: VERSION,
            });
        }
        Content::Store { .. } => true,
        Content::Nothing => false,
    };
    if access == Access::Read {
        if is_store {
            // Otherwise a transaction that wants to write could begin.
            let shut = reader.pragma_update(None, "query_only", true);
            shut.map_err(wrong)?;
            return Ok(reader);
        }
        return Err(StoreError::Missing { place: place(path) });
    }
    drop(reader);
    let mut writer = patiently(|| connect_to_write(path)).map_err(wrong)?;
    if !is_store {
        make_tables(&mut writer).map_err(wrong)?;
    }
    Ok(writer)
}

/// Why a file cannot be opened. SQLite does not tell what the system says.
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

/// How the file is named to people.
fn place(path: &Path) -> String {
    path.display().to_string()
}

/// Tries again while somebody else has the whole file to themselves. SQLite waits for most of that
/// by itself, but not for a process that is changing how the file is written, as the first one to
/// open it does.
fn patiently<T>(attempt: impl Fn() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < until => thread::sleep(PAUSE),
            done => return done,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Makes the file and the folders it is in, for nobody else to read.
fn make(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    if let Some(folder) = folder {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(folder)
            .map_err(|source| StoreError::Folder {
                path: folder.to_owned(),
                source,
            })?;
    }
    let mut options = fs::OpenOptions::new();
    // SQLite gives its other files the permissions of this one.
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|source| StoreError::Make {
        path: path.to_owned(),
        source,
    })?;
    Ok(())
}

/// The path as SQLite takes it for one whatever it looks like: `:memory:` and `file:…` mean
/// something else to it.
fn plain(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

fn connect_to_write(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(plain(path), flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// A connection that cannot write, and what it finds.
fn look_into(path: &Path) -> rusqlite::Result<(Connection, Content)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let look = |path: &Path, flags| {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        // In a transaction, or another process may make the tables between two looks.
        let transaction = connection.unchecked_transaction()?;
        let content = content(&transaction)?;
        drop(transaction);
        Ok((connection, content))
    };
    let found: rusqlite::Result<_> = look(&plain(path), flags);
    // SQLite wants to make files beside it, even to read. Where it may not, and nobody has left
    // any, nothing is missing from the file itself.
    let is_shut = matches!(
        found
            .as_ref()
            .err()
            .and_then(rusqlite::Error::sqlite_error_code),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)
    );
    let log = PathBuf::from(format!("{}-wal", path.display()));
    if is_shut && !log.exists() {
        return look(
            Path::new(&as_it_is(path)),
            flags | OpenFlags::SQLITE_OPEN_URI,
        );
    }
    found
}

/// The address of a file that is read as it is.
fn as_it_is(path: &Path) -> String {
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
    let things: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (application, version, things) == (0, 0, 0) {
        return Ok(Content::Nothing);
    }
    Ok(Content::SomethingElse)
}

fn make_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
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

/// A store that is gone with the process.
pub(super) fn in_memory() -> Result<Connection, StoreError> {
    let mut connection = Connection::open_in_memory()?;
    make_tables(&mut connection)?;
    Ok(connection)
}
