//! Decides what to ask the model next, and when to stop.
//!
//! A run is a plain value without I/O: the caller asks it for the next call, makes that call and
//! passes it the answer. Synchronous and asynchronous callers drive the same type.
//!
//! The document changes only when an answer is accepted, so accepted text is never lost and the
//! document is always a valid prefix of JSON.

pub(crate) mod blank;
mod correction;
mod document;
mod first;
mod next_call;
mod outcome;
mod repetition;
mod resume;
mod step;
mod stored;
mod tally;

#[cfg(test)]
mod tests;

pub use next_call::{NextCall, Wants};
pub use outcome::{Failure, Outcome, Reason};
pub use resume::ResumeError;
pub(crate) use step::{FIRST_SEAM, readable};
pub use step::{Progress, Step, StepEnd, StepResult};

use crate::wire::WireRequest;
use overlock_json::{CloseOptions, Delivered, PartialDocument, Protocol, StitchOptions, Suspicion};
use serde::{Deserialize, Serialize};

use crate::marker::Marker;
use crate::progress::{Kpi, MeasuredKpi, proposed_kpis, split_progress, validate_kpi_progression};
use crate::strategy::Strategy;
use blank::after_blank;
use document::Document;
use first::is_clearly_the_document;
use repetition::{Repetition, required_by_schemas};
use stored::Stored;
use tally::Tally;

/// The limits and strategies of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContinuationOptions {
    /// The strategies in the order to try them: see
    /// [`strategies_for_prefill`](crate::strategies_for_prefill). Empty means [`Strategy::Overlap`]
    /// alone.
    pub strategies: Vec<Strategy>,
    /// How many answers in a row may fail.
    pub max_failures: u32,
    /// How many calls the run may make.
    pub max_iterations: u32,
    /// How many tokens all answers may have together.
    pub max_output_tokens: Option<u64>,
    /// How many characters one answer may have, if known. The overlap takes at most a quarter of
    /// them.
    pub answer_chars: Option<usize>,
    /// How progress is measured.
    pub kpi: Kpi,
    /// How many answers in a row may bring no progress by that measure.
    pub kpi_patience: u32,
}

impl Default for ContinuationOptions {
    fn default() -> Self {
        Self {
            strategies: vec![Strategy::Overlap, Strategy::Remainder],
            max_failures: 3,
            max_iterations: 50,
            max_output_tokens: None,
            answer_chars: None,
            kpi: Kpi::Ask,
            kpi_patience: 3,
        }
    }
}

/// The model's answer to one call.
#[derive(Clone, Copy, Debug)]
pub struct ModelOutput<'a> {
    /// The text received, even if the answer is incomplete.
    pub text: &'a [u8],
    /// How many tokens the text has.
    pub tokens: u64,
    /// Whether it is known to start at the end of its prefill, because it began with a copy of it.
    pub is_at_cut: bool,
}

impl<'a> ModelOutput<'a> {
    /// An answer that may start anywhere.
    pub fn new(text: &'a [u8], tokens: u64) -> Self {
        Self {
            text,
            tokens,
            is_at_cut: false,
        }
    }
}

/// Why an answer was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The run has ended.
    #[error("the run has ended and accepts no more answers")]
    Ended,
    /// The answer belongs to another call than the next one, such as one that was answered already.
    #[error("this answers call `{answered}`, but the run expects the answer to call `{awaited}`")]
    NotAwaited {
        /// The call that was answered.
        answered: u32,
        /// The call that the run expects the answer to.
        awaited: u32,
    },
}

/// A long document that is put together from several answers.
///
/// ```
/// use overlock_llm::{ModelOutput, Continuation, ContinuationOptions, Outcome};
///
/// let mut run = Continuation::new(ContinuationOptions::default());
/// let answers = [r#"{"rows": ["alpha", "beta", "gam"#, r#"{"rows": ["alpha", "beta", "gamma"]}"#];
/// for text in answers {
///     let ask = run.next().expect("it has not ended");
///     // Here the model is asked.
///     run.answered(&ask, &ModelOutput::new(text.as_bytes(), 20))?;
/// }
/// assert_eq!(run.outcome(), Some(&Outcome::Complete));
/// assert_eq!(run.text(), r#"{"rows": ["alpha", "beta", "gamma"]}"#);
/// # Ok::<(), overlock_llm::AnswerError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Continuation {
    options: ContinuationOptions,
    document: Option<Document>,
    tally: Tally,
    /// The last answer, while no answer was a document.
    raw: String,
    outcome: Option<Outcome>,
    marker: Marker,
    /// Whether the document is streamed to the client, so that no text can be removed from it.
    is_streamed: bool,
    /// The largest `minItems` of the request's schemas.
    required_items: usize,
    /// Whether answers to a prefill start exactly at its end.
    is_at_cut: bool,
}

