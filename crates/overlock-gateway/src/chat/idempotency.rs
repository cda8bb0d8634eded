//! Has this been asked before, under the same key?

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use overlock_llm::Outcome;
use overlock_store::{Begun, Run, RunId, Writes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::context::RequestContext;
use super::recorded::Held;
use super::resume::{damaged, unkept};
use crate::body::text_of;
use crate::clock::now;
use crate::error::ApiError;
use crate::keys::{API_KEY, IDEMPOTENCY_KEY};
use crate::record::{EarlierSteps, RecordError, Recording};
use overlock_json::Comparison;
use overlock_runs::Record;
use overlock_runs::RecordedStep;
use overlock_runs::to_json;

/// What becomes of a request with a key.
pub(super) enum Keyed {
    /// It is new.
    New(Recording),
    /// It was answered before in this run, with this.
    Answered(RunId, Answered),
    /// It was begun before by somebody who did not end it. This is what the first call answered.
    Unfinished(Value, Recording),
}

/// What is kept of an answer for whoever asks the same again, besides its steps.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept<'a> {
    /// What the first call answered. What follows from it is in the steps.
    First(Cow<'a, Value>),
    /// What the client was answered.
    Answered(Cow<'a, Answered>),
}

/// What a client was answered.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) completion: Value,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    pub(super) continuations: u32,
    /// What comparing it with the schema of the request found.
    pub(super) comparison: Comparison,
    /// What the client was told instead of the completion.
    pub(super) refusal: Option<String>,
}

impl Answered {
    /// As it is kept.
    pub(super) fn kept(&self) -> String {
        to_json(&Kept::Answered(Cow::Borrowed(self)))
    }
}

/// What a first call answered, as it is kept.
pub(super) fn kept_first(completion: &Value) -> String {
    to_json(&Kept::First(Cow::Borrowed(completion)))
}

/// The longest key that anybody needs.
const LONGEST: usize = 255;

/// Where clients show who they are, to the gateway or to the upstream.
const WHO_ASKS: [&str; 5] = [
    "authorization",
    API_KEY,
    "api-key",
    "openai-organization",
    "openai-project",
];

/// The key of a request, if it has one, with whose it is. What they show cannot be read from it.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get(&IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    if key.is_empty() || key.len() > LONGEST {
        return Err(ApiError::invalid(format!(
            "the header `idempotency-key` must have from 1 to {LONGEST} characters"
        )));
    }
    // A key is one client's own: two clients may have the same by chance. No header holds a line
    // break, so that what one of them shows cannot be taken for what another does.
    let mut parts = Vec::new();
    for name in WHO_ASKS {
        for shown in headers.get_all(name) {
            parts.extend([name.as_bytes(), b"\n", shown.as_bytes(), b"\n"]);
        }
    }
    parts.extend([b"\n", key.as_bytes()]);
    Ok(Some(digest(&parts)))
}

/// Begins a run under a key, or finds the one that was.
pub(super) async fn begin(context: &RequestContext, key: String) -> Result<Keyed, ApiError> {
    let text = text_of(&context.wish.text)?;
    let records = context.gateway.settings.record != Record::Off;
    let Some(recorder) = context.gateway.recorder.as_ref().filter(|_| records) else {
        return Err(ApiError::invalid(
            "the header `idempotency-key` needs recorded runs, but this gateway records none",
        )
        .with_code("not_recorded"));
    };
    let about = Arc::new(context.about(text, Held::Itself));
    let (id, at, digest) = (recorder.new_id(), now(), digest(&[text.as_bytes()]));
    // It is marked before anybody else can find it.
    let work_on = async |id: &RunId| {
        let live = recorder.lock(id).await;
        live.map_err(|error| unkept(&error))?.ok_or_else(in_use)
    };
    let live = work_on(&id).await?;
    let begun = {
        let about = Arc::clone(&about);
        let begin =
            move |writes: &mut dyn Writes| writes.begin_once(&key, &digest, &about.begun(&id, at));
        recorder.write(begin).await
    };
    let known = match begun.map_err(|error| unkept(&error))? {
        Begun::Started(claim) => {
            return Ok(Keyed::New(Recording::keyed(live, claim, at, about, None)));
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
    let taken = {
        let known = known.clone();
        recorder.write(move |writes| writes.take_up(&known)).await
    };
    let Some((run, claim)) = taken.map_err(|error| unkept(&error))? else {
        return Err(unkept(&RecordError::Closed));
    };
    let kept = run.answer.as_deref().map(serde_json::from_str::<Kept<'_>>);
    let at = run.summary.began_at;
    match kept.transpose().map_err(|_| damaged())? {
        Some(Kept::Answered(answered)) => Ok(Keyed::Answered(known, answered.into_owned())),
        Some(Kept::First(first)) => {
            let earlier = Some(earlier(&run)?);
            let recording = Recording::keyed(live, claim, at, about, earlier);
            Ok(Keyed::Unfinished(first.into_owned(), recording))
        }
        None if run.steps.is_empty() => {
            Ok(Keyed::New(Recording::keyed(live, claim, at, about, None)))
        }
        // Steps follow from a first answer.
        None => Err(damaged()),
    }
}

/// What is said to whoever asks the same before it is answered.
fn in_use() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "invalid_request_error",
        "the first request with this `idempotency-key` is still being answered",
    )
    .with_code("idempotency_key_in_use")
    .with_retry_after(Duration::from_secs(1))
}

/// What was kept of a run.
fn earlier(run: &Run) -> Result<EarlierSteps, ApiError> {
    let steps = run.steps.iter().map(|step| serde_json::from_str(step));
    let steps: Result<Vec<RecordedStep>, _> = steps.collect();
    let mut steps = steps.map_err(|_| damaged())?;
    let first = steps.first().and_then(|step| step.part);
    for step in &mut steps {
        // Who goes on with one document says of no step which it is of.
        step.part = step.part.or(first);
    }
    let options = serde_json::from_str(&run.summary.options).map_err(|_| damaged())?;
    Ok(EarlierSteps { options, steps })
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
