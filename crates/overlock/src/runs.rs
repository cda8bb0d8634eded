//! Recorded runs: where they are, and what is in them.

use std::env;
use std::path::PathBuf;

use overlock_budget::ChatRequest;
use overlock_gateway::api::{RecordedRun, RunsError};
use overlock_model::{ContinuationOptions, Outcome, Step};
use overlock_store::{NewRun, RunId, RunSummary, Store, StoreAddress, StoreError};

use crate::config::Config;
use crate::ending::Failure;

/// Opens the store that is named, else the one in the configuration, else the user's own.
pub(crate) fn open(named: Option<&str>, config: &Config) -> Result<Store, Failure> {
    let address = match named.or(config.store.url.as_deref()) {
        Some(address) => address
            .parse()
            .map_err(|source| Failure::StoreAddress { source })?,
        None => StoreAddress::Sqlite(default_file()),
    };
    Store::open(&address).map_err(failed)
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
pub(crate) fn read(store: &Store, id: &RunId) -> Result<RecordedRun, Failure> {
    RecordedRun::read(store, id).map_err(|error| match error {
        RunsError::Store(source) => failed(source),
        RunsError::Missing { id } => Failure::NoRun { id: id.to_string() },
        RunsError::Damaged { id, source } => Failure::DamagedRun {
            id: id.to_string(),
            reason: source.to_string(),
        },
    })
}

/// What was asked in a run.
pub(crate) fn request(recorded: &RecordedRun) -> Result<ChatRequest, Failure> {
    ChatRequest::from_value(recorded.request.clone()).map_err(|error| Failure::DamagedRun {
        id: recorded.summary.id.to_string(),
        reason: error.to_string(),
    })
}

pub(crate) fn latest(store: &Store, count: u32) -> Result<Vec<RunSummary>, Failure> {
    store.latest(count).map_err(failed)
}

fn failed(source: StoreError) -> Failure {
    Failure::Store { source }
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