impl Continuation {
    /// A run before its first call.
    pub fn new(options: ContinuationOptions) -> Self {
        let mut run = Self {
            options,
            document: None,
            tally: Tally::default(),
            raw: String::new(),
            outcome: None,
            marker: Marker::default(),
            is_streamed: false,
            required_items: 0,
            is_at_cut: false,
        };
        // Limits of zero end the run at once.
        run.outcome = run.decide();
        run
    }

    /// Derives the marker from the request, and how many items its schemas require of an array:
    /// fewer equal items are not taken for a loop.
    pub fn set_request(&mut self, request: &dyn WireRequest) {
        self.marker = Marker::of_request(request);
        self.required_items = required_by_schemas(request);
        self.tally.has_answer_limit = request.outline().requested.is_some();
    }

    /// Sets whether the document is streamed to the client. If it is, a loop is not removed from
    /// it.
    pub fn set_streamed(&mut self, is_streamed: bool) {
        self.is_streamed = is_streamed;
    }

    /// Sets whether the server guarantees that the answer to a prefill starts exactly at its end, such
    /// as by a grammar that continues from there.
    ///
    /// The prefill is then the exact document. Elsewhere the white space at its end is left out,
    /// because some servers reject or remove it.
    pub fn set_at_cut(&mut self, is_at_cut: bool) {
        self.is_at_cut = is_at_cut;
    }

    /// Joins the answer to the document and decides whether the run continues. An answer to any call but the
    /// next one is rejected, because joining it twice would double its text.
    pub fn answered(
        &mut self,
        ask: &NextCall,
        answer: &ModelOutput<'_>,
    ) -> Result<Step, AnswerError> {
        self.check_awaited(ask)?;
        if ask.wants == Wants::Kpis {
            return Ok(self.count_proposed(answer));
        }
        let text = ask.marker.strip_head(answer.text);
        let (kpi, text) = if ask.wants == Wants::ProgressAndDocument {
            without_progress(text, &ask.overlap)
        } else {
            (None, text)
        };
        let text = ask.marker.strip_head(text);
        let before: Vec<u64> = self.counts();
        let result = match &mut self.document {
            _ if ask.marker.is_in(text) => StepResult::failed(Failure::MarkerInAnswer, text),
            None => self.begin(text),
            Some(document) => join(document, ask, text, answer.is_at_cut || self.is_at_cut),
        };
        let progress = self.progress(&result, kpi, &before);
        let is_looping = self.is_looping(&result);
        let result = if is_looping && !self.is_streamed {
            self.drop_loop(result)
        } else {
            result
        };
        let suspicious = self.suspicion(ask, &result, kpi);
        Ok(self.take(Step {
            kpi,
            progress,
            is_looping,
            suspicious,
            ..Step::new(ask.iteration, ask.strategy, answer.tokens, result)
        }))
    }

    /// Why the document, which an answer has completed, may lack something.
    fn suspicion(&self, ask: &NextCall, result: &StepResult, kpi: Option<u8>) -> Option<Suspicion> {
        let StepResult::Grown {
            offset,
            added_bytes,
            ..
        } = result
        else {
            return None;
        };
        let document = self.document.as_ref()?;
        if ask.strategy.is_none() || !document.base().is_complete() {
            return None;
        }
        // The model says how far the document was before the answer.
        let is_short = |percent: u8| {
            let missing = offset * usize::from(100 - percent.min(100)) / usize::from(percent);
            2 * added_bytes < missing
        };
        let reported = kpi.filter(|percent| *percent > 0 && is_short(*percent));
        let measured = document.kpis().map(MeasuredKpi::percent).min();
        let percent = reported.or(measured.filter(|percent| *percent < 100));
        document
            .base()
            .suspicion()
            .or(percent.map(|percent| Suspicion::Progress { percent }))
    }

