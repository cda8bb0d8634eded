//! Errors of a store.

use std::error::Error;
use std::path::PathBuf;

use crate::runs::RunId;

/// The error of the database driver.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why an operation on a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no store.
    #[error("there is no store `{place}`")]
    Missing {
        /// Its address.
        place: String,
    },
    /// The folder of the store cannot be created.
    #[error("could not create the folder `{}`", path.display())]
    CreateFolder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file cannot be created or written.
    #[error("could not write to `{}`", path.display())]
    CreateFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The metadata of the file cannot be read.
    #[error("could not look for the store `{}`", path.display())]
    Inaccessible {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The path is that of a folder.
    #[error("the store `{}` is a folder, but must be a file", path.display())]
    IsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The store cannot be opened.
    #[error("could not open the store `{place}`")]
    Open {
        /// Its address.
        place: String,
        /// The cause.
        source: Cause,
    },
    /// A newer version of the program wrote the store.
    #[error(
        "the store was written by a newer version (its tables have version {found}, this version supports {known})"
    )]
    Newer {
        /// The version of its tables.
        found: i64,
        /// The latest version that this program supports.
        known: i64,
    },
    /// The database belongs to another program.
    #[error("`{place}` is the database of another program")]
    Foreign {
        /// Its address.
        place: String,
    },
    /// There is a run with this id.
    #[error("run `{id}` already exists")]
    RunExists {
        /// The run.
        id: RunId,
    },
    /// Another process claimed the run since.
    #[error("another process has resumed run `{id}`")]
    Superseded {
        /// The run.
        id: RunId,
    },
    /// The number of a step is not the next one.
    #[error("step {number} of run `{id}` does not follow its last recorded step")]
    OutOfOrder {
        /// The run.
        id: RunId,
        /// The number.
        number: u32,
    },
    /// The disk is full.
    #[error("the disk of `{place}` is full: free some space, or use another store")]
    Full {
        /// The store.
        place: String,
        /// The error of the database.
        source: Cause,
    },
    /// The store cannot be written.
    #[error(
        "`{place}` is read-only: grant write permission for it and its folder, or use another store"
    )]
    ReadOnly {
        /// The store.
        place: String,
        /// The error of the database.
        source: Cause,
    },
    /// The user of the database lacks a permission.
    #[error("`{place}` does not allow this user to use the store")]
    Forbidden {
        /// The store.
        place: String,
        /// The error of the database.
        source: Cause,
    },
    /// The file of the store is corrupt.
    #[error("`{place}` is damaged: restore a backup, or move it away and index again")]
    Damaged {
        /// The store.
        place: String,
        /// The error of the database.
        source: Cause,
    },
    /// The data for a file is inconsistent.
    #[error("the file `{path}` cannot be stored: {reason}")]
    InvalidFile {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A vector cannot be compared with others.
    #[error("the vector cannot be used with the model `{model}`: {reason}")]
    InvalidVector {
        /// The model.
        model: String,
        /// What is wrong.
        reason: String,
    },
    /// The server does not have pgvector.
    #[error(
        "semantic search needs pgvector, which `{place}` does not have: use keyword search, or create the extension `vector` there"
    )]
    NoVectors {
        /// The store.
        place: String,
    },
    /// Reading or writing failed.
    #[error("the store could not be read or written")]
    Database(#[source] Cause),
}
