//! Brings a store up to date with a folder.
//!
//! Every core takes files apart, one thread writes. Files are read and written in the order of their
//! paths, in batches; a batch is on the disk as a whole or not at all.

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
    /// Files with more bytes are skipped: they are data, or written by a program.
    pub largest: u64,
    /// Let the folder take the place of the one that the repository was made from, though that one
    /// is still there.
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

/// Somebody who is told how far an index has come, and can stop it.
pub trait Observe {
    /// So many files are to be looked at.
    fn found(&mut self, files: u64) {
        let _ = files;
    }

    /// So many files have been looked at, and so many nodes were made of those that changed.
    fn advanced(&mut self, files: u64, nodes: u64) {
        let _ = (files, nodes);
    }

    /// All files are written, and names are looked up in them.
    fn resolving(&mut self) {}

    /// Whether to stop. What has been read is still written.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Nobody is told.
#[derive(Clone, Copy, Debug)]
pub struct Ignored;

impl Observe for Ignored {}

/// A file of which nothing is kept, or not as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path in the repository; empty if not even that is known.
    pub path: String,
    /// Why.
    pub why: Why,
}

/// Why a file was not indexed as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// It cannot be read. What was kept of it stays.
    #[error("could not be read: {0}")]
    Unreadable(String),
    /// It is no file, but a folder that cannot be looked into, or rules on what is left out that
    /// cannot be read. What was kept of files that may be in it stays.
    #[error("could not be looked into: {0}")]
    Unseen(String),
    /// It has more bytes than are wanted.
    #[error("too large: {0} bytes")]
    TooLarge(u64),
    /// It holds no text.
    #[error("no text")]
    Binary,
    /// It was indexed, but its encoding was a guess.
    #[error("no UTF-8, read as Windows-1252")]
    Guessed,
    /// It was indexed, but it is no code that could be read in full.
    #[error("not all of it could be read as code, so that parts of it may have no node")]
    Unparsed,
}

impl Why {
    /// Whether the file was indexed all the same.
    pub fn is_indexed(&self) -> bool {
        matches!(self, Self::Guessed | Self::Unparsed)
    }

    /// Whether it is about a file that was left out.
    pub fn is_left_out(&self) -> bool {
        match self {
            Self::Unreadable(_) | Self::TooLarge(_) | Self::Binary => true,
            Self::Unseen(_) | Self::Guessed | Self::Unparsed => false,
        }
    }

    /// Whether something is missing that may well be there.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::Unreadable(_) | Self::Unseen(_))
    }

    /// Whether nothing is kept of such a file.
    fn is_refusal(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::Binary)
    }
}

/// What came of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// How many files were looked at: those that had changed, those that had not, and those that
    /// were left out.
    pub files: u64,
    /// How many of them were new or had changed.
    pub changed: u64,
    /// How many had not.
    pub unchanged: u64,
    /// How many files that were kept are gone.
    pub removed: u64,
    /// What was not indexed as it is, by path.
    pub skipped: Vec<Skipped>,
    /// How many nodes were written.
    pub nodes: u64,
    /// How many edges came of names.
    pub edges: u64,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
    /// The folder that the repository was made from before, if it was another.
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
    /// There is no such folder, or it cannot be looked into.
    #[error("could not read the folder `{}`", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The repository was made from another folder, which is still there. Nothing has changed.
    #[error(
        "the repository `{repository}` was indexed from `{kept}`, which `{}` would replace",
        path.display()
    )]
    OtherFolder {
        /// The repository.
        repository: String,
        /// The folder that it was made from.
        kept: String,
        /// The folder that was to be indexed.
        path: PathBuf,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Brings what is kept of a repository up to date with a folder.
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
    let place = root.canonicalize().map_err(unreadable)?;
    let moved_from = settle(store, repository, &place, options)?;
    let kept = store.files(repository)?;
    let known: HashMap<&str, &str> = kept.iter().map(|file| (&*file.path, &*file.hash)).collect();
    let folder = Folder::of(root);
    observer.found(folder.files.len() as u64);
    let mut writer = Writer {
        store,
        repository,
        batch: Vec::new(),
        waiting: 0,
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
            writer.skip(path, Why::Unreadable(reason));
        } else {
            writer.skip(path, Why::Unseen(reason));
        }
    }
    writer.files(&folder.files, &known, options, observer)?;
    writer.write()?;
    let mut done = writer.done;
    if !done.is_stopped {
        // What is too large or no text by now is as good as gone.
        let refused = done
            .skipped
            .iter()
            .filter(|skipped| skipped.why.is_refusal());
        let refused: HashSet<&str> = refused.map(|skipped| &*skipped.path).collect();
        let is_there = |path: &str| {
            let found = folder
                .files
                .binary_search_by(|file| file.path.as_str().cmp(path));
            found.is_ok() && !refused.contains(path)
        };
        let gone: Vec<&str> = known
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

/// Makes a folder the one that a repository is made from; the one it was made from before, if it was
/// another. A folder that is gone has moved, or was one of another machine's.
fn settle(
    store: &dyn Store,
    repository: &str,
    place: &Path,
    options: IndexOptions,
) -> Result<Option<String>, IndexError> {
    let folder = place.display().to_string();
    let kept = store.settle(repository, &folder, None)?;
    if kept == folder {
        return Ok(None);
    }
    let is_free = options.replace || !Path::new(&kept).is_dir();
    if is_free && store.settle(repository, &folder, Some(&kept))? == folder {
        return Ok(Some(kept));
    }
    Err(IndexError::OtherFolder {
        repository: repository.to_owned(),
        kept,
        path: place.to_owned(),
    })
}

/// What became of one file.
enum Read {
    Unchanged,
    Changed(Box<Prepared>),
    Guessed(Box<Prepared>),
    Skipped(Why),
}

/// The one who writes.
struct Writer<'a> {
    store: &'a dyn Store,
    repository: &'a str,
    batch: Vec<Prepared>,
    /// About how much is in the batch.
    waiting: usize,
    done: Indexed,
}

