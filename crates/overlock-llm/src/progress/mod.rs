//! Measures how much of the document was delivered, and whether it still grows.
//!
//! There are two measures: the percentage that the model reports ([`extract_kpi`]), and counts in
//! the document ([`MeasuredKpi`]), which are more reliable.

mod asked;
mod claimed;
mod measured;

pub(crate) use asked::{MOST_KPIS, proposed_kpis};
pub use claimed::{extract_kpi, validate_kpi_progression};
pub(crate) use claimed::{split_label, split_progress};
pub(crate) use measured::Measure;
pub use measured::{KpiPathError, MeasuredKpi};

use serde::{Deserialize, Serialize};

/// How progress is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kpi {
    /// The model reports a percentage before the overlap.
    #[default]
    Ask,
    /// Elements of the document are counted. If the list is empty, the model is asked once, after
    /// the first cut, what to count.
    Measured(Vec<MeasuredKpi>),
    /// Progress is not measured.
    Off,
}
