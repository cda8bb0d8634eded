//! Requests that close cut JSON.

use crate::{CloseOptions, Fix, NoJson, close};
use serde::Serialize;

use super::{Object, Refusal};

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
}

/// Closes a text.
pub fn close_text(text: &[u8], options: CloseOptions) -> Result<ClosedText, NoJson> {
    let closed = close(text, &options)?;
    Ok(ClosedText {
        json: closed.json,
        complete: closed.complete,
        truncated: closed.truncated,
        dropped: closed.dropped,
        fixes: closed.fixes,
    })
}

/// Closes the `text` of an object with its option `strict`.
pub fn close_object(mut object: Object, options: CloseOptions) -> Result<ClosedText, Refusal> {
    let options = CloseOptions {
        strict: object.flag("strict")?.unwrap_or(options.strict),
    };
    Ok(close_text(object.text("text")?.as_bytes(), options)?)
}
