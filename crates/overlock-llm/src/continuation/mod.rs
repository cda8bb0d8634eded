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
mod outcome;
mod repetition;
mod resume;
mod stored;
mod tally;

#[cfg(test)]
mod tests;

pub use outcome::{Failure, Outcome, Reason};
pub use resume::ResumeError;

use crate::wire::chat::ChatRequest;
use overlock_json::{CloseOptions, Delivered, PartialDocument, Protocol, Seam, StitchOptions};
use serde::{Deserialize, Serialize};

use crate::backend::Retried;
use crate::marker::Marker;
use crate::progress::{Kpi, MeasuredKpi, proposed_kpis, split_progress, validate_kpi_progression};
use crate::strategy::Strategy;
use blank::{after_blank, split_blank};
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
    pub ways: Vec<Strategy>,
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
            ways: vec![Strategy::Overlap, Strategy::Remainder],
            max_failures: 3,
            max_iterations: 50,
            max_output_tokens: None,
            answer_chars: None,
            kpi: Kpi::Ask,
            kpi_patience: 3,
        }
    }
}

/// The next call of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextCall {
    /// The number of the call, from 1.
    pub iteration: u32,
    /// How to ask for the rest; `None` for the caller's own prompt and for the question which KPIs
    /// to count.
    pub way: Option<Strategy>,
    /// The end of the document that the answer should repeat, the prefill, or the excerpt that the
    /// prompt shows. Empty unless the call asks for the rest.
    ///
    /// A prefill never ends with white space: some upstreams reject that, and most models continue
    /// worse after it.
    pub overlap: String,
    /// What the answer should contain.
    pub wants: Wants,
    /// The marker around the parts of the prompt. An answer that contains it is rejected.
    pub marker: Marker,
}

/// What an answer should contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// The document, or the missing part of it.
    Document,
    /// The same, after a line with the progress in percent.
    ProgressAndDocument,
    /// The KPIs that can be counted in the document, and nothing of the document itself.
    Kpis,
    /// The rest of a text that is not JSON.
    Text,
}

/// The model's answer to one call.
#[derive(Clone, Copy, Debug)]
pub struct ModelOutput<'a> {
    /// The text received, even if the answer is incomplete.
    pub text: &'a [u8],
    /// How many tokens the text has.
    pub tokens: u64,
    /// Whether it is known to start exactly at the cut, after a prefill.
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

/// One call and its result. A run can be restored from its steps: see [`Continuation::resume`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The number of the call, from 1.
    pub iteration: u32,
    /// The strategy of the call; `None` for the caller's own prompt.
    pub way: Option<Strategy>,
    /// How many tokens the answer had.
    pub tokens: u64,
    /// The progress in percent that the model reported.
    pub kpi: Option<u8>,
    /// The KPIs that the model proposed, if the call asked for them;
    /// empty if none is usable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kpis: Option<Vec<MeasuredKpi>>,
    /// Whether there was progress by the measure of the run.
    pub progress: Progress,
    /// Whether this answer showed that the model is in a loop, which ends the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_looping: bool,
    /// What the answer did to the document.
    pub result: StepResult,
    /// How the answer ended, filled in by the code that made the call.
    #[serde(default, flatten)]
    pub end: StepEnd,
}

/// How an answer ended. This does not say whether the document is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepEnd {
    /// The provider's finish reason, such as `stop`, `length` or `content_filter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// The model's refusal text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The error that interrupted the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// The failed attempts before this answer. Boxed because they are rare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried: Option<Box<Retried>>,
    /// How many bytes the answer had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_bytes: Option<u64>,
}

impl Step {
    /// A step without progress.
    pub(crate) fn new(
        iteration: u32,
        way: Option<Strategy>,
        tokens: u64,
        result: StepResult,
    ) -> Self {
        Self {
            iteration,
            way,
            tokens,
            kpi: None,
            kpis: None,
            progress: Progress::Unknown,
            is_looping: false,
            result,
            end: StepEnd::default(),
        }
    }

