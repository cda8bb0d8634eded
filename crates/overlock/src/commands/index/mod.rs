//! `overlock index`: a store that knows what a folder of sources defines.

mod progress;
mod stop;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use overlock_index::{
    Filled, IndexError, IndexOptions, Indexed, VectorsError, Why, fill_vectors, index,
};
use overlock_store::{Access, RepositorySummary, Store};
use serde::Serialize;

use crate::config::ConfigSource;
use crate::draw::{amount, grouped_tokens};
use crate::embedding::{Embedder, EmbeddingSource};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};
use crate::runs;
use progress::Progress;
use stop::Stop;

/// Keep what a folder of sources defines, to be searched
///
/// Takes files apart into types, methods, procedures, views, tables and sections, and keeps them
/// with what calls, names, inherits, reads and writes what. Files that have not changed are skipped,
/// those that are gone are removed. What .gitignore and .ignore leave out, hidden files, links and
/// files without text are not looked at. One that is stopped goes on where it was. A folder that was
/// moved is known again; one that is called like another needs a name of its own, or --replace.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  \
    $ overlock index src --repository shop\n  \
    $ overlock search --repository shop 'close order'\n\n\
    With vectors, for search by meaning:\n  \
    $ overlock index src --embed nomic-embed-text --upstream http://127.0.0.1:11434/v1\n\n\
    Exit codes: 0 done; 1 files could not be read, or there are none; 2 bad usage, or no such folder;\n\
    130, 143 stopped by Ctrl-C or SIGTERM after what was read is kept.")]
pub(crate) struct Index {
    /// The folder to index
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// What it is called in the store [default: the name of the folder]
    #[arg(long, value_name = "NAME", value_parser = parse_repository)]
    repository: Option<String>,
    /// Replace what was indexed under this name from another folder that is still there
    #[arg(long)]
    replace: bool,
    /// Files with more bytes are skipped
    #[arg(long, value_name = "BYTES", default_value_t = IndexOptions::default().largest)]
    largest: u64,
    /// Where it is kept [default: `store.url`, else runs.db in the user's data folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    #[command(flatten)]
    embedding: EmbeddingSource,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigSource,
}

/// The answer to machines.
#[derive(Serialize)]
struct Answer<'a> {
    repository: &'a str,
    /// Those that had changed, those that had not, and those that were left out.
    files: u64,
    changed: u64,
    unchanged: u64,
    left_out: u64,
    /// Those that were kept and are gone.
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
    /// Whether it was indexed all the same.
    indexed: bool,
}

impl Index {
    pub(crate) fn run(self) -> Result<Ending, Failure> {
        let mut notes = Notes::new();
        let config = self.config.load(&mut notes)?;
        if self.folder.is_file() {
            return Err(file_is_no_folder(&self.folder));
        }
        let repository = match &self.repository {
            Some(name) => name.clone(),
            None => name_of(&self.folder)?,
        };
        let embedder = self.embedding.open(&config)?;
        if !self.folder.is_dir() {
            return Err(Failure::NoFolder { path: self.folder });
        }
        let stop = Stop::listen();
        let store = runs::open(self.store.as_deref(), &config, Access::Make)?;
        let begun = Instant::now();
        let options = IndexOptions {
            largest: self.largest,
            replace: self.replace,
        };
        let mut progress = Progress::new(&stop);
        let indexed = index(&*store, &repository, &self.folder, options, &mut progress);
        progress.end();
        let indexed = indexed.map_err(failed)?;
        let elapsed = begun.elapsed();
        let filled = match embedder {
            Some(embedder) if !indexed.is_stopped => {
                Some(fill(&*store, &repository, &embedder, &stop)?)
            }
            _ => None,
        };
        if let Some(from) = &indexed.moved_from {
            notes.note(format_args!(
                "`{repository}` was indexed from `{from}` before, and is from this folder now"
            ));
        }
        tell_skipped(&indexed, &mut notes);
        let kept = kept(&*store, &repository)?;
        if self.json {
            Results::new().object(&answer(&repository, &indexed, &kept, filled, elapsed))?;
        } else {
            tell(&repository, &indexed, &kept, filled, elapsed)?;
        }
        let is_stopped = indexed.is_stopped || filled.is_some_and(|filled| filled.is_stopped);
        if let (true, Some(signal)) = (is_stopped, stop.asked()) {
            notes.note(format_args!(
                "stopped by {}: {} of {} are done and kept{}; the same command goes on from there",
                signal.name(),
                grouped_tokens(indexed.files),
                amount(progress.files(), "file"),
                filled.map_or_else(String::new, |filled| format!(
                    ", with {} made",
                    amount(filled.vectors, "vector")
                ))
            ));
            return Ok(Ending::Stopped(signal));
        }
        if kept.files == 0 {
            notes.note(format_args!(
                "no file with text was found in `{}`, so there is no repository `{repository}` to \
                 search",
                self.folder.display()
            ));
            return Ok(Ending::Partial);
        }
        let is_unread = indexed
            .skipped
            .iter()
            .any(|skipped| skipped.why.is_unread());
        Ok(Ending::whole_if(!is_unread))
    }
}

