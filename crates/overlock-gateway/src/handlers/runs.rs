//! `GET /api/runs` and `GET /api/runs/{id}`: what was recorded.

use std::sync::Arc;

use hyper::StatusCode;
use overlock_store::{RunId, RunSummary, Store};
use tokio::task::spawn_blocking;

use super::api::told;
use crate::api::{ListedRun, RecordedRun, RunsError, ShownPipelineRun, Text};
use crate::body::Reply;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::routes::{Call, Handled};
use crate::settings::Record;

/// How many runs are listed where nobody says how many.
const LIMIT: u32 = 20;

/// How many are listed at most.
const MOST: u32 = 1000;

pub(crate) async fn list(call: Call) -> Handled {
    let limit = limit(call.request.uri().query())?;
    from_store(call.gateway, move |store| {
        let runs: Vec<RunSummary> = store.latest(limit).map_err(RunsError::from)?;
        let listed: Vec<ListedRun> = runs.iter().map(ListedRun::from).collect();
        Ok(told(StatusCode::OK, &listed))
    })
    .await
}

pub(crate) async fn show(call: Call) -> Handled {
    let id = run_id(call.request.uri().path(), "")?;
    let text = text(call.request.uri().query(), call.gateway.settings.record)?;
    from_store(call.gateway, move |store| {
        let run = store.run(&id).map_err(RunsError::from)?;
        if let Some(shown) = run.as_ref().and_then(|run| ShownPipelineRun::of(run, text)) {
            return Ok(told(StatusCode::OK, &shown?));
        }
        let run = RecordedRun::read(store, &id)?;
        Ok(told(StatusCode::OK, &run.shown(text)?))
    })
    .await
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
    read: impl FnOnce(&dyn Store) -> Result<Reply, RunsError> + Send + 'static,
) -> Handled {
    let Some(recorder) = &gateway.recorder else {
        return Err(not_recorded());
    };
    recorder.settle().await;
    let store = Arc::clone(recorder.store());
    let read = spawn_blocking(move || read(&*store).map_err(|error| untold(&error)));
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
        RunsError::OfPipeline { .. } => ApiError::new(
            StatusCode::CONFLICT,
            "invalid_request_error",
            "this is a run of a pipeline: its trace is with the run",
        )
        .with_code("pipeline-run"),
        RunsError::Store(_) | RunsError::Damaged { .. } | RunsError::Inconsistent { .. } => {
            unreadable()
        }
    }
}

fn no_run() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "invalid_request_error",
        "there is no such run",
    )
    .with_code("no-run")
}
