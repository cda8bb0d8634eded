//! What is to be asked next, and is it time to stop?
//!
//! A run is a plain value that never calls a model: it says what to ask, is told what came back,
//! and decides. Whoever drives it, awaiting or not, drives the same one.
//!
//! One step is: build the prompt (1), call the model (2), merge its answer (4), look at what that
//! makes (5), decide (6); there is no step 3. What was accepted is never lost: the document
//! changes only when an answer is accepted, and then it is valid as far as it goes.

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

/// What a run may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContinuationOptions {
    /// The ways to ask on, the first of them first: see [`strategies_for_prefill`](crate::strategies_for_prefill). Without
    /// any, [`Strategy::Overlap`] is taken.
    pub ways: Vec<Strategy>,
    /// How many answers in a row may fail.
    pub max_failures: u32,
    /// How often the model is asked.
    pub max_iterations: u32,
    /// How many tokens all answers may have together.
    pub max_output_tokens: Option<u64>,
    /// How many characters one answer may hold, if that is known: what it is asked to repeat
    /// takes a quarter of them at most.
    pub answer_chars: Option<usize>,
    /// Who says how much of the document is there.
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

/// What to ask next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextCall {
    /// Which call this is, counted from 1.
    pub iteration: u32,
    /// How to ask for the rest; nothing if it is not the rest that is asked for, but the caller's
    /// own prompt or what can be counted.
    pub way: Option<Strategy>,
    /// The end of what is there: what the answer is to repeat, what is put in the model's mouth,
    /// or what it is shown. Empty if the rest is not asked for.
    ///
    /// What is put in the model's mouth never ends with white space: some upstreams refuse that,
    /// and most models stumble over it.
    pub overlap: String,
    /// What the answer is to hold.
    pub wants: Wants,
    /// What marks the parts of the prompt. It must not be in the answer.
    pub marker: Marker,
}

/// What an answer is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// The document, or what is missing of it.
    Document,
    /// The same, after a line on how much has been delivered.
    ProgressAndDocument,
    /// What can be counted in the document, and nothing of the document itself.
    Kpis,
    /// The rest of a text that is no document.
    Text,
}

/// What came back.
#[derive(Clone, Copy, Debug)]
pub struct ModelOutput<'a> {
    /// What the model wrote, as far as it came.
    pub text: &'a [u8],
    /// How many tokens that was.
    pub tokens: u64,
    /// Whether it is known to start where the document stops, after a prefill.
    pub is_at_cut: bool,
}

impl<'a> ModelOutput<'a> {
    /// An answer of which nothing is known but its text and its tokens.
    pub fn new(text: &'a [u8], tokens: u64) -> Self {
        Self {
            text,
            tokens,
            is_at_cut: false,
        }
    }
}

/// Why an answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The run has ended.
    #[error("the run has ended and takes no more answers")]
    Ended,
    /// It answers a call that is not to be made now, such as one that was answered already.
    #[error("this is an answer to call `{answered}`, but call `{awaited}` is to be answered")]
    NotAwaited {
        /// The call that it answers.
        answered: u32,
        /// The call that is to be answered.
        awaited: u32,
    },
}

/// What became of one answer. A run can be told again by its steps: see [`Continuation::resume`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Which call it was, counted from 1.
    pub iteration: u32,
    /// How it was asked for; nothing for the caller's own prompt.
    pub way: Option<Strategy>,
    /// How many tokens the answer had.
    pub tokens: u64,
    /// What share the model said it had delivered.
    pub kpi: Option<u8>,
    /// What the model says can be counted, if it was asked for that and not for the document;
    /// empty if it said nothing of use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kpis: Option<Vec<MeasuredKpi>>,
    /// Whether there was progress by the measure of the run.
    pub progress: Progress,
    /// Whether the model was found to be in a loop with it, which ends the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_looping: bool,
    /// What became of it.
    pub result: StepResult,
    /// How the answer ended, as far as whoever made the call has said.
    #[serde(default, flatten)]
    pub end: StepEnd,
}

/// How an answer ended, which tells nothing about whether the document is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepEnd {
    /// Why the provider says that it ended, such as `stop`, `length` or `content_filter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// What the model said instead of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// What broke it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// The calls for it that were not answered. There seldom are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried: Option<Box<Retried>>,
    /// How many bytes the answer had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_bytes: Option<u64>,
}

