//! How is a model asked to go on?

use overlock_json::Protocol;
use serde::{Deserialize, Serialize};

/// A way to ask for the rest of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// What there is goes in as the beginning of the model's own message, without another word, and
    /// the answer starts exactly at the cut.
    Prefill,
    /// The model begins by repeating the end of what there is. It must not be held to valid JSON
    /// meanwhile, because a fragment is none.
    Overlap,
    /// The model writes what is missing as a document of its own, in the same wrapper.
    Remainder,
}

impl Strategy {
    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Overlap => "overlap",
            Self::Remainder => "remainder",
        }
    }

    /// Whether the request may still hold the model to valid JSON. After a beginning that is for
    /// the backend to say, which knows whether the server's grammar goes on from there.
    pub fn keeps_response_format(self) -> bool {
        matches!(self, Self::Prefill | Self::Remainder)
    }

    /// What the stitch is told about an answer to it.
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Prefill => Protocol::Prefill,
            Self::Overlap => Protocol::Overlap,
            Self::Remainder => Protocol::Auto,
        }
    }
}

/// The ways to ask a model, given whether its answer can be begun for it, the best first; each next one is tried after the one before failed.
///
/// ```
/// use overlock_llm::{Strategy, strategies_for_prefill};
///
/// let can_prefill = false;
/// assert_eq!(strategies_for_prefill(can_prefill), [Strategy::Overlap, Strategy::Remainder]);
/// ```
pub fn strategies_for_prefill(can_prefill: bool) -> Vec<Strategy> {
    let prefill = can_prefill.then_some(Strategy::Prefill);
    let ways = prefill
        .into_iter()
        .chain([Strategy::Overlap, Strategy::Remainder]);
    ways.collect()
}
