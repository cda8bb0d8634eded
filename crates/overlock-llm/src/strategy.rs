//! The strategies to ask a model for the rest of an answer.

use overlock_json::Protocol;
use serde::{Deserialize, Serialize};

/// How a model is asked for the rest of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The document so far is sent as the start of the model's own message, without instructions,
    /// and the answer starts exactly at the cut.
    Prefill,
    /// The model begins by repeating the end of the document. JSON mode must be off, because the
    /// answer is only a fragment of a document.
    Overlap,
    /// The model writes the missing part as a separate document with the same outer keys.
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

    /// Whether the request keeps its response format. With a prefill, the backend removes it if the
    /// server's grammar would start from the beginning.
    pub fn keeps_response_format(self) -> bool {
        matches!(self, Self::Prefill | Self::Remainder)
    }

    /// The protocol for joining its answers.
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Prefill => Protocol::Prefill,
            Self::Overlap => Protocol::Overlap,
            Self::Remainder => Protocol::Remainder,
        }
    }
}

/// The strategies for a model, the best first. Each is tried after the one before it failed.
///
/// ```
/// use overlock_llm::{Strategy, strategies_for_prefill};
///
/// let can_prefill = false;
/// assert_eq!(strategies_for_prefill(can_prefill), [Strategy::Overlap, Strategy::Remainder]);
/// ```
pub fn strategies_for_prefill(can_prefill: bool) -> Vec<Strategy> {
    let prefill = can_prefill.then_some(Strategy::Prefill);
    let others = [Strategy::Overlap, Strategy::Remainder];
    prefill.into_iter().chain(others).collect()
}