impl Writer<'_> {
    fn files(
        &mut self,
        files: &[Source],
        known: &HashMap<&str, &str>,
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
                scope.spawn(move || work(queue, is_over, known, options, &sender));
            }
            drop(sender);
            let mut result = Ok(());
            // Taken in the order of their paths, whichever worker is first: the ids of nodes, and
            // with them the order of equal hits, are the same each time.
            let mut early = BTreeMap::new();
            let mut next = 0;
            // Read to its end in any case: a worker that cannot hand over would wait for ever.
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

    fn take(&mut self, source: &Source, read: Read) -> Result<(), IndexError> {
        /// As much as is written at once: a transaction costs as much as a thousand nodes.
        const BATCH: usize = 4 << 20;
        self.done.files += 1;
        match read {
            Read::Unchanged => self.done.unchanged += 1,
            Read::Skipped(why) => self.skip(&source.path, why),
            Read::Changed(prepared) => self.add(&source.path, *prepared),
            Read::Guessed(prepared) => {
                self.skip(&source.path, Why::Guessed);
                self.add(&source.path, *prepared);
            }
        }
        if self.waiting >= BATCH {
            self.write()?;
        }
        Ok(())
    }

    fn skip(&mut self, path: &str, why: Why) {
        self.done.skipped.push(Skipped {
            path: path.to_owned(),
            why,
        });
    }

    fn add(&mut self, path: &str, prepared: Prepared) {
        if !prepared.is_understood {
            self.skip(path, Why::Unparsed);
        }
        self.done.changed += 1;
        self.done.nodes += prepared.node_count();
        self.waiting += prepared.length();
        self.batch.push(prepared);
    }

    fn write(&mut self) -> Result<(), IndexError> {
        let files: Vec<_> = self.batch.iter().map(Prepared::as_new_file).collect();
        if !files.is_empty() {
            self.store.put_files(self.repository, &files)?;
        }
        self.batch.clear();
        self.waiting = 0;
        Ok(())
    }
}

/// Reads files until there is none left.
fn work(
    queue: &Mutex<Enumerate<std::slice::Iter<'_, Source>>>,
    is_over: &AtomicBool,
    known: &HashMap<&str, &str>,
    options: IndexOptions,
    sender: &SyncSender<(usize, Read)>,
) {
    while !is_over.load(Ordering::Relaxed) {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some((index, source)) = next else {
            return;
        };
        let read = read(source, known.get(&*source.path).copied(), options);
        if sender.send((index, read)).is_err() {
            return;
        }
    }
}

fn read(source: &Source, known: Option<&str>, options: IndexOptions) -> Read {
    if source.length > options.largest {
        return Read::Skipped(Why::TooLarge(source.length));
    }
    let bytes = match fs::read(&source.file) {
        Ok(bytes) => bytes,
        Err(error) => return Read::Skipped(Why::Unreadable(error.to_string())),
    };
    let hash = hash(&bytes);
    if known == Some(&*hash) {
        return Read::Unchanged;
    }
    let path = source.path.clone();
    match decode(bytes) {
        Decoded::Text(text) => Read::Changed(Box::new(Prepared::new(path, hash, &text))),
        Decoded::Guessed(text) => Read::Guessed(Box::new(Prepared::new(path, hash, &text))),
        Decoded::Binary(_) => Read::Skipped(Why::Binary),
    }
}