    /// The length of the document after the step in bytes; `None` if the step failed.
    pub fn end_len(&self) -> Option<usize> {
        match &self.result {
            StepResult::Grown {
                offset,
                added_bytes,
                ..
            } => Some(offset + added_bytes),
            StepResult::Failed { .. } => None,
        }
    }

    /// How many tokens of the call a single uncut answer would have saved: the prompt of every call
    /// but the first, and the part of each answer that repeats the document.
    pub fn overhead_tokens(&self, input: u64) -> u64 {
        let added = match &self.result {
            StepResult::Grown { seam, .. } if seam == FIRST_SEAM => return 0,
            // A correction rewrites text that was already paid for.
            StepResult::Grown { .. } if self.is_correction() => 0,
            StepResult::Grown { added_bytes, .. } => *added_bytes as u64,
            StepResult::Failed { .. } => 0,
        };
        let bytes = self.end.answer_bytes.unwrap_or(added).max(added).max(1);
        let new = u128::from(self.tokens) * u128::from(added) / u128::from(bytes);
        let new = u64::try_from(new).unwrap_or(self.tokens);
        input.saturating_add(self.tokens - new)
    }

    /// Whether the answer holds no JSON at all, such as white space, prose or nothing.
    pub fn has_no_json(&self) -> bool {
        matches!(self.failure(), Some(Failure::Empty | Failure::NoJson))
    }

    /// Whether the upstream rejected the call, so that there is no answer.
    pub fn is_turned_down(&self) -> bool {
        matches!(self.failure(), Some(Failure::Refused { .. }))
    }

    fn failure(&self) -> Option<&Failure> {
        match &self.result {
            StepResult::Grown { .. } => None,
            StepResult::Failed { failure, .. } => Some(failure),
        }
    }

    /// Messages for the user about anything unusual in the step.
    pub fn warnings(&self) -> Vec<String> {
        let StepEnd {
            finish,
            refusal,
            broken,
            retried,
            ..
        } = &self.end;
        let refusal = refusal
            .as_ref()
            .map(|text| format!("the model declined: {text}"));
        let broken = broken
            .as_ref()
            .map(|error| format!("the answer was interrupted: {error}"));
        let finish = finish
            .as_deref()
            .filter(|finish| *finish == "content_filter");
        let finish = finish.map(|finish| format!("the provider ended the answer: `{finish}`"));
        let slipped = (self.progress == Progress::Slipped)
            .then(|| "the progress that the model reports fell".to_owned());
        let retried = retried.as_ref().map(ToString::to_string);
        let all = [retried, refusal, finish, broken, slipped];
        all.into_iter().flatten().collect()
    }

    /// The same step without text of the model, for display.
    #[must_use]
    pub fn without_text(&self) -> Self {
        Self {
            iteration: self.iteration,
            way: self.way,
            tokens: self.tokens,
            kpi: self.kpi,
            kpis: self.kpis.clone(),
            progress: self.progress,
            is_looping: self.is_looping,
            result: self.result.without_text(),
            end: StepEnd {
                finish: self.end.finish.clone(),
                refusal: None,
                broken: self.end.broken.clone(),
                retried: self.end.retried.clone(),
                answer_bytes: self.end.answer_bytes,
            },
        }
    }

    /// Whether it holds text of the model.
    pub fn has_text(&self) -> bool {
        self.end.refusal.is_some() || self.result.has_text()
    }
}

/// What an answer did to the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum StepResult {
    /// The document was extended, or replaced from an offset.
    Grown {
        /// How the answer was joined: a name of [`overlock_json::Outcome`], or `first` for the
        /// first answer, `kpis` for an answer that only proposes KPIs, `corrected` for a replaced
        /// document.
        seam: String,
        /// How many characters of the document the answer repeated.
        overlap: usize,
        /// Where the new text begins.
        offset: usize,
        /// The length of the new text in bytes.
        added_bytes: usize,
        /// The new text; empty in reports without text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        added: String,
        /// The bytes of an incomplete last character.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        half_character: Vec<u8>,
        /// How many bytes the join scanned, counting repeated scans.
        scanned: usize,
    },
    /// The answer changed nothing.
    Failed {
        /// Why not.
        failure: Failure,
        /// The answer: all of it while no document has begun, and then at most the first 64 KiB.
        /// `None` if it is blank.
        raw: Option<String>,
    },
}

