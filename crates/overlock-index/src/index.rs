//! Brings a store up to date with a folder.
//!
//! All cores split files into nodes; one thread writes. Files are written in the order of their
//! paths, in batches; each batch is one transaction.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter::Enumerate;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::{fs, io, thread};

use overlock_store::{Store, StoreError};

use crate::decode::{Decoded, decode};
use crate::file::{Prepared, hash};
use crate::folder::{Folder, Source, Unseen};

/// How a folder is indexed.
#[derive(Clone, Copy, Debug)]
pub struct IndexOptions {
    /// Files with more bytes are skipped: they are data or generated.
    pub largest: u64,
    /// Replace the indexed folder of the repository even if that folder still exists.
    pub replace: bool,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            largest: 4 << 20,
            replace: false,
        }
    }
}

/// Receives progress, and can stop the index.
pub trait Observe {
    /// Called once with the number of files.
    fn found(&mut self, files: u64) {
        let _ = files;
    }

    /// Called with the number of files read so far, and of nodes in those that changed.
    fn advanced(&mut self, files: u64, nodes: u64) {
        let _ = (files, nodes);
    }

    /// Called when all files are written and names are being resolved.
    fn resolving(&mut self) {}

    /// Whether to stop. Files already read are still written.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Ignores progress and never stops.
#[derive(Clone, Copy, Debug)]
pub struct Ignored;

impl Observe for Ignored {}

/// A file that was not indexed, or only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path in the repository; empty if unknown.
    pub path: String,
    /// The reason.
    pub why: SkipReason,
}

/// Why a file was not indexed, or only in part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    /// The file could not be read. Its stored nodes stay.
    #[error("could not be read: {0}")]
    Unreadable(String),
    /// A folder or an ignore file could not be read. The stored nodes of files that may be in it
    /// stay.
    #[error("could not be scanned: {0}")]
    Unseen(String),
    /// The file has more bytes than [`IndexOptions::largest`].
    #[error("too large: {0} bytes")]
    TooLarge(u64),
    /// The file is not text.
    #[error("not text")]
    Binary,
    /// The file was indexed, but its encoding was guessed.
    #[error("not UTF-8, read as Windows-1252")]
    Guessed,
    /// The file was indexed, but only partly parsed.
    #[error("only partly parsed, so some definitions may have no node")]
    Unparsed,
}

impl SkipReason {
    /// Whether the file was indexed nevertheless.
    pub fn is_indexed(&self) -> bool {
        matches!(self, Self::Guessed | Self::Unparsed)
    }

    /// Whether a file was left out.
    pub fn is_left_out(&self) -> bool {
        match self {
            Self::Unreadable(_) | Self::TooLarge(_) | Self::Binary => true,
            Self::Unseen(_) | Self::Guessed | Self::Unparsed => false,
        }
    }

    /// Whether files that exist may be missing from the index.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::Unreadable(_) | Self::Unseen(_))
    }

    /// Whether the stored nodes of such a file are removed.
    fn removes_nodes(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::Binary)
    }
}

/// The result of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// All files: changed, unchanged and left out.
    pub files: u64,
    /// How many were new or had changed.
    pub changed: u64,
    /// How many had not.
    pub unchanged: u64,
    /// How many files were removed from the store.
    pub removed: u64,
    /// What was not indexed, or only in part, sorted by path.
    pub skipped: Vec<Skipped>,
    /// How many nodes were written.
    pub nodes: u64,
    /// How many edges were resolved from names.
    pub edges: u64,
    /// Whether the observer stopped it early.
    pub is_stopped: bool,
    /// The folder that the repository was indexed from before, if it was another.
    pub moved_from: Option<String>,
}

impl Indexed {
    /// How many files were left out.
    pub fn left_out(&self) -> u64 {
        let left_out = self
            .skipped
            .iter()
            .filter(|skipped| skipped.why.is_left_out());
        left_out.count() as u64
    }
}

