//! Has this been asked before, under the same key?

use std::fmt::Write;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderMap};
use overlock_model::Continuation;
use overlock_store::{Begun, Run, StoreError};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Job;
use crate::api::RecordedStep;
use crate::error::ApiError;
use crate::record::{About, RecordError, Recording, now};
use crate::settings::Record;

/// What becomes of a request with a key.
pub(crate) enum Keyed {
    /// It is new.
    New(Recording),
    /// It was answered before, with this.
    Answered(Value),
    /// It was begun before by somebody who did not end it.
    Unfinished(Box<Continuation>, Recording),
}

/// The longest key that anybody needs.
const LONGEST: usize = 255;

/// The key of a request, if it has one.
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    if key.is_empty() || key.len() > LONGEST {
        return Err(ApiError::invalid(format!(
            "the header `idempotency-key` must have from 1 to {LONGEST} characters"
        )));
    }
    // A key is one client's own: two clients may have the same by chance.
    let client = headers
        .get(AUTHORIZATION)
        .map_or(&b""[..], |value| value.as_bytes());
    Ok(Some(digest(&[client, b"\n", key.as_bytes()])))
}

/// Begins a run under a key, or finds the one that was.
pub(crate) async fn begin(
    job: &Job,
    key: String,
    text: &str,
    about: About,
) -> Result<Keyed, ApiError> {
    let records = job.gateway.settings.record != Record::Off;
    let Some(recorder) = job.gateway.recorder.as_ref().filter(|_| records) else {
        return Err(ApiError::invalid(
            "the header `idempotency-key` needs recorded runs, but this gateway records none",
        )
        .with_code("not_recorded"));
    };
    let (id, at, digest) = (recorder.new_id(), now(), digest(&[text.as_bytes()]));
    // It is marked before anybody else can find it.
    recorder.claim_live(&id);
    let (begun_id, begun_about) = (id.clone(), about.clone());
    let begun = recorder
        .write(move |writes| writes.begin_once(&key, &digest, &begun_about.begun(&begun_id, at)))
        .await
        .map_err(|error| unkept(&error))?;
    let known = match begun {
        Begun::Now(claim) => {
            return Ok(Keyed::New(Recording::keyed(recorder, claim, at, about, 0)));
        }
        Begun::Before(known) => known,
        Begun::Otherwise => {
            recorder.release(&id);
            return Err(ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_request_error",
                "this `idempotency-key` was used for another request",
            )
            .with_code("idempotency_key_reused"));
        }
    };
    recorder.release(&id);
    if !recorder.claim_live(&known) {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "invalid_request_error",
            "the first request with this `idempotency-key` is still being answered",
        )
        .with_code("idempotency_key_in_use")
        .with_retry_after(Duration::from_secs(1)));
    }
    let taken = {
        let known = known.clone();
        recorder.write(move |writes| writes.take_up(&known)).await
    };
    let (run, claim) = match taken {
        Ok(Some(taken)) => taken,
        Ok(None) => return Err(unkept(&RecordError::Closed)),
        Err(error) => {
            recorder.release(&known);
            return Err(unkept(&error));
        }
    };
    if let Some(answer) = &run.answer {
        recorder.release(&known);
        let answer = serde_json::from_str(answer).map_err(|_| damaged())?;
        return Ok(Keyed::Answered(answer));
    }
    let steps = u32::try_from(run.steps.len()).unwrap_or(u32::MAX);
    let recording = Recording::keyed(recorder, claim, run.summary.began_at, about, steps);
    if run.steps.is_empty() {
        return Ok(Keyed::New(recording));
    }
    Ok(Keyed::Unfinished(Box::new(resumed(&run)?), recording))
}

/// A run as far as it has come.
fn resumed(run: &Run) -> Result<Continuation, ApiError> {
    let options = serde_json::from_str(&run.options).map_err(|_| damaged())?;
    let steps: Result<Vec<RecordedStep>, _> = run
        .steps
        .iter()
        .map(|step| serde_json::from_str(step))
        .collect();
    let steps = steps.map_err(|_| damaged())?;
    let run = Continuation::resume(options, steps.iter().map(|step| &step.step));
    let mut run = run.map_err(|_| damaged())?;
    run.try_again();
    Ok(run)
}

/// What is said if what happens cannot be kept, and had to be.
pub(crate) fn unkept(error: &RecordError) -> ApiError {
    let message = match error {
        RecordError::Store(StoreError::Superseded { .. }) => {
            "somebody else is answering this request"
        }
        // What the store says may name files of this machine.
        RecordError::Store(_) | RecordError::Closed => "the run could not be recorded",
    };
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message).with_code("store")
}

fn damaged() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "server_error",
        "what was recorded of the first request with this `idempotency-key` cannot be read",
    )
    .with_code("store")
}

fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize()
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}"); // a string takes everything
            text
        })
}
