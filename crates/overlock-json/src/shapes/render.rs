//! Requests that render a cut text under a budget.

use crate::{CutValue, RenderOptions, SummaryMode, render};
use serde::Serialize;

use super::{Object, Refusal};

/// The least limit; with a smaller one, not even the path to the cut fits.
pub const LEAST_LIMIT: usize = 200;

/// The reply.
#[derive(Clone, Debug, Serialize)]
pub struct RenderedText {
    /// The rendered text, which ends at the cut.
    pub rendered: String,
}

/// Renders the `text` of an object. Its fields `budget`, `cut_value`, `summary` and `limit`
/// override the options.
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
    let modes = [("types", SummaryMode::Types), ("keys", SummaryMode::Keys)];
    let options = RenderOptions {
        budget: object.number("budget")?.unwrap_or(options.budget),
        cut_value: object
            .choice("cut_value", &names)?
            .unwrap_or(options.cut_value),
        summary: object.choice("summary", &modes)?.unwrap_or(options.summary),
        limit: limit.or(options.limit),
        ..options
    };
    let rendered = render(&object.text("text")?, &options)?;
    Ok(RenderedText { rendered })
}
