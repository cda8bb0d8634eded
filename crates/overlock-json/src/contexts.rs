//! Collects what a prompt must show so that a model can continue a cut answer.

use serde::{Deserialize, Serialize};

use crate::close::{CloseOptions, NoJson};
use crate::cut::Cut;
use crate::partial_document::PartialDocument;
use crate::render::RenderOptions;
use crate::scan::Container;
use crate::stitch::{ENOUGH, Evidence};

/// The least number of characters of the overlap, unless the document is shorter.
const SHORTEST_OVERLAP: usize = 40;
/// The greatest number of characters of the overlap.
const LONGEST_OVERLAP: usize = 1_000;
/// How many characters before the cut must not contain the overlap a second time.
const UNIQUE_WITHIN: usize = 4_000;
/// How many characters of each element around the cut are shown, from its end.
const LONGEST_ELEMENT: usize = 1_000;

/// Options of [`contexts`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextOptions {
    /// How the path to the cut is rendered.
    pub render: RenderOptions,
    /// The maximum number of characters of the next answer, if known; the overlap takes at most a
    /// quarter of them.
    pub answer_chars: Option<usize>,
}

/// The forms of a cut document for a continuation prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contexts {
    /// The end of the base, verbatim, for the model to repeat; empty exactly when the document
    /// is complete.
    pub overlap_context: String,
    /// The cut form: the document from its root to the cut, verbatim.
    pub hierarchy_context: String,
    /// The cut form under a budget.
    pub hierarchy_context_for_prompt: String,
    /// The closed form.
    pub complete_part: String,
    /// Whether the closed form is valid JSON.
    pub parsing_success: bool,
    /// Where the document is cut, if it is.
    pub cut: Option<Cut>,
    /// The element that contains the cut, up to the cut.
    pub cut_off_element: String,
    /// The last complete element before it in the same container.
    pub element_before_cutoff: String,
}

/// Collects the forms of a cut document for a continuation prompt.
///
/// ```
/// use overlock_json::{ContextOptions, contexts};
///
/// let contexts = contexts(r#"[{"id": 1}, {"id": 2}, {"id"#, &ContextOptions::default())?;
/// assert_eq!(contexts.complete_part, r#"[{"id": 1}, {"id": 2}, {}]"#);
/// assert_eq!(contexts.overlap_context, r#"[{"id": 1}, {"id": 2}, {"id"#);
/// # Ok::<(), overlock_json::NoJson>(())
/// ```
pub fn contexts<T: AsRef<[u8]> + ?Sized>(
    text: &T,
    options: &ContextOptions,
) -> Result<Contexts, NoJson> {
    Ok(PartialDocument::read(text)?.contexts(options))
}

/// The elements around a cut, verbatim; only the end of long ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutElements<'a> {
    /// The element that contains the cut, up to the cut; empty if there is none.
    pub cut_off: &'a str,
    /// The last complete element before it in the same container; empty if there is none.
    pub before: &'a str,
}

impl Contexts {
    pub(crate) fn new(base: &PartialDocument<'_>, options: &ContextOptions) -> Self {
        let closed = base.close(&CloseOptions::default());
        let elements = cut_elements(base);
        Self {
            overlap_context: overlap_context(base, options.answer_chars).to_owned(),
            hierarchy_context: base.text().to_owned(),
            hierarchy_context_for_prompt: base.render(&options.render),
            parsing_success: closed.is_ok(),
            complete_part: closed.map(|closed| closed.json).unwrap_or_default(),
            cut: base.cut(),
            cut_off_element: elements.cut_off.to_owned(),
            element_before_cutoff: elements.before.to_owned(),
        }
    }
}

/// The elements around the cut of a base.
pub(crate) fn cut_elements<'a>(base: &'a PartialDocument<'_>) -> CutElements<'a> {
    if base.is_complete() {
        return CutElements::default();
    }
    let (cut_off, before) = elements_at_cut(base);
    let show =
        |element: &'a str| last_characters(element.trim_end_matches(JSON_SPACE), LONGEST_ELEMENT);
    CutElements {
        cut_off: show(cut_off),
        before: show(before),
    }
}