/// Why a folder could not be indexed.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The folder does not exist or cannot be read.
    #[error("could not read the folder `{}`", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The repository was indexed from another folder, which still exists. Nothing has changed.
    #[error(
        "the repository `{repository}` was indexed from `{kept}`, which `{}` would replace",
        path.display()
    )]
    OtherFolder {
        /// The repository.
        repository: String,
        /// The folder that it was indexed from.
        kept: String,
        /// The folder to index.
        path: PathBuf,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Brings the stored nodes of a repository up to date with a folder.
pub fn index(
    store: &dyn Store,
    repository: &str,
    root: &Path,
    options: IndexOptions,
    observer: &mut dyn Observe,
) -> Result<Indexed, IndexError> {
    let unreadable = |source| IndexError::Folder {
        path: root.to_owned(),
        source,
    };
    fs::read_dir(root).map_err(unreadable)?;
    let absolute = root.canonicalize().map_err(unreadable)?;
    let moved_from = settle(store, repository, &absolute, options)?;
    let stored = store.files(repository)?;
    let stored_hashes: HashMap<&str, &str> = stored
        .iter()
        .map(|file| (&*file.path, &*file.hash))
        .collect();
    let folder = Folder::read(root);
    observer.found(folder.files.len() as u64);
    let mut writer = Writer {
        store,
        repository,
        batch: Vec::new(),
        batch_bytes: 0,
        done: Indexed {
            moved_from,
            ..Indexed::default()
        },
    };
    for Unseen {
        path,
        reason,
        is_file,
    } in &folder.unseen
    {
        let reason = reason.clone();
        if *is_file {
            writer.done.files += 1;
            writer.skip(path, SkipReason::Unreadable(reason));
        } else {
            writer.skip(path, SkipReason::Unseen(reason));
        }
    }
    writer.write_files(&folder.files, &stored_hashes, options, observer)?;
    writer.write()?;
    let mut done = writer.done;
    if !done.is_stopped {
        // A file that has become too large or binary is removed as if it were deleted.
        let refused = done
            .skipped
            .iter()
            .filter(|skipped| skipped.why.removes_nodes());
        let refused: HashSet<&str> = refused.map(|skipped| &*skipped.path).collect();
        let is_there = |path: &str| {
            let found = folder
                .files
                .binary_search_by(|file| file.path.as_str().cmp(path));
            found.is_ok() && !refused.contains(path)
        };
        let gone: Vec<&str> = stored_hashes
            .keys()
            .copied()
            .filter(|path| !is_there(path) && !folder.may_hide(path))
            .collect();
        store.remove_files(repository, &gone)?;
        done.removed = gone.len() as u64;
        observer.resolving();
        done.edges = store.resolve(repository)?.edges;
    }
    done.skipped.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(done)
}

/// Records the folder of a repository; returns the recorded one if it was another. A recorded folder
/// that does not exist has moved, or belongs to another machine, and is replaced.
fn settle(
    store: &dyn Store,
    repository: &str,
    root: &Path,
    options: IndexOptions,
) -> Result<Option<String>, IndexError> {
    let folder = root.display().to_string();
    let recorded = store.set_folder(repository, &folder, None)?;
    if recorded == folder {
        return Ok(None);
    }
    let is_free = options.replace || !Path::new(&recorded).is_dir();
    if is_free && store.set_folder(repository, &folder, Some(&recorded))? == folder {
        return Ok(Some(recorded));
    }
    Err(IndexError::OtherFolder {
        repository: repository.to_owned(),
        kept: recorded,
        path: root.to_owned(),
    })
}

/// One file after reading it.
enum ReadFile {
    Unchanged,
    Changed(Box<Prepared>),
    Guessed(Box<Prepared>),
    Skipped(SkipReason),
}

/// Writes files to the store in batches.
struct Writer<'a> {
    store: &'a dyn Store,
    repository: &'a str,
    batch: Vec<Prepared>,
    /// The approximate number of bytes in the batch.
    batch_bytes: usize,
    done: Indexed,
}

