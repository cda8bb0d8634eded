//! Why can a store not be used?

use std::error::Error;
use std::path::PathBuf;

use crate::runs::RunId;

/// What a database says of itself, whichever it is.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is none.
    #[error("there is no store `{place}`")]
    Missing {
        /// Where it should be.
        place: String,
    },
    /// There is no folder for it, and none can be made.
    #[error("could not make the folder `{}`", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file cannot be made or written.
    #[error("could not write to `{}`", path.display())]
    Make {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Nobody can tell whether it is there.
    #[error("could not look for the store `{}`", path.display())]
    Hidden {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is a folder, and a store is a file.
    #[error("the store `{}` is a folder, and has to be a file", path.display())]
    IsFolder {
        /// The folder.
        path: PathBuf,
    },
    /// It cannot be opened.
    #[error("could not open the store `{place}`")]
    Open {
        /// Where it is.
        place: String,
        /// Why not.
        source: Cause,
    },
    /// A newer version has written it.
    #[error(
        "the store was written by a newer version (its tables are version {found}, this knows {known})"
    )]
    Newer {
        /// The version of its tables.
        found: i64,
        /// The latest version that is known here.
        known: i64,
    },
    /// It belongs to another program.
    #[error("`{place}` is the database of another program")]
    Foreign {
        /// Where it is.
        place: String,
    },
    /// There is a run of that name.
    #[error("there is a run `{id}` already")]
    Taken {
        /// The run.
        id: RunId,
    },
    /// Somebody else has taken the run up since.
    #[error("another process is going on with run `{id}`")]
    Superseded {
        /// The run.
        id: RunId,
    },
    /// A step does not follow the last one.
    #[error("step {number} of run `{id}` does not follow the last one that was recorded")]
    OutOfOrder {
        /// The run.
        id: RunId,
        /// The number.
        number: u32,
    },
    /// There is no room for what is to be written.
    #[error(
        "nothing more can be written to `{place}`, the disk is full: make room on it, or use a store elsewhere"
    )]
    Full {
        /// The store.
        place: String,
        /// What the database says.
        source: Cause,
    },
    /// It may be looked at, but not changed.
    #[error(
        "`{place}` can only be read: give the right to write to it and to its folder, or use a store elsewhere"
    )]
    ReadOnly {
        /// The store.
        place: String,
        /// What the database says.
        source: Cause,
    },
    /// Whoever asks may not do so.
    #[error("`{place}` does not allow this user to use the store")]
    Forbidden {
        /// The store.
        place: String,
        /// What the database says.
        source: Cause,
    },
    /// What is in it cannot be what was written.
    #[error(
        "`{place}` is damaged: put a copy in its place, or move it away, after which an index has to be made anew"
    )]
    Damaged {
        /// The store.
        place: String,
        /// What the database says.
        source: Cause,
    },
    /// What is to be kept of a file contradicts itself.
    #[error("the file `{path}` cannot be kept: {reason}")]
    UnfitFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A vector cannot be compared with others.
    #[error("the vector cannot be used with the model `{model}`: {reason}")]
    UnfitVector {
        /// The model.
        model: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server has nothing to keep vectors in.
    #[error(
        "semantic search needs pgvector, which `{place}` has not: search by keywords, or have the extension `vector` made there"
    )]
    NoVectors {
        /// The store.
        place: String,
    },
    /// Reading or writing failed.
    #[error("the store could not be read or written")]
    Database(#[source] Cause),
}
