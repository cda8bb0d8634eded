//! `GET /api/runs`, `GET /api/runs/{id}` and `GET /api/runs/{id}/steps/{number}`: what was recorded.

use std::collections::HashSet;
use std::sync::Arc;

use hyper::StatusCode;
use overlock_pipeline::Taken;
use overlock_store::{RunId, RunSummary, Store};
use tokio::task::spawn_blocking;

use super::api::told;
use crate::api::{ListedRun, Pricing, RecordedRun, RunsError, ShownPipelineRun, ShownStep, Text};
use crate::body::Reply;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::record::now;
use crate::routes::{Call, Handled};
use crate::settings::Record;

/// How many runs are listed where nobody says how many.
const LIMIT: u32 = 20;

/// How many are listed at most.
const MOST: u32 = 1000;

pub(crate) async fn list(call: Call) -> Handled {
    let limit = limit(call.request.uri().query())?;
    let here = Here::of(&call.gateway);
    from_store(call.gateway, move |store, pricing| {
        let runs = store.latest(limit).map_err(RunsError::from)?;
        let seen = here.seen(store, runs)?;
        let listed: Vec<ListedRun> = seen.iter().map(|run| run.listed(pricing)).collect();
        Ok(told(StatusCode::OK, &listed))
    })
    .await
}

pub(crate) async fn show(call: Call) -> Handled {
    let id = run_id(call.request.uri().path(), "")?;
    let text = text(call.request.uri().query(), call.gateway.settings.record)?;
    let here = Here::of(&call.gateway);
    from_store(call.gateway, move |store, pricing| {
        let Some(mut run) = store.run(&id).map_err(RunsError::from)? else {
            return Err(RunsError::Missing { id });
        };
        let seen = here.seen(store, vec![run.summary])?;
        let Some(Seen { summary, is_left }) = seen.into_iter().next() else {
            return Err(RunsError::Missing { id });
        };
        run.summary = summary;
        if let Some(shown) = ShownPipelineRun::of(&run, text) {
            let mut shown = shown?.priced(pricing);
            shown.listed.left = is_left;
            return Ok(told(StatusCode::OK, &shown));
        }
        let run = RecordedRun::of(run)?;
        let mut shown = run.shown(text)?;
        shown.listed.left = is_left;
        shown.listed = shown.listed.priced(pricing);
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
    from_store(call.gateway, move |store, _| {
        let Some(run) = store.run(&id).map_err(RunsError::from)? else {
            return Err(RunsError::Missing { id });
        };
        match ShownStep::of(&run, number, text) {
            Some(shown) => Ok(told(StatusCode::OK, &shown?)),
            None => Ok(no_step().into_reply()),
        }
    })
    .await
}

/// What this process knows of who works on a run.
struct Here {
    running: HashSet<RunId>,
    /// Whatever began before this time has been given up by whoever keeps to the limits.
    oldest: u64,
}

/// A run, and whether anybody works on it.
struct Seen {
    summary: RunSummary,
    is_left: bool,
}

impl Here {
    fn of(gateway: &Gateway) -> Self {
        let running = gateway.recorder.iter().flat_map(|it| it.running());
        let longest = gateway.settings.limits.run_time.as_millis();
        Self {
            running: running.collect(),
            oldest: now().saturating_sub(u64::try_from(longest).unwrap_or(u64::MAX)),
        }
    }

    /// Runs as they are now: one that ended and is worked on again has not ended. Of a pipeline it
    /// is always known whether somebody works on it, and of a request with a key; of any other
    /// request, which may be at another gateway, when it has been too long.
    fn seen(&self, store: &dyn Store, runs: Vec<RunSummary>) -> Result<Vec<Seen>, RunsError> {
        let ids: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
        let worked_on = store.worked_on(&ids)?;
        let seen = runs.into_iter().map(|summary| {
            if worked_on.contains(&summary.id) {
                return Seen {
                    summary: going_on(summary),
                    is_left: false,
                };
            }
            let is_old = summary.began_at < self.oldest;
            let may_be_left = is_old || Taken::pipeline_name(&summary.options).is_some();
            let has_end = summary.ended_at.is_some() || self.running.contains(&summary.id);
            Seen {
                is_left: may_be_left && !has_end,
                summary,
            }
        });
        Ok(seen.collect())
    }
}

impl Seen {
    fn listed(&self, pricing: &Pricing) -> ListedRun<'_> {
        let listed = ListedRun {
            left: self.is_left,
            ..ListedRun::from(&self.summary)
        };
        listed.priced(pricing)
    }
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
    read: impl FnOnce(&dyn Store, &Pricing) -> Result<Reply, RunsError> + Send + 'static,
) -> Handled {
    let Some(recorder) = &gateway.recorder else {
        return Err(not_recorded());
    };
    recorder.settle().await;
    let store = Arc::clone(recorder.store());
    let pricing = Arc::clone(&recorder.pricing);
    let read = spawn_blocking(move || read(&*store, &pricing).map_err(|error| untold(&error)));
    read.await.map_err(|_| ApiError::defect())?
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
    .with_code("no-run")
}
