//! Recorded runs: where they are, and what is in them.

use std::env;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use overlock_budget::{ChatRequest, Plan};
use overlock_json::{Base, Cut};
use overlock_model::{Continuation, ContinuationOptions, Outcome, Step};
use overlock_store::{Access, Claim, NewRun, RunId, RunSummary, Store, StoreAddress, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    pub(crate) conditions: Conditions,
    pub(crate) steps: Vec<RecordedStep>,
}

/// What a run depends on besides its options. A key is never among it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Conditions {
    /// Where the model is.
    pub(crate) upstream: Option<String>,
    /// What the document is held to.
    pub(crate) schema: Option<Value>,
}

/// A step with what was planned for it and where the document stood after it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordedStep {
    #[serde(flatten)]
    pub(crate) step: Step,
    #[serde(default)]
    pub(crate) budget: Option<CallBudget>,
    #[serde(default)]
    pub(crate) cut: Option<Cut>,
}

/// The budget of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallBudget {
    pub(crate) adjusted_max_tokens: u64,
    pub(crate) input_token_count: u64,
    pub(crate) message_count: usize,
    pub(crate) memory_count: usize,
}

impl RecordedStep {
    /// A step of a run that has just taken it.
    pub(crate) fn new(run: &Continuation, step: &Step, budget: Option<CallBudget>) -> Self {
        Self {
            step: step.clone(),
            budget,
            cut: run.base().and_then(Base::cut),
        }
    }

    /// The same step without the text that it brought, to be shown.
    pub(crate) fn without_text(&self) -> Self {
        Self {
            step: self.step.without_text(),
            ..self.clone()
        }
    }
}

impl From<&Plan> for CallBudget {
    fn from(plan: &Plan) -> Self {
        Self {
            adjusted_max_tokens: plan.adjusted_max_tokens,
            input_token_count: plan.input_token_count,
            message_count: plan.message_count,
            memory_count: plan.memory_count,
        }
    }
}

/// Opens the store that is named, else the one in the configuration, else the user's own.
pub(crate) fn open(named: Option<&str>, config: &Config, access: Access) -> Result<Store, Failure> {
    match named.or(config.store.url.as_deref()) {
        Some(address) => open_at(address, access),
        None => Store::open(&StoreAddress::Sqlite(default_file()), access).map_err(failed),
    }
}

/// Opens the same store to look at it. Nobody has to have one of their own: there may be none yet.
pub(crate) fn open_to_read(named: Option<&str>, config: &Config) -> Result<Option<Store>, Failure> {
    let is_named = named.is_some() || config.store.url.is_some();
    match open(named, config, Access::Read) {
        Err(Failure::Store {
            source: StoreError::Missing { .. },
        }) if !is_named => Ok(None),
        opened => opened.map(Some),
    }
}

/// Opens the store at an address.
pub(crate) fn open_at(address: &str, access: Access) -> Result<Store, Failure> {
    let address = address
        .parse()
        .map_err(|source| Failure::StoreAddress { source })?;
    Store::open(&address, access).map_err(failed)
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
pub(crate) fn take_up(store: &Store, id: &RunId, known: u32) -> Result<Claim, Failure> {
    match store.take_up(id).map_err(failed)? {
        Some((run, claim)) if run.summary.steps == u64::from(known) => Ok(claim),
        Some(_) => Err(failed(StoreError::Superseded { id: id.clone() })),
        None => Err(Failure::NoRun { id: id.to_string() }),
    }
}

pub(crate) fn add_step(
    store: &Store,
    claim: &Claim,
    step: &RecordedStep,
) -> Result<(), StoreError> {
    let body = serde_json::to_string(step).expect("a step is plain data");
    store.add_step(claim, step.step.iteration, &body)
}

pub(crate) fn end(store: &Store, claim: &Claim, outcome: &Outcome) -> Result<(), StoreError> {
    let outcome = serde_json::to_string(outcome).expect("an outcome is plain data");
    store.end(claim, now(), &outcome)
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
        conditions: serde_json::from_str(&run.conditions)
            .map_err(|error| damaged(error.to_string()))?,
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
