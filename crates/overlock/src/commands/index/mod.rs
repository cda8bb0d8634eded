//! `overlock index`: indexes a folder of source code for search.

mod progress;
mod stop;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use overlock_index::{
    Filled, IndexError, IndexOptions, Indexed, SkipReason, VectorsError, fill_vectors, index,
};
use overlock_store::{Access, RepositorySummary, Store};
use serde::Serialize;

use super::chat::NAME_RULE;
use crate::config::ConfigSource;
use crate::draw::{amount, grouped_tokens};
use crate::embedding::{Embedder, EmbeddingSource};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};
use crate::runs;
use progress::IndexProgress;
use stop::StopRequest;

/// Index source code for search
///
/// Splits files into types, methods, procedures, views, tables and sections, and stores them with
/// their references: calls, mentions, inheritance, reads and writes. Unchanged files are skipped,
/// deleted files are removed from the index. Files excluded by .gitignore or .ignore, hidden files,
/// symbolic links and binary files are not indexed.
///
/// An interrupted index resumes when the command is repeated. A folder that was moved keeps its
/// index. A folder with the same name as another one needs --repository or --replace.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock index src --repository shop\n  \
    $ overlock search --repository shop 'close order'\n\n\
    With vectors, for search by meaning:\n  \
    $ overlock index src --embed nomic-embed-text --upstream http://127.0.0.1:11434/v1\n\n\
    Exit codes: 0 done; 1 files could not be read, or there are none; 2 bad usage, or no such folder;\n\
    130, 143 stopped by Ctrl-C or SIGTERM; what was read is stored.")]
pub(crate) struct Index {
    /// The folder to index
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The name of the repository in the store [default: the name of the folder]
    #[arg(long, value_name = "NAME", value_parser = parse_repository)]
    repository: Option<String>,
    /// Replace the index of another folder with the same name
    #[arg(long)]
    replace: bool,
    /// Skip files with more bytes
    #[arg(long, value_name = "BYTES", default_value_t = IndexOptions::default().largest)]
    largest: u64,
    /// The store, `sqlite://FILE` or `postgres://…` [default: `store.url`, else runs.db in the
    /// user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    embedding: EmbeddingSource,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// The output of `--json`.
#[derive(Serialize)]
struct IndexReport<'a> {
    repository: &'a str,
    /// The sum of `changed`, `unchanged` and `left_out`.
    files: u64,
    changed: u64,
    unchanged: u64,
    left_out: u64,
    /// Deleted files that were in the index.
    removed: u64,
    skipped: Vec<SkippedFile<'a>>,
    stopped: bool,
    nodes_written: u64,
    edges_made: u64,
    nodes: u64,
    edges: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors_made: Option<u64>,
    seconds: f64,
    nodes_per_second: f64,
}

#[derive(Serialize)]
struct SkippedFile<'a> {
    path: &'a str,
    reason: String,
    /// Whether it was indexed despite the reason.
    indexed: bool,
}

