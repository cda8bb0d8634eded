//! Asks the model once to correct a whole document that violates its schema.

use crate::backend::Usage;
use crate::complete::{Drive, DriveError, Observe, StopCause};
use crate::continuation::Continuation;
use crate::prompt::{FittedCall, PromptError, correction_call};
use crate::run::Run;

/// Shows the model its document and the violation, and replaces the document if the answer is a
/// whole one that `check` accepts. Else the document stays, and the step says why.
///
/// Makes no call if the run [has had its correction](Continuation::can_be_corrected) or a limit is
/// reached. What comes back is what the call was stopped by, if anything.
pub async fn correct(
    run: &mut Continuation,
    violation: &str,
    drive: &Drive<'_>,
    check: impl AsyncFnOnce(&str) -> Result<(), String>,
    observer: &mut dyn Observe,
) -> Result<Option<StopCause>, DriveError> {
    if !run.can_be_corrected() || drive.is_late() {
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
    let (mut collected, _) = drive.listen(call, most_bytes, None, observer).await;
    let (obstacle, is_silent) = (collected.obstacle(), collected.text.is_empty());
    if is_silent && obstacle.is_none() && drive.is_late() {
        return Ok(collected.unanswered());
    }
    let document = match collected.broken.as_ref().filter(|_| is_silent) {
        Some(error) => {
            // Nobody pays for a call that was not answered.
            collected.end.usage = collected.end.usage.or(Some(Usage::default()));
            Err(error.to_string())
        }
        None => match Continuation::read_whole(&collected.text) {
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
    // What broke off a document that came whole stopped nothing.
    Ok(obstacle.filter(|_| step.end_len().is_none()))
}
