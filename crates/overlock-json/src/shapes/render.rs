//! The structure from the root to the cut, under a budget.

use crate::{CutValue, RenderOptions, render};
use serde::Serialize;

use super::{Object, Refusal};

/// The least that a limit may be: below it not even the path to the cut has room.
pub const LEAST_LIMIT: usize = 200;

/// A text as a prompt shows it.
#[derive(Clone, Debug, Serialize)]
pub struct RenderedText {
    /// It ends exactly at the cut.
    pub rendered: String,
}

/// Renders the `text` of an object. What the object says (`budget`, `cut_value`, `limit`) goes
/// over the options.
pub fn render_object(mut object: Object, options: RenderOptions) -> Result<RenderedText, Refusal> {
    let limit = object.number("limit")?;
    if limit.is_some_and(|limit| limit < LEAST_LIMIT) {
        return Err(Refusal::unusable(format!(
            "`limit` must be at least {LEAST_LIMIT}"
        )));
    }
    let names = [
        ("hint", CutValue::Hint),
        ("keep", CutValue::Keep),
        ("tail", CutValue::Tail),
    ];
    let options = RenderOptions {
        budget: object.number("budget")?.unwrap_or(options.budget),
        cut_value: object
            .choice("cut_value", &names)?
            .unwrap_or(options.cut_value),
        limit: limit.or(options.limit),
        ..options
    };
    let rendered = render(&object.text("text")?, &options)?;
    Ok(RenderedText { rendered })
}