impl Index {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        if self.folder.is_file() {
            return Err(not_a_folder(&self.folder));
        }
        let repository = match &self.repository {
            Some(name) => name.clone(),
            None => folder_name(&self.folder)?,
        };
        let embedder = self.embedding.open(&config)?;
        if !self.folder.is_dir() {
            return Err(Failure::NoFolder { path: self.folder });
        }
        let stop = StopRequest::listen();
        let store = runs::open(self.store.as_deref(), &config, Access::Create)?;
        let started = Instant::now();
        let options = IndexOptions {
            largest: self.largest,
            replace: self.replace,
        };
        let mut progress = IndexProgress::new(&stop);
        let indexed = index(&*store, &repository, &self.folder, options, &mut progress);
        progress.end();
        let indexed = indexed.map_err(failed)?;
        let elapsed = started.elapsed();
        let filled = match embedder {
            Some(embedder) if !indexed.is_stopped => {
                Some(fill(&*store, &repository, &embedder, &stop)?)
            }
            _ => None,
        };
        if let Some(from) = &indexed.moved_from {
            notes.note(format_args!(
                "the folder of `{repository}` was `{from}` before; it is this folder now"
            ));
        }
        note_skipped(&indexed, &mut notes);
        let stored = stored(&*store, &repository)?;
        if self.json {
            Results::new().object(&report(&repository, &indexed, &stored, filled, elapsed))?;
        } else {
            print(&repository, &indexed, &stored, filled, elapsed)?;
        }
        let is_stopped = indexed.is_stopped || filled.is_some_and(|filled| filled.is_stopped);
        if let (true, Some(signal)) = (is_stopped, stop.signal()) {
            notes.note(format_args!(
                "stopped by {}: {} of {} are stored{}; repeat the command to resume",
                signal.name(),
                grouped_tokens(indexed.files),
                amount(progress.files(), "file"),
                filled.map_or_else(String::new, |filled| format!(
                    ", with {}",
                    amount(filled.vectors, "new vector")
                ))
            ));
            return Ok(Ending::Stopped(signal));
        }
        if stored.files == 0 {
            notes.note(format_args!(
                "no text file found in `{}`, so there is no repository `{repository}` to search",
                self.folder.display()
            ));
            return Ok(Ending::Partial);
        }
        let is_unread = indexed
            .skipped
            .iter()
            .any(|skipped| skipped.why.is_unread());
        Ok(Ending::done_if(!is_unread))
    }
}

fn parse_repository(argument: &str) -> Result<String, String> {
    if argument.trim().is_empty() || argument.chars().any(char::is_control) {
        return Err(NAME_RULE.to_owned());
    }
    Ok(argument.to_owned())
}

fn not_a_folder(path: &Path) -> Failure {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    Failure::Usage {
        message: format!("`{}` is a file, not a folder", path.display()),
        hint: format!(
            "index its folder with `overlock index {}`, and search the file with --path",
            folder.display()
        ),
    }
}

/// The name of a folder, also for paths such as `.` and `..`.
fn folder_name(folder: &Path) -> Result<String, Failure> {
    let absolute = folder.canonicalize().map_err(|_| Failure::NoFolder {
        path: folder.into(),
    })?;
    let name = absolute
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.ok_or_else(|| Failure::Usage {
        message: format!("`{}` has no name for the repository", folder.display()),
        hint: "give one with --repository NAME".into(),
    })
}

fn failed(error: IndexError) -> Failure {
    match error {
        IndexError::Folder { path, source } => Failure::Unreadable {
            name: format!("`{}`", path.display()),
            source,
        },
        IndexError::OtherFolder { .. } => Failure::Usage {
            message: error.to_string(),
            hint: "choose another name with --repository NAME, or replace the other index with \
                   --replace"
                .into(),
        },
        IndexError::Store(source) => Failure::Store { source },
    }
}

fn fill(
    store: &dyn Store,
    repository: &str,
    embedder: &Embedder,
    stop: &StopRequest,
) -> Result<Filled, Failure> {
    let mut progress = IndexProgress::new(stop);
    let filled = fill_vectors(
        store,
        repository,
        &embedder.model,
        |texts| embedder.embed(texts),
        |vectors| progress.embedded(vectors),
    );
    progress.end();
    filled.map_err(|error| match error {
        VectorsError::Embed(source) => Failure::Upstream { source },
        VectorsError::Store(source) => embedder.store_failure(source),
    })
}

fn stored(store: &dyn Store, repository: &str) -> Result<RepositorySummary, Failure> {
    let all = store
        .repositories()
        .map_err(|source| Failure::Store { source })?;
    let found = all.into_iter().find(|stored| stored.name == repository);
    Ok(found.unwrap_or(RepositorySummary {
        name: repository.to_owned(),
        folder: None,
        files: 0,
        nodes: 0,
        edges: 0,
    }))
}

