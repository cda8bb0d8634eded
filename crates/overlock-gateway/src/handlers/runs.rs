//! `GET /api/runs`, `GET /api/runs/totals`, `GET /api/runs/{id}` and
//! `GET /api/runs/{id}/steps/{number}`: recorded runs.
//!
//! A search matches texts that have no index, since an index would cost a write for every run. So it
//! scans a limited number of runs from the latest on, in batches, so that writers never wait long.

use std::collections::HashSet;
use std::slice;
use std::sync::{Arc, Weak};

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use hyper::StatusCode;
use overlock_runs::{PipelineRun, RunProgress};
use overlock_store::{RunId, RunSummary, Store, StoreError};
use tokio::task::spawn_blocking;

use super::api::serialized;
use crate::clock::now;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::handlers::Handled;
use crate::path;
use crate::record::Recorder;
use crate::reply::Reply;
use crate::unfinished_runs::{Liveness, UnfinishedRuns, UnfinishedUsage};
use overlock_runs::Record;
use overlock_runs::{
    Conditions, Definitions, ListedRun, Pricing, RecordedRun, RunFilter, RunsError,
    ShownPipelineRun, ShownStep, Tally, Text, TotalsBuilder,
};

/// The default of the query parameter `limit`.
const LIMIT: u32 = 20;

/// The error code for an unknown run.
const NO_RUN: &str = "no-run";

/// The largest `limit`.
const MOST: u32 = 1000;

/// The runs in one batch of a search.
const BATCH: u32 = 1000;

/// The most runs that a search reads.
const MOST_SCANNED: u32 = 200_000;

/// The most characters of the query parameter `q`.
const LONGEST: usize = 400;

pub(crate) async fn list(
    State(gateway): State<Arc<Gateway>>,
    RawQuery(query): RawQuery,
) -> Handled {
    let query = query.as_deref();
    let (limit, wanted, before) = (limit(query)?, wanted(query)?, before(query)?);
    let owners = RunOwners::new(&gateway);
    from_store(gateway, move |store, pricing, client| {
        let mut matching: Vec<CurrentRun> = Vec::new();
        let most = limit as usize;
        let batch = if wanted.is_any() { limit } else { BATCH };
        scan((store, client), &owners, before, batch, |run| {
            if matching.len() < most && wanted.has(&run.listed()) {
                matching.push(run);
            }
            matching.len() < most
        })?;
        let listed = matching.iter().map(|run| run.listed().priced(pricing));
        Ok(serialized(StatusCode::OK, &listed.collect::<Vec<_>>()))
    })
    .await
}

pub(crate) async fn totals(
    State(gateway): State<Arc<Gateway>>,
    RawQuery(query): RawQuery,
) -> Handled {
    let wanted = wanted(query.as_deref())?;
    let owners = RunOwners::new(&gateway);
    from_store(gateway, move |store, pricing, client| {
        let mut adding = TotalsBuilder::new(pricing);
        let is_all = scan((store, client), &owners, None, BATCH, |run| {
            adding.look_at(&run.listed(), &wanted);
            true
        })?;
        Ok(serialized(StatusCode::OK, &adding.summed(is_all)))
    })
    .await
}

/// The client of a request, to find out whether it has disconnected.
struct RequestHandle(Weak<()>);