impl StepResult {
    /// A copy without the text, which may be long.
    fn without_text(&self) -> Self {
        match self {
            Self::Grown {
                seam,
                overlap,
                offset,
                added_bytes,
                scanned,
                ..
            } => Self::Grown {
                seam: seam.clone(),
                overlap: *overlap,
                offset: *offset,
                added_bytes: *added_bytes,
                added: String::new(),
                half_character: Vec::new(),
                scanned: *scanned,
            },
            Self::Failed { failure, .. } => Self::Failed {
                failure: failure.without_text(),
                raw: None,
            },
        }
    }

    fn has_text(&self) -> bool {
        match self {
            Self::Grown {
                added,
                half_character,
                ..
            } => !added.is_empty() || !half_character.is_empty(),
            Self::Failed { raw, .. } => raw.is_some(),
        }
    }
}

/// The seam of an answer that starts a document or a text.
pub(crate) const FIRST_SEAM: &str = "first";

/// Whether an answer brought the document forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// It was not measured.
    #[default]
    Unknown,
    /// It did.
    Rose,
    /// It did not.
    Stalled,
    /// It did not, and the model reports less than before, which causes a warning.
    Slipped,
    /// Something that is counted became less.
    Fell,
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
    /// Whether the request limits the answer, so that the next one may be longer.
    has_answer_limit: bool,
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
            has_answer_limit: false,
        };
        // Limits of zero end the run at once.
        run.outcome = run.decide();
        run
    }

    /// Derives the marker from the request, and how many items its schemas require of an array:
    /// fewer equal items are not taken for a loop.
    pub fn set_request(&mut self, request: &ChatRequest) {
        self.marker = Marker::of_request(request);
        self.required_items = required_by_schemas(request);
        self.has_answer_limit = request.requested().is_some();
    }

    /// Sets whether the document is streamed to the client. If it is, a loop is not removed from
    /// it.
    pub fn set_streamed(&mut self, is_streamed: bool) {
        self.is_streamed = is_streamed;
    }

    /// The next call; `None` once the run has ended. Only [`answered`](Self::answered) and
    /// [`refused`](Self::refused) advance the run.
    pub fn next(&self) -> Option<NextCall> {
        if self.outcome.is_some() {
            return None;
        }
        let wants_kpis = self.document.is_some() && self.wants_kpis();
        let document = self.document.as_ref().filter(|_| !wants_kpis);
        let rest = document.map(|document| self.way_and_overlap(document.base()));
        let way = rest.map(|(way, _)| way);
        let overlap = rest.map_or("", |(_, overlap)| overlap).to_owned();
        Some(NextCall {
            iteration: self.tally.iterations + 1,
            way,
            overlap,
            wants: match way {
                None if wants_kpis => Wants::Kpis,
                Some(Strategy::Overlap) if self.options.kpi == Kpi::Ask => {
                    Wants::ProgressAndDocument
                }
                _ => Wants::Document,
            },
            marker: self.marker.clone(),
        })
    }

    /// Joins the answer to the document and decides whether to go on. An answer to any call but the
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
            _ if ask.marker.is_in(text) => StepResult::Failed {
                failure: Failure::MarkerInAnswer,
                raw: readable(text),
            },
            None => self.begin(text),
            Some(document) => join(document, ask, text, answer.is_at_cut),
        };
        let progress = self.progress(&result, kpi, &before);
        let is_looping = self.is_looping(&result);
        let result = if is_looping && !self.is_streamed {
            self.drop_loop(result)
        } else {
            result
        };
        Ok(self.take(Step {
            kpi,
            progress,
            is_looping,
            ..Step::new(ask.iteration, ask.way, answer.tokens, result)
        }))
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
        let (failure, kpis) = match (ask.wants, ask.way) {
            (Wants::Kpis, _) => (Failure::NoKpis { message }, Some(Vec::new())),
            (_, Some(_)) => (Failure::Refused { message }, None),
            (_, None) => return None,
        };
        let result = StepResult::Failed { failure, raw: None };
        Some(self.take(Step {
            kpis,
            ..Step::new(ask.iteration, ask.way, 0, result)
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
                kpis => Ok((grown("kpis", &nothing_added(document), document), kpis)),
            },
            (_, proposed) => Err(proposed.err().unwrap_or_default()),
        };
        let (result, kpis) = counted.unwrap_or_else(|message| {
            let failure = Failure::NoKpis { message };
            let raw = readable(answer.text);
            (StepResult::Failed { failure, raw }, Vec::new())
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

    /// How many answers in a row were too short for what they should bring: none began a document,
    /// or all were white space.
    pub(crate) fn short_answers(&self) -> u32 {
        match self.document {
            None => self.tally.failures,
            Some(_) => self.tally.blanks,
        }
    }

    /// How many tokens all answers had together.
    pub fn output_tokens(&self) -> u64 {
        self.tally.output_tokens
    }

    /// The limits and strategies of the run.
    pub fn options(&self) -> &ContinuationOptions {
        &self.options
    }

    /// The strategy and the overlap of the next call. After a failure, one of them or the answer
    /// limit changes, because a model at temperature 0 would fail the same way again.
    fn way_and_overlap<'a>(&self, base: &'a PartialDocument<'_>) -> (Strategy, &'a str) {
        let tally = &self.tally;
        let ways = self.options.ways.as_slice();
        let ways = if ways.is_empty() {
            &[Strategy::Overlap]
        } else {
            ways
        };
        let in_turn = ways.iter().cycle().skip(tally.way % ways.len());
        let in_turn = in_turn.take(ways.len()).copied();
        // If the only allowed strategy has just one overlap, another strategy is better than
        // repeating the call.
        let fallbacks = [Strategy::Overlap, Strategy::Remainder];
        let fallbacks = fallbacks.into_iter().filter(|way| !ways.contains(way));
        let order = in_turn.chain(fallbacks);
        let order: Vec<Strategy> = order.filter(|way| !tally.refused.contains(way)).collect();
        let mut failed_ways = tally.failed_ways.as_slice();
        // The same prefill may have a longer answer.
        if tally.is_prefill_blank() && self.has_answer_limit {
            failed_ways = &failed_ways[..failed_ways.len() - 1];
        }
        let failed = |way: Strategy| failed_ways.iter().filter(|it| **it == way).count();
        let untried = order.iter().find_map(|way| {
            let overlaps = self.overlaps(base, *way, failed(*way));
            Some((*way, *overlaps.get(failed(*way))?))
        });
        untried.unwrap_or_else(|| {
            let last = failed_ways.last();
            let other = order.iter().find(|way| Some(*way) != last);
            let way = *other.or(order.first()).unwrap_or(&ways[0]);
            let overlaps = self.overlaps(base, way, failed(way));
            (way, overlaps[failed(way) % overlaps.len()])
        })
    }

    /// Whether the next call asks which KPIs to count, which happens once.
    fn wants_kpis(&self) -> bool {
        let is_measured = matches!(&self.options.kpi, Kpi::Measured(kpis) if kpis.is_empty());
        is_measured && self.tally.kpis.is_none()
    }

    /// The overlaps to try, at least `retries` + 1 if there are so many: the usual one, longer
    /// ones, then shorter ones. The prefill is the whole document.
    fn overlaps<'a>(
        &self,
        base: &'a PartialDocument<'_>,
        way: Strategy,
        retries: usize,
    ) -> Vec<&'a str> {
        if way == Strategy::Prefill {
            return vec![split_blank(base.text()).0];
        }
        let answer_chars = self.options.answer_chars.or(self.tally.answer_chars);
        let usual = base.overlap_context(answer_chars);
        let mut overlaps = vec![usual];
        let chars = usual.chars().count();
        let room = answer_chars.map_or(usize::MAX, |most| (most / 4).saturating_sub(chars));
        let mut longest = usual;
        while overlaps.len() <= retries {
            let by = LONGER_OVERLAP.saturating_mul(overlaps.len());
            let longer = base.longer_overlap_context(answer_chars, by.min(room));
            if longer.len() <= longest.len() {
                break;
            }
            overlaps.push(longer);
            longest = longer;
        }
        let mut shorter = chars / 2;
        while overlaps.len() <= retries && shorter >= SHORTEST_OVERLAP {
            let start = usual.char_indices().nth(chars - shorter);
            overlaps.push(&usual[start.map_or(0, |(at, _)| at)..]);
            shorter /= 2;
        }
        overlaps
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
        match (document, result) {
            (
                Some(document),
                StepResult::Grown {
                    seam,
                    overlap,
                    scanned,
                    ..
                },
            ) => {
                let offset = document.base().text().len();
                self.document = Some(document);
                StepResult::Grown {
                    seam,
                    overlap,
                    offset,
                    added_bytes: 0,
                    added: String::new(),
                    half_character: Vec::new(),
                    scanned,
                }
            }
            (_, result) => result,
        }
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
                let seam = Seam {
                    outcome: overlock_json::Outcome::Exact,
                    offset: 0,
                    overlap: 0,
                    added: text.len(),
                    scanned: text.len(),
                };
                let result = grown(FIRST_SEAM, &seam, &document);
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
            } else if tally.brought_nothing == tally.failures {
                Reason::NoProgress
            } else {
                Reason::MergeFailures
            }
        } else if tally.is_looping {
            Reason::Repeating
        } else if tally.fell || tally.stalls > 0 && tally.stalls >= options.kpi_patience {
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

/// By how many characters an overlap grows after an ambiguous join.
const LONGER_OVERLAP: usize = 400;

/// An overlap of fewer characters may be found in the wrong place.
const SHORTEST_OVERLAP: usize = 40;

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
    let written = text;
    let fail = |failure| StepResult::Failed {
        failure,
        raw: readable(written),
    };
    if text.trim_ascii().is_empty() {
        return fail(Failure::Empty);
    }
    let blank = match ask.way {
        Some(Strategy::Prefill) => split_blank(document.base().text()).1.to_owned(),
        _ => String::new(),
    };
    let text = after_blank(text, &blank);
    let overlap = ask.overlap.clone() + &blank;
    let options = StitchOptions {
        protocol: match ask.way.unwrap_or(Strategy::Remainder) {
            Strategy::Prefill if is_at_cut => Protocol::AtCut,
            way => way.protocol(),
        },
        expected_overlap: (ask.way != Some(Strategy::Remainder)).then_some(&overlap),
    };
    let seam = document.stitch(text, &options);
    match Failure::from_join(&seam.outcome) {
        Some(failure) => fail(failure),
        None => grown(seam.outcome.name(), &seam, document),
    }
}

