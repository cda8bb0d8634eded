//! Asks the model once to correct a complete document that violates its schema.

use crate::backend::Usage;
use crate::complete::{Drive, DriveError, Observe, StopCause};
use crate::continuation::Continuation;
use crate::prompt::{FittedCall, PromptError, correction_call};
use crate::run::Run;

/// Shows the model its document and the violation, and replaces the document if the answer is a
/// complete one that `check` accepts. Otherwise the document does not change, and the step says
/// why.
///
/// Makes no call if the run [cannot be corrected](Continuation::can_be_corrected) or the deadline
/// has passed. Returns the error that stopped the call, if any.
pub async fn correct(
    run: &mut Continuation,
    violation: &str,
    drive: &Drive<'_>,
    check: impl AsyncFnOnce(&str) -> Result<(), String>,
    observer: &mut dyn Observe,
) -> Result<Option<StopCause>, DriveError> {
    if !run.can_be_corrected() || drive.is_past_deadline() {
        return Ok(None);
    }
    let options = drive.options_for(run);
    let fitted = correction_call(run, violation, drive.request, drive.counter, &options);
    let FittedCall { call, plan } = match fitted {
        Ok(fitted) => fitted,
        Err(error @ PromptError::Window(_)) => return Ok(Some(StopCause::Window(error))),
        Err(error @ PromptError::Request(_)) => return Err(DriveError::Prompt(error)),
    };
    observer.correcting(run.iterations() + 1, &plan);
    let most_bytes = drive.most_bytes(&plan);
    let (mut collected, _) = drive.read_answer(call, most_bytes, None, observer).await;
    let (stop_cause, is_silent) = (collected.stop_cause(), collected.text.is_empty());
    if is_silent && stop_cause.is_none() && drive.is_past_deadline() {
        return Ok(collected.unanswered());
    }
    let document = match collected.broken.as_ref().filter(|_| is_silent) {
        Some(error) => {
            // A call without an answer costs nothing.
            collected.end.usage = collected.end.usage.or(Some(Usage::default()));
            Err(error.to_string())
        }
        None => match Continuation::complete_document(&collected.text) {
            Ok(document) => check(&document).await.map(|()| document),
            Err(why) => Err(why),
        },
    };
    let counted = drive.counter.tokens().count(&collected.text);
    collected.end.counted = Some(counted);
    let tokens = collected.end.usage.map_or(counted, |usage| usage.output);
    let mut step = run.corrected(document, &collected.text, tokens);
    step.end = collected.step_end();
    let stepped = observer
        .stepped(Run::Document(run), &step, &collected.end)
        .await;
    stepped.map_err(DriveError::Observe)?;
    // An error after a complete document stopped nothing.
    Ok(stop_cause.filter(|_| step.end_len().is_none()))
}
