//! Continues a plain-text answer that was cut off.
//!
//! The text alone does not show whether it is complete: the provider must report that it was cut
//! off. If the server continues a prefill, the answer is appended. Otherwise the answer is joined
//! where it repeats enough of the end, and else appended.

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use crate::backend::Usage;
use crate::complete::{CallEnd, Collected, Drive, Observe, SHORTEST_ECHO, StopCause, after_echo};
use crate::continuation::blank::{after_blank, split_blank};
use crate::continuation::{
    FIRST_SEAM, Failure, NextCall, Reason, Step, StepEnd, StepResult, Wants,
};
use crate::marker::Marker;
use crate::prompt::{FittedCall, PromptError, first_call, text_call, text_prefill_call};
use crate::strategy::Strategy;
use crate::streaming_answer::StreamingAnswer;
use crate::wire::WireRequest;

/// How many characters of the end the model is asked to repeat.
const OVERLAP_CHARACTERS: usize = 200;

/// The maximum length of a repetition in bytes.
pub(crate) const LONGEST_REPETITION: usize = 1000;

/// A repetition of fewer characters may be a coincidence.
const LEAST_REPETITION: usize = 16;

/// A run that continues a plain text.
#[derive(Clone, Debug)]
pub struct TextContinuation {
    text: String,
    is_cut: bool,
    iterations: u32,
    usage: Usage,
    options: TextOptions,
    /// How to ask for the rest.
    strategy: Strategy,
    /// Why the run stopped, if not at one of its limits.
    stopped: Option<Reason>,
    marker: Marker,
}

/// The limits of a text run.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// The maximum of calls, including the first.
    pub max_iterations: u32,
    /// How many tokens all answers may have together.
    pub max_output_tokens: u64,
    /// Whether the server is known to continue a prefill.
    pub can_prefill: bool,
}

/// The prefill of a call, and the white space after it that was not sent.
#[derive(Clone, Debug)]
pub(crate) struct TextPrefill {
    prefill: String,
    blank: String,
}

impl TextPrefill {
    /// The prefill, and the white space at the end of the text.
    fn new(prefill: &str, text: &str) -> Self {
        Self {
            prefill: prefill.to_owned(),
            blank: split_blank(text).1.to_owned(),
        }
    }

    /// Whether the beginning of an answer may still be a repetition, without new text.
    pub(crate) fn may_repeat(&self, answer: &str) -> bool {
        let may_echo = self.prefill.len() >= SHORTEST_ECHO;
        may_echo && self.prefill.starts_with(answer)
            || self.blank.starts_with(self.without_echo(answer))
    }

    /// An answer without an echo of the prefill, and without white space that the text already ends
    /// with.
    pub(crate) fn new_text<'a>(&self, answer: &'a str) -> &'a str {
        self.without_blank(self.without_echo(answer))
    }

    fn without_blank<'a>(&self, answer: &'a str) -> &'a str {
        let rest = after_blank(answer.as_bytes(), &self.blank).len();
        &answer[answer.len() - rest..]
    }

    fn without_echo<'a>(&self, answer: &'a str) -> &'a str {
        let rest = after_echo(answer.as_bytes(), &self.prefill);
        rest.map_or(answer, |rest| &answer[answer.len() - rest.len()..])
    }
}

impl TextContinuation {
    /// A text that was cut off, according to its provider.
    pub fn new(text: String, tokens: u64, options: TextOptions) -> Self {
        Self {
            text,
            is_cut: true,
            iterations: 1,
            usage: Usage {
                input: 0,
                output: tokens,
                cached: None,
            },
            strategy: if options.can_prefill {
                Strategy::Prefill
            } else {
                Strategy::Overlap
            },
            options,
            stopped: None,
            marker: Marker::default(),
        }
    }