/// How many bytes of an answer that could not be joined are recorded.
const READABLE: usize = 64 << 10;

/// The start of an answer that changed nothing; `None` if it is blank.
pub(crate) fn readable(text: &[u8]) -> Option<String> {
    if text.trim_ascii().is_empty() {
        return None;
    }
    let most = text.len().min(READABLE);
    // Do not cut a character.
    let end = (most.saturating_sub(3)..=most)
        .rev()
        .find(|end| text.get(*end).is_none_or(|byte| byte & 0xC0 != 0x80));
    Some(String::from_utf8_lossy(&text[..end.unwrap_or(most)]).into_owned())
}

/// The seam of an answer that adds nothing to the document.
fn nothing_added(document: &Document) -> Seam {
    Seam {
        outcome: overlock_json::Outcome::Exact,
        offset: document.base().text().len(),
        overlap: 0,
        added: 0,
        scanned: 0,
    }
}

fn grown(name: &str, seam: &Seam, document: &Document) -> StepResult {
    StepResult::Grown {
        seam: name.to_owned(),
        overlap: seam.overlap,
        offset: seam.offset,
        added_bytes: document.base().text().len() - seam.offset,
        added: document.base().text()[seam.offset..].to_owned(),
        half_character: document.base().half_character().to_vec(),
        scanned: seam.scanned,
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
