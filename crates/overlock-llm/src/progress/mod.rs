//! How much of the document is there, and is it still growing?
//!
//! Two answers: the share that the model itself claims to have delivered ([`extract_kpi`]), and
//! what can be counted in the document ([`MeasuredKpi`]), which is better than a guess.

mod asked;
mod claimed;
mod measured;

pub(crate) use asked::{MOST_KPIS, proposed_kpis};
pub use claimed::{extract_kpi, validate_kpi_progression};
pub(crate) use claimed::{split_label, split_progress};
pub(crate) use measured::Measure;
pub use measured::{KpiPathError, MeasuredKpi};

use serde::{Deserialize, Serialize};

/// Who says how much of the document is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kpi {
    /// The model is asked, where its answer has room for a word outside the JSON.
    #[default]
    Ask,
    /// It is counted in the document. Without anything to count, the model is asked once, after
    /// the first cut, what there is.
    Measured(Vec<MeasuredKpi>),
    /// Nobody.
    Off,
}
