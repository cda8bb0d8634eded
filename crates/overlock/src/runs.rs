//! Recorded runs: where they are, and what is in them.

use std::env;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use overlock_budget::ChatRequest;
use overlock_model::{ContinuationOptions, Outcome, Step};
use overlock_store::{NewRun, RunId, RunSummary, Store, StoreAddress, StoreError};

use crate::config::Config;
use crate::ending::Failure;

/// Of one answer no more than this is read.
pub(crate) const MOST_ANSWER_BYTES: usize = 64 << 20;

/// A run as it was recorded.
pub(crate) struct Recorded {
    pub(crate) summary: RunSummary,
    pub(crate) model: String,
    pub(crate) request: ChatRequest,
    pub(crate) options: ContinuationOptions,
    pub(crate) steps: Vec<Step>,
}

/// Opens the store that is named, else the one in the configuration, else the user's own.
pub(crate) fn open(named: Option<&str>, config: &Config) -> Result<Store, Failure> {
    match named.or(config.store.url.as_deref()) {
        Some(address) => open_at(address),
        None => Store::open(&StoreAddress::Sqlite(default_file())).map_err(failed),
    }
}

/// Opens the store at an address.
pub(crate) fn open_at(address: &str) -> Result<Store, Failure> {
    let address = address
        .parse()
        .map_err(|source| Failure::StoreAddress { source })?;
    Store::open(&address).map_err(failed)
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
    store: &Store,
    id: &RunId,
    at: u64,
    model: &str,
    request: &ChatRequest,
    options: &ContinuationOptions,
) -> Result<(), Failure> {
    let request = request.clone().into_value().to_string();
    let options = serde_json::to_string(options).expect("options are plain data");
    let run = NewRun {
        id,
        at,
        model,
        request: &request,
        options: &options,
    };
    store.begin(&run).map_err(failed)
}

pub(crate) fn add_step(store: &Store, id: &RunId, step: &Step) -> Result<(), StoreError> {
    let body = serde_json::to_string(step).expect("a step is plain data");
    store.add_step(id, step.iteration, &body)
}

pub(crate) fn end(store: &Store, id: &RunId, at: u64, outcome: &Outcome) -> Result<(), Failure> {
    let outcome = serde_json::to_string(outcome).expect("an outcome is plain data");
    store.end(id, at, &outcome).map_err(failed)
}

/// Reads a run.
pub(crate) fn read(store: &Store, id: &RunId) -> Result<Recorded, Failure> {
    let damaged = |reason: String| Failure::DamagedRun {
        id: id.to_string(),
        reason,
    };
    let Some(run) = store.run(id).map_err(failed)? else {
        return Err(Failure::NoRun { id: id.to_string() });
    };
    let steps = run.steps.iter().map(|step| serde_json::from_str(step));
    Ok(Recorded {
        model: run.summary.model.clone(),
        summary: run.summary,
        request: ChatRequest::from_json(&run.request)
            .map_err(|error| damaged(error.to_string()))?,
        options: serde_json::from_str(&run.options).map_err(|error| damaged(error.to_string()))?,
        steps: steps
            .collect::<Result<_, _>>()
            .map_err(|error| damaged(error.to_string()))?,
    })
}

pub(crate) fn latest(store: &Store, count: u32) -> Result<Vec<RunSummary>, Failure> {
    store.latest(count).map_err(failed)
}

/// How a run ended, if it has and was not damaged.
pub(crate) fn outcome(summary: &RunSummary) -> Option<Outcome> {
    serde_json::from_str(summary.outcome.as_deref()?).ok()
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
fn default_file() -> PathBuf {
    let folder = |name| {
        env::var_os(name)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    folder("XDG_DATA_HOME")
        .or_else(|| folder("LOCALAPPDATA"))
        .or_else(|| folder("HOME").map(|home| home.join(".local/share")))
        .unwrap_or_default()
        .join("overlock/runs.db")
}
