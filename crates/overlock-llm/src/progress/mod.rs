//! Measures how much of the document was delivered, and whether it still grows.
//!
//! There are two measures: the percentage that the model reports ([`extract_kpi`]), and counts in
//! the document ([`MeasuredKpi`]), which are more reliable.

mod measured;
mod proposed;
mod reported;

pub(crate) use measured::Measure;
pub use measured::{KpiPathError, MeasuredKpi};
pub(crate) use proposed::{MOST_KPIS, proposed_kpis};
pub use reported::{extract_kpi, validate_kpi_progression};
pub(crate) use reported::{split_label, split_progress};

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
