//! stub
use crate::Base;
use serde::{Deserialize, Serialize};
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    Overlap,
    Prefill,
    #[default]
    Auto,
}
#[derive(Clone, Copy, Debug, Default)]
pub struct StitchOptions<'a> {
    pub protocol: Protocol,
    pub expected_overlap: Option<&'a str>,
}
/// How a fragment relates to the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Overlap,
    Exact,
    Reformatted,
    Resumed,
    Remainder,
    Repeat,
    Ambiguous { shorter: usize, longer: usize },
    NoMatch { reason: String },
}
impl Outcome {
    /// kebab-case name
    pub fn name(&self) -> &'static str {
        todo!()
    }
    pub fn is_accepted(&self) -> bool {
        todo!()
    }
}
/// What became of one fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seam {
    pub outcome: Outcome,
    /// Where in the base's text the fragment was joined: the base's length before.
    pub offset: usize,
    /// How many characters of the fragment's start the base already had.
    pub overlap: usize,
    /// How many bytes the base grew by.
    pub added: usize,
}
pub fn stitch<T: AsRef<[u8]> + ?Sized>(
    _base: &mut Base<'_>,
    _fragment: &T,
    _options: &StitchOptions<'_>,
) -> Seam {
    todo!()
}
