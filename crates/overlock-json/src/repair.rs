//! stub
use crate::NoJson;
use serde::{Deserialize, Serialize};
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Several {
    #[default]
    Array,
    First,
}
#[derive(Clone, Copy, Debug, Default)]
pub struct RepairOptions {
    pub several: Several,
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    pub json: String,
    pub fixes: Vec<Fix>,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    pub kind: FixKind,
    pub offset: usize,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixKind {
    Stub,
}
pub fn repair<T: AsRef<[u8]> + ?Sized>(
    _text: &T,
    _options: &RepairOptions,
) -> Result<Repaired, NoJson> {
    todo!()
}
pub(crate) fn repair_open(_region: &[u8]) -> (String, Vec<Fix>) {
    todo!()
}