    fn check_awaited(&self, ask: &NextCall) -> Result<(), AnswerError> {
        let awaited = self.tally.iterations + 1;
        if self.outcome.is_some() {
            Err(AnswerError::Ended)
        } else if ask.iteration != awaited {
            let answered = ask.iteration;
            Err(AnswerError::NotAwaited { answered, awaited })
        } else {
            Ok(())
        }
    }

    /// Records that the upstream rejected this kind of call. Returns `None`, and changes nothing,
    /// if the call is not the next one, or is the caller's own prompt, which has no alternative:
    /// the caller should then [`stop`](Self::stop) the run.
    pub fn refused(&mut self, ask: &NextCall, message: String) -> Option<Step> {
        self.check_awaited(ask).ok()?;
        let (failure, kpis) = match (ask.wants, ask.strategy) {
            (Wants::Kpis, _) => (Failure::NoKpis { message }, Some(Vec::new())),
            (_, Some(_)) => (Failure::Refused { message }, None),
            (_, None) => return None,
        };
        let result = StepResult::Failed { failure, raw: None };
        Some(self.take(Step {
            kpis,
            ..Step::new(ask.iteration, ask.strategy, 0, result)
        }))
    }

    /// Takes the KPIs that the model proposes.
    fn count_proposed(&mut self, answer: &ModelOutput<'_>) -> Step {
        let proposed = proposed_kpis(answer.text);
        let counted = match (&mut self.document, proposed) {
            (Some(document), Ok(proposed)) => match document.set_kpis(&proposed) {
                kpis if kpis.is_empty() => {
                    Err("none of the proposed KPIs can still be counted".to_owned())
                }
                kpis => {
                    let offset = document.base().text().len();
                    Ok((grown("kpis", document, 0, offset, 0), kpis))
                }
            },
            (_, proposed) => Err(proposed.err().unwrap_or_default()),
        };
        let (result, kpis) = counted.unwrap_or_else(|message| {
            let failure = Failure::NoKpis { message };
            (StepResult::failed(failure, answer.text), Vec::new())
        });
        self.take(Step {
            kpis: Some(kpis),
            ..Step::new(self.tally.iterations + 1, None, answer.tokens, result)
        })
    }

    fn take(&mut self, step: Step) -> Step {
        self.tally.add(&step, &self.options);
        self.outcome = self.decide();
        step
    }

    /// Resumes a run that ended because answers failed or brought no progress: the counters of
    /// consecutive failures start from 0. Other limits stay.
    pub fn try_again(&mut self) {
        self.tally.reset_failures(&self.options);
        self.outcome = self.decide();
    }

    /// Ends the run for a reason that only the caller knows.
    pub fn stop(&mut self, reason: Reason) {
        if self.outcome.is_none() {
            self.outcome = Some(self.ended(reason));
        }
    }

    /// Sets how many characters the next answers may have, unless the
    /// [options](ContinuationOptions::answer_chars) say it.
    pub fn expect_answer_chars(&mut self, chars: usize) {
        self.tally.answer_chars = Some(chars);
    }

    /// How the run ended, if it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// The document so far, up to its cut.
    pub fn text(&self) -> &str {
        self.base().map_or("", PartialDocument::text)
    }

