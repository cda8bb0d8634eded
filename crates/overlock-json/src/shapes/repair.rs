//! Requests that repair malformed JSON.

use crate::{Fix, NoJson, RepairOptions, Several, repair};
use serde::Serialize;

use super::{Object, Refusal};

/// The reply.
#[derive(Clone, Debug, Serialize)]
pub struct RepairedText {
    /// Valid JSON.
    pub json: String,
    /// The changes.
    pub fixes: Vec<Fix>,
}

/// Repairs a text.
pub fn repair_text(text: &[u8], options: RepairOptions) -> Result<RepairedText, NoJson> {
    let repaired = repair(text, &options)?;
    Ok(RepairedText {
        json: repaired.json,
        fixes: repaired.fixes,
    })
}

/// Repairs the `text` of an object with its option `several`.
pub fn repair_object(mut object: Object, options: RepairOptions) -> Result<RepairedText, Refusal> {
    let names = [("array", Several::Array), ("first", Several::First)];
    let options = RepairOptions {
        several: object.choice("several", &names)?.unwrap_or(options.several),
    };
    Ok(repair_text(object.text("text")?.as_bytes(), options)?)
}
