//! Continues a run from its recorded steps.

use hyper::StatusCode;
use overlock_llm::{Continuation, ContinuationOptions, TextContinuation, TextOptions, Usage};
use overlock_store::StoreError;

use crate::error::ApiError;
use crate::record::RecordError;
use crate::totals::UsageTotals;
use overlock_runs::RecordedStep;

/// A document as far as these steps brought it, and what the calls after the first one took.
pub(super) fn resumed(
    options: &ContinuationOptions,
    steps: &[&RecordedStep],
) -> Result<(Continuation, UsageTotals), ApiError> {
    let run = Continuation::resume(options.clone(), steps.iter().map(|step| &step.step));
    let mut run = run.map_err(|_| damaged())?;
    run.try_again();
    Ok((run, totals_after_first(steps)))
}

/// The same of a text.
pub(super) fn resumed_text(
    options: TextOptions,
    steps: &[&RecordedStep],
) -> Result<(TextContinuation, UsageTotals), ApiError> {
    let run = TextContinuation::resume(steps.iter().map(|step| &step.step), options);
    Ok((run.ok_or_else(damaged)?, totals_after_first(steps)))
}

fn totals_after_first(steps: &[&RecordedStep]) -> UsageTotals {
    let mut totals = UsageTotals::default();
    for step in steps.iter().skip(1) {
        let counted = Usage {
            input: step
                .budget
                .as_ref()
                .map_or(0, |budget| budget.input_token_count),
            output: step.step.tokens,
            cached: None,
        };
        totals.add(&step.step, step.told, counted);
    }
    totals
}

/// What is said if what happens cannot be kept, and had to be.
pub(super) fn unkept(error: &RecordError) -> ApiError {
    let message = match error {
        RecordError::Store(StoreError::Superseded { .. }) => {
            "somebody else is answering this request"
        }
        // What the store says may name files of this machine.
        RecordError::Store(_) | RecordError::Closed => "the run could not be recorded",
    };
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message).with_code("store")
}

pub(super) fn damaged() -> ApiError {
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "server_error",
        "what was recorded of the first request with this `idempotency-key` cannot be read",
    )
    .with_code("store")
}