    /// The document so far, if one has begun.
    pub fn base(&self) -> Option<&PartialDocument<'static>> {
        self.document.as_ref().map(Document::base)
    }

    /// Valid JSON: the document if it is complete, else its longest valid part.
    pub fn last_valid_complete_part(&self) -> Option<String> {
        let closed = self.base()?.close(&CloseOptions::default());
        closed.ok().map(|closed| closed.json)
    }

    /// The last answer, if no answer was JSON.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether a first answer was cut, so that several answers are joined.
    pub fn is_accumulation_mode(&self) -> bool {
        self.base().is_some() && (self.outcome != Some(Outcome::Complete) || self.tally.pieces > 1)
    }

    /// The containers and values of the document so far.
    pub fn delivered(&self) -> Option<&Delivered> {
        self.document.as_ref().map(Document::delivered)
    }

    /// The last progress in percent that the model reported.
    pub fn last_kpi(&self) -> Option<u8> {
        self.tally.last_kpi
    }

    /// The KPIs that are counted in the document, with their current values.
    pub fn kpis(&self) -> Vec<&MeasuredKpi> {
        match &self.document {
            Some(document) => document.kpis().collect(),
            None => measured(&self.options, &self.tally).iter().collect(),
        }
    }

    /// How many calls were made.
    pub fn iterations(&self) -> u32 {
        self.tally.iterations
    }

    /// How many answers in a row have failed.
    pub fn merge_fail_count(&self) -> u32 {
        self.tally.failures
    }

    /// How many answers in a row ended before the document began or continued.
    pub(crate) fn short_answers(&self) -> u32 {
        self.tally.short_answers
    }

    /// How many tokens all answers had together.
    pub fn output_tokens(&self) -> u64 {
        self.tally.output_tokens
    }

    /// The limits and strategies of the run.
    pub fn options(&self) -> &ContinuationOptions {
        &self.options
    }

    /// Whether the model is in a loop after an answer, unless a KPI or a schema requires more
    /// items.
    fn is_looping(&mut self, result: &StepResult) -> bool {
        let (StepResult::Grown { offset, .. }, Some(document)) = (result, &self.document) else {
            return false;
        };
        let text = document.base().text();
        self.tally.repetition = Repetition::after(self.tally.repetition, text, *offset);
        let asks_for_more = document
            .kpis()
            .any(|kpi| kpi.current_value < kpi.target_value);
        let required = self.required_items;
        let is_long = |repetition: Repetition| repetition.is_loop(text.len(), required);
        !asks_for_more
            && !document.base().is_complete()
            && self.tally.repetition.is_some_and(is_long)
    }

    /// Removes a loop after its first cycle. This scans the document again, but only at the end of
    /// a run.
    fn drop_loop(&mut self, result: StepResult) -> StepResult {
        let kpis: Vec<MeasuredKpi> = self.kpis().into_iter().cloned().collect();
        let end = self.tally.repetition.map(|it| it.first_end());
        let text = end.and_then(|end| self.text().get(..end));
        let document = text.and_then(|text| Document::stored(text.as_bytes(), &kpis));
        let Some(document) = document else {
            return result;
        };
        let StepResult::Grown {
            seam,
            overlap,
            scanned,
            ..
        } = &result
        else {
            return result;
        };
        let offset = document.base().text().len();
        let result = grown(seam, &document, *overlap, offset, *scanned);
        self.document = Some(document);
        result
    }

    /// Starts the document with the first answer.
    fn begin(&mut self, text: &[u8]) -> StepResult {
        let kpis = measured(&self.options, &self.tally);
        let document = match Document::read(text, kpis) {
            Ok(document) if document.base().is_complete() && !is_clearly_the_document(text) => {
                Err(Failure::Unclear)
            }
            document => document.map_err(Failure::from),
        };
        match document {
            Ok(document) => {
                let result = grown(FIRST_SEAM, &document, 0, 0, text.len());
                self.document = Some(document);
                self.raw.clear();
                result
            }
            Err(failure) => {
                self.raw = String::from_utf8_lossy(text).into_owned();
                StepResult::Failed {
                    failure,
                    raw: Some(self.raw.clone()),
                }
            }
        }
    }

    /// The current values of the KPIs.
    fn counts(&self) -> Vec<u64> {
        let kpis = self.document.iter().flat_map(Document::kpis);
        kpis.map(|kpi| kpi.current_value).collect()
    }

    fn progress(&self, result: &StepResult, kpi: Option<u8>, before: &[u64]) -> Progress {
        let StepResult::Grown { .. } = result else {
            return Progress::Unknown;
        };
        match (&self.options.kpi, kpi) {
            (Kpi::Measured(_), _) if !before.is_empty() => {
                let after = self.counts();
                let pairs = || before.iter().zip(&after);
                if pairs().any(|(before, after)| after < before) {
                    Progress::Fell
                } else if pairs().any(|(before, after)| after > before) {
                    Progress::Rose
                } else {
                    Progress::Stalled
                }
            }
            (Kpi::Ask, Some(current)) => match self.tally.last_kpi {
                last if validate_kpi_progression(last, current) => Progress::Rose,
                // The model reports that it is done, but the document is incomplete.
                _ if current == 100 => Progress::Unknown,
                Some(last) if current < last => Progress::Slipped,
                _ => Progress::Stalled,
            },
            _ => Progress::Unknown,
        }
    }

    fn decide(&self) -> Option<Outcome> {
        let (tally, options) = (&self.tally, &self.options);
        if self.base().is_some_and(PartialDocument::is_complete) {
            return Some(Outcome::Complete);
        }
        let reason = if self.document.is_some() && tally.is_every_way_refused(options) {
            Reason::ModelError
        } else if tally.failures >= options.max_failures && tally.failures > 0 {
            if tally.refusals == tally.failures {
                Reason::ModelError
            } else if tally.empty_failures == tally.failures {
                Reason::NoProgress
            } else {
                Reason::MergeFailures
            }
        } else if tally.is_looping {
            Reason::Repeating
        } else if tally.stalls > 0 && tally.stalls >= options.kpi_patience {
            Reason::KpiStalled
        } else if options
            .max_output_tokens
            .is_some_and(|most| tally.output_tokens >= most)
        {
            Reason::TokenLimit
        } else if tally.iterations >= options.max_iterations {
            Reason::IterationLimit
        } else {
            return None;
        };
        Some(self.ended(reason))
    }

    fn ended(&self, reason: Reason) -> Outcome {
        match self.base().and_then(PartialDocument::cut) {
            Some(cut) => Outcome::Partial { reason, cut },
            None => Outcome::Failed { reason },
        }
    }
}