fn parse_repository(argument: &str) -> Result<String, String> {
    if argument.trim().is_empty() || argument.chars().any(char::is_control) {
        return Err("must have a character that can be seen, and no line break".to_owned());
    }
    Ok(argument.to_owned())
}

/// A file is indexed with the folder that it is in.
fn file_is_no_folder(path: &Path) -> Failure {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    Failure::Usage {
        message: format!("`{}` is a file, and folders are indexed", path.display()),
        hint: format!(
            "index the folder that it is in, `overlock index {}`, and search in the file with --path",
            folder.display()
        ),
    }
}

/// The name of a folder, whatever way leads to it.
fn name_of(folder: &Path) -> Result<String, Failure> {
    let whole = folder.canonicalize().map_err(|_| Failure::NoFolder {
        path: folder.into(),
    })?;
    let name = whole
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.ok_or_else(|| Failure::Usage {
        message: format!(
            "`{}` has no name to call the repository by",
            folder.display()
        ),
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
            hint: "give this one a name of its own with --repository NAME, or let it take the \
                   other's place with --replace"
                .into(),
        },
        IndexError::Store(source) => Failure::Store { source },
    }
}

fn fill(
    store: &dyn Store,
    repository: &str,
    embedder: &Embedder,
    stop: &Stop,
) -> Result<Filled, Failure> {
    let mut progress = Progress::new(stop);
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
        VectorsError::Store(source) => embedder.unfit(source),
    })
}

fn kept(store: &dyn Store, repository: &str) -> Result<RepositorySummary, Failure> {
    let all = store
        .repositories()
        .map_err(|source| Failure::Store { source })?;
    let found = all.into_iter().find(|kept| kept.name == repository);
    Ok(found.unwrap_or(RepositorySummary {
        name: repository.to_owned(),
        folder: None,
        files: 0,
        nodes: 0,
        edges: 0,
    }))
}

/// Says what was not indexed as it is. What holds no text is only amount: every folder has some.
fn tell_skipped(indexed: &Indexed, notes: &mut Notes) {
    const SHOWN: usize = 10;
    let told = indexed
        .skipped
        .iter()
        .filter(|skipped| skipped.why != Why::Binary);
    let count = told.clone().count();
    for skipped in told.take(SHOWN) {
        notes.note(format_args!("{}: {}", skipped.path, skipped.why));
    }
    if count > SHOWN {
        notes.note(format_args!(
            "and {} more; --json lists all of them",
            count - SHOWN
        ));
    }
}

fn tell(
    repository: &str,
    indexed: &Indexed,
    kept: &RepositorySummary,
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
        "kept: {}, {}",
        amount(kept.nodes, "node"),
        amount(kept.edges, "edge")
    ))?;
    if let Some(filled) = filled {
        results.line(&format!(
            "vectors: {} made, {} of the beginning of a text only",
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

/// Why files were left out, and how many for each reason.
fn reasons(indexed: &Indexed) -> String {
    let count = |is_meant: fn(&Why) -> bool| {
        let skipped = indexed.skipped.iter();
        skipped.filter(|skipped| is_meant(&skipped.why)).count() as u64
    };
    let counts = [
        (count(|why| *why == Why::Binary), "without text"),
        (count(|why| matches!(why, Why::TooLarge(_))), "too large"),
        (count(|why| matches!(why, Why::Unreadable(_))), "unreadable"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = counts
        .map(|(count, reason)| format!("{} {reason}", grouped_tokens(*count)))
        .collect();
    if told.is_empty() {
        return String::new();
    }
    format!(" ({})", told.join(", "))
}

fn answer<'a>(
    repository: &'a str,
    indexed: &'a Indexed,
    kept: &RepositorySummary,
    filled: Option<Filled>,
    elapsed: Duration,
) -> Answer<'a> {
    let skipped = indexed.skipped.iter().map(|skipped| SkippedFile {
        path: &skipped.path,
        reason: skipped.why.to_string(),
        indexed: skipped.why.is_indexed(),
    });
    Answer {
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
        nodes: kept.nodes,
        edges: kept.edges,
        vectors_made: filled.map(|filled| filled.vectors),
        seconds: elapsed.as_secs_f64(),
        nodes_per_second: speed(indexed, elapsed),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a speed is told in three digits"
)]
fn speed(indexed: &Indexed, elapsed: Duration) -> f64 {
    indexed.nodes as f64 / elapsed.as_secs_f64().max(1e-9)
}
