//! Opens stores, and records and reads runs.

use std::path::{self, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use overlock_llm::wire::chat::ChatRequest;
use overlock_llm::{ContinuationOptions, Outcome, StopCause};
use overlock_runs::{
    Conditions, Ending, RecordedRun, RecordedStep, RunsError, Tally, UpstreamFault,
};
use overlock_store::{Access, Claim, NewRun, RunId, RunSummary, Store, StoreAddress, StoreError};

use crate::config::{Config, user_folder};
use crate::ending::Failure;

/// More of one answer is not read.
pub(crate) const MOST_ANSWER_BYTES: usize = 64 << 20;

/// Opens the given store, else the configured one, else the default one in the user's data folder.
pub(crate) fn open(
    given: Option<&str>,
    config: &Config,
    access: Access,
) -> Result<Arc<dyn Store>, Failure> {
    if let Some(address) = given.or(config.store.url.as_deref()) {
        return open_at(address, access);
    }
    let file = default_file().ok_or_else(|| Failure::Usage {
        message: "no data folder found for the store".into(),
        hint: "set HOME, or give a store with --store sqlite://FILE or --store postgres://…".into(),
    })?;
    overlock_store::open(&StoreAddress::Sqlite(file), access).map_err(failed)
}

/// Opens the same store for reading. Returns `None` if the default store does not exist yet.
pub(crate) fn open_to_read(
    given: Option<&str>,
    config: &Config,
) -> Result<Option<Arc<dyn Store>>, Failure> {
    let is_default = given.is_none() && config.store.url.is_none();
    match open(given, config, Access::Read) {
        Err(Failure::Store {
            source: StoreError::Missing { .. },
        }) if is_default => Ok(None),
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

/// An address without its password.
pub(crate) fn shown_address(address: &str) -> String {
    let parsed: Result<StoreAddress, _> = address.parse();
    parsed.map_or_else(|error| error.address, |address| address.to_string())
}

/// The same with an absolute path.
pub(crate) fn absolute_address(address: &str) -> String {
    match address.parse() {
        Ok(StoreAddress::Sqlite(file)) => {
            let file = path::absolute(&file).unwrap_or(file);
            StoreAddress::Sqlite(file).to_string()
        }
        _ => shown_address(address),
    }
}

/// The id of a run that begins now.
pub(crate) fn new_id() -> RunId {
    RunId::now()
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

/// Claims a run. Fails if it has another number of steps than `known`.
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

/// Records how a run ended, and what stopped it.
pub(crate) fn end(
    store: &dyn Store,
    claim: &Claim,
    outcome: &Outcome,
    stop_cause: Option<&StopCause>,
) -> Result<(), StoreError> {
    // The end is recorded even if the run cannot be read.
    let tally = RecordedRun::read(store, claim.id()).ok();
    let ending = Ending {
        outcome: outcome.clone(),
        tally: tally.map(|run| Tally::of(&run.steps)),
        upstream_fault: match stop_cause {
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

pub(crate) fn read(store: &dyn Store, id: &RunId) -> Result<RecordedRun, Failure> {
    RecordedRun::read(store, id).map_err(unreadable)
}

pub(crate) fn unreadable(error: RunsError) -> Failure {
    match error {
        RunsError::Store(source) => failed(source),
        RunsError::Missing { id } => Failure::NoRun { id: id.to_string() },
        RunsError::OfPipeline { id } => Failure::Usage {
            message: format!("run `{id}` is a pipeline run"),
            hint: format!("resume it with `overlock run --resume {id}`"),
        },
        RunsError::NotPipeline { id } => Failure::Usage {
            message: format!("run `{id}` is not a pipeline run"),
            hint: format!("resume it with `overlock complete --resume {id}`"),
        },
        RunsError::Busy { id } => Failure::Usage {
            message: format!("run `{id}` is in progress in another process"),
            hint: "wait until it has ended; `overlock inspect` shows its progress".into(),
        },
        RunsError::Damaged { id, source } => Failure::damaged_run(&id, &source),
        RunsError::Inconsistent { id, source } => Failure::damaged_run(&id, &source),
    }
}

pub(crate) fn request(recorded: &RecordedRun) -> Result<ChatRequest, Failure> {
    if recorded.request.get("input").is_some() {
        return Err(Failure::Usage {
            message: format!("run `{}` is of a Responses request", recorded.summary.id),
            hint: "send the request to the gateway again, with its `Idempotency-Key`".into(),
        });
    }
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

/// The default store in the user's data folder.
fn default_file() -> Option<PathBuf> {
    let folder = user_folder(["XDG_DATA_HOME", "LOCALAPPDATA"], ".local/share");
    folder.map(|folder| folder.join("overlock/runs.db"))
}
