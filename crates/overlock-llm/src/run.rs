//! A run of either kind, document or text, for the loop that drives both.

use overlock_json::PartialDocument;

use crate::complete::{Collected, Drive};
use crate::continuation::{AnswerError, Continuation, NextCall, Outcome, Reason, Step};
use crate::prompt::{FittedCall, PromptError};
use crate::streaming_answer::StreamingAnswer;
use crate::text::TextContinuation;

/// A run as observers see it.
#[derive(Clone, Copy, Debug)]
pub enum Run<'a> {
    /// A run that produces a JSON document.
    Document(&'a Continuation),
    /// A run that produces a plain text.
    Text(&'a TextContinuation),
}

impl<'a> Run<'a> {
    /// The document run, if it is one.
    pub fn document(self) -> Option<&'a Continuation> {
        match self {
            Self::Document(run) => Some(run),
            Self::Text(_) => None,
        }
    }
}

/// A run that is driven.
pub(crate) enum DrivenRun<'a> {
    Document(&'a mut Continuation),
    Text(&'a mut TextContinuation),
}

impl DrivenRun<'_> {
    pub(crate) fn as_run(&self) -> Run<'_> {
        match self {
            Self::Document(run) => Run::Document(run),
            Self::Text(run) => Run::Text(run),
        }
    }

    /// Applies the settings of the request.
    pub(crate) fn begin(&mut self, drive: &Drive<'_>) {
        match self {
            Self::Document(run) => {
                run.set_request(drive.request);
                run.set_streamed(drive.live);
                run.set_at_cut(drive.backend.starts_at_cut(drive.request));
            }
            Self::Text(run) => run.set_request(drive.request),
        }
    }

    pub(crate) fn next(&self) -> Option<NextCall> {
        match self {
            Self::Document(run) => run.next(),
            Self::Text(run) => run.next(),
        }
    }

    /// Plans the call into the window.
    pub(crate) fn fit(
        &mut self,
        drive: &Drive<'_>,
        ask: NextCall,
    ) -> Result<(NextCall, FittedCall), PromptError> {
        match self {
            Self::Document(run) => drive.fit(run, ask),
            Self::Text(run) => Ok((ask, run.next_call(drive)?)),
        }
    }

    /// The stream of the answer to a call with this prefill.
    pub(crate) fn streaming(&self, ask: &NextCall, prefill: Option<&str>) -> StreamingAnswer {
        match self {
            Self::Document(run) => StreamingAnswer::new(run.base(), ask),
            Self::Text(run) => run.streaming(prefill),
        }
    }

    /// Joins an answer, complete or not.
    pub(crate) fn take(
        &mut self,
        drive: &Drive<'_>,
        ask: &NextCall,
        prefill: Option<&str>,
        collected: &mut Collected,
        is_at_cut: bool,
    ) -> Result<Step, AnswerError> {
        let is_rest = self.has_begun();
        let step = match self {
            Self::Document(run) => drive.take_answer(run, ask, collected, is_at_cut)?,
            Self::Text(run) => run.take_answer(drive, prefill, collected),
        };
        // A provider that filtered the rest of a document would filter it again.
        if is_rest && step.end.finish.as_deref() == Some("content_filter") {
            self.stop(Reason::ContentFilter);
        }
        Ok(step)
    }

    /// Records that the upstream rejected the call. Returns `None` if there is no alternative.
    pub(crate) fn refused(&mut self, ask: &NextCall, message: String) -> Option<Step> {
        match self {
            Self::Document(run) => run.refused(ask, message),
            Self::Text(run) => run.refused(ask, message),
        }
    }

    pub(crate) fn stop(&mut self, reason: Reason) {
        match self {
            Self::Document(run) => run.stop(reason),
            Self::Text(run) => run.stop(reason),
        }
    }

    /// Whether there is text to continue.
    fn has_begun(&self) -> bool {
        match self {
            Self::Document(run) => run.base().is_some(),
            Self::Text(_) => true,
        }
    }

    /// Why the run ended incomplete, if it did.
    pub(crate) fn reason(&self) -> Option<Reason> {
        match self {
            Self::Document(run) => run.outcome().and_then(Outcome::reason),
            Self::Text(run) => run.reason(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Document(run) => run.text(),
            Self::Text(run) => run.text(),
        }
    }

    /// The length of the text that no later answer changes.
    pub(crate) fn settled_len(&self) -> usize {
        match self {
            Self::Document(run) => run.base().map_or(0, PartialDocument::settled_len),
            Self::Text(run) => run.text().len(),
        }
    }
}
