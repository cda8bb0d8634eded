//! Requests with an idempotency key: a request with the same key gets the same answer.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use overlock_runs::{Record, RecordedStep};
use overlock_store::{Begun, Run, RunId, Writes};

use super::finished::IdempotentAnswer;
use super::run::{ChatRun, Source, damaged};
use crate::body::text_of;
use crate::clock::now;
use crate::error::ApiError;
use crate::keys::{IDEMPOTENCY_KEY, client_digest, digest};
use crate::record::{EarlierSteps, RecordError, Recording};

/// The longest key in bytes.
const LONGEST: usize = 255;

/// A digest of the key of a request, if it has one, and of its client: two clients may use the same
/// key by chance.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get(&IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    if key.is_empty() || key.len() > LONGEST {
        return Err(ApiError::invalid(format!(
            "the header `idempotency-key` must have from 1 to {LONGEST} characters"
        )));
    }
    Ok(Some(client_digest(headers, key.as_bytes())))
}

impl ChatRun {
    /// Begins the run of an idempotency key, or finds the run of an earlier request. Returns its
    /// recorded answer, if it has one.
    pub(super) async fn begin_idempotent(
        &mut self,
        key: String,
    ) -> Result<Option<Source>, ApiError> {
        let context = &self.context;
        let text = text_of(&context.params.text)?;
        let records = context.gateway.settings.record != Record::Off;
        let Some(recorder) = context.gateway.recorder.as_ref().filter(|_| records) else {
            return Err(ApiError::invalid(
                "the header `idempotency-key` needs recorded runs, but this gateway records none",
            )
            .with_code("not_recorded"));
        };
        let about = Arc::new(context.about(Some(text), true, None));
        let (id, at, digest) = (RunId::now(), now(), digest(text.as_bytes()));
        let work_on = async |id: &RunId| recorder.lock(id).await?.ok_or_else(in_use);
        // The run is locked before another process can find it.
        let live = work_on(&id).await?;
        let begin = {
            let about = Arc::clone(&about);
            move |writes: &mut dyn Writes| writes.begin_once(&key, &digest, &about.begun(&id, at))
        };
        let known = match recorder.write(begin).await? {
            Begun::Started(claim) => {
                self.recording = Some(Recording::keyed(live, claim, at, about, None));
                return Ok(None);
            }
            Begun::Exists(known) => known,
            Begun::Concurrent => return Err(in_use()),
            Begun::Mismatch => {
                return Err(ApiError::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "invalid_request_error",
                    "this `idempotency-key` was used for another request",
                )
                .with_code("idempotency_key_reused"));
            }
        };
        let live = work_on(&known).await?;
        let id = known.clone();
        let taken = recorder.write(move |writes| writes.take_up(&id)).await?;
        let (run, claim) = taken.ok_or(RecordError::Closed)?;
        let stored = run.answer.as_deref().map(serde_json::from_str);
        let (source, earlier) = match stored.transpose().map_err(|_| damaged())? {
            Some(IdempotentAnswer::Answered(finished)) => {
                let finished = Box::new(finished.into_owned());
                return Ok(Some(Source::Finished(known, finished)));
            }
            Some(IdempotentAnswer::First(first)) => {
                let source = Source::Interrupted(first.into_owned());
                (Some(source), Some(earlier(&run)?))
            }
            None if run.steps.is_empty() => (None, None),
            // No step is recorded before the first answer.
            None => return Err(damaged()),
        };
        let at = run.summary.began_at;
        self.recording = Some(Recording::keyed(live, claim, at, about, earlier));
        Ok(source)
    }
}

/// The error while the first request with a key is being answered.
fn in_use() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "invalid_request_error",
        "the first request with this `idempotency-key` is still being answered",
    )
    .with_code("idempotency_key_in_use")
    .with_retry_after(Duration::from_secs(1))
}

/// What an earlier request has recorded.
fn earlier(run: &Run) -> Result<EarlierSteps, ApiError> {
    let steps = run.steps.iter().map(|step| serde_json::from_str(step));
    let steps: Result<Vec<RecordedStep>, _> = steps.collect();
    let mut steps = steps.map_err(|_| damaged())?;
    let first = steps.first().and_then(|step| step.part);
    for step in &mut steps {
        // Steps after the first may leave out the part if there is only one.
        step.part = step.part.or(first);
    }
    let options = serde_json::from_str(&run.summary.options).map_err(|_| damaged())?;
    Ok(EarlierSteps { options, steps })
}