/// The element that contains the cut, and the complete one before it: items of the innermost open
/// array, or members of the innermost object if no array is open.
fn elements_at_cut<'a>(base: &'a PartialDocument<'_>) -> (&'a str, &'a str) {
    let text = base.text();
    let mut inner = None;
    for frame in base.scanner().open_frames() {
        if frame.container == Container::Array {
            break;
        }
        inner = Some(frame.opener);
    }
    let item_opener = inner.filter(|_| {
        base.scanner()
            .open_frames()
            .any(|frame| frame.container == Container::Array)
    });
    if let Some(opener) = item_opener {
        let comma = text[..opener]
            .trim_end_matches(JSON_SPACE)
            .strip_suffix(',');
        let before = comma.map_or("", |before| &before[element_start(before)..]);
        return (&text[opener..], before);
    }
    let (current, previous) = base.scanner().elements();
    let current = current.map_or("", |from| &text[from..]);
    (current, previous.map_or("", |(from, to)| &text[from..to]))
}

/// Where the element at the end of a text begins, or a byte inside it if it is longer than is shown.
fn element_start(text: &str) -> usize {
    let bytes = text.as_bytes();
    let farthest = text.len().saturating_sub(4 * LONGEST_ELEMENT);
    let (mut depth, mut at) = (0_usize, text.len());
    let (mut in_string, mut start) = (false, text.len());
    while at > farthest {
        at -= 1;
        let byte = bytes[at];
        if byte == b'"' {
            let backslashes = bytes[..at]
                .iter()
                .rev()
                .take_while(|byte| **byte == b'\\')
                .count();
            in_string ^= backslashes % 2 == 0;
        } else if !in_string {
            match byte {
                b']' | b'}' => depth += 1,
                b'[' | b'{' | b',' if depth == 0 => break,
                b'[' | b'{' => depth -= 1,
                _ => {}
            }
        }
        if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            start = at;
        }
    }
    text.ceil_char_boundary(start)
}

const JSON_SPACE: [char; 4] = [' ', '\n', '\r', '\t'];

/// The end of the base that a model is asked to repeat.
pub(crate) fn overlap_context<'a>(
    base: &'a PartialDocument<'_>,
    answer_chars: Option<usize>,
) -> &'a str {
    let longest = answer_chars.map_or(LONGEST_OVERLAP, |chars| {
        (chars / 4).clamp(SHORTEST_OVERLAP, LONGEST_OVERLAP)
    });
    overlap_within(base, SHORTEST_OVERLAP, longest)
}

/// The end of the base that a model is asked to repeat, between `shortest` and `longest` characters.
pub(crate) fn overlap_within<'a>(
    base: &'a PartialDocument<'_>,
    shortest: usize,
    longest: usize,
) -> &'a str {
    if base.is_complete() {
        return "";
    }
    let text = base.text();
    let innermost = base
        .scanner()
        .open_frames()
        .next()
        .map_or(0, |frame| frame.opener);
    let container = last_characters(&text[innermost..], longest).chars().count();
    let wanted = container
        .max(shortest)
        .max(unique_length(text))
        .max(telling_length(base))
        .min(longest);
    let overlap = last_characters(text, wanted);
    &text[outside_escape(text, text.len() - overlap.len(), wanted < longest)..]
}

/// The offset itself, or the beginning (or the end) of the escape sequence that it would split.
fn outside_escape(text: &str, at: usize, before: bool) -> usize {
    let bytes = text.as_bytes();
    let longest = "\\u0000".len();
    for start in at.saturating_sub(longest - 1)..at {
        let backslashes = bytes[..=start]
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        let len = if bytes.get(start + 1) == Some(&b'u') {
            longest
        } else {
            2
        };
        if backslashes % 2 == 1 && start + len > at {
            return if before {
                start
            } else {
                text.ceil_char_boundary(start + len)
            };
        }
    }
    at
}

/// How long the end of the text must be to be unique near the cut.
fn unique_length(text: &str) -> usize {
    let tail: Vec<char> = text.chars().rev().take(UNIQUE_WITHIN).collect();
    let repeated = crate::borders::common_prefixes(&tail)
        .into_iter()
        .skip(1)
        .max()
        .unwrap_or(0);
    repeated + 1
}

/// How many characters the end of the text needs to be clear evidence.
fn telling_length(base: &PartialDocument<'_>) -> usize {
    let text = base.text();
    let start = Evidence::new(base).shortest(2 * ENOUGH);
    text[text.floor_char_boundary(start)..].chars().count()
}

/// The last `count` characters of a text, or all of it.
fn last_characters(text: &str, count: usize) -> &str {
    match count
        .checked_sub(1)
        .and_then(|skipped| text.char_indices().rev().nth(skipped))
    {
        Some((start, _)) => &text[start..],
        None if count == 0 => "",
        None => text,
    }
}
