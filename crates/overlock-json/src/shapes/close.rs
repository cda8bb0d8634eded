//! Requests that close cut JSON.

use crate::{CloseOptions, Fix, NoJson, PartialDocument};
use serde::Serialize;

use super::{Object, Refusal, is_zero};

/// The reply.
#[derive(Clone, Debug, Serialize)]
pub struct ClosedText {
    /// Valid JSON.
    pub json: String,
    /// Whether the text was complete already.
    pub complete: bool,
    /// The path of the truncated string.
    pub truncated: Option<String>,
    /// The path of the dropped value.
    pub dropped: Option<String>,
    /// The repairs before closing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<Fix>,
    /// How many documents of the text were left out, because only one is closed.
    #[serde(skip_serializing_if = "is_zero")]
    pub other_documents: usize,
}

/// Closes a text.
pub fn close_text(text: &[u8], options: CloseOptions) -> Result<ClosedText, NoJson> {
    let base = PartialDocument::read(text)?;
    let closed = base.close(&options)?;
    Ok(ClosedText {
        json: closed.json,
        complete: closed.complete,
        truncated: closed.truncated,
        dropped: closed.dropped,
        fixes: closed.fixes,
        other_documents: base.other_documents(),
    })
}

/// Closes the `text` of an object with its option `strict`.
pub fn close_object(mut object: Object, options: CloseOptions) -> Result<ClosedText, Refusal> {
    let options = CloseOptions {
        strict: object.flag("strict")?.unwrap_or(options.strict),
    };
    Ok(close_text(object.text("text")?.as_bytes(), options)?)
}