/// Lists skipped files. Binary files are only counted, since every folder has some.
fn note_skipped(indexed: &Indexed, notes: &mut Notes) {
    const SHOWN: usize = 10;
    let listed = indexed
        .skipped
        .iter()
        .filter(|skipped| skipped.why != SkipReason::Binary);
    let count = listed.clone().count();
    for skipped in listed.take(SHOWN) {
        notes.note(format_args!("{}: {}", skipped.path, skipped.why));
    }
    if count > SHOWN {
        notes.note(format_args!(
            "and {} more; --json lists all of them",
            count - SHOWN
        ));
    }
}

fn print(
    repository: &str,
    indexed: &Indexed,
    stored: &RepositorySummary,
    filled: Option<Filled>,
    elapsed: Duration,
) -> Result<(), Failure> {
    let mut results = Results::new();
    results.line(&format!(
        "{repository}: {} = {} changed + {} unchanged + {} left out{}; {} removed",
        amount(indexed.files, "file"),
        grouped_tokens(indexed.changed),
        grouped_tokens(indexed.unchanged),
        grouped_tokens(indexed.left_out()),
        reasons(indexed),
        grouped_tokens(indexed.removed),
    ))?;
    results.line(&format!(
        "stored: {}, {}",
        amount(stored.nodes, "node"),
        amount(stored.edges, "edge")
    ))?;
    if let Some(filled) = filled {
        results.line(&format!(
            "vectors: {} new, {} of truncated texts",
            grouped_tokens(filled.vectors),
            grouped_tokens(filled.shortened)
        ))?;
    }
    results.line(&format!(
        "written: {} in {:.1} s, {:.0} nodes/s",
        amount(indexed.nodes, "node"),
        elapsed.as_secs_f64(),
        speed(indexed, elapsed)
    ))
}

/// The reasons for leaving out files, with their counts.
fn reasons(indexed: &Indexed) -> String {
    let count = |is_meant: fn(&SkipReason) -> bool| {
        let skipped = indexed.skipped.iter();
        skipped.filter(|skipped| is_meant(&skipped.why)).count() as u64
    };
    let counts = [
        (count(|why| *why == SkipReason::Binary), "binary"),
        (
            count(|why| matches!(why, SkipReason::TooLarge(_))),
            "too large",
        ),
        (
            count(|why| matches!(why, SkipReason::Unreadable(_))),
            "unreadable",
        ),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> = counts
        .map(|(count, reason)| format!("{} {reason}", grouped_tokens(*count)))
        .collect();
    if reasons.is_empty() {
        return String::new();
    }
    format!(" ({})", reasons.join(", "))
}

fn report<'a>(
    repository: &'a str,
    indexed: &'a Indexed,
    stored: &RepositorySummary,
    filled: Option<Filled>,
    elapsed: Duration,
) -> IndexReport<'a> {
    let skipped = indexed.skipped.iter().map(|skipped| SkippedFile {
        path: &skipped.path,
        reason: skipped.why.to_string(),
        indexed: skipped.why.is_indexed(),
    });
    IndexReport {
        repository,
        files: indexed.files,
        changed: indexed.changed,
        unchanged: indexed.unchanged,
        left_out: indexed.left_out(),
        removed: indexed.removed,
        skipped: skipped.collect(),
        stopped: indexed.is_stopped || filled.is_some_and(|filled| filled.is_stopped),
        nodes_written: indexed.nodes,
        edges_made: indexed.edges,
        nodes: stored.nodes,
        edges: stored.edges,
        vectors_made: filled.map(|filled| filled.vectors),
        seconds: elapsed.as_secs_f64(),
        nodes_per_second: speed(indexed, elapsed),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a speed is shown with few digits"
)]
fn speed(indexed: &Indexed, elapsed: Duration) -> f64 {
    indexed.nodes as f64 / elapsed.as_secs_f64().max(1e-9)
}