impl RequestHandle {
    fn has_left(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// Passes runs to `look`, from the latest on or from the latest before a run, until it returns false
/// or the client disconnects. Returns whether all runs were scanned.
fn scan(
    (store, client): (&dyn Store, &RequestHandle),
    owners: &RunOwners,
    mut before: Option<RunId>,
    batch: u32,
    mut look: impl FnMut(CurrentRun) -> bool,
) -> Result<bool, RunsError> {
    let mut scanned = 0;
    while scanned < MOST_SCANNED && !client.has_left() {
        let runs = store.before(before.as_ref(), batch)?;
        let is_last = runs.len() < batch as usize;
        scanned += batch;
        before = runs.last().map(|run| run.id.clone());
        for run in owners.current_runs(store, runs)? {
            if !look(run) {
                return Ok(false);
            }
        }
        if is_last {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) async fn show(
    State(gateway): State<Arc<Gateway>>,
    RawQuery(query): RawQuery,
    id: RunInPath,
) -> Handled {
    let missing = MissingRun::from_query(query.as_deref())?;
    let details = details(gateway, query.as_deref(), id).await;
    missing.reply(details, || serialized(StatusCode::OK, &()))
}

async fn details(gateway: Arc<Gateway>, query: Option<&str>, id: RunInPath) -> Handled {
    let id = run_id(id)?;
    let text = text(query, gateway.settings.record)?;
    let owners = RunOwners::new(&gateway);
    let address = gateway.settings.store_shown.clone();
    from_store(gateway, move |store, pricing, _| {
        let Some(mut run) = store.run(&id).map_err(RunsError::from)? else {
            return Err(RunsError::Missing { id });
        };
        let held = held_runs(store, slice::from_ref(&run.summary))?;
        let (summary, liveness) = owners.current(run.summary, &held);
        run.summary = summary;
        if let Some(shown) = ShownPipelineRun::of(&run, text, &*owners.definitions) {
            let mut shown = shown?.priced(pricing).resumed_in(address.as_deref());
            shown.listed = liveness.mark(shown.listed);
            return Ok(serialized(StatusCode::OK, &shown));
        }
        let run = RecordedRun::of(run)?;
        let mut shown = run.shown(text)?;
        shown.listed = liveness.mark(shown.listed).priced(pricing);
        Ok(serialized(StatusCode::OK, &shown))
    })
    .await
}

pub(crate) async fn step(
    State(gateway): State<Arc<Gateway>>,
    RawQuery(query): RawQuery,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Handled {
    let Path((id, number)) = path.map_err(|_| no_run())?;
    let id = run_id(Ok(Path(id)))?;
    let number: usize = number.parse().map_err(|_| no_step())?;
    let text = text(query.as_deref(), gateway.settings.record)?;
    let definitions = Arc::clone(&gateway.definitions);
    from_store(gateway, move |store, pricing, _| {
        let Some(run) = store.run(&id).map_err(RunsError::from)? else {
            return Err(RunsError::Missing { id });
        };
        match ShownStep::of(&run, number, text, &*definitions) {
            Some(shown) => Ok(serialized(StatusCode::OK, &shown?.priced(pricing))),
            None => Ok(no_step().into_reply()),
        }
    })
    .await
}

/// Finds out which process works on a run.
pub(super) struct RunOwners {
    /// Has the runs in progress in this process.
    recorder: Option<Arc<Recorder>>,
    unfinished_runs: Arc<UnfinishedRuns>,
    /// The runs in progress before the store was read: some may have ended since.
    running: HashSet<RunId>,
    /// Unfinished runs that began earlier are past the time limit.
    oldest: u64,
    /// Reads the pipelines of recorded runs.
    definitions: Arc<dyn Definitions>,
}

/// A recorded run in its current state.
struct CurrentRun {
    summary: RunSummary,
    liveness: Liveness,
    usage: UnfinishedUsage,
}

impl UnfinishedUsage {
    fn read(
        store: &dyn Store,
        run: &RunSummary,
        liveness: Liveness,
        definitions: &dyn Definitions,
    ) -> Result<Self, StoreError> {
        if let Some(so_far) = pipeline_progress(store, run, definitions)? {
            return Ok(Self::Pipeline(Box::new(so_far)));
        }
        if liveness != Liveness::Interrupted {
            return Ok(Self::None);
        }
        let recorded = store.run(&run.id)?.map(RecordedRun::of);
        Ok(match recorded {
            Some(Ok(recorded)) => Self::Interrupted(Tally::of(&recorded.steps)),
            // The usage of an unreadable run is unknown.
            _ => Self::None,
        })
    }
}

impl Liveness {
    /// Sets the fields of a listed run that depend on whether a process works on it.
    pub(super) fn mark(self, run: ListedRun<'_>) -> ListedRun<'_> {
        let interrupted = self == Self::Interrupted;
        ListedRun {
            interrupted,
            elsewhere: self == Self::Elsewhere,
            // A run in progress has not stopped anywhere.
            stopped_at: run
                .stopped_at
                .filter(|_| interrupted || run.outcome.is_some()),
            ..run
        }
    }
}

impl RunOwners {
    pub(super) fn new(gateway: &Gateway) -> Self {
        let running = gateway.recorder.iter().flat_map(|it| it.running());
        let longest = gateway.settings.limits.run_time.as_millis();
        Self {
            recorder: gateway.recorder.clone(),
            unfinished_runs: Arc::clone(&gateway.unfinished_runs),
            running: running.collect(),
            oldest: now().saturating_sub(u64::try_from(longest).unwrap_or(u64::MAX)),
            definitions: Arc::clone(&gateway.definitions),
        }
    }

    /// Runs in their current state.
    fn current_runs(
        &self,
        store: &dyn Store,
        runs: Vec<RunSummary>,
    ) -> Result<Vec<CurrentRun>, RunsError> {
        let held = held_runs(store, &runs)?;
        self.unfinished_runs.forget_ended(&runs);
        let current = runs.into_iter().map(|summary| {
            let (summary, liveness) = self.current(summary, &held);
            let usage = if summary.ended_at.is_some() {
                UnfinishedUsage::None
            } else {
                let read = || UnfinishedUsage::read(store, &summary, liveness, &*self.definitions);
                self.unfinished_runs.usage(&summary, liveness, read)?
            };
            Ok(CurrentRun {
                summary,
                liveness,
                usage,
            })
        });
        current.collect()
    }

    /// The current state of a run: while a process holds its lock, a recorded end is provisional.
    fn current(&self, run: RunSummary, held: &HashSet<RunId>) -> (RunSummary, Liveness) {
        if held.contains(&run.id) {
            return (reopened(run), Liveness::Known);
        }
        let liveness = self.liveness(&run, held);
        (run, liveness)
    }

    /// Whether a run without a recorded end is in progress in this process, or was a moment ago.
    fn runs_here(&self, id: &RunId) -> bool {
        let recorder = self.recorder.as_ref();
        self.running.contains(id) || recorder.is_some_and(|it| it.is_live(id))
    }

    /// Whether a process works on a run whose lock is free. Pipelines and runs with a key have a lock
    /// each. Other runs depend on the lock of their gateway or, if that was not recorded, on the time
    /// limit.
    pub(super) fn liveness(&self, run: &RunSummary, held: &HashSet<RunId>) -> Liveness {
        if run.ended_at.is_some() || self.runs_here(&run.id) {
            return Liveness::Known;
        }
        let conditions = Conditions::of_open(run).unwrap_or_default();
        let is_pipeline = PipelineRun::pipeline_name(&run.options).is_some();
        if conditions.is_held || is_pipeline {
            return Liveness::Interrupted;
        }
        let own = self.recorder.as_ref().and_then(|it| it.worker());
        match conditions.worker() {
            None if run.began_at < self.oldest => Liveness::Interrupted,
            None => Liveness::Elsewhere,
            // This process knows its own runs.
            Some(worker) if Some(&worker) == own => Liveness::Interrupted,
            Some(worker) if held.contains(&worker) => Liveness::Known,
            Some(_) => Liveness::Interrupted,
        }
    }
}

/// Of these runs and their workers, those that a process holds.
pub(super) fn held_runs(
    store: &dyn Store,
    runs: &[RunSummary],
) -> Result<HashSet<RunId>, StoreError> {
    let mut ids: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
    let workers = runs.iter().filter_map(Conditions::of_open);
    let workers: HashSet<RunId> = workers.filter_map(|it| it.worker()).collect();
    ids.extend(workers);
    store.worked_on(&ids)
}

impl CurrentRun {
    fn listed(&self) -> ListedRun<'_> {
        let listed = ListedRun::from(&self.summary);
        self.liveness.mark(match &self.usage {
            UnfinishedUsage::None => listed,
            UnfinishedUsage::Pipeline(so_far) => listed.so_far(RunProgress::clone(so_far)),
            UnfinishedUsage::Interrupted(tally) => ListedRun {
                tally: Some(*tally),
                ..listed
            },
        })
    }
}

/// The progress of an unfinished pipeline, computed from its records; `None` if they cannot be read.
pub(super) fn pipeline_progress(
    store: &dyn Store,
    run: &RunSummary,
    definitions: &dyn Definitions,
) -> Result<Option<RunProgress>, StoreError> {
    if run.ended_at.is_some() || PipelineRun::pipeline_name(&run.options).is_none() {
        return Ok(None);
    }
    let run = store.run(&run.id)?;
    let run = run.and_then(|run| PipelineRun::read(&run).ok());
    Ok(run.map(|run| run.so_far(definitions)))
}

/// A run without the end it had before it was resumed.
pub(super) fn reopened(summary: RunSummary) -> RunSummary {
    RunSummary {
        ended_at: None,
        outcome: None,
        ..summary
    }
}

/// The run that a path names, unless it is not text.
pub(super) type RunInPath = Result<Path<String>, PathRejection>;

pub(super) fn run_id(path: RunInPath) -> Result<RunId, ApiError> {
    let id = path.ok().and_then(|Path(id)| id.parse().ok());
    id.ok_or_else(no_run)
}

fn limit(query: Option<&str>) -> Result<u32, ApiError> {
    let Some(given) = parameter(query, "limit") else {
        return Ok(LIMIT);
    };
    match given.parse() {
        Ok(limit @ 1..=MOST) => Ok(limit),
        _ => Err(wrong(
            "limit",
            format!("`limit` must be a whole number from 1 to {MOST}"),
        )),
    }
}

fn wanted(query: Option<&str>) -> Result<RunFilter, ApiError> {
    let states = parameter(query, "outcome").unwrap_or_default();
    let states = decoded("outcome", states)?;
    let words = decoded("q", parameter(query, "q").unwrap_or_default())?;
    if words.chars().nth(LONGEST).is_some() {
        return Err(wrong(
            "q",
            format!("`q` is longer than {LONGEST} characters"),
        ));
    }
    let wanted = RunFilter::read(&states, &words);
    wanted.map_err(|error| wrong("outcome", error.to_string()))
}

/// The run before which all listed runs began.
fn before(query: Option<&str>) -> Result<Option<RunId>, ApiError> {
    let id = parameter(query, "before").map(str::parse).transpose();
    id.map_err(|_| wrong("before", "`before` is not a run id".to_owned()))
}

/// Decodes a parameter, in which `+` may be a space.
fn decoded(name: &str, text: &str) -> Result<String, ApiError> {
    let bytes = path::decoded(text.replace('+', " ").as_bytes());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| wrong(name, format!("`{name}` is not percent-encoded UTF-8")))
}

/// Whether answers are shown with their text. With `record = "metadata"` they never are, not even
/// those stored for a retry.
fn text(query: Option<&str>, record: Record) -> Result<Text, ApiError> {
    let is_wanted = match parameter(query, "text") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(wrong("text", "`text` must be `true` or `false`".to_owned())),
    };
    Ok(if is_wanted && record == Record::Full {
        Text::Shown
    } else {
        Text::LeftOut
    })
}

/// The reply for an unknown run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingRun {
    Error,
    /// An empty reply, since browsers log errors.
    Nothing,
}

impl MissingRun {
    pub(super) fn from_query(query: Option<&str>) -> Result<Self, ApiError> {
        match parameter(query, "missing") {
            None | Some("error") => Ok(Self::Error),
            Some("nothing") => Ok(Self::Nothing),
            Some(_) => Err(wrong(
                "missing",
                "`missing` must be `error` or `nothing`".to_owned(),
            )),
        }
    }

    /// Replaces the error for an unknown run by `nothing`, if that is the choice.
    pub(super) fn reply(self, handled: Handled, nothing: impl FnOnce() -> Reply) -> Handled {
        match handled {
            Err(error) if self == Self::Nothing && error.code == Some(NO_RUN) => Ok(nothing()),
            handled => handled,
        }
    }
}

fn parameter<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    let mut parameters = query.unwrap_or_default().split('&');
    parameters.find_map(|parameter| parameter.strip_prefix(name)?.strip_prefix('='))
}

fn wrong(parameter: &str, message: String) -> ApiError {
    ApiError::invalid(message)
        .with_param(parameter)
        .with_code("bad-request")
}

/// Reads the store on a blocking thread, after all earlier writes.
async fn from_store(
    gateway: Arc<Gateway>,
    read: impl FnOnce(&dyn Store, &Pricing, &RequestHandle) -> Result<Reply, RunsError> + Send + 'static,
) -> Handled {
    let Some(recorder) = &gateway.recorder else {
        return Err(not_recorded());
    };
    recorder.settle().await;
    let store = Arc::clone(recorder.store());
    let pricing = Arc::clone(&recorder.pricing);
    // Dropped with this future if the client disconnects.
    let request = Arc::new(());
    let client = RequestHandle(Arc::downgrade(&request));
    let read =
        spawn_blocking(move || read(&*store, &pricing, &client).map_err(|error| api_error(&error)));
    let read = read.await;
    drop(request);
    read.map_err(|_| ApiError::defect())?
}

pub(super) fn not_recorded() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "invalid_request_error",
        "this gateway does not record runs",
    )
    .with_code("not-recorded")
}