impl Writer<'_> {
    fn write_files(
        &mut self,
        files: &[Source],
        stored_hashes: &HashMap<&str, &str>,
        options: IndexOptions,
        observer: &mut dyn Observe,
    ) -> Result<(), IndexError> {
        let workers = thread::available_parallelism().map_or(2, NonZero::get);
        let queue = Mutex::new(files.iter().enumerate());
        let is_over = AtomicBool::new(false);
        // Bounded, so that memory does not grow when writing is slower than reading.
        let (sender, receiver) = sync_channel(workers * 16);
        thread::scope(|scope| {
            for _ in 0..workers {
                let (sender, queue, is_over) = (sender.clone(), &queue, &is_over);
                scope.spawn(move || read_files(queue, is_over, stored_hashes, options, &sender));
            }
            drop(sender);
            let mut result = Ok(());
            // Written in the order of their paths, so the ids of nodes, and with them the order of
            // equal hits, do not depend on which worker is first.
            let mut early = BTreeMap::new();
            let mut next = 0;
            // The channel is always drained, because a worker blocks while it is full.
            for (index, read) in &receiver {
                early.insert(index, read);
                while result.is_ok()
                    && let Some(read) = early.remove(&next)
                {
                    result = self.take(&files[next], read);
                    next += 1;
                }
                observer.advanced(self.done.files, self.done.nodes);
                if result.is_err() || observer.is_stopped() {
                    is_over.store(true, Ordering::Relaxed);
                    self.done.is_stopped = true;
                }
            }
            result
        })
    }

    fn take(&mut self, source: &Source, read: ReadFile) -> Result<(), IndexError> {
        /// A transaction costs as much as a thousand nodes.
        const BATCH_BYTES: usize = 4 << 20;
        self.done.files += 1;
        match read {
            ReadFile::Unchanged => self.done.unchanged += 1,
            ReadFile::Skipped(why) => self.skip(&source.path, why),
            ReadFile::Changed(prepared) => self.add(&source.path, *prepared),
            ReadFile::Guessed(prepared) => {
                self.skip(&source.path, SkipReason::Guessed);
                self.add(&source.path, *prepared);
            }
        }
        if self.batch_bytes >= BATCH_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn skip(&mut self, path: &str, why: SkipReason) {
        self.done.skipped.push(Skipped {
            path: path.to_owned(),
            why,
        });
    }

    fn add(&mut self, path: &str, prepared: Prepared) {
        if !prepared.is_parsed {
            self.skip(path, SkipReason::Unparsed);
        }
        self.done.changed += 1;
        self.done.nodes += prepared.node_count();
        self.batch_bytes += prepared.approximate_bytes();
        self.batch.push(prepared);
    }

    fn write(&mut self) -> Result<(), IndexError> {
        let files: Vec<_> = self.batch.iter().map(Prepared::as_new_file).collect();
        if !files.is_empty() {
            self.store.put_files(self.repository, &files)?;
        }
        self.batch.clear();
        self.batch_bytes = 0;
        Ok(())
    }
}

/// Reads files until the queue is empty.
fn read_files(
    queue: &Mutex<Enumerate<std::slice::Iter<'_, Source>>>,
    is_over: &AtomicBool,
    stored_hashes: &HashMap<&str, &str>,
    options: IndexOptions,
    sender: &SyncSender<(usize, ReadFile)>,
) {
    while !is_over.load(Ordering::Relaxed) {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some((index, source)) = next else {
            return;
        };
        let read = read_file(source, stored_hashes.get(&*source.path).copied(), options);
        if sender.send((index, read)).is_err() {
            return;
        }
    }
}

fn read_file(source: &Source, stored_hash: Option<&str>, options: IndexOptions) -> ReadFile {
    if source.length > options.largest {
        return ReadFile::Skipped(SkipReason::TooLarge(source.length));
    }
    let bytes = match fs::read(&source.file) {
        Ok(bytes) => bytes,
        Err(error) => return ReadFile::Skipped(SkipReason::Unreadable(error.to_string())),
    };
    let hash = hash(&bytes);
    if stored_hash == Some(&*hash) {
        return ReadFile::Unchanged;
    }
    let path = source.path.clone();
    match decode(bytes) {
        Decoded::Text(text) => ReadFile::Changed(Box::new(Prepared::new(path, hash, &text))),
        Decoded::Guessed(text) => ReadFile::Guessed(Box::new(Prepared::new(path, hash, &text))),
        Decoded::Binary(_) => ReadFile::Skipped(SkipReason::Binary),
    }
}