/// The KPIs to count: the caller's, else those that the model proposed.
fn measured<'a>(options: &'a ContinuationOptions, tally: &'a Tally) -> &'a [MeasuredKpi] {
    match &options.kpi {
        Kpi::Measured(kpis) if kpis.is_empty() => tally.kpis.as_deref().unwrap_or_default(),
        Kpi::Measured(kpis) => kpis,
        Kpi::Ask | Kpi::Off => &[],
    }
}

/// Joins an answer after the first.
fn join(document: &mut Document, ask: &NextCall, text: &[u8], is_at_cut: bool) -> StepResult {
    let answer = text;
    if text.trim_ascii().is_empty() {
        return StepResult::failed(Failure::Empty, answer);
    }
    let overlap = match ask.strategy {
        Some(Strategy::Prefill) => document.base().text().to_owned(),
        _ => ask.overlap.clone(),
    };
    let text = after_blank(text, overlap.strip_prefix(&ask.overlap).unwrap_or_default());
    let options = StitchOptions {
        protocol: match ask.strategy.unwrap_or(Strategy::Remainder) {
            Strategy::Prefill if is_at_cut => Protocol::AtCut,
            strategy => strategy.protocol(),
        },
        expected_overlap: (ask.strategy != Some(Strategy::Remainder)).then_some(&overlap),
    };
    let seam = document.stitch(text, &options);
    match Failure::from_join(&seam.outcome) {
        Some(failure) => StepResult::failed(failure, answer),
        None => grown(
            seam.outcome.name(),
            document,
            seam.overlap,
            seam.offset,
            seam.scanned,
        ),
    }
}

/// The result of an answer that was joined at `offset`.
fn grown(
    seam: &str,
    document: &Document,
    overlap: usize,
    offset: usize,
    scanned: usize,
) -> StepResult {
    let base = document.base();
    StepResult::Grown {
        seam: seam.to_owned(),
        overlap,
        offset,
        added_bytes: base.text().len() - offset,
        added: base.text()[offset..].to_owned(),
        half_character: base.half_character().to_vec(),
        scanned,
    }
}

/// The progress that an answer reports before the overlap, and the answer without that line.
fn without_progress<'a>(answer: &'a [u8], overlap: &str) -> (Option<u8>, &'a [u8]) {
    let text = match std::str::from_utf8(answer) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&answer[..error.valid_up_to()]).unwrap_or_default(),
    };
    let (kpi, rest) = split_progress(text, overlap);
    (kpi, &answer[text.len() - rest.len()..])
}
