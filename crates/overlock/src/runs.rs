//! Recorded runs: where they are, and what is in them.

use std::env;
use std::path::{self, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{ContinuationOptions, Outcome, StopCause};
use overlock_runs::{
    Conditions, Ending, RecordedRun, RecordedStep, RunsError, Tally, UpstreamFault,
};
use overlock_store::{Access, Claim, NewRun, RunId, RunSummary, Store, StoreAddress, StoreError};

use crate::config::Config;
use crate::ending::Failure;

/// Of one answer no more than this is read.
pub(crate) const MOST_ANSWER_BYTES: usize = 64 << 20;

/// Opens the store that is named, else the one in the configuration, else the user's own.
pub(crate) fn open(
    named: Option<&str>,
    config: &Config,
    access: Access,
) -> Result<Arc<dyn Store>, Failure> {
    if let Some(address) = named.or(config.store.url.as_deref()) {
        return open_at(address, access);
    }
    let file = default_file().ok_or_else(|| Failure::Usage {
        message: "no folder is known to record runs in".into(),
        hint: "set HOME, or say where with --store sqlite://FILE or --store postgres://…".into(),
    })?;
    overlock_store::open(&StoreAddress::Sqlite(file), access).map_err(failed)
}

/// Opens the same store to look at it. Nobody has to have one of their own: there may be none yet.
pub(crate) fn open_to_read(
    named: Option<&str>,
    config: &Config,
) -> Result<Option<Arc<dyn Store>>, Failure> {
    let is_named = named.is_some() || config.store.url.is_some();
    match open(named, config, Access::Read) {
        Err(Failure::Store {
            source: StoreError::Missing { .. },
        }) if !is_named => Ok(None),
        opened => opened.map(Some),
    }
}

/// Opens the store at an address.
pub(crate) fn open_at(address: &str, access: Access) -> Result<Arc<dyn Store>, Failure> {
    let address = address
        .parse()
        .map_err(|source| Failure::StoreAddress { source })?;
    overlock_store::open(&address, access).map_err(failed)
}

/// An address as it may be shown: without a password.
pub(crate) fn shown_address(address: &str) -> String {
    let read: Result<StoreAddress, _> = address.parse();
    read.map_or_else(|error| error.address, |address| address.to_string())
}

/// The same as it has to be written in another folder, too.
pub(crate) fn shown_anywhere(address: &str) -> String {
    match address.parse() {
        Ok(StoreAddress::Sqlite(file)) => {
            let file = path::absolute(&file).unwrap_or(file);
            StoreAddress::Sqlite(file).to_string()
        }
        _ => shown_address(address),
    }
}

/// A name for a run that begins now.
pub(crate) fn new_id() -> RunId {
    RunId::new(now(), drawn())
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let milliseconds = since.unwrap_or_default().as_millis();
    u64::try_from(milliseconds).unwrap_or(u64::MAX)
}

pub(crate) fn begin(
    store: &dyn Store,
    id: &RunId,
    model: &str,
    request: &ChatRequest,
    options: &ContinuationOptions,
    conditions: &Conditions,
) -> Result<Claim, Failure> {
    let request = request.clone().into_value().to_string();
    let options = serde_json::to_string(options).expect("options are plain data");
    let conditions = serde_json::to_string(conditions).expect("conditions are plain data");
    let run = NewRun {
        id,
        at: now(),
        model,
        request: &request,
        options: &options,
        conditions: &conditions,
    };
    store.begin(&run).map_err(failed)
}

/// Claims a run of which so many steps are known.
pub(crate) fn take_up(store: &dyn Store, id: &RunId, known: u32) -> Result<Claim, Failure> {
    match store.take_up(id).map_err(failed)? {
        Some((run, claim)) if run.summary.steps == u64::from(known) => Ok(claim),
        Some(_) => Err(failed(StoreError::Superseded { id: id.clone() })),
        None => Err(Failure::NoRun { id: id.to_string() }),
    }
}

pub(crate) fn add_step(
    store: &dyn Store,
    claim: &Claim,
    step: &RecordedStep,
) -> Result<(), StoreError> {
    let body = serde_json::to_string(step).expect("a step is plain data");
    store.add_step(claim, step.step.iteration, &body)
}

/// Records how a run ended, and what it was stopped by if anything.
pub(crate) fn end(
    store: &dyn Store,
    claim: &Claim,
    outcome: &Outcome,
    obstacle: Option<&StopCause>,
) -> Result<(), StoreError> {
    // A run that cannot be read ends all the same.
    let tally = RecordedRun::read(store, claim.id()).ok();
    let ending = Ending {
        outcome: outcome.clone(),
        tally: tally.map(|run| Tally::of(&run.steps)),
        upstream_fault: match obstacle {
            Some(StopCause::Backend { error, retried }) => {
                Some(UpstreamFault::of(error, retried.as_ref()))
            }
            Some(StopCause::Window(_)) | None => None,
        },
        unfit: None,
    };
    let ending = serde_json::to_string(&ending).expect("an end is plain data");
    store.end(claim, now(), &ending)
}

/// Reads a run.
pub(crate) fn read(store: &dyn Store, id: &RunId) -> Result<RecordedRun, Failure> {
    RecordedRun::read(store, id).map_err(unreadable)
}

/// Why a run cannot be read or taken up.
pub(crate) fn unreadable(error: RunsError) -> Failure {
    match error {
        RunsError::Store(source) => failed(source),
        RunsError::Missing { id } => Failure::NoRun { id: id.to_string() },
        RunsError::OfPipeline { id } => Failure::Usage {
            message: format!("run `{id}` is a run of a pipeline"),
            hint: format!("`overlock run --resume {id}` goes on with it"),
        },
        RunsError::NotPipeline { id } => Failure::Usage {
            message: format!("run `{id}` is not a run of a pipeline"),
            hint: format!("`overlock complete --resume {id}` goes on with it"),
        },
        RunsError::Busy { id } => Failure::Usage {
            message: format!("run `{id}` is being worked on by another process"),
            hint: "wait until it has ended; `overlock inspect` shows how far it has come".into(),
        },
        RunsError::Damaged { id, source } => Failure::damaged_run(&id, &source),
        RunsError::Inconsistent { id, source } => Failure::damaged_run(&id, &source),
    }
}

/// What was asked in a run.
pub(crate) fn request(recorded: &RecordedRun) -> Result<ChatRequest, Failure> {
    ChatRequest::from_value(recorded.request.clone()).map_err(|error| Failure::DamagedRun {
        id: recorded.summary.id.to_string(),
        reason: error.to_string(),
    })
}

pub(crate) fn latest(store: &dyn Store, count: u32) -> Result<Vec<RunSummary>, Failure> {
    store.latest(count).map_err(failed)
}

fn failed(source: StoreError) -> Failure {
    Failure::Store { source }
}

/// A number drawn at random, from the randomness that every hash map begins with.
fn drawn() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0)
}

/// Where programs keep what is worth keeping.
fn default_file() -> Option<PathBuf> {
    let folder = |name| {
        env::var_os(name)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    folder("XDG_DATA_HOME")
        .or_else(|| folder("LOCALAPPDATA"))
        .or_else(|| folder("HOME").map(|home| home.join(".local/share")))
        .map(|folder| folder.join("overlock/runs.db"))
}
