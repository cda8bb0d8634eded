//! `GET /api/runs`, `GET /api/runs/totals`, `GET /api/runs/{id}` and
//! `GET /api/runs/{id}/steps/{number}`: what was recorded.
//!
//! What a run is found by is in the words of how it ended, which no index holds: one would cost a
//! write for every run. So runs are looked through from the last one on, a part at a time, so that
//! nobody who has something to write waits for long, and so many of them at most.

use std::collections::HashSet;
use std::slice;
use std::sync::{Arc, Weak};

use hyper::StatusCode;
use overlock_runs::{PipelineRun, SoFar};
use overlock_store::{RunId, RunSummary, Store, StoreError};
use tokio::task::spawn_blocking;

use super::api::told;
use crate::clock::now;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::handlers::{Call, Handled};
use crate::path;
use crate::record::Recorder;
use crate::reply::Reply;
use crate::unfinished_runs::{Taking, TakingOfRuns, Whereabouts};
use overlock_runs::Record;
use overlock_runs::{
    Adding, Conditions, Definitions, ListedRun, Pricing, RecordedRun, RunsError, ShownPipelineRun,
    ShownStep, Tally, Text, Wanted,
};

/// How many runs are listed where nobody says how many.
const LIMIT: u32 = 20;

/// The code of a run that is not there.
const NO_RUN: &str = "no-run";

/// How many are listed at most.
const MOST: u32 = 1000;

/// So many runs are looked at together.
const AT_ONCE: u32 = 1000;

/// So many are looked through at most.
const MOST_LOOKED_AT: u32 = 200_000;

/// What is looked for may have so many characters.
const LONGEST: usize = 400;

pub(crate) async fn list(call: Call) -> Handled {
    let query = call.request.uri().query();
    let (limit, wanted, before) = (limit(query)?, wanted(query)?, before(query)?);
    let here = Here::of(&call.gateway);
    from_store(call.gateway, move |store, pricing, waiting| {
        let mut found: Vec<Seen> = Vec::new();
        let most = limit as usize;
        let at_once = if wanted.is_any() { limit } else { AT_ONCE };
        look_through((store, waiting), &here, before, at_once, |run| {
            if found.len() < most && wanted.has(&run.listed()) {
                found.push(run);
            }
            found.len() < most
        })?;
        let listed = found.iter().map(|run| run.listed().priced(pricing));
        Ok(told(StatusCode::OK, &listed.collect::<Vec<_>>()))
    })
    .await
}

pub(crate) async fn totals(call: Call) -> Handled {
    let wanted = wanted(call.request.uri().query())?;
    let here = Here::of(&call.gateway);
    from_store(call.gateway, move |store, pricing, waiting| {
        let mut adding = Adding::new(pricing);
        let is_all = look_through((store, waiting), &here, None, AT_ONCE, |run| {
            adding.look_at(&run.listed(), &wanted);
            true
        })?;
        Ok(told(StatusCode::OK, &adding.summed(is_all)))
    })
    .await
}

/// Somebody who waits for an answer, until they leave.
struct Waiting(Weak<()>);

