//! Is somebody working on a run?
//!
//! A run that is worked on has a file beside the store, locked by whoever does. The system lets go
//! of the lock when they end, however they end, so that nobody waits for the dead and nobody is
//! taken for dead. The file says nothing, and is gone with the work.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::runs::{Hold, RunId};

/// A file that is locked until this is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Hold for Lock {
    fn is_held(&self) -> bool {
        true
    }
}

/// What nobody else can know of needs no file.
#[derive(Debug)]
pub(super) struct InMemory;

impl Hold for InMemory {
    fn is_held(&self) -> bool {
        true
    }
}

/// Holds a run of the store at this path; nothing if somebody else does.
pub(super) fn hold(store: &Path, id: &RunId) -> Result<Option<Lock>, StoreError> {
    let folder = folder(store);
    let path = folder.join(id.as_str());
    let lock = make(&folder).and_then(|()| lock(path, Missing::IsMade));
    lock.map_err(|source| StoreError::Folder {
        path: folder,
        source,
    })
}

/// Which of these runs of the store at this path somebody holds.
pub(super) fn held(store: &Path, ids: &[RunId]) -> Result<HashSet<RunId>, StoreError> {
    let folder = folder(store);
    let mut held = HashSet::new();
    let there = (ids.len() > FEW).then(|| names_in(&folder));
    let may_be_held = |id: &&RunId| there.as_ref().is_none_or(|it| it.contains(id.as_str()));
    for id in ids.iter().filter(may_be_held) {
        // A file that nobody holds was left by somebody who was killed. It goes with the look at
        // it, so that whoever looks is in nobody's way again.
        match lock(folder.join(id.as_str()), Missing::IsFree) {
            Ok(Some(_)) => {}
            Ok(None) => {
                held.insert(id.clone());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(StoreError::Folder {
                    path: folder,
                    source,
                });
            }
        }
    }
    Ok(held)
}

/// For more runs it is looked first which files there are.
const FEW: usize = 16;

/// The names of all files in a folder, which may not be there.
fn names_in(folder: &Path) -> HashSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.collect()
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is locked, so that nobody else can have it by now. Where it cannot be known
        // whether a file that was opened is still the one at its path, it stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Takes away what processes left behind that were killed.
pub(super) fn sweep(store: &Path) {
    let Ok(entries) = fs::read_dir(folder(store)) else {
        return;
    };
    for entry in entries.flatten() {
        // Whoever has it now lets go of it, and takes the file along.
        drop(lock(entry.path(), Missing::IsMade));
    }
}

fn folder(store: &Path) -> PathBuf {
    // By whichever name a store is opened, it has one folder.
    let store = fs::canonicalize(store).unwrap_or_else(|_| store.to_owned());
    let mut name = store.into_os_string();
    name.push("-live");
    name.into()
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// What becomes of a file to lock that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    IsMade,
    /// It is not found: whoever only looks must not make what others would find.
    IsFree,
}

/// Locks a file; nothing if somebody else has.
fn lock(path: PathBuf, missing: Missing) -> io::Result<Option<Lock>> {
    loop {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(missing == Missing::IsMade)
            .truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Whoever had it may have taken the file away after it was opened here, and somebody else
        // may have made another.
        if is_at(&file, &path)? {
            return Ok(Some(Lock { path, _file: file }));
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

/// Whether a file is the one at a path: nobody takes it away.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}