impl Step {
    /// How many bytes the document has after it; nothing if it did not grow.
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

    /// How many tokens of the call one uncut answer would not have taken: the prompt of every call
    /// but the first, and of each answer the bytes that the document did not have yet.
    pub fn overhead_tokens(&self, input: u64) -> u64 {
        let added = match &self.result {
            StepResult::Grown { seam, .. } if seam == FIRST_SEAM => return 0,
            // A correction replaces a document that was paid for.
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
        let failure = match &self.result {
            StepResult::Grown { .. } => return false,
            StepResult::Failed { failure, .. } => failure,
        };
        matches!(failure, Failure::Empty | Failure::NoJson)
    }

    /// Whether the upstream would have none of the call, so that there is no answer to it.
    pub fn is_turned_down(&self) -> bool {
        let failure = match &self.result {
            StepResult::Grown { .. } => return false,
            StepResult::Failed { failure, .. } => failure,
        };
        matches!(failure, Failure::Refused { .. })
    }

    /// What somebody who watches the run should know besides the result, in words.
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
            .map(|text| format!("the model declines: {text}"));
        let broken = broken
            .as_ref()
            .map(|error| format!("the answer broke off: {error}"));
        let finish = finish
            .as_deref()
            .filter(|finish| *finish == "content_filter");
        let finish = finish.map(|finish| format!("the provider ended the answer: `{finish}`"));
        let slipped = (self.progress == Progress::Slipped)
            .then(|| "the share that the model says it has delivered fell".to_owned());
        let retried = retried.as_ref().map(ToString::to_string);
        let all = [retried, refusal, finish, broken, slipped];
        all.into_iter().flatten().collect()
    }

    /// The same step without any words of the model, to be shown.
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

    /// Whether it holds any words of the model.
    pub fn has_text(&self) -> bool {
        self.end.refusal.is_some() || self.result.has_text()
    }
}

/// What an answer did to the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum StepResult {
    /// The document is this from an offset on.
    Grown {
        /// How the answer was joined, by the names of
        /// [`overlock_json::Outcome`]; `first` for the first, `kpis` for one that brings nothing
        /// but what to count, `corrected` for one that replaces the document.
        seam: String,
        /// How many characters it repeated.
        overlap: usize,
        /// Where the new text begins.
        offset: usize,
        /// How many bytes are new.
        added_bytes: usize,
        /// The new text; left out where only the story is told.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        added: String,
        /// The bytes of a last character that is not whole.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        half_character: Vec<u8>,
        /// How many bytes were looked at to join it, each as often as it was.
        scanned: usize,
    },
    /// Nothing.
    Failed {
        /// Why not.
        failure: Failure,
        /// What the model wrote: all of it while there is no document to fall back on, and then as
        /// much as somebody who asks why wants to read. Nothing if it wrote nothing.
        raw: Option<String>,
    },
}

impl StepResult {
    /// The same, copied without its text, of which there may be much.
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

/// The seam of an answer that begins a document or a text.
pub(crate) const FIRST_SEAM: &str = "first";

/// Whether an answer brought the document forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Nobody measured it.
    #[default]
    Unknown,
    /// It did.
    Rose,
    /// It did not.
    Stalled,
    /// It did not, and the model says that there is less than it said before, which is worth a
    /// warning.
    Slipped,
    /// There is less than before.
    Fell,
}

/// A long answer in the making.
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
    /// The last answer, as long as none was a document.
    raw: String,
    outcome: Option<Outcome>,
    marker: Marker,
    /// Whether the document is sent while it grows, so that none of it can be taken back.
    is_streamed: bool,
    /// The most items that an array of the document has to have.
    required_items: usize,
    /// Whether the request limits the answer, so that the next one may be longer.
    has_answer_limit: bool,
}

