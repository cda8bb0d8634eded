//! Locks of runs.
//!
//! Each locked run has an empty file in a folder next to the store, which its process holds locked.
//! The system releases the lock when the process ends, also after a crash. The file is deleted when the
//! run is unlocked.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::runs::{RunId, RunLock};

/// A file that is locked until this is dropped.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    _file: File,
}

impl RunLock for LockFile {
    fn is_held(&self) -> bool {
        true
    }
}

/// The lock of a run in memory: no other process can use its store.
#[derive(Debug)]
pub(super) struct InMemory;

impl RunLock for InMemory {
    fn is_held(&self) -> bool {
        true
    }
}

/// Locks a run of a store; nothing if it is locked already.
pub(super) fn try_lock(store: &Path, id: &RunId) -> Result<Option<LockFile>, StoreError> {
    let folder = folder(store);
    let path = folder.join(id.as_str());
    let lock = create_folder(&folder).and_then(|()| lock(path, Missing::Create));
    lock.map_err(|source| StoreError::CreateFolder {
        path: folder,
        source,
    })
}

/// Which of these runs of a store are locked.
pub(super) fn locked(store: &Path, ids: &[RunId]) -> Result<HashSet<RunId>, StoreError> {
    let folder = folder(store);
    let mut locked = HashSet::new();
    let existing = (ids.len() > FEW).then(|| names_in(&folder));
    let has_file = |id: &&RunId| existing.as_ref().is_none_or(|it| it.contains(id.as_str()));
    for id in ids.iter().filter(has_file) {
        // An unlocked file is left from a killed process. Dropping its lock deletes it, so that later
        // calls do not lock it, which would block another process for a moment.
        match lock(folder.join(id.as_str()), Missing::NotFound) {
            Ok(Some(_)) => {}
            Ok(None) => {
                locked.insert(id.clone());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(StoreError::CreateFolder {
                    path: folder,
                    source,
                });
            }
        }
    }
    Ok(locked)
}

/// For more runs than this, the folder is listed first.
const FEW: usize = 16;

/// The names of all files in a folder; none if it does not exist.
fn names_in(folder: &Path) -> HashSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.collect()
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Deleted while it is locked, so that it cannot be the new lock of another process. Where
        // `is_at` cannot compare files, the file stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Deletes the files of processes that were killed.
pub(super) fn sweep(store: &Path) {
    let Ok(entries) = fs::read_dir(folder(store)) else {
        return;
    };
    for entry in entries.flatten() {
        drop(lock(entry.path(), Missing::Create));
    }
}

fn folder(store: &Path) -> PathBuf {
    // All names of a store, such as links to it, have the same folder.
    let store = fs::canonicalize(store).unwrap_or_else(|_| store.to_owned());
    let mut name = store.into_os_string();
    name.push("-live");
    name.into()
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// What to do if the file to lock is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    /// Return [`io::ErrorKind::NotFound`]: a test must not create a file that another one sees.
    NotFound,
}

/// Locks a file; nothing if it is locked already.
fn lock(path: PathBuf, missing: Missing) -> io::Result<Option<LockFile>> {
    loop {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(missing == Missing::Create)
            .truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Another process may have deleted the file after it was opened here, and a third one may
        // have created it again.
        if is_at(&file, &path)? {
            return Ok(Some(LockFile { path, _file: file }));
        }
    }
}

/// Whether a file is the one at a path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let of_file = file.metadata()?;
    match fs::metadata(path) {
        Ok(at_path) => Ok((at_path.dev(), at_path.ino()) == (of_file.dev(), of_file.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a file is the one at a path: here, lock files are never deleted.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}
