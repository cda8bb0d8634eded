//! Requests that join the pieces of a document.

use crate::{Outcome, PartialDocument, Protocol, Seam, StitchOptions, Suspicion, stitch};
use serde::Serialize;

use super::{Object, Refusal};

/// The reply.
#[derive(Clone, Debug, Serialize)]
pub struct StitchedText {
    /// The text so far.
    pub json: String,
    /// Whether the document is complete.
    pub complete: bool,
    /// The result for each piece after the first.
    pub seams: Vec<StitchedSeam>,
    /// What the complete document says of itself that is not so: a piece may lack something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspicious: Option<String>,
}

/// The result for one piece.
#[derive(Clone, Debug, Serialize)]
pub struct StitchedSeam {
    /// The name of the outcome.
    pub outcome: &'static str,
    /// How many characters it repeats.
    pub overlap: usize,
    /// The two overlaps that are equally likely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lengths: Option<[usize; 2]>,
    /// Why it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Joins the `parts` of an object with its options `expected_overlap` and `protocol`.
pub fn stitch_object(mut object: Object, protocol: Protocol) -> Result<StitchedText, Refusal> {
    let parts = object.texts("parts")?;
    let expected = object.one_or_more_texts("expected_overlap")?;
    let names = [
        ("overlap", Protocol::Overlap),
        ("prefill", Protocol::Prefill),
        ("auto", Protocol::Auto),
    ];
    let protocol = object.choice("protocol", &names)?.unwrap_or(protocol);
    let [first, rest @ ..] = parts.as_slice() else {
        return Err(Refusal::unusable("`parts` is empty"));
    };
    if expected.len() > rest.len() {
        return Err(Refusal::unusable(format!(
            "`expected_overlap` has {} texts for {} seams",
            expected.len(),
            rest.len()
        )));
    }
    let mut base = PartialDocument::read(first)?;
    let mut seams = Vec::new();
    for (index, part) in rest.iter().enumerate() {
        let options = StitchOptions {
            protocol,
            expected_overlap: expected.get(index).and_then(Option::as_deref),
        };
        seams.push(stitch(&mut base, part, &options));
    }
    Ok(stitched(&base, &seams))
}

/// The reply for joined pieces.
pub fn stitched(base: &PartialDocument<'_>, seams: &[Seam]) -> StitchedText {
    StitchedText {
        json: base.text().to_owned(),
        complete: base.is_complete(),
        seams: seams.iter().map(StitchedSeam::from).collect(),
        suspicious: suspicion_of(base, seams).map(|suspicion| suspicion.to_string()),
    }
}

/// What a complete document that was joined says of itself that is not so.
pub fn suspicion_of(base: &PartialDocument<'_>, seams: &[Seam]) -> Option<Suspicion> {
    let is_joined = seams.iter().any(|seam| seam.outcome.is_accepted());
    is_joined.then(|| base.suspicion())?
}

impl From<&Seam> for StitchedSeam {
    fn from(seam: &Seam) -> Self {
        let (lengths, reason) = match &seam.outcome {
            Outcome::Ambiguous { shorter, longer } => (Some([*shorter, *longer]), None),
            Outcome::NoMatch(reason) => (None, Some(reason.to_string())),
            _ => (None, None),
        };
        Self {
            outcome: seam.outcome.name(),
            overlap: seam.overlap,
            lengths,
            reason,
        }
    }
}