impl Waiting {
    fn has_left(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// Looks at runs from the last one on, or from the last before one, until that is enough or nobody
/// waits for it; whether it has seen all that there are.
fn look_through(
    (store, waiting): (&dyn Store, &Waiting),
    here: &Here,
    mut before: Option<RunId>,
    at_once: u32,
    mut look: impl FnMut(Seen) -> bool,
) -> Result<bool, RunsError> {
    let mut looked_at = 0;
    while looked_at < MOST_LOOKED_AT && !waiting.has_left() {
        let runs = store.before(before.as_ref(), at_once)?;
        let is_last = runs.len() < at_once as usize;
        looked_at += at_once;
        before = runs.last().map(|run| run.id.clone());
        for run in here.seen(store, runs)? {
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

pub(crate) async fn show(call: Call) -> Handled {
    let missing = Missing::of(call.request.uri().query())?;
    missing.told(shown(call).await, || told(StatusCode::OK, &()))
}

async fn shown(call: Call) -> Handled {
    let id = run_id(call.request.uri().path(), "")?;
    let text = text(call.request.uri().query(), call.gateway.settings.record)?;
    let here = Here::of(&call.gateway);
    let named = call.gateway.settings.store_shown.clone();
    from_store(call.gateway, move |store, pricing, _| {
        let Some(mut run) = store.run(&id).map_err(RunsError::from)? else {
            return Err(RunsError::Missing { id });
        };
        let worked_on = worked_on(store, slice::from_ref(&run.summary))?;
        let (summary, at) = here.now(run.summary, &worked_on);
        run.summary = summary;
        if let Some(shown) = ShownPipelineRun::of(&run, text, &*here.definitions) {
            let mut shown = shown?.priced(pricing).resumed_in(named.as_deref());
            shown.listed = at.told(shown.listed);
            return Ok(told(StatusCode::OK, &shown));
        }
        let run = RecordedRun::of(run)?;
        let mut shown = run.shown(text)?;
        shown.listed = at.told(shown.listed).priced(pricing);
        Ok(told(StatusCode::OK, &shown))
    })
    .await
}

pub(crate) async fn step(call: Call) -> Handled {
    let path = call.request.uri().path();
    let (run, number) = path.rsplit_once('/').ok_or_else(no_step)?;
    let id = run_id(run, "/steps")?;
    let number: usize = number.parse().map_err(|_| no_step())?;
    let text = text(call.request.uri().query(), call.gateway.settings.record)?;
    let definitions = Arc::clone(&call.gateway.definitions);
    from_store(call.gateway, move |store, pricing, _| {
        let Some(run) = store.run(&id).map_err(RunsError::from)? else {
            return Err(RunsError::Missing { id });
        };
        match ShownStep::of(&run, number, text, &*definitions) {
            Some(shown) => Ok(told(StatusCode::OK, &shown?.priced(pricing))),
            None => Ok(no_step().into_reply()),
        }
    })
    .await
}

/// What this process knows of who works on a run.
pub(super) struct Here {
    /// Knows what runs now.
    recorder: Option<Arc<Recorder>>,
    taking: Arc<TakingOfRuns>,
    /// What ran before anything was read: it may have ended since.
    running: HashSet<RunId>,
    /// Whatever began before this time has been given up by whoever keeps to the limits.
    oldest: u64,
    /// Reads the pipelines of recorded runs.
    definitions: Arc<dyn Definitions>,
}

/// A run, and who works on it.
struct Seen {
    summary: RunSummary,
    at: Whereabouts,
    taking: Taking,
}

impl Taking {
    fn read(
        store: &dyn Store,
        run: &RunSummary,
        at: Whereabouts,
        definitions: &dyn Definitions,
    ) -> Result<Self, StoreError> {
        if let Some(so_far) = so_far(store, run, definitions)? {
            return Ok(Self::Pipeline(Box::new(so_far)));
        }
        if at != Whereabouts::Left {
            return Ok(Self::Nothing);
        }
        let recorded = store.run(&run.id)?.map(RecordedRun::of);
        Ok(match recorded {
            Some(Ok(recorded)) => Self::Left(Tally::of(&recorded.steps)),
            // What cannot be read took nothing that anybody knows of.
            _ => Self::Nothing,
        })
    }
}

impl Whereabouts {
    /// A run with who works on it.
    pub(super) fn told(self, run: ListedRun<'_>) -> ListedRun<'_> {
        let left = self == Self::Left;
        ListedRun {
            left,
            elsewhere: self == Self::Elsewhere,
            // Who is still at work has not stopped.
            stopped_at: run.stopped_at.filter(|_| left || run.outcome.is_some()),
            ..run
        }
    }
}

impl Here {
    pub(super) fn of(gateway: &Gateway) -> Self {
        let running = gateway.recorder.iter().flat_map(|it| it.running());
        let longest = gateway.settings.limits.run_time.as_millis();
        Self {
            recorder: gateway.recorder.clone(),
            taking: Arc::clone(&gateway.taking),
            running: running.collect(),
            oldest: now().saturating_sub(u64::try_from(longest).unwrap_or(u64::MAX)),
            definitions: Arc::clone(&gateway.definitions),
        }
    }

    /// Runs as they are now: one that ended and is worked on again has not ended.
    fn seen(&self, store: &dyn Store, runs: Vec<RunSummary>) -> Result<Vec<Seen>, RunsError> {
        let worked_on = worked_on(store, &runs)?;
        self.taking.forget_ended(&runs);
        let seen = runs.into_iter().map(|summary| {
            let (summary, at) = self.now(summary, &worked_on);
            let taking = if summary.ended_at.is_some() {
                Taking::Nothing
            } else {
                let read = || Taking::read(store, &summary, at, &*self.definitions);
                self.taking.known(&summary, at, read)?
            };
            Ok(Seen {
                summary,
                at,
                taking,
            })
        });
        seen.collect()
    }

    /// A run as it is now, where these are worked on, and who works on it.
    fn now(&self, run: RunSummary, worked_on: &HashSet<RunId>) -> (RunSummary, Whereabouts) {
        if worked_on.contains(&run.id) {
            return (going_on(run), Whereabouts::Known);
        }
        let at = self.whereabouts(&run, worked_on);
        (run, at)
    }

    /// Whether a run that has been read without an end is, or was just now, at this gateway.
    fn runs(&self, id: &RunId) -> bool {
        let recorder = self.recorder.as_ref();
        self.running.contains(id) || recorder.is_some_and(|it| it.is_live(id))
    }

    /// Who works on a run that nobody holds, where these are worked on. Of a pipeline it is always
    /// known whether somebody does, and of a request with a key; of any other request by whether
    /// its gateway is there, or, where that was not recorded, when it has been too long.
    pub(super) fn whereabouts(&self, run: &RunSummary, worked_on: &HashSet<RunId>) -> Whereabouts {
        if run.ended_at.is_some() || self.runs(&run.id) {
            return Whereabouts::Known;
        }
        let conditions = Conditions::of_open(run).unwrap_or_default();
        let is_of_pipeline = PipelineRun::pipeline_name(&run.options).is_some();
        if conditions.is_held || is_of_pipeline {
            return Whereabouts::Left;
        }
        let own = self.recorder.as_ref().and_then(|it| it.worker());
        match conditions.worker() {
            None if run.began_at < self.oldest => Whereabouts::Left,
            None => Whereabouts::Elsewhere,
            // This one knows what it works on.
            Some(worker) if Some(&worker) == own => Whereabouts::Left,
            Some(worker) if worked_on.contains(&worker) => Whereabouts::Known,
            Some(_) => Whereabouts::Left,
        }
    }
}

/// Which of these runs, and of those who work on them, somebody holds.
pub(super) fn worked_on(
    store: &dyn Store,
    runs: &[RunSummary],
) -> Result<HashSet<RunId>, StoreError> {
    let mut ids: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
    let workers = runs.iter().filter_map(Conditions::of_open);
    let workers: HashSet<RunId> = workers.filter_map(|it| it.worker()).collect();
    ids.extend(workers);
    store.worked_on(&ids)
}

impl Seen {
    fn listed(&self) -> ListedRun<'_> {
        let listed = ListedRun::from(&self.summary);
        self.at.told(match &self.taking {
            Taking::Nothing => listed,
            Taking::Pipeline(so_far) => listed.so_far(SoFar::clone(so_far)),
            Taking::Left(tally) => ListedRun {
                tally: Some(*tally),
                ..listed
            },
        })
    }
}

/// How far a run of a pipeline has come that has not ended. What it took is in its records only,
/// and so is nothing of one that cannot be read.
pub(super) fn so_far(
    store: &dyn Store,
    run: &RunSummary,
    definitions: &dyn Definitions,
) -> Result<Option<SoFar>, StoreError> {
    if run.ended_at.is_some() || PipelineRun::pipeline_name(&run.options).is_none() {
        return Ok(None);
    }
    let run = store.run(&run.id)?;
    let taken = run.and_then(|run| PipelineRun::read(&run).ok());
    Ok(taken.map(|taken| taken.so_far(definitions)))
}

/// A run that somebody works on, whatever end it had before.
pub(super) fn going_on(summary: RunSummary) -> RunSummary {
    RunSummary {
        ended_at: None,
        outcome: None,
        ..summary
    }
}

/// The run that a path names before its end.
pub(super) fn run_id(path: &str, end: &str) -> Result<RunId, ApiError> {
    let path = path.strip_suffix(end).unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    name.parse().map_err(|_| no_run())
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

fn wanted(query: Option<&str>) -> Result<Wanted, ApiError> {
    let states = parameter(query, "outcome").unwrap_or_default();
    let states = decoded("outcome", states)?;
    let words = decoded("q", parameter(query, "q").unwrap_or_default())?;
    if words.chars().nth(LONGEST).is_some() {
        return Err(wrong(
            "q",
            format!("`q` is longer than {LONGEST} characters"),
        ));
    }
    let wanted = Wanted::read(&states, &words);
    wanted.map_err(|error| wrong("outcome", error.to_string()))
}

/// The run that all wanted ones began before.
fn before(query: Option<&str>) -> Result<Option<RunId>, ApiError> {
    let id = parameter(query, "before").map(str::parse).transpose();
    id.map_err(|_| wrong("before", "`before` is not the name of a run".to_owned()))
}

/// A parameter as it was meant, where a form may have written it.
fn decoded(name: &str, text: &str) -> Result<String, ApiError> {
    let bytes = path::decoded(text.replace('+', " ").as_bytes());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| wrong(name, format!("`{name}` is not written as an address is")))
}

/// Whether answers are shown with their text. Where only metadata are recorded they never are,
/// not even those that are kept for a retry.
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

/// What is said of a run that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Error,
    /// Nothing, which is no error to a browser that only wants to know.
    Nothing,
}

impl Missing {
    pub(super) fn of(query: Option<&str>) -> Result<Self, ApiError> {
        match parameter(query, "missing") {
            None | Some("error") => Ok(Self::Error),
            Some("nothing") => Ok(Self::Nothing),
            Some(_) => Err(wrong(
                "missing",
                "`missing` must be `error` or `nothing`".to_owned(),
            )),
        }
    }

    /// What was handled, or `nothing` where that is what is said of a run that is not there.
    pub(super) fn told(self, handled: Handled, nothing: impl FnOnce() -> Reply) -> Handled {
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

/// Reads the store, with all that was answered before, where nobody else has to wait for it.
async fn from_store(
    gateway: Arc<Gateway>,
    read: impl FnOnce(&dyn Store, &Pricing, &Waiting) -> Result<Reply, RunsError> + Send + 'static,
) -> Handled {
    let Some(recorder) = &gateway.recorder else {
        return Err(not_recorded());
    };
    recorder.settle().await;
    let store = Arc::clone(recorder.store());
    let pricing = Arc::clone(&recorder.pricing);
    // Dropped with the request, whose client may leave before it is answered.
    let asked = Arc::new(());
    let waiting = Waiting(Arc::downgrade(&asked));
    let read =
        spawn_blocking(move || read(&*store, &pricing, &waiting).map_err(|error| untold(&error)));
    let read = read.await;
    drop(asked);
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

/// What is said if the store cannot be read. What it says itself may name files of this machine.
pub(super) fn unreadable() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "server_error",
        "the recorded runs could not be read",
    )
    .with_code("store")
}

pub(super) fn untold(error: &RunsError) -> ApiError {
    match error {
        RunsError::Missing { .. } => no_run(),
        RunsError::Store(_)
        | RunsError::OfPipeline { .. }
        | RunsError::NotPipeline { .. }
        | RunsError::Busy { .. }
        | RunsError::Damaged { .. }
        | RunsError::Inconsistent { .. } => unreadable(),
    }
}

fn no_step() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "invalid_request_error",
        "the run has no such step of a pipeline",
    )
    .with_code("no-step")
}

fn no_run() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "invalid_request_error",
        "there is no such run",
    )
    .with_code(NO_RUN)
}

#[cfg(test)]
mod tests {
    use overlock_store::NewRun;

    use super::*;

    #[test]
    fn nothing_is_looked_through_for_a_client_who_has_left() {
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
        let here = Here {
            recorder: None,
            taking: Arc::default(),
            running: HashSet::new(),
            oldest: 0,
            definitions: Arc::new(()),
        };
        let mut asked = Some(Arc::new(()));
        let waiting = Waiting(asked.as_ref().map(Arc::downgrade).unwrap_or_default());
        let mut looked_at = 0;
        let is_all = look_through((&*store, &waiting), &here, None, 2, |_| {
            looked_at += 1;
            asked = None;
            true
        });
        // What was read together is looked at.
        assert_eq!((looked_at, is_all.expect("a store")), (2, false));
    }
}
