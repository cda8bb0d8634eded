//! Renders a cut document from its root to the cut under a budget.
//!
//! The path to the cut comes from the scanner; the text along it is read again as needed
//! ([`outline`]). The budget is spent from the cut to the root ([`spend`]), and the result is written
//! from the root to the cut: completely ([`write`]), or within a limit ([`limit`]). White space is
//! kept, so with enough budget the rendered text is the base itself.
//!
//! The rules in detail:
//!
//! - The *cut value* is the scalar at the end of the text, cut or complete (white space may follow, a
//!   comma may not). After a comma, a bracket or half a key there is none, and spending begins with
//!   the nearest sibling.
//! - Bytes that are held back at the cut (half a character, half an escape, the first half of a
//!   surrogate pair) belong to no value yet and are left out.
//! - In a complete document, the root is the whole path: budget is spent on its items from the last
//!   to the first, and its closing bracket stays.
//! - When the budget runs out, the outermost values that were not reached become hints of their type,
//!   so a container that was begun keeps its brackets and keys. This includes the cut value, also in
//!   `tail` mode.
//! - The mark `…` is a hint and costs no budget.
//! - Under a limit, a cut value that does not fit together with its path becomes its hint, or its
//!   tail in the `keep` and `tail` modes. If even the innermost key exceeds the limit, only the end of
//!   the text is kept after `…`.
//! - Under a limit, levels that would save little are kept while the others suffice, members lose
//!   their values before their names, and blanks at the cut that fill more than half of the limit are
//!   dropped.

mod levels;
mod limit;
mod outline;
mod run;
mod spend;
#[cfg(test)]
mod tests;
mod token;
mod write;

use serde::{Deserialize, Serialize};

use crate::{NoJson, PartialDocument};
use outline::Outline;
use spend::spend;
use write::Writer;

/// The least [`RenderOptions::limit`], enough for a mark, a run and the end of a path.
const LEAST_LIMIT: usize = 200;

/// How [`render`] writes the value at the cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutValue {
    /// Like every other value: in full if it fits the budget, else as its hint.
    #[default]
    Hint,
    /// Always in full, outside of the budget.
    Keep,
    /// In full if it fits, else as many of its last characters as fit, after `…`.
    Tail,
}

/// What [`render`] shows of the containers beside the path, far from the cut, when the budget has run
/// out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SummaryMode {
    /// Their types: `<object>` or `<array>`.
    #[default]
    Types,
    /// The keys of objects, at every depth, without values: `{"id": "...", "tags": <array>}`.
    Keys,
}

/// Options of [`render`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// The total cost of all values; structure is free.
    pub budget: usize,
    /// How the value at the cut is written.
    pub cut_value: CutValue,
    /// What is shown of containers far from the cut.
    pub summary: SummaryMode,
    /// The maximum number of characters of the rendered text, structure included; at least 200.
    pub limit: Option<usize>,
    /// How many bytes before the cut are read at most, so that the cost does not grow with the
    /// document. Siblings before them become one `<earlier items>`, and a longer value at the cut is
    /// not shown in full.
    pub look_back: Option<usize>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            budget: 500,
            cut_value: CutValue::Hint,
            summary: SummaryMode::Types,
            limit: None,
            look_back: None,
        }
    }
}

/// Renders a text from its root to its cut under a budget of characters.
///
/// The budget is spent on values near the cut. Other values become hints of their type, and far from
/// the cut only structure is left.
///
/// ```
/// use overlock_json::{RenderOptions, render};
///
/// let text = r#"{"meta": {"pages": 3}, "parts": [{"id": "one"}, {"id": "two", "text": "It was a"#;
/// let options = RenderOptions { budget: 10, ..RenderOptions::default() };
/// assert_eq!(
///     render(text, &options)?,
///     r#"{"meta": <object>, "parts": [<object>, {"id": <str>, "text": <str>"#,
/// );
/// assert_eq!(render(text, &RenderOptions::default())?, text);
/// # Ok::<(), overlock_json::NoJson>(())
/// ```
pub fn render<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    options: &RenderOptions,
) -> Result<String, NoJson> {
    render_with(text, options, &characters)
}

/// Renders like [`render`], with another measure of the cost of a value, such as tokens.
///
/// The measure gets the raw value, without its quotes.
pub fn render_with<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    options: &RenderOptions,
    measure: &dyn Fn(&str) -> usize,
) -> Result<String, NoJson> {
    Ok(render_base(&PartialDocument::read(text)?, options, measure))
}

/// The measure of [`render`]: one for each raw character.
pub(crate) fn characters(value: &str) -> usize {
    value.chars().count()
}

/// Renders a document that has been read.
pub(crate) fn render_base(
    base: &PartialDocument<'_>,
    options: &RenderOptions,
    measure: &dyn Fn(&str) -> usize,
) -> String {
    let outline = Outline::new(base.text(), base.scanner(), options.look_back);
    render_outline(&outline, options, measure)
}

fn render_outline(
    outline: &Outline<'_>,
    options: &RenderOptions,
    measure: &dyn Fn(&str) -> usize,
) -> String {
    let spending = spend(outline, options, measure);
    let writer = Writer::new(outline, &spending);
    match options.limit {
        None => writer.write(),
        Some(limit) => limit::write_within(&writer, options.cut_value, limit.max(LEAST_LIMIT)),
    }
}
