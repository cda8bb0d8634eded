//! The stored form of a run.
//!
//! Of the document only the text is stored and scanned again on loading: that takes no longer than
//! deserializing, and stored data is not trusted.

use overlock_json::PartialDocument;
use serde::{Deserialize, Serialize};

use super::document::Document;
use super::tally::Tally;
use super::{Continuation, ContinuationOptions, Outcome, ResumeError, measured};
use crate::marker::Marker;

#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    options: ContinuationOptions,
    /// `None` while there is no document.
    text: Option<String>,
    half_character: Vec<u8>,
    tally: Tally,
    raw: String,
    outcome: Option<Outcome>,
    #[serde(default)]
    marker: Marker,
}

impl From<Continuation> for Stored {
    fn from(run: Continuation) -> Self {
        let base = run.base();
        Self {
            text: base.map(|base| base.text().to_owned()),
            half_character: base.map_or(Vec::new(), |base| base.half_character().to_vec()),
            options: run.options,
            tally: run.tally,
            raw: run.raw,
            outcome: run.outcome,
            marker: run.marker,
        }
    }
}

impl TryFrom<Stored> for Continuation {
    type Error = ResumeError;

    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        let document = match &stored.text {
            None => None,
            Some(text) => {
                let bytes = [text.as_bytes(), &stored.half_character].concat();
                let kpis = measured(&stored.options, &stored.tally);
                Some(Document::stored(&bytes, kpis).ok_or(ResumeError::NotADocument)?)
            }
        };
        let mut run = Self {
            options: stored.options,
            document,
            tally: stored.tally,
            raw: stored.raw,
            outcome: None,
            marker: stored.marker,
            is_streamed: false,
            required_items: 0,
            is_at_cut: false,
        };
        // Only the stored outcome knows why a run was stopped; only the document knows whether it
        // is complete.
        let reason = stored.outcome.as_ref().and_then(Outcome::reason);
        run.outcome = match reason {
            Some(reason) if !run.base().is_some_and(PartialDocument::is_complete) => {
                Some(run.ended(reason))
            }
            _ => run.decide(),
        };
        Ok(run)
    }
}