    /// Restores a text from its steps, starting with the [first](Self::first_step); `None` if they
    /// do not fit together.
    pub fn resume<'a>(
        steps: impl IntoIterator<Item = &'a Step>,
        options: TextOptions,
    ) -> Option<Self> {
        let mut run = Self::new(String::new(), 0, options);
        run.iterations = 0;
        for step in steps {
            run.iterations += 1;
            if step.is_rejected() {
                run.strategy = Strategy::Overlap;
                continue;
            }
            run.usage.output = run.usage.output.saturating_add(step.tokens);
            run.is_cut = is_cut(step.end.finish.as_deref(), step.end.broken.is_some());
            if let StepResult::Grown { offset, added, .. } = &step.result {
                if *offset != run.text.len() {
                    return None;
                }
                run.text.push_str(added);
            }
            run.stopped = run.stopped_by(step);
            run.is_cut |= run.stopped == Some(Reason::MergeFailures);
        }
        Some(run)
    }

    /// The step of the answer that starts a text.
    pub fn first_step(text: &str, tokens: u64, end: StepEnd) -> Step {
        Step {
            end,
            ..Step::new(1, None, tokens, grown(FIRST_SEAM, 0, 0, text))
        }
    }

    /// The text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the provider reports that it was cut off.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Why the text is incomplete; `None` if the provider reports that it is complete.
    pub fn reason(&self) -> Option<Reason> {
        let at_limit = || {
            if self.usage.output >= self.options.max_output_tokens {
                Reason::TokenLimit
            } else {
                Reason::IterationLimit
            }
        };
        self.stopped.or_else(|| self.is_cut.then(at_limit))
    }

    /// How many calls were made.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// How many tokens all answers had together.
    pub fn output_tokens(&self) -> u64 {
        self.usage.output
    }

    /// The end of the text, which the model is asked to repeat.
    pub(crate) fn overlap(&self) -> &str {
        expected_overlap(&self.text)
    }

    /// The marker in its prompts.
    pub(crate) fn marker(&self) -> &Marker {
        &self.marker
    }

    /// The call for the rest.
    pub(crate) fn next_call(&self, drive: &Drive<'_>) -> Result<FittedCall, PromptError> {
        if self.strategy == Strategy::Prefill {
            return text_prefill_call(&self.text, drive.request, drive.counter, drive.plan);
        }
        text_call(self, drive.request, drive.counter, drive.plan)
    }

    fn is_within_limits(&self) -> bool {
        let TextOptions {
            max_iterations,
            max_output_tokens,
            ..
        } = self.options;
        self.is_cut && self.iterations < max_iterations && self.usage.output < max_output_tokens
    }

    /// Derives the marker from the request. A stopped run continues if its limits allow it.
    pub(crate) fn set_request(&mut self, request: &dyn WireRequest) {
        self.marker = Marker::of_request(request);
        if self.is_within_limits() {
            self.stopped = None;
        }
    }

    /// The next call; `None` once the run has ended.
    pub(crate) fn next(&self) -> Option<NextCall> {
        (self.is_within_limits() && self.stopped.is_none()).then(|| NextCall {
            iteration: self.iterations + 1,
            strategy: Some(self.strategy),
            overlap: String::new(),
            wants: Wants::Text,
            marker: self.marker.clone(),
        })
    }

    /// Records that the server rejected the call. After a rejected prefill, the next call uses the
    /// overlap; otherwise there is no alternative.
    pub(crate) fn refused(&mut self, ask: &NextCall, message: String) -> Option<Step> {
        let strategy = ask
            .strategy
            .filter(|strategy| *strategy == Strategy::Prefill);
        strategy?;
        self.iterations += 1;
        self.strategy = Strategy::Overlap;
        let result = StepResult::Failed {
            failure: Failure::Refused { message },
            raw: None,
        };
        Some(Step::new(self.iterations, strategy, 0, result))
    }

    /// Ends the run for a reason that only the caller knows.
    pub(crate) fn stop(&mut self, reason: Reason) {
        self.stopped.get_or_insert(reason);
    }

    /// The stream of the answer to a call with this prefill.
    pub(crate) fn streaming(&self, prefill: Option<&str>) -> StreamingAnswer {
        match prefill {
            Some(prefill) => StreamingAnswer::after_prefill(TextPrefill::new(prefill, &self.text)),
            None => StreamingAnswer::of_text(&self.text, &self.marker),
        }
    }

    /// Joins an answer, complete or not.
    pub(crate) fn take_answer(
        &mut self,
        drive: &Drive<'_>,
        prefill: Option<&str>,
        collected: &mut Collected,
    ) -> Step {
        let counted = drive.counter.tokens().count(&collected.text);
        collected.end.counted = Some(counted);
        let tokens = collected.end.usage.map_or(counted, |usage| usage.output);
        // An interrupted answer was cut, unless the provider had already sent a finish reason.
        let is_broken = collected.broken.is_some() || collected.is_cut_at_marker;
        let prefill = prefill.map(|prefill| TextPrefill::new(prefill, &self.text));
        let is_stopped = is_broken || drive.is_past_deadline();
        self.take(collected, prefill.as_ref(), tokens, is_stopped)
    }

    /// Joins an answer to the text. `prefill` is that of its call.
    fn take(
        &mut self,
        collected: &Collected,
        prefill: Option<&TextPrefill>,
        tokens: u64,
        is_stopped: bool,
    ) -> Step {
        self.iterations += 1;
        self.usage.output = self.usage.output.saturating_add(tokens);
        let end = collected.step_end();
        self.is_cut = is_cut(end.finish.as_deref(), is_stopped);
        let nothing_new = match end.refusal {
            Some(_) => Failure::Declined,
            None => Failure::Empty,
        };
        let (strategy, result) = match prefill {
            Some(prefill) => {
                let new = prefill.without_blank(&collected.text);
                (
                    Strategy::Prefill,
                    self.append(&collected.text, new, nothing_new),
                )
            }
            None => (Strategy::Overlap, self.join(&collected.text, nothing_new)),
        };
        let step = Step {
            end,
            ..Step::new(self.iterations, Some(strategy), tokens, result)
        };
        self.stopped = self.stopped_by(&step);
        step
    }

    /// Appends the new part of an answer to a prefill.
    fn append(&mut self, answer: &str, new: &str, nothing_new: Failure) -> StepResult {
        if new.is_empty() {
            return StepResult::Failed {
                failure: nothing_new,
                raw: (!answer.is_empty()).then(|| answer.to_owned()),
            };
        }
        let result = grown("end-to-end", 0, self.text.len(), new);
        self.text.push_str(new);
        result
    }

    /// Joins an answer that should begin with the overlap.
    fn join(&mut self, answer: &str, nothing_new: Failure) -> StepResult {
        let head = self.marker.strip_head(answer.as_bytes()).len();
        let answer = &answer[answer.len() - head..];
        if self.marker.is_in(answer.as_bytes()) {
            // The rest is still missing, even if the rejected answer has the finish reason `stop`.
            self.is_cut = true;
            return StepResult::Failed {
                failure: Failure::MarkerInAnswer,
                raw: Some(answer.to_owned()),
            };
        }
        let (repeated, new) = answer.split_at(repeated_len(&self.text, answer));
        if new.is_empty() {
            return StepResult::Failed {
                failure: if repeated.is_empty() {
                    nothing_new
                } else {
                    Failure::Repeat
                },
                raw: (!repeated.is_empty()).then(|| repeated.to_owned()),
            };
        }
        let seam = if repeated.is_empty() {
            "end-to-end"
        } else {
            "overlap"
        };
        let result = grown(seam, repeated.chars().count(), self.text.len(), new);
        self.text.push_str(new);
        result
    }

    /// Why the run stops after its latest step, apart from its limits.
    fn stopped_by(&self, step: &Step) -> Option<Reason> {
        if step.end.finish.as_deref() == Some("content_filter") {
            return Some(Reason::ContentFilter);
        }
        match &step.result {
            StepResult::Failed {
                failure: Failure::MarkerInAnswer,
                ..
            } => Some(Reason::MergeFailures),
            StepResult::Failed { .. } => self.is_cut.then_some(Reason::NoProgress),
            StepResult::Grown { .. } => None,
        }
    }
}

