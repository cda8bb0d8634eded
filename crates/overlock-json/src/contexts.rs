//! stub
use crate::{Cut, NoJson, RenderOptions};
use serde::{Deserialize, Serialize};
#[derive(Clone, Debug, Default)]
pub struct ContextOptions { pub render: RenderOptions, pub answer_chars: Option<usize> }
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contexts {
    pub overlap_context: String,
    pub hierarchy_context: String,
    pub hierarchy_context_for_prompt: String,
    pub complete_part: String,
    pub parsing_success: bool,
    pub cut: Option<Cut>,
    pub cut_off_element: String,
    pub element_before_cutoff: String,
}
pub fn contexts<T: AsRef<[u8]> + ?Sized>(_text: &T, _options: &ContextOptions) -> Result<Contexts, NoJson> { todo!() }
