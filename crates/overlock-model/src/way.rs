//! How is a model asked to go on?

use overlock_budget::Model;
use overlock_json::Protocol;
use serde::{Deserialize, Serialize};

/// A way to ask for the rest of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// What there is goes in as the beginning of the model's own message, and the answer starts
    /// exactly at the cut.
    Prefill,
    /// The model begins by repeating the end of what there is. It must not be held to valid JSON
    /// meanwhile, because a fragment is none.
    Overlap,
    /// The model writes what is missing as a document of its own, in the same wrapper.
    Remainder,
}

impl Way {
    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Overlap => "overlap",
            Self::Remainder => "remainder",
        }
    }

    /// Whether the request may still hold the model to valid JSON.
    pub fn keeps_response_format(self) -> bool {
        self == Self::Remainder
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

/// The ways to ask a model, the best first; each next one is tried after the one before failed.
///
/// ```
/// use overlock_budget::Models;
/// use overlock_model::{Way, ways_for};
///
/// let model = Models::default().find("gpt-4o").model;
/// assert_eq!(ways_for(&model), [Way::Overlap, Way::Remainder]);
/// ```
pub fn ways_for(model: &Model) -> Vec<Way> {
    let mut ways = vec![Way::Overlap, Way::Remainder];
    if model.prefill {
        ways.insert(0, Way::Prefill);
    }
    ways
}