fn grown(seam: &str, overlap: usize, offset: usize, added: &str) -> StepResult {
    StepResult::Grown {
        seam: seam.to_owned(),
        overlap,
        offset,
        added_bytes: added.len(),
        added: added.to_owned(),
        half_character: Vec::new(),
        scanned: 0,
    }
}

/// Makes the caller's own call and returns its text, complete or cut off.
pub async fn first_text(
    drive: &Drive<'_>,
    options: TextOptions,
    observer: &mut dyn Observe,
) -> Result<(TextContinuation, CallEnd), StopCause> {
    let FittedCall { call, plan } =
        first_call(drive.request, drive.counter, drive.plan).map_err(StopCause::Window)?;
    let most_bytes = drive.most_bytes(&plan);
    let (collected, _) = drive.read_answer(call, most_bytes, None, observer).await;
    let is_stopped = collected.broken.is_some() || drive.is_past_deadline();
    if let Some(stop_cause) = collected.stop_cause().filter(|_| collected.text.is_empty()) {
        return Err(stop_cause);
    }
    let usage = collected.end.usage;
    let tokens = usage.map_or_else(
        || drive.counter.tokens().count(&collected.text),
        |usage| usage.output,
    );
    let mut run = TextContinuation::new(collected.text, tokens, options);
    run.is_cut = is_cut(collected.end.finish.as_deref(), is_stopped);
    Ok((run, collected.end))
}

/// Whether an answer was cut off, according to its finish reason.
fn is_cut(finish: Option<&str>, is_stopped: bool) -> bool {
    finish == Some("length") || finish.is_none() && is_stopped
}

/// The end of a text, which the model should repeat.
pub(crate) fn expected_overlap(text: &str) -> &str {
    let start = text.char_indices().rev().nth(OVERLAP_CHARACTERS - 1);
    &text[start.map_or(0, |(at, _)| at)..]
}

/// How many bytes at the start of an answer repeat the end of the text, or 0 if they are so few
/// that it may be chance. If the text repeats itself, several lengths match: the expected overlap
/// is then preferred, and after it shorter ones.
pub(crate) fn repeated_len(text: &str, answer: &str) -> usize {
    let expected = expected_overlap(text);
    if answer.starts_with(expected) {
        return expected.len();
    }
    let most = LONGEST_REPETITION.min(text.len()).min(answer.len());
    let is_repeated = |len: &usize| {
        answer.is_char_boundary(*len) && text.as_bytes().ends_with(&answer.as_bytes()[..*len])
    };
    let is_enough = |len: &usize| answer[..*len].chars().nth(LEAST_REPETITION - 1).is_some();
    let longest = |lengths: RangeInclusive<usize>| lengths.rev().find(is_repeated);
    let within = longest(1..=most.min(expected.len())).filter(is_enough);
    let len = within.or_else(|| longest(expected.len() + 1..=most).filter(is_enough));
    len.unwrap_or_default()
}
