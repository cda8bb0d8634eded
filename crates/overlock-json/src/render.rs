//! stub
use crate::NoJson;
use serde::{Deserialize, Serialize};
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutValue {
    #[default]
    Hint,
    Keep,
    Tail,
}
#[derive(Clone, Copy, Debug)]
pub struct RenderOptions {
    pub budget: usize,
    pub cut_value: CutValue,
    pub limit: Option<usize>,
}
impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            budget: 500,
            cut_value: CutValue::Hint,
            limit: None,
        }
    }
}
pub fn render<T: AsRef<[u8]> + ?Sized>(
    _text: &T,
    _options: &RenderOptions,
) -> Result<String, NoJson> {
    todo!()
}
pub fn render_with<T: AsRef<[u8]> + ?Sized>(
    _text: &T,
    _options: &RenderOptions,
    _measure: &dyn Fn(&str) -> usize,
) -> Result<String, NoJson> {
    todo!()
}
pub(crate) fn render_prefix(
    _base: &[u8],
    _options: &RenderOptions,
    _measure: &dyn Fn(&str) -> usize,
) -> String {
    todo!()
}