/// The error for an unreadable store. The store's own message may name files of this machine.
pub(super) fn store_error() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "server_error",
        "the recorded runs could not be read",
    )
    .with_code("store")
}

pub(super) fn api_error(error: &RunsError) -> ApiError {
    match error {
        RunsError::Missing { .. } => no_run(),
        RunsError::Store(_)
        | RunsError::OfPipeline { .. }
        | RunsError::NotPipeline { .. }
        | RunsError::Busy { .. }
        | RunsError::Damaged { .. }
        | RunsError::Inconsistent { .. } => store_error(),
    }
}

fn no_step() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "invalid_request_error",
        "pipeline step not found",
    )
    .with_code("no-step")
}

fn no_run() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "invalid_request_error",
        "run not found",
    )
    .with_code(NO_RUN)
}

#[cfg(test)]
mod tests {
    use overlock_store::NewRun;

    use super::*;

    #[test]
    fn a_scan_stops_when_the_client_disconnects() {
        let store = overlock_store::in_memory().expect("a store");
        for number in 0..5 {
            let run = NewRun {
                id: &RunId::new(1000, number),
                at: 1000,
                model: "a-model",
                request: "{}",
                options: "{}",
                conditions: "{}",
            };
            store.begin(&run).expect("it is recorded");
        }
        let owners = RunOwners {
            recorder: None,
            unfinished_runs: Arc::default(),
            running: HashSet::new(),
            oldest: 0,
            definitions: Arc::new(()),
        };
        let mut request = Some(Arc::new(()));
        let client = RequestHandle(request.as_ref().map(Arc::downgrade).unwrap_or_default());
        let mut scanned = 0;
        let is_all = scan((&*store, &client), &owners, None, 2, |_| {
            scanned += 1;
            request = None;
            true
        });
        // The first batch is scanned as a whole.
        assert_eq!((scanned, is_all.expect("a store")), (2, false));
    }
}
