//! Shows a cut document from its root to the cut, in as few characters as a prompt can spare.
//!
//! The scanner knows the way to the cut, from which the text is read again as
//! needed ([`outline`]). The budget is spent from the cut to the root
//! ([`spend`]), and the result is written from the root to the cut: all of it
//! ([`write`]), or as much as a limit allows ([`limit`]).
//! Everything that stays keeps its own white space, so that with enough budget
//! the rendered text is the base itself.
//!
//! Where the rule leaves room, it is read as follows:
//!
//! - The *cut value* is the scalar the text ends with, be it half or just ended
//!   (white space may follow, a comma may not). After a comma, a bracket or half
//!   a key there is none, and the first step is the nearest sibling.
//! - Bytes that are held back at the cut (half a character, half an escape, the
//!   first half of a surrogate pair) are in no value yet and are left out.
//! - A complete document has the root as its whole path: its items are spent
//!   from the last to the first, and its closing bracket stays.
//! - Summary mode hints the outermost value of which nothing was reached, so a
//!   container that was begun keeps its brackets and keys to its end. The cut
//!   value is hinted there too, in `tail` mode as well: nothing of it fits.
//! - The mark `…` is a hint like any other and costs no budget.
//! - Under a limit, a cut value that does not fit beside its path becomes its
//!   hint, or its tail in the `keep` and `tail` modes. A limit that even the
//!   innermost key outgrows keeps the end of the text after `…`.
//! - Under a limit, levels that would save next to nothing are spared while the
//!   others suffice, members lose their values before their names, and blanks at
//!   the cut that fill more than half of the limit are dropped.

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

/// The least [`RenderOptions::limit`]: room for a mark, a run and the end of a path.
const LEAST_LIMIT: usize = 200;

/// How [`render`] writes the value that the cut goes through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutValue {
    /// Like every other value: in full if it fits the budget, else as its hint.
    #[default]
    Hint,
    /// Always in full, outside of the budget.
    Keep,
    /// In full if it fits, else its last characters that do, after `…`.
    Tail,
}

/// How much [`render`] may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// What values may cost together; structure is free.
    pub budget: usize,
    /// How the value at the cut is written.
    pub cut_value: CutValue,
    /// The most characters of the whole rendered text, structure included; less than 200 counts as 200.
    pub limit: Option<usize>,
    /// How many bytes before the cut are read at most: a document that grows does not make its
    /// rendering dearer. Siblings farther back become one `<earlier items>`, and a value at the
    /// cut that is longer is not shown in full.
    pub look_back: Option<usize>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            budget: 500,
            cut_value: CutValue::Hint,
            limit: None,
            look_back: None,
        }
    }
}

/// Renders a text from its root to its cut under a budget of characters.
///
/// The budget goes to what is near the cut; what it does not reach becomes a
/// hint of its type, and far from the cut only structure is left.
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

/// Renders like [`render`], with another measure of what a value costs, such as tokens.
///
/// The measure is given a value as written, without its quotes.
pub fn render_with<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    options: &RenderOptions,
    measure: &dyn Fn(&str) -> usize,
) -> Result<String, NoJson> {
    Ok(render_base(&PartialDocument::read(text)?, options, measure))
}

/// The measure of [`render`]: one for each character as written.
pub(crate) fn characters(value: &str) -> usize {
    value.chars().count()
}

/// Renders what has been read already.
pub(crate) fn render_base(
    base: &PartialDocument<'_>,
    options: &RenderOptions,
    measure: &dyn Fn(&str) -> usize,
) -> String {
    let outline = Outline::of(base.text(), base.scanner(), options.look_back);
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
