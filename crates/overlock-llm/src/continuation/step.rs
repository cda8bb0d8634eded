//! The steps of a run: what each call did to the document.

use overlock_json::Suspicion;
use serde::{Deserialize, Serialize};

use super::Failure;
use crate::backend::Retried;
use crate::progress::MeasuredKpi;
use crate::strategy::Strategy;

/// One call and its result. A run can be restored from its steps: see
/// [`Continuation::resume`](super::Continuation::resume).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The number of the call, from 1.
    pub iteration: u32,
    /// The strategy of the call; `None` for the caller's own prompt.
    pub strategy: Option<Strategy>,
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
    /// Why the answer that completed the document may have left something out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspicious: Option<Suspicion>,
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
        strategy: Option<Strategy>,
        tokens: u64,
        result: StepResult,
    ) -> Self {
        Self {
            iteration,
            strategy,
            tokens,
            kpi: None,
            kpis: None,
            progress: Progress::Unknown,
            is_looping: false,
            suspicious: None,
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
    pub fn is_rejected(&self) -> bool {
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
        let suspicious = self.suspicious.as_ref();
        let suspicious = suspicious.map(|reason| format!("something may be missing: {reason}"));
        let all = [retried, refusal, finish, broken, slipped, suspicious];
        all.into_iter().flatten().collect()
    }

    /// The same step without text of the model, for display.
    #[must_use]
    pub fn without_text(&self) -> Self {
        Self {
            iteration: self.iteration,
            strategy: self.strategy,
            tokens: self.tokens,
            kpi: self.kpi,
            kpis: self.kpis.clone(),
            progress: self.progress,
            is_looping: self.is_looping,
            // It names members of the document.
            suspicious: self.suspicious.as_ref().map(Suspicion::without_text),
            result: self.result.without_text(),
            end: StepEnd {
                refusal: None,
                ..self.end.clone()
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
    /// The result of an answer that changed nothing.
    pub(crate) fn failed(failure: Failure, answer: &[u8]) -> Self {
        Self::Failed {
            failure,
            raw: readable(answer),
        }
    }

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

/// How many bytes of an answer that could not be joined are recorded.
pub(super) const READABLE: usize = 64 << 10;

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