impl Continuation {
    /// A run in which nothing has been asked yet.
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
        // Who allows nothing gets nothing, and is told why.
        run.outcome = run.decide();
        run
    }

    /// Takes what the request decides: what marks the parts of the prompts, and how many items an
    /// array of the document may have to have. Fewer equal ones are no loop.
    pub fn set_request(&mut self, request: &ChatRequest) {
        self.marker = Marker::of_request(request);
        self.required_items = required_by_schemas(request);
        self.has_answer_limit = request.requested().is_some();
    }

    /// Says whether the document is sent while it grows. If it is, a loop stays in it.
    pub fn set_streamed(&mut self, is_streamed: bool) {
        self.is_streamed = is_streamed;
    }

    /// What to ask next; nothing once the run has ended. Asking twice gives the same: only an
    /// answer moves the run on.
    pub fn next(&self) -> Option<NextCall> {
        if self.outcome.is_some() {
            return None;
        }
        let wants_kpis = self.document.is_some() && self.wants_kpis();
        let document = self.document.as_ref().filter(|_| !wants_kpis);
        let asked = document.map(|document| self.way_and_overlap(document.base()));
        let way = asked.map(|(way, _)| way);
        let overlap = asked.map_or("", |(_, overlap)| overlap).to_owned();
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

    /// Takes what came back and decides. An answer to anything but what is to be asked now is
    /// refused and changes nothing: taken twice, it would double what it brought.
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
            iteration: self.tally.iterations + 1,
            way: ask.way,
            tokens: answer.tokens,
            kpi,
            kpis: None,
            progress,
            is_looping,
            result,
            end: StepEnd::default(),
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

    /// Takes note that the upstream refuses to be asked like this, and that there is no answer.
    /// Of the caller's own prompt there is no other kind: that gives nothing, and is for whoever
    /// drives the run to [`stop`](Self::stop). What is not to be asked now cannot be refused.
    pub fn refused(&mut self, ask: &NextCall, message: String) -> Option<Step> {
        self.check_awaited(ask).ok()?;
        let (failure, kpis) = match (ask.wants, ask.way) {
            (Wants::Kpis, _) => (Failure::NoKpis { message }, Some(Vec::new())),
            (_, Some(_)) => (Failure::Refused { message }, None),
            (_, None) => return None,
        };
        Some(self.take(Step {
            iteration: self.tally.iterations + 1,
            way: ask.way,
            tokens: 0,
            kpi: None,
            kpis,
            progress: Progress::Unknown,
            is_looping: false,
            result: StepResult::Failed { failure, raw: None },
            end: StepEnd::default(),
        }))
    }

    /// Takes what the model says can be counted.
    fn count_proposed(&mut self, answer: &ModelOutput<'_>) -> Step {
        let proposed = proposed_kpis(answer.text);
        let counted = match (&mut self.document, proposed) {
            (Some(document), Ok(proposed)) => match document.measure(&proposed) {
                kpis if kpis.is_empty() => {
                    Err("nothing that it names can still be counted".to_owned())
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
            iteration: self.tally.iterations + 1,
            way: None,
            tokens: answer.tokens,
            kpi: None,
            kpis: Some(kpis),
            progress: Progress::Unknown,
            is_looping: false,
            result,
            end: StepEnd::default(),
        })
    }

    fn take(&mut self, step: Step) -> Step {
        self.tally.add(&step, &self.options);
        self.outcome = self.decide();
        step
    }

    /// Gives a run another chance that ended because answers failed or brought nothing: what counts
    /// in a row counts from the beginning. Other limits stay.
    pub fn try_again(&mut self) {
        self.tally.forgive(&self.options);
        self.outcome = self.decide();
    }

    /// Ends the run for a reason that it cannot know of itself.
    pub fn stop(&mut self, reason: Reason) {
        if self.outcome.is_none() {
            self.outcome = Some(self.ended(reason));
        }
    }

    /// Takes note of how many characters the next answers may hold, where
    /// [nobody has said so](ContinuationOptions::answer_chars) before.
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

    /// Valid JSON of what is there: the document if it is whole, else its last valid part.
    pub fn last_valid_complete_part(&self) -> Option<String> {
        let closed = self.base()?.close(&CloseOptions::default());
        closed.ok().map(|closed| closed.json)
    }

    /// The last answer, where none of them was JSON.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether a first answer was cut, so that more are put together.
    pub fn is_accumulation_mode(&self) -> bool {
        self.base().is_some() && (self.outcome != Some(Outcome::Complete) || self.tally.pieces > 1)
    }

    /// What the document holds so far.
    pub fn delivered(&self) -> Option<&Delivered> {
        self.document.as_ref().map(Document::delivered)
    }

    /// What the model last said it had delivered.
    pub fn last_kpi(&self) -> Option<u8> {
        self.tally.last_kpi
    }

    /// What is counted in the document, with its numbers so far.
    pub fn kpis(&self) -> Vec<&MeasuredKpi> {
        match &self.document {
            Some(document) => document.kpis().collect(),
            None => measured(&self.options, &self.tally).iter().collect(),
        }
    }

    /// How often the model has been asked.
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

    /// What the run may do.
    pub fn options(&self) -> &ContinuationOptions {
        &self.options
    }

    /// How to ask for the rest. After a failure that is never the call that failed: the way, the
    /// length of the overlap or the answer limit changes, because a model at temperature 0 would
    /// fail again.
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
        // Where only one way is allowed and has only one overlap, another way is better than the
        // same call.
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

    /// Whether the model is to be asked what can be counted, which happens once.
    fn wants_kpis(&self) -> bool {
        let is_measured = matches!(&self.options.kpi, Kpi::Measured(kpis) if kpis.is_empty());
        is_measured && self.tally.kpis.is_none()
    }

    /// The different overlaps to try, up to so many after the first: the usual one, longer ones,
    /// then shorter ones. A prefill is all of the document.
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

    /// Whether the model is in a loop after an answer, as far as nothing asks for more items.
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

    /// Cuts a loop off after its first cycle. That reads the document once more, but ends the run.
    fn drop_loop(&mut self, result: StepResult) -> StepResult {
        let kpis: Vec<MeasuredKpi> = self.kpis().into_iter().cloned().collect();
        let end = self.tally.repetition.map(|it| it.first_end());
        let kept = end.and_then(|end| self.text().get(..end));
        let kept = kept.and_then(|text| Document::stored(text.as_bytes(), &kpis));
        match (kept, result) {
            (
                Some(kept),
                StepResult::Grown {
                    seam,
                    overlap,
                    scanned,
                    ..
                },
            ) => {
                let offset = kept.base().text().len();
                self.document = Some(kept);
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

    /// Takes a first answer.
    fn begin(&mut self, text: &[u8]) -> StepResult {
        let kpis = measured(&self.options, &self.tally);
        let read = Document::read(text, kpis).map_err(Failure::from);
        let is_unclear =
            |document: &Document| document.base().is_complete() && !is_clearly_the_document(text);
        let read = match read {
            Ok(document) if is_unclear(&document) => Err(Failure::Unclear),
            read => read,
        };
        match read {
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
                // It thinks that it is done, but it goes on.
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
        let reason = if self.document.is_some() && tally.is_refused_in_every(options) {
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

/// By how many characters an overlap grows that left room for doubt.
const LONGER_OVERLAP: usize = 400;

/// An overlap of fewer characters may be found in the wrong place.
const SHORTEST_OVERLAP: usize = 40;

/// What is counted: what the caller names, else what the model does.
fn measured<'a>(options: &'a ContinuationOptions, tally: &'a Tally) -> &'a [MeasuredKpi] {
    match &options.kpi {
        Kpi::Measured(kpis) if kpis.is_empty() => tally.kpis.as_deref().unwrap_or_default(),
        Kpi::Measured(kpis) => kpis,
        Kpi::Ask | Kpi::Off => &[],
    }
}

/// Joins a later answer.
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
    match Failure::of(&seam.outcome) {
        Some(failure) => fail(failure),
        None => grown(seam.outcome.name(), &seam, document),
    }
}

/// So many bytes are kept of an answer that could not be joined.
const READABLE: usize = 64 << 10;

/// The beginning of an answer that changed nothing; nothing if it is blank.
pub(crate) fn readable(text: &[u8]) -> Option<String> {
    if text.trim_ascii().is_empty() {
        return None;
    }
    let most = text.len().min(READABLE);
    // A character that would be cut is left out.
    let end = (most.saturating_sub(3)..=most)
        .rev()
        .find(|end| text.get(*end).is_none_or(|byte| byte & 0xC0 != 0x80));
    Some(String::from_utf8_lossy(&text[..end.unwrap_or(most)]).into_owned())
}

/// A seam at the end of a document that stays as it is.
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

/// What an answer says of its progress before it begins with what it was asked to repeat, and the
/// answer without a line of its own about it.
fn without_progress<'a>(answer: &'a [u8], overlap: &str) -> (Option<u8>, &'a [u8]) {
    let text = match std::str::from_utf8(answer) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&answer[..error.valid_up_to()]).unwrap_or_default(),
    };
    let (kpi, rest) = split_progress(text, overlap);
    (kpi, &answer[text.len() - rest.len()..])
}
